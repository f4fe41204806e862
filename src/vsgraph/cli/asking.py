"""Questions at the terminal: what classes mean, and what images show."""

import dataclasses
import sys
from collections.abc import Sequence

import click

from vsgraph.answers.decided import ClassWords
from vsgraph.errors import InputError
from vsgraph.meanings.senses import Meaning, doubt
from vsgraph.meanings.table import by_class

ASK = click.option("--ask", is_flag=True, help="Ask at the terminal what doubtful classes mean.")
MOST_SENSES = 9  # shown of a class
QUIT: tuple[str, ...] = ("",)  # the wish to stop


def can_ask() -> bool:
    """Return whether there is a terminal to ask at, and say so if not."""
    if not sys.stdin.isatty():
        click.echo("--ask: standard input is not a terminal, so nothing is asked", err=True)
    return sys.stdin.isatty()


def ask_meanings(meanings: Sequence[Meaning]) -> list[Meaning]:
    """Return the senses of all classes after asking about the doubtful ones."""
    answered: list[Meaning] = []
    for senses in by_class(meanings).values():
        why = doubt(senses)
        answered += _ask(senses, why) if why else senses
    return answered


def _ask(senses: list[Meaning], why: str) -> list[Meaning]:
    """Ask which sense of a class is meant, and return it first."""
    shown = senses[:MOST_SENSES]
    click.echo(f"{senses[0].class_name} ({why})")
    for number, sense in enumerate(shown, start=1):
        click.echo(f"  {number}  {sense.description:.100}")
    while True:
        question = "  Enter for 1, another number, or a description of your own"
        answer = click.prompt(question, default="1", show_default=False).strip()
        if not answer.isdecimal():
            own = Meaning(senses[0].class_name, None, answer, chosen=True)
            return [own, *(dataclasses.replace(sense, chosen=False) for sense in senses)]
        if 1 <= int(answer) <= len(shown):
            meant = senses[int(answer) - 1]
            others = (sense for sense in senses if sense is not meant)
            return [
                dataclasses.replace(meant, chosen=True, fit=1.0),
                *(dataclasses.replace(sense, chosen=False) for sense in others),
            ]
        click.echo(f"  there is no sense {answer}")


def ask_shown(labels: Sequence[str], words: ClassWords) -> tuple[str, ...] | None:
    """Ask whether an image shows its labels; return what it shows, None to skip it, or QUIT."""
    question = f"  shows {' and '.join(labels)}? (y)es, (n)o, (s)kip, (q)uit"
    try:
        while True:
            answer = click.prompt(question).strip().lower()[:1]
            if answer in "ysq":
                return {"y": tuple(labels), "s": None, "q": QUIT}[answer]
            if answer == "n":
                return _ask_instead(words)
    except click.Abort:  # the end of the input
        click.echo()
        return QUIT


def _ask_instead(words: ClassWords) -> tuple[str, ...]:
    """Ask what an image shows instead of its labels."""
    while True:
        question = "  what does it show? A class, or Enter for none of the classes"
        try:
            return words.split(click.prompt(question, default="", show_default=False), "  there")
        except InputError as error:
            click.echo(str(error))
