"""The command line: one function a command, no logic."""

from vsgraph.cli import correct, crawls, demo, embed, export
from vsgraph.cli.group import main

__all__ = ["correct", "crawls", "demo", "embed", "export", "main"]
