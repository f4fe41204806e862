"""The demo: draw a made-up crawl, correct it, and compare its labels with the truth."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from vsgraph.common.files import refuse_file
from vsgraph.demo.made_up import make_crawl, write_crawl
from vsgraph.errors import InputError
from vsgraph.judge.evaluation import Evaluation, evaluate
from vsgraph.runs import Choices, Run, run
from vsgraph.settings import Settings

PER_CLASS = 143
SETTINGS = Settings(anchors_per_class=10)


class DemoResult(NamedTuple):
    """The run, with its crawl, correction and report, and how right its labels are."""

    run: Run
    judged: Evaluation


def run_demo(
    folder: Path,
    *,
    overwrite: bool = False,
    progress: bool = False,
    tell: Callable[[str], None] | None = None,
) -> DemoResult:
    """Draw a made-up crawl into ``folder/crawl`` and correct its labels in ``folder/run``.

    `tell` is called with a line of text per stage.
    """
    refuse_file(folder)
    if (folder / "run").exists() and not overwrite:
        raise InputError(
            f"{folder} exists already; choose another folder, or pass overwrite=True (--overwrite)"
        )
    table = write_crawl(make_crawl(per_class=PER_CLASS), folder / "crawl")
    choices = Choices(meanings=table.parent / "meanings.csv")
    demo = run(
        table, folder / "run", settings=SETTINGS, choices=choices,
        redo_from="crawl" if overwrite else None, progress=progress, tell=tell,
    )  # fmt: skip
    truth, known = demo.read_truth()
    return DemoResult(demo, evaluate(demo.correction, truth, known=known))
