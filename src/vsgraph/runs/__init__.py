"""Runs: a crawl to corrected labels and a report, in a folder that remembers what is done."""

from vsgraph.runs.result import Run
from vsgraph.runs.running import Choices, run

__all__ = ["Choices", "Run", "run"]
