"""The command line: one function a command, no logic."""

from vsgraph.cli import arrays, correct, crawls, demo, embed, export, judge, train
from vsgraph.cli.group import main

__all__ = ["arrays", "correct", "crawls", "demo", "embed", "export", "judge", "main", "train"]
