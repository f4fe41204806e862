"""Run the command line as ``python -m vsgraph``."""

from vsgraph.cli import main

main(prog_name="vsgraph")
