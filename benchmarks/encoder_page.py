"""The part of docs/performance.md on encoders."""

from typing import Any

Results = dict[str, Any]
NOTE = """\
Photos of COCO-Web, 192 px, and the same enlarged to 500 x 375, through EfficientNet-Lite0 at
224 px; captions (35 tokens on average) through MiniLM. End to end: files read and decoded, vectors
kept on disk. *plain* is the loop most people write: DataLoader, Pillow, eager torch in fp32, in
batches
of 32; *huge pages* the same with `THP_MEM_ALLOC_ENABLE=1`. The median of three rounds after one to
warm up.
clip-retrieval does not run beside a CPU torch without torchvision; its loop is the plain one with
workers. *decode* is reading, decoding and scaling alone, on one core.
"""


def encoder_part(results: Results) -> str:
    """Return the tables of encoders."""
    sets = ("photos 192", "photos 500", "texts")
    parts = [_table(results, name) for name in sets]
    return f"## Encoders\n\n{NOTE}\n" + "".join(parts) if any(parts) else ""


def _table(results: Results, name: str) -> str:
    start = f"encode {name} "
    found = {
        key.removeprefix(start): one
        for key, one in results.items()
        if key.startswith(start) and "failed" not in one
    }
    if not found:
        return ""
    bases = [key for key in found if key.startswith(("plain", "sentence"))]
    base = max(found[key]["per_second"] for key in bases)
    unit = "texts" if name == "texts" else "images"
    against = "sentence-transformers" if name == "texts" else "the fastest plain loop"
    lines = [f"| {name} | {unit}/s | times {against} |", "|---|---|---|"]
    for key, one in sorted(found.items(), key=lambda item: item[1]["per_second"]):
        ratio = "-" if key.startswith("decode") else f"{one['per_second'] / base:.1f}"
        lines.append(f"| {key} | {one['per_second']:.0f} | {ratio} |")
    return "\n".join(lines) + "\n\n"
