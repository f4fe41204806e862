"""Crawls in: one lazy record, and a reader for each shape that people have them in."""

from vsgraph.crawls.inspecting import Inspection, inspect_crawl
from vsgraph.crawls.keeping import crawl_digest, load_crawl, save_crawl
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.reading import READERS, read_crawl
from vsgraph.crawls.record import Crawl

__all__ = [
    "READERS",
    "Crawl",
    "Inspection",
    "Problems",
    "crawl_digest",
    "inspect_crawl",
    "load_crawl",
    "read_crawl",
    "save_crawl",
]
