"""The meanings of classes as a table to edit: one row per sense, the chosen ones marked."""

import csv
import dataclasses
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from vsgraph.common.files import mend_leftovers, write_whole
from vsgraph.common.stores import refuse_stored
from vsgraph.errors import InputError, is_meant
from vsgraph.meanings.senses import Meaning, candidate_senses, doubt, refuse_alike
from vsgraph.meanings.wordnet import WordNet

COLUMNS = ("class", "chosen", "doubt", "wnid", "match", "description")
MARKS = {"yes": True, "y": True, "x": True, "1": True, "true": True} | dict.fromkeys(
    ("", "no", "n", "0", "false", "unwanted"), False
)
UNWANTED = "unwanted"


def write_meanings(
    path: str | Path, meanings: Sequence[Meaning], *, overwrite: bool = False
) -> None:
    """Write meanings as CSV, in the order given: class, chosen, doubt, wnid, match, description.

    Beside a chosen sense, `doubt` says why another one may be right. The column is not read again.
    A sense marked 'unwanted' is found among the images of its class, and left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "meanings.csv"
    ...     write_meanings(path, [Meaning("crane", None, "a wading bird", chosen=True)])
    ...     print(path.read_text(encoding="utf-8"))
    class,chosen,doubt,wnid,match,description
    crane,yes,,,,a wading bird
    """
    path = Path(path)
    refuse_table(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    mend_leftovers(path.parent)
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    doubts = {name: doubt(senses) for name, senses in by_class(meanings).items()}
    for meaning in meanings:
        marks = ("yes", doubts[meaning.class_name]) if meaning.chosen else ("", "")
        marks = (UNWANTED, "") if meaning.unwanted else marks
        match = "" if meaning.match is None else f"{meaning.match:.3f}"
        table.writerow((meaning.class_name, *marks, meaning.wnid, match, meaning.description))
    write_whole(path, text.getvalue())


def refuse_table(path: Path, *, overwrite: bool) -> None:
    """Refuse to replace a table, unless `overwrite` is set."""
    refuse_stored(path)
    if path.exists() and not overwrite:
        raise InputError(
            f"{path} exists already and may have been edited; choose another name, or pass "
            "overwrite=True (--overwrite)"
        )


def by_class(meanings: Sequence[Meaning]) -> dict[str, list[Meaning]]:
    """Return the senses of each class, classes in the order of their first sense."""
    senses: dict[str, list[Meaning]] = {}
    for meaning in meanings:
        senses.setdefault(meaning.class_name, []).append(meaning)
    return senses


def read_meanings(
    path: str | Path,
    class_names: Sequence[str] | None = None,
    *,
    wordnet: WordNet | None = None,
) -> list[Meaning]:
    """Read the chosen meaning of every class from a table, in the order of `class_names`.

    The table is CSV in UTF-8 with the columns class, and description or wnid or both; others are
    ignored. Without a column `chosen` every row counts. A row without a description gets WordNet's,
    which is opened only if the table has ids. If several rows of a class are chosen, their
    descriptions are joined. Every class must have a chosen row.

    >>> from vsgraph.crawls.readers.nus_wide import NUS_81
    >>> meanings = read_meanings(NUS_81)
    >>> len(meanings), meanings[-2].class_name, meanings[-3].description[:12]
    (81, 'window', 'whale: any o')
    """
    path = Path(path)
    rows = list(_read_rows(path))
    names = [row.class_name for row in rows] if class_names is None else class_names
    stripped = {name.strip(): name for name in names}
    if class_names is not None:
        refuse_alike([name.strip() for name in class_names])
    chosen: dict[str, list[Meaning]] = {name: [] for name in stripped}
    for row in rows:
        if row.class_name not in chosen:
            meant = is_meant(row.class_name[:60], chosen)
            near = f"; is {meant!r} meant?" if meant else ""
            raise row.error(f"there is no class {row.class_name!r:.60}{near}")
        meaning = _complete(row, wordnet)
        if meaning.chosen:
            chosen[row.class_name].append(meaning)
    return [_join(path, stripped[name], chosen[name], rows) for name in chosen]


def read_table(path: str | Path, *, wordnet: WordNet | None = None) -> list[Meaning]:
    """Read every sense of a table, whatever its mark, in the order of the table."""
    return [
        dataclasses.replace(_complete(row, wordnet), unwanted=row.mark == UNWANTED, match=row.match)
        for row in _read_rows(Path(path))
    ]


def choose_sense(meanings: Sequence[Meaning], chosen: Meaning) -> list[Meaning]:
    """Return meanings with one sense chosen in place of those that its class had.

    The class keeps its other senses, so that they can be chosen again. A sense that the table does
    not have yet is added.

    >>> bird = Meaning("crane", None, "a bird", chosen=True)
    >>> machine = Meaning("crane", None, "hoist")
    >>> [(sense.description, sense.chosen) for sense in choose_sense([bird, machine], machine)]
    [('hoist', True), ('a bird', False)]
    """
    own = [m for m in meanings if m.class_name == chosen.class_name and not _is_same(m, chosen)]
    others = [m for m in meanings if m.class_name != chosen.class_name]
    place = next((i for i, m in enumerate(meanings) if m.class_name == chosen.class_name), 0)
    n_before = sum(m.class_name != chosen.class_name for m in meanings[:place])
    new = dataclasses.replace(chosen, chosen=True, unwanted=False)
    kept = [dataclasses.replace(m, chosen=False) for m in own]
    return [*others[:n_before], new, *kept, *others[n_before:]]


def _is_same(one: Meaning, other: Meaning) -> bool:
    """Return whether two meanings of a class are the same sense."""
    return (one.wnid, one.description) == (other.wnid, other.description)


def read_unwanted(path: str | Path, *, wordnet: WordNet | None = None) -> list[Meaning]:
    """Read the senses that are marked 'unwanted' in a table."""
    rows = [row for row in _read_rows(Path(path)) if row.mark == UNWANTED]
    return [dataclasses.replace(_complete(row, wordnet), unwanted=True) for row in rows]


def senses_in(path: str | Path) -> set[tuple[str, str]]:
    """Return the class and WordNet id of every row of a table, whatever its mark."""
    return {(row.class_name, row.wnid) for row in _read_rows(Path(path))}


@dataclasses.dataclass(frozen=True)
class _Row:
    """A line of the table as written; `mark` is 'yes' if there is no column `chosen`."""

    path: Path
    line: int
    class_name: str
    mark: str
    wnid: str
    description: str
    match: float | None = None

    def error(self, problem: str) -> InputError:
        return InputError(f"{self.path}, line {self.line}: {problem}")


def _read_rows(path: Path) -> Iterator[_Row]:
    """Yield the lines that are not empty."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, restval="", strict=True)
            columns = {(name or "").strip().lower(): name for name in table.fieldnames or ()}
            if "class" not in columns or not {"wnid", "description"} & set(columns):
                raise InputError(
                    f"{path}, line 1: the columns must be class, and description or wnid, with "
                    f"commas between them; found {', '.join(map(str, columns)) or 'nothing':.80}"
                )
            for fields in table:
                if None in fields:
                    raise InputError(
                        f"{path}, line {table.line_num}: more fields than columns; put texts with "
                        "commas in double quotes"
                    )
                values = {name: (fields[key] or "").strip() for name, key in columns.items()}
                if any(values.values()):
                    yield _Row(
                        path, table.line_num, values["class"], values.get("chosen", "yes").lower(),
                        values.get("wnid", ""), values.get("description", ""),
                        _share(values.get("match", "")),
                    )  # fmt: skip
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not in UTF-8; save it as 'CSV UTF-8'") from error
    except csv.Error as error:
        raise InputError(f"{path} is not a complete CSV table: {error}") from error


def _share(text: str) -> float | None:
    """Return the share in a cell, None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def _complete(row: _Row, wordnet: WordNet | None) -> Meaning:
    """Check a line and add WordNet's description if it has none."""
    if row.mark not in MARKS:
        raise row.error(f"chosen must be 'yes', 'unwanted' or empty, got {row.mark!r:.40}")
    if not (row.wnid or row.description):
        raise row.error(f"{row.class_name!r:.60} has neither a description nor a wnid")
    description = row.description
    if row.wnid:
        wordnet = wordnet or WordNet.open()
        if row.wnid not in wordnet:
            raise row.error(f"{row.wnid!r:.40} is not the id of a noun of WordNet 3.0")
        _refuse_other_sense(row, wordnet)
        description = description or wordnet.describe(row.wnid)
    return Meaning(row.class_name, row.wnid or None, description, chosen=MARKS[row.mark])


def _refuse_other_sense(row: _Row, wordnet: WordNet) -> None:
    """Refuse an id that was changed while the description is still that of the former id."""
    if not row.description or row.description == wordnet.describe(row.wnid):
        return
    for sense in candidate_senses(row.class_name, wordnet):
        if sense.wnid is not None and sense.description == row.description:
            raise row.error(
                f"the description is that of {sense.wnid}, not of {row.wnid}; remove the one that "
                "is wrong"
            )


def _join(path: Path, name: str, meanings: Sequence[Meaning], rows: Sequence[_Row]) -> Meaning:
    """Return the one meaning of a class, several descriptions joined; refuse a class without."""
    if not meanings:
        row = next((row for row in rows if row.class_name == name.strip()), None)
        if row is None:
            raise InputError(f"{path}: no row for the class {name!r:.60}; add one")
        raise row.error(f"no meaning is chosen for {name!r:.60}; write 'yes' in one of its rows")
    together = ". ".join(dict.fromkeys(meaning.description for meaning in meanings))
    wnid = meanings[0].wnid if len(meanings) == 1 else None
    return Meaning(name, wnid, together, chosen=True)
