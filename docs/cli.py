"""Write docs/cli.md from the commands' own help: ``python docs/cli.py``."""

from pathlib import Path

import click

from vsgraph.cli import main

TOP = """\
# The command line

Generated from the commands' help by `python docs/cli.py`; a test compares the two.

Exit codes: 0 success; 1 an error, printed in one line (wrong input, a missing extra, too little
room); 2 wrong options; 3 a file that cannot be read or written (a full disk, a folder that is
read-only) or an object store that denies access or does not answer, also in one line: which file,
why, and what to do; 130 stopped by Ctrl-C. Anything else is a bug and prints a traceback.

CRAWL, RUN and the outputs of `correct` and `export` may be addresses in an object store, as in
`s3://bucket/crawl` (docs/formats.md).
Results go to the standard output; warnings, progress bars and errors go to the standard error.
Progress bars are shown only on a terminal; elsewhere progress is a line every ten seconds.
`inspect`, `evaluate`, `compare`, `test` and `classify` take `--json`.

Completion: `eval "$(_VSGRAPH_COMPLETE=bash_source vsgraph)"` (or `zsh_source`, `fish_source`).
"""


def page() -> str:
    """Return the whole page."""
    parts = [TOP]
    asks_help = ["-h", "--help"]
    whole = click.Context(main, info_name="vsgraph", terminal_width=90, help_option_names=asks_help)
    parts.append(f"\n```\n{main.get_help(whole)}\n```\n")
    for name in main.list_commands(whole):
        command = main.get_command(whole, name)
        context = click.Context(
            command, info_name=f"vsgraph {name}", terminal_width=90, help_option_names=asks_help
        )
        text = command.get_help(context)
        parts.append(f"\n## vsgraph {name}\n\n```\n{text}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    (Path(__file__).parent / "cli.md").write_text(page(), encoding="utf-8")
