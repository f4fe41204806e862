"""Runs: from a crawl to corrected labels and a report, with all stages kept in one folder."""

from vsgraph.runs.choices import Choices
from vsgraph.runs.run import Run
from vsgraph.runs.start import preview, report_again, run

__all__ = ["Choices", "Run", "preview", "report_again", "run"]
