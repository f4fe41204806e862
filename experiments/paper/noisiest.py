"""The classes that a figure shows: by name, or those that the pretrained network knows least."""

import numpy as np
from numpy.typing import NDArray

from vsgraph.errors import InputError
from work import Work


def chosen_classes(work: Work, shown: str | None, n: int) -> NDArray[np.intp]:
    """Return the numbers of classes to show.

    Parameters
    ----------
    work : Work
        Data and models.
    shown : str, optional
        Wnids with commas between; otherwise those of lowest accuracy on WebVision's validation
        images, as in the paper.
    n : int
        How many, where none are named.
    """
    names = work.crawl.class_names
    if shown:
        wanted = shown.split(",")
        unknown = [name for name in wanted if name not in names]
        if unknown:
            raise InputError(f"{unknown[0]} is none of the classes; --show takes wnids")
        return np.array([names.index(name) for name in wanted])
    recall = work.tested(work.model("pretrained"), "WebVision").classes.recall
    return np.argsort(recall, kind="stable")[:n]


def class_titles(work: Work) -> list[str]:
    """Return the names of the classes as people read them, by the official list."""
    names = work.crawl.class_names
    if work.all_classes is None:
        return list(names)
    lines = work.all_classes.read_text(encoding="utf-8").splitlines()
    words = {wnid: rest for wnid, _, rest in (line.partition(" ") for line in lines)}
    return [f"{words.get(name, '')} ({name})".strip() for name in names]
