"""What answers of people are worth: labels of runs after 0 to 20 answers per class.

    python experiments/people.py ../shared/data/coco-web ../shared/data/coco-web-b --seeds 3 \
        --write docs/results.md

The truth of the crawl answers: the web label if the photo shows it, else a class that it shows,
else "none of the classes". A seed draws the half of the photos that may be asked about. What is
measured is the other half, the same photos for both ways of asking, and nobody has answered on any
of them; one column is of all photos without an answer. At random, each class gets as many answers.
The queue (`vsgraph.method.queue`) gets as many in all, and the labels are corrected after each
batch. The runs are made as `vsgraph correct` makes them, and kept.
"""

import argparse
import dataclasses
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vsgraph
from doubt_table import write_meanings
from keeping import cache_folder, keep
from pages import publish
from ranked import auroc, calibration_error, coverage_at
from vsgraph.common.formatting import markdown_table
from vsgraph.common.plot import draw_lines
from vsgraph.method.queue import queue
from vsgraph.result.parts import NONE, UNANSWERED
from vsgraph.runs import Choices

ASKED = (0, 1, 3, 5, 10, 20)  # answers per class
WAYS = ("at random", "by the queue")
HEAD = ["crawl", "answers per class", "wrong labels found, AUROC", "of all unanswered",
        "coverage at 90 % right", "at 95 %", "export: coverage, right, %",
        "calibration error"]  # fmt: skip

Mask = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Crawl:
    """The arrays of a run, and what its photos show."""

    name: str
    arrays: dict[str, Any]
    shown: Mask  # (n_images, n_classes)

    @classmethod
    def of(cls, path: Path) -> "Crawl":
        """Correct a crawl, or find it done; its graph is used again."""
        out = cache_folder() / "runs" / path.name
        out.parent.mkdir(parents=True, exist_ok=True)
        write_meanings(path, out.with_suffix(".csv"))
        choices = Choices(meanings=out.with_suffix(".csv"))
        run = vsgraph.run(path, out, choices=choices, with_report=False)
        names = run.outputs.crawl().class_names
        arrays = run.arrays() | {"graph": run.correction.adjacency, "class_names": names}
        return cls(path.name, arrays, run.read_truth()[0].toarray().astype(bool))

    @property
    def web(self) -> NDArray[np.intp]:
        """The web labels."""
        return np.asarray(self.arrays["web_labels"], np.intp)

    @property
    def truth(self) -> NDArray[np.intp]:
        """What a person would say of each photo."""
        other = np.where(self.shown.any(axis=1), self.shown.argmax(axis=1), NONE)
        return np.where(self.shown[np.arange(len(other)), self.web], self.web, other)

    def correct(self, answers: NDArray[np.intp]) -> vsgraph.Correction:
        """Correct the labels, given the answers."""
        return vsgraph.correct(**(self.arrays | {"answers": answers}))


def ask(crawl: Crawl, way: str, seed: int) -> list[list[float]]:
    """Return the measures after each number of answers."""
    random = np.random.default_rng(seed)
    may_ask = random.random(len(crawl.web)) < 0.5
    order = random.permutation(np.flatnonzero(may_ask))
    answers = np.full(len(crawl.web), UNANSWERED)
    found = []
    correction = None
    for n in ASKED:
        if n and correction is not None and way == "by the queue":
            n_more = n * crawl.shown.shape[1] - int((answers != UNANSWERED).sum())
            rows = queue(correction, answers, n_more, among=may_ask)
        else:
            of_class = [order[crawl.web[order] == c][:n] for c in range(crawl.shown.shape[1])]
            rows = np.concatenate(of_class)
        answers[rows] = crawl.truth[rows]
        correction = crawl.correct(answers)
        found.append(measure(crawl, correction, ~may_ask, answers == UNANSWERED))
        print(crawl.name, way, seed, n, np.round(found[-1], 4), flush=True)
    return found


def measure(crawl: Crawl, made: vsgraph.Correction, judged: Mask, unanswered: Mask) -> list[float]:
    """Measure the labels of the judged photos, and of all unanswered ones."""
    rows = np.arange(len(crawl.web))
    belief, right = made.final_probs.max(), crawl.shown[rows, made.final_probs.argmax()]
    clean = crawl.shown[rows, crawl.web]
    left = judged & (made.final_labels >= 0)
    right_left = crawl.shown[rows, np.maximum(made.final_labels, 0)][left]
    return [
        auroc(made.label_quality[judged], clean[judged]),
        auroc(made.label_quality[unanswered], clean[unanswered]),
        coverage_at(belief[judged], right[judged], 0.9),
        coverage_at(belief[judged], right[judged], 0.95),
        float(left.sum() / judged.sum()),
        float(right_left.mean()),
        calibration_error(belief[judged], right[judged]),
    ]


def table(found: dict[tuple[str, str], Any]) -> str:
    """Return a row for each crawl, way of asking and number of answers, means over the seeds."""
    rows = []
    for (name, way), seeds in found.items():
        for n, values in zip(ASKED, np.mean(seeds, axis=0), strict=True):
            if n or way == WAYS[0]:
                own, every, ninety, more, left, right, error = values
                rows.append([
                    name, f"{n} {way}" if n else "0", f"{own:.3f}", f"{every:.3f}", f"{ninety:.2f}",
                    f"{more:.2f}", f"{100 * left:.1f}, {100 * right:.1f}", f"{error:.3f}",
                ])  # fmt: skip
    return markdown_table(HEAD, rows)


def figure(found: dict[tuple[str, str], Any]) -> str:
    """Draw the AUROC over the number of answers, a panel for each crawl."""
    panels: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for (name, way), seeds in found.items():
        points = zip(ASKED, np.mean(seeds, axis=0)[:, 0].tolist(), strict=True)
        panels.setdefault(name, {})[way] = list(points)
    title = "Wrong web labels found among photos that nobody was asked about"
    return draw_lines(panels, title=title, x_name="answers per class", y_name="AUROC")


def main() -> None:
    """Ask, print the table or put it and the figure into a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("crawls", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", vsgraph.VSGraphWarning)
    found = {}
    for path in options.crawls:
        crawl = Crawl.of(path)
        for way in WAYS:
            about = {"crawl": crawl.name, "way": way, "seeds": options.seeds}
            kept = keep(sys.modules[__name__], about, lambda c=crawl, w=way: {
                "seeds": [ask(c, w, seed) for seed in range(options.seeds)]})  # fmt: skip
            found[crawl.name, way] = kept["found"]["seeds"]
    how = f"*`python experiments/people.py` at {kept['commit']}; {options.seeds} seeds.*"
    lines = [*table(found).splitlines(), "", how]
    publish({"answers of people": lines}, {"answers": figure(found)}, options.write)


if __name__ == "__main__":
    main()
