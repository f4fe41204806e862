"""Progress bars, all of one kind."""

from typing import Any

from tqdm import tqdm


def bar(
    total: int | None = None, title: str = "", unit: str = "it", *, progress: bool = False
) -> "tqdm[Any]":
    """Return a progress bar that shows only on a terminal, and only if `progress` is true.

    >>> with bar(2, "pictures", "image") as steps:
    ...     steps.update()
    """
    return tqdm(total=total, desc=title, unit=unit, disable=None if progress else True, leave=False)
