"""One reader for each format of crawls."""
