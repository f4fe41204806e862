"""The command line: one function per command, no logic."""

from vsgraph.cli.group import main

__all__ = ["main"]
