"""How many exported labels are right, by a random sample that people check.

The images that would be exported are put into ten strata by their confidence, and each stratum
gives its share of the sample. Every image has the same chance to be drawn, so the figure is the
plain share of right checks, whatever the confidence is worth; the strata only keep the sample from
being lopsided. The interval is exact: it holds all shares of right labels for which the count of
right checks is not too unlikely (2.5 % on either side) when images are drawn without return. Strata
make the count vary less, so the interval holds the truth at least as often as it says.
"""

import dataclasses
from bisect import bisect_left
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.checks import Floats, check_at_least
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Decision

LEVEL = 0.95
N_STRATA = 10


def audit_sample(correction: Correction, n: int, seed: int = 0) -> NDArray[np.intp]:
    """Draw images to check among those that are exported: kept or relabeled.

    Each image has its own random number, by seed and row. A larger sample holds most of a smaller
    one, and a sample drawn after labels changed holds most images of the sample before.

    Parameters
    ----------
    correction : Correction
        The labels to check.
    n : int
        Images to draw; all of them if there are fewer.
    seed : int
        Another seed draws another sample.

    Returns
    -------
    rows : int array of shape (n_drawn,)
        In random order, so that the first ones are a random sample, too.
    """
    check_at_least("images", n, 1)
    exported = np.flatnonzero(correction.decisions != Decision.REJECT)
    numbers = np.random.default_rng(seed).random(len(correction) + 1)
    drawn = draw_strata(correction.confidence[exported], numbers[exported], n, numbers[-1])
    rows = exported[drawn]
    return rows[np.argsort(numbers[rows], kind="stable")]


def draw_strata(confidence: Floats, numbers: Floats, n: int, start: float) -> NDArray[np.intp]:
    """Draw from each stratum its share, those of the lowest random numbers; return their places.

    A share that is not whole is rounded up or down at random, by `start` in 0..1, so that each
    image has the same chance.

    >>> draw_strata(np.array([0.9, 0.5, 0.8, 0.6]), np.array([0.1, 0.2, 0.3, 0.4]), 2, 0.5).tolist()
    [0, 1]
    """
    shares = strata_shares(confidence, numbers, n, start)
    chosen = [s[np.argsort(numbers[s], kind="stable")[:share]] for s, share in shares]
    return np.concatenate(chosen)


def strata_shares(
    confidence: Floats, numbers: Floats, n: int, start: float
) -> list[tuple[NDArray[np.intp], int]]:
    """Return the places of each stratum, the least sure first, and how many to draw from it."""
    n = min(n, len(confidence))
    order = np.lexsort((numbers, confidence))  # ties in random order
    strata = np.array_split(order, min(N_STRATA, max(n // 2, 1)))
    ends = np.cumsum([len(stratum) for stratum in strata])
    taken = np.floor(start + n * ends / max(ends[-1], 1)).astype(int)
    shares = np.diff(np.minimum(taken, n), prepend=0)
    return list(zip(strata, shares.tolist(), strict=True))


@dataclasses.dataclass(frozen=True)
class AuditStatement:
    """What an audit says of the exported labels; print it."""

    n_right: int
    n_checks: int
    n_exported: int  # images that the statement is about
    n_unanswered: int  # drawn, but skipped or not asked yet
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share of right labels among the checks."""
        return self.n_right / self.n_checks if self.n_checks else np.nan

    def __str__(self) -> str:
        if not self.n_checks:
            return "no label was checked yet"
        left = f"; {self.n_unanswered:,} unanswered" if self.n_unanswered else ""
        return (
            f"{100 * self.share:.1f} % of the exported labels are right ({100 * self.low:.1f} to "
            f"{100 * self.high:.1f}, {self.n_checks:,} check{'s' * (self.n_checks != 1)} of "
            f"{self.n_exported:,} images{left})"
        )


def audit_statement(
    n_right: int, n_checks: int, n_exported: int, n_unanswered: int = 0
) -> AuditStatement:
    """Return the share of right labels with its 95 % interval.

    Parameters
    ----------
    n_right, n_checks : int
        Images of the sample whose label is right, and that were checked.
    n_exported : int
        Images that the sample was drawn from.
    n_unanswered : int
        Images of the sample without an answer: skipped, or not asked yet.

    Returns
    -------
    statement : AuditStatement
        To print.

    Examples
    --------
    >>> print(audit_statement(186, 200, 5000))
    93.0 % of the exported labels are right (88.6 to 96.1, 200 checks of 5,000 images)
    >>> print(audit_statement(200, 200, 5000))
    100.0 % of the exported labels are right (98.2 to 100.0, 200 checks of 5,000 images)
    """
    low, high = exact_interval(n_right, n_checks, n_exported)
    return AuditStatement(n_right, n_checks, n_exported, n_unanswered, low, high)


def exact_interval(
    n_right: int, n_checks: int, n_all: int, level: float = LEVEL
) -> tuple[float, float]:
    """Return the shares of right labels among all that fit a random sample without return."""
    from scipy.stats import hypergeom

    if not n_checks:
        return 0.0, 1.0
    tail = (1 - level) / 2
    fewest, most = n_right, n_all - (n_checks - n_right)  # right ones among all

    def is_enough(n: int) -> bool:
        return bool(hypergeom.sf(n_right - 1, n_all, n, n_checks) > tail)

    def is_too_many(n: int) -> bool:
        return bool(hypergeom.cdf(n_right, n_all, n, n_checks) <= tail)

    low = _first(is_enough, fewest, most)
    high = _first(is_too_many, low, most + 1) - 1
    return low / n_all, high / n_all


def _first(is_so: Callable[[int], bool], start: int, stop: int) -> int:
    """Return the first number from which on something is so; `stop` if it is before none."""
    return bisect_left(range(stop), 1, lo=start, key=is_so)
