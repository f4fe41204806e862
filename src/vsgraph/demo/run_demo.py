"""The demo: draw a made-up crawl, run the whole job on it, judge the labels by the truth."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

from vsgraph.common.files import refuse_file
from vsgraph.demo.made_up import make_crawl, write_crawl
from vsgraph.errors import InputError
from vsgraph.judge.evaluation import Evaluation, evaluate
from vsgraph.runs import Choices, Run, run
from vsgraph.settings import Settings

PER_CLASS = 143
SETTINGS = Settings(anchors_per_class=10, reject_nearness=0.7)  # a third shows other things


@dataclasses.dataclass(frozen=True)
class DemoResult:
    """What the demo did.

    Attributes
    ----------
    run : Run
        Its crawl, correction and report.
    judged : Evaluation
        The labels before and after, since the truth of a made-up crawl is known.
    """

    run: Run
    judged: Evaluation


def run_demo(
    folder: Path,
    *,
    per_class: int = PER_CLASS,
    choices: Choices | None = None,
    overwrite: bool = False,
    progress: bool = False,
    tell: Callable[[str], None] | None = None,
) -> DemoResult:
    """Draw a made-up crawl into ``crawl`` of a folder and correct its labels in ``run``.

    Parameters
    ----------
    folder : Path
        Where the results go.
    per_class : int
        Pictures that each query finds.
    choices : Choices, optional
        Encoders; the defaults otherwise.
    overwrite : bool
        Do an earlier demo again.
    progress : bool
        Show progress bars.
    tell : callable, optional
        Called with a line of text for each stage.

    Returns
    -------
    result : DemoResult
        With accuracy before and after.
    """
    refuse_file(folder)
    if (folder / "run").exists() and not overwrite:
        raise InputError(
            f"{folder} exists already; choose another folder, or say overwrite (--overwrite)"
        )
    table = write_crawl(make_crawl(per_class=per_class), folder / "crawl")
    chosen = dataclasses.replace(choices or Choices(), meanings=table.parent / "meanings.csv")
    made = run(
        table, folder / "run", settings=SETTINGS, choices=chosen,
        redo_from="crawl" if overwrite else None, progress=progress, tell=tell,
    )  # fmt: skip
    truth, known = made.truth()
    return DemoResult(made, evaluate(made.correction, truth, known=known))
