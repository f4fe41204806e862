"""The text of crawls made plain: bytes in any encoding, HTML, control characters."""

import html
import re

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
IN_NAMES = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")  # joiners may stay
NOT_PLAIN_IN_ARROW = re.sub(r"\\u([0-9a-f]{4})", r"\\x{\1}", NOT_PLAIN)  # the syntax of RE2


def decode(raw: bytes) -> tuple[str, bool]:
    """Return bytes as text, and whether they were UTF-8; if not, Windows-1252 is assumed."""
    try:
        return raw.decode("utf-8"), True
    except UnicodeDecodeError:
        return raw.decode("cp1252", errors="replace"), False


def plain_text(text: str) -> str:
    r"""Return text without tags, entities and control characters, with single spaces.

    >>> plain_text("<b>Crane</b> &amp; chick<script>alert(1)</script>\x00")
    'Crane & chick'
    """
    text = text[:LONGEST_TEXT]
    for _ in range(2):  # an escaped text may be a tag
        text = html.unescape(TAG.sub(" ", HIDDEN.sub(" ", text)))
    text = TAG.sub(" ", HIDDEN.sub(" ", text))
    text = text.encode("utf-8", "replace").decode("utf-8")
    return " ".join(re.sub(CONTROL, " ", text).split())


def plain_name(name: str) -> str:
    r"""Return the name of a class without control characters, which terminals would obey.

    >>> plain_name("great\tauk"), plain_name("\x1b[31mred")
    ('great auk', '\ufffd[31mred')
    """
    return IN_NAMES.sub("\ufffd", " ".join(name.split()))


def plain_names(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return names, or lists of names, made plain."""
    is_list = pa.types.is_list(column.type)
    names = pc.unique(pc.list_flatten(column) if is_list else column).to_pylist()
    plain = {name: plain_name(name) for name in names if name is not None}
    if all(name == other for name, other in plain.items()):
        return column
    rows = column.to_pylist()
    if is_list:
        mended = [row and [plain.get(name) for name in row] for row in rows]
    else:
        mended = [plain.get(name) for name in rows]
    return pa.chunked_array([pa.array(mended, column.type)])


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of strings made plain, empty ones null; most are plain already."""
    odd = pc.or_(
        pc.match_substring_regex(column, NOT_PLAIN_IN_ARROW),
        pc.greater(pc.utf8_length(column), LONGEST_TEXT),
    )
    odd = pc.fill_null(odd, pa.scalar(value=False))
    if pc.any(odd).as_py():
        mended = pa.array(map(plain_text, column.filter(odd).to_pylist()), column.type)
        whole = column.combine_chunks()
        column = pa.chunked_array([pc.replace_with_mask(whole, odd.combine_chunks(), mended)])
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
