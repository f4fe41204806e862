"""The errors that vsgraph raises on purpose; anything else is a bug.

::

    VSGraphError
    ├── InputError         (also a ValueError)   an argument or a file breaks a rule
    ├── TrainingError                            a training cannot continue
    └── MissingExtraError  (also an ImportError) an optional dependency is not installed

    VSGraphWarning         (a UserWarning)       something to keep in mind about the result
"""

import difflib
from collections.abc import Iterable


class VSGraphError(Exception):
    """Base of every error that vsgraph raises on purpose.

    >>> issubclass(InputError, VSGraphError), issubclass(MissingExtraError, VSGraphError)
    (True, True)
    """


class InputError(VSGraphError, ValueError):
    """An argument or a file breaks a rule; the message says which, where, and what to do.

    >>> from vsgraph import Settings
    >>> try:
    ...     Settings(n_neighbors=0)
    ... except InputError as error:
    ...     print(error)
    n_neighbors must be at least 1 and finite, got 0
    """


class TrainingError(VSGraphError):
    """A training cannot continue; the message says where it stopped and what is saved.

    >>> issubclass(TrainingError, VSGraphError)
    True
    """


class MissingExtraError(VSGraphError, ImportError):
    """An optional dependency is needed and not installed; the message names the extra.

    >>> print(MissingExtraError("a pandas table", "table"))
    a pandas table needs the extra 'table': pip install 'vsgraph[table]'
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': pip install 'vsgraph[{extra}]'")


class VSGraphWarning(UserWarning):
    """Something in the data that matters for reading the result, in one line.

    >>> issubclass(VSGraphWarning, UserWarning)
    True
    """


def is_meant(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to a misspelled one, or None if none is similar.

    >>> is_meant("neighbours", ["n_neighbors", "rounds"]), is_meant("Dog", ["dog"])
    ('n_neighbors', 'dog')
    """
    by_lower = {other.casefold(): other for other in known}
    similar = difflib.get_close_matches(name.casefold(), by_lower, n=1, cutoff=0.65)
    return by_lower[similar[0]] if similar else None
