"""JSON written item by item."""

import json
from typing import IO, Any


class JsonItems:
    r"""The items of a JSON list or object, written one at a time.

    >>> import io
    >>> file = io.StringIO()
    >>> items = JsonItems(file)
    >>> items.add(1), items.add({"a": "<b>"}), file.getvalue()
    (None, None, '\n1,\n{"a": "\\u003cb\\u003e"}')
    """

    def __init__(self, file: IO[str]) -> None:
        self.file = file
        self.count = 0

    def add(self, item: Any, *, key: str | None = None) -> None:  # noqa: ANN401
        """Write an item; with its key, if the items are those of an object."""
        name = "" if key is None else f"{plain_json(key)}: "
        self.file.write(f"{',' if self.count else ''}\n{name}{plain_json(item)}")
        self.count += 1


def plain_json(value: Any) -> str:  # noqa: ANN401
    r"""Return JSON in ASCII without characters of markup: ``<`` is ``\u003c``."""
    text = json.dumps(value)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
