"""The made-up crawl, and the whole job run on it."""
