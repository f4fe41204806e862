"""Crawls in: one lazy record, and a reader for each shape that people have them in."""
