"""Small real pictures for tests."""

import io
from pathlib import Path

from PIL import Image


def jpeg(color="red", size=(16, 12)):
    """Return the bytes of a small JPEG."""
    raw = io.BytesIO()
    Image.new("RGB", size, color).save(raw, "JPEG")
    return raw.getvalue()


def put(path: Path, content: bytes | str | None = None) -> Path:
    """Write a file and its folders; a picture if nothing is said."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = jpeg() if content is None else content
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
