"""An audit of a run: which images to check, what people said of them, and what follows."""

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from vsgraph.answers import AUDIT, Answer, Journal, read_answers
from vsgraph.common.checks import label_matrix
from vsgraph.judge.audit import AuditStatement, audit_sample, audit_statement
from vsgraph.judge.judged import all_right
from vsgraph.result.parts import Decision
from vsgraph.runs.run import Run


@dataclasses.dataclass(frozen=True, eq=False)
class Audit:
    """A sample of a run's exported labels, and the answers that were given for it.

    An answer says what an image shows, so it also counts for other labels: after a new correction,
    the sample is drawn again by the same random numbers, and the answers to images in it count.
    They change no label, and nothing learns from them.
    """

    run: Run
    rows: NDArray[np.intp]  # (n_drawn,), in the order to ask

    @classmethod
    def open(cls, run: Run, n_images: int, seed: int = 0) -> "Audit":
        """Draw the sample of a run."""
        return cls(run, audit_sample(run.correction, n_images, seed))

    @functools.cached_property
    def keys(self) -> Sequence[str]:
        """The key of each picture of the sample, (n_drawn,)."""
        return [str(key) for key in self.run.outputs.picture_keys(self.run.crawl)[self.rows]]

    def labels(self, row: int) -> tuple[str, ...]:
        """Return the names of an image's labels."""
        correction = self.run.correction
        return correction.names_of(correction.final_labels[row])

    def missing(self) -> list[int]:
        """Return the images of the sample that have no answer yet."""
        given = read_answers(self.run.folder.answers).audit
        return [int(r) for r, key in zip(self.rows, self.keys, strict=True) if key not in given]

    def record(self, journal: Journal, row: int, shown: Sequence[str]) -> None:
        """Write what an image shows: its classes, or none of them."""
        key = self.keys[int(np.flatnonzero(self.rows == row)[0])]
        image = str(self.run.crawl.table["image"][row].as_py())
        answer = Answer(key, image, self.labels(row), tuple(shown), purpose=AUDIT)
        journal.add([answer])

    def statement(self) -> AuditStatement:
        """Return how many exported labels are right, by the answers in the journals."""
        given = read_answers(self.run.folder.answers).audit
        checks = [
            set(self.labels(row)) <= set(given[key].new)
            for row, key in zip(self.rows, self.keys, strict=True)
            if key in given
        ]
        return self._state(sum(checks), len(checks))

    def statement_by(self, truth: Path | None, label_separator: str | None) -> AuditStatement:
        """Return how many exported labels are right, by a table of the truth."""
        shown, known = self.run.read_truth(truth, label_separator=label_separator)
        rows = self.rows[known[self.rows]]
        names = self.run.crawl.class_names
        final = label_matrix(self.run.correction.final_labels[rows], len(names))
        return self._state(int(all_right(final, csr_array(shown[rows])).sum()), len(rows))

    def _state(self, n_right: int, n_checks: int) -> AuditStatement:
        n_exported = int((self.run.correction.decisions != Decision.REJECT).sum())
        return audit_statement(n_right, n_checks, n_exported, len(self.rows) - n_checks)
