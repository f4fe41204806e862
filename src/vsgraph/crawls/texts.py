"""Text as crawls have it, made plain: bytes of any encoding, HTML, control characters."""

import html
import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

LONGEST_TEXT = 20_000
HIDDEN = re.compile(
    r"<(script|style)\b[^<>]{0,1000}>.{0,10000}?</\1\s*>", re.IGNORECASE | re.DOTALL
)
TAG = re.compile(r"</?[a-zA-Z!][^<>]{0,1000}>")
CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
WIDE_SPACE = r"[\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
NOT_PLAIN = rf"[<&\n\r\t]|  |{CONTROL}|{WIDE_SPACE}"


def decode(raw: bytes) -> tuple[str, bool]:
    """Return bytes as text, and whether they were UTF-8; otherwise Windows' Latin is assumed.

    >>> decode("café".encode("cp1252"))
    ('café', False)
    """
    try:
        return raw.decode("utf-8"), True
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace"), False


def plain_text(text: str) -> str:
    r"""Return text without tags, entities and control characters, spaces single.

    >>> plain_text("<b>Crane</b> &amp; chick<script>alert(1)</script>\x00")
    'Crane & chick'
    """
    text = text[:LONGEST_TEXT]
    for _ in range(2):  # what was escaped may be a tag
        text = html.unescape(TAG.sub(" ", HIDDEN.sub(" ", text)))
    text = TAG.sub(" ", HIDDEN.sub(" ", text))
    text = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join(re.sub(CONTROL, " ", text).split())


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of strings made plain, empty ones null; most need nothing."""
    odd = pc.or_(
        pc.match_substring_regex(column, _as_re2(NOT_PLAIN)),
        pc.greater(pc.utf8_length(column), LONGEST_TEXT),
    )
    plain = mend(column, odd, plain_text)
    return pc.if_else(pc.equal(plain, ""), pa.scalar(None, pa.string()), plain)


def _as_re2(pattern: str) -> str:
    """Return a pattern in Arrow's dialect, which writes characters by number in another way."""
    return re.sub(r"\\u([0-9a-f]{4})", r"\\x{\1}", pattern)


def mend(
    column: pa.ChunkedArray, odd: pa.ChunkedArray, make: Callable[[str], str]
) -> pa.ChunkedArray:
    """Return a column with the odd ones replaced by what `make` makes of them."""
    odd = pc.fill_null(odd, pa.scalar(value=False))
    if not pc.any(odd).as_py():
        return column
    replacements = [make(text) for text in column.filter(odd).to_pylist()]
    return pa.chunked_array(
        [pc.replace_with_mask(column.combine_chunks(), odd.combine_chunks(),
                              pa.array(replacements, column.type))]
    )  # fmt: skip
