"""Tables put at their marks in a page whose prose is written by hand."""

from collections.abc import Sequence


def put(page: str, name: str, lines: Sequence[str]) -> str:
    """Replace what stands between a pair of marks; a page without them stays as it is."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    if start not in page:
        return page
    before, rest = page.split(start)
    return before + start + "\n".join(lines) + "\n" + end + rest.split(end)[1]
