"""How many labels can be had at which share of right ones: coverage against purity."""

import numpy as np
from numpy.typing import NDArray

from vsgraph.common.plot import draw_lines
from vsgraph.judge.counts import Truth, check_judged
from vsgraph.result.correction import Correction

STEPS = 10

Curve = dict[str, list[tuple[float, float]]]  # points (coverage, share of right labels) by line


def purity_curve(
    correction: Correction, truth: Truth | None = None, known: NDArray[np.bool_] | None = None
) -> Curve:
    """Return the share of right labels among the surest tenth, two tenths, ... of the images.

    Parameters
    ----------
    correction : Correction
        A correction whose labels were doubted, with one label per image.
    truth : array or csr_array of shape (n_images,) or (n_images, n_classes), optional
        What the images show.
    known : bool array of shape (n_images,), optional
        For which images that is known; all of them by default.

    Returns
    -------
    curve : dict
        The lines ``estimated`` and, with the truth, ``true``, each a list of points (coverage,
        share). Empty if labels were not doubted or meanings not checked.
    """
    if correction.estimate is None:
        return {}
    wanted = np.asarray(correction.unwanted) < 0
    belief = np.where(wanted, correction.final_probs.max(), 0).astype(np.float64)
    surest = np.argsort(-belief, kind="stable")
    curve = {"estimated": _shares(belief[surest])}
    if truth is not None:
        _, shown = check_judged(correction.final_probs, truth)
        likeliest = correction.final_probs.argmax()
        right = np.asarray(shown[np.arange(len(belief)), likeliest], float).ravel() * wanted
        judged = surest if known is None else surest[np.asarray(known)[surest]]
        if len(judged):
            curve["true"] = _shares(right[judged])
    return curve


def _shares(values: NDArray[np.floating]) -> list[tuple[float, float]]:
    """Return the mean of the first tenth, two tenths, ... of some values."""
    parts = [
        (step / STEPS, max(1, round(len(values) * step / STEPS))) for step in range(1, STEPS + 1)
    ]
    return [(share, float(values[:count].mean())) for share, count in parts]


def draw_purity(curve: Curve) -> str:
    """Return the curve as SVG, nothing if there is none."""
    if not curve:
        return ""
    return draw_lines(
        {"": curve}, title="Right labels among the surest images",
        x_name="share of the images", y_name="share of right labels",
    )  # fmt: skip
