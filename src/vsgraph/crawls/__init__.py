"""Crawls in: one lazy record, and a reader for each shape that people have them in."""

from vsgraph.crawls.crawl import Crawl
from vsgraph.crawls.formats import READERS, read_crawl
from vsgraph.crawls.inspection import Inspection, inspect_crawl
from vsgraph.crawls.problems import Problems
from vsgraph.crawls.saving import crawl_digest, load_crawl, save_crawl

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
