"""Runs: a crawl to corrected labels and a report, in a folder that remembers what is done."""

from vsgraph.runs.result import Run
from vsgraph.runs.running import run
from vsgraph.runs.steps import Choices

__all__ = ["Choices", "Run", "run"]
