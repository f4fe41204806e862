"""Images to judge a training by, in the classes of the crawl that it learns from."""

from collections.abc import Sequence
from pathlib import Path

from vsgraph.crawls import Crawl, read_crawl
from vsgraph.crawls.truth_table import truth_as_label
from vsgraph.errors import InputError


def read_validation(path: Path, class_names: Sequence[str]) -> tuple[Crawl, list[str]]:
    """Read images of known classes, numbered as `class_names`; also return the other classes."""
    columns = truth_as_label(path) or None
    crawl = read_crawl(path, classes=class_names, columns=columns)
    others = sorted(set(read_crawl(path, columns=columns).class_names) - set(class_names))
    if not len(crawl):
        raise InputError(
            f"{path} has no image of the crawl's classes to judge by, only of {some_names(others)}"
        )
    return crawl, others


def some_names(names: Sequence[str]) -> str:
    """Return the first few names.

    >>> some_names(["ant", "bee", "cat", "dog"])
    "'ant', 'bee', 'cat' ..."
    """
    return f"{', '.join(map(repr, names[:3]))}{' ...' * (len(names) > 3)}"
