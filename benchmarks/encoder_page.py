"""The part of docs/performance.md on encoders."""

from typing import Any

Results = dict[str, Any]
NOTE = """\
Photos of COCO-Web, 192 px, and the same enlarged to 500 x 375, through EfficientNet-Lite0 at
224 px; captions (35 tokens on average) through MiniLM. End to end: files read and decoded, vectors
kept on disk. *plain* is the loop most people write: DataLoader, Pillow, eager torch in fp32, 32 at
a time; *huge pages* the same with `THP_MEM_ALLOC_ENABLE=1`. The median of three rounds after one to
warm up. *CPU second*: of both cores together, workers included; it depends less on what else the
machine does. clip-retrieval, which needs torchvision, was not tried; the plain loop with workers
stands for it. *decode* is reading, decoding and scaling alone, on one core.
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
    base, cpu_base = (
        max(found[key][rate] for key in bases) for rate in ("per_second", "per_cpu_second")
    )
    unit = "texts" if name == "texts" else "images"
    against = "sentence-transformers" if name == "texts" else "the fastest plain loop"
    head = (name, f"{unit}/s", f"times {against}", f"{unit} a CPU second", "times")
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for key, one in sorted(found.items(), key=lambda item: item[1]["per_second"]):
        rates = one["per_second"], one["per_cpu_second"]
        times = [f"{rate / by:.1f}" for rate, by in zip(rates, (base, cpu_base), strict=True)]
        if key.startswith("decode"):
            times = ["-", "-"]
        cells = (key, f"{rates[0]:.0f}", times[0], f"{rates[1]:.0f}", times[1])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\n"
