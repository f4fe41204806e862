"""The errors that vsgraph raises on purpose; anything else is a bug.

::

    VSGraphError
    ├── InputError         (also a ValueError)   an argument or a file breaks a rule
    ├── FileError          (also an OSError)     the system refuses to read or write a file
    ├── StoreError                               an object store refuses, or cannot be reached
    ├── TrainingError                            a training cannot continue
    ├── ClusterError                             machines cannot be reached, or cannot do their work
    └── MissingExtraError  (also an ImportError) an optional dependency is not installed

    VSGraphWarning         (a UserWarning)       something to keep in mind about the result
"""

import difflib
import errno
import os
from collections.abc import Iterable
from typing import Self

FULL = "make room and start again"
DENIED = "allow writing there, or choose another folder"
TAKEN = "choose another name"
ADVICE = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EROFS: DENIED,
    errno.EACCES: DENIED,
    errno.EPERM: DENIED,
    errno.ENOTDIR: TAKEN,
    errno.EEXIST: TAKEN,
    errno.ENOTEMPTY: TAKEN,
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOENT: "was it moved or removed meanwhile?",
}


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


class FileError(VSGraphError, OSError):
    """The system refuses to read or write a file; the message says which, why, and what to do.

    >>> print(FileError.of(OSError(errno.ENOSPC, "No space left on device", "run/run.json")))
    run/run.json: No space left on device; make room and start again
    """

    @classmethod
    def of(cls, error: OSError, path: object = None) -> Self:
        """Return an error of the system as one of vsgraph; `path` if it names no file."""
        code = error.errno
        if code is None and "requested and" in str(error):  # numpy's words for a full disk
            code = errno.ENOSPC
        reason = os.strerror(code) if code else str(error)
        where = error.filename if path is None else path
        where = where.decode(errors="replace") if isinstance(where, bytes) else where
        advice = ADVICE.get(code or 0, "check the disk and start again")
        made = cls(f"{'' if where is None else f'{where}: '}{reason}; {advice}")
        made.errno = error.errno
        return made


class StoreError(VSGraphError):
    """An object store refuses, or cannot be reached; the message says which, why, and what to do.

    It is no OSError: a picture that cannot be fetched now is not a picture that is missing.

    >>> issubclass(StoreError, VSGraphError), issubclass(StoreError, OSError)
    (True, False)
    """


class TrainingError(VSGraphError):
    """A training cannot continue; the message says where it stopped and what is saved.

    >>> issubclass(TrainingError, VSGraphError)
    True
    """


class ClusterError(VSGraphError):
    """Machines cannot be reached, or cannot do their work; the message says which and why.

    >>> issubclass(ClusterError, VSGraphError)
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
