"""The parts of docs/performance.md on encoders and on training."""

from typing import Any

Results = dict[str, Any]
NOTE = """\
Photos of COCO-Web, 192 px, and the same enlarged to 500 x 375, through EfficientNet-Lite0 at
224 px; captions (35 tokens on average) through MiniLM. End to end: files read and decoded, vectors
saved on disk. *plain* is the loop most people write: DataLoader, Pillow, eager torch in fp32, in
batches of 32; *huge pages* is the same with `THP_MEM_ALLOC_ENABLE=1`. Values are medians of three
rounds after a warm-up round. *CPU second* counts both cores together, workers included, and depends
less on other work of the machine. clip-retrieval, which needs torchvision, was not tried; the plain
loop with workers takes its place. *decode* is only reading, decoding and scaling, on one core.
"""
TRAINING_NOTE = """\
Photos of 500 x 375. *load*: read, decoded, cropped at random (8 to 100 % of the picture) to 224 px
and mirrored, in batches of 32. *train*: the same at 128 px and steps of EfficientNet-Lite0 in fp32.
*plain* is DataLoader with Pillow and eager torch, *timm* its own loader without further
augmentation.
"""


LITE0_FLOPS = 0.81e9  # a picture of 224 px
MINILM_FLOPS = 35 * 2 * 10.6e6  # a caption of 35 tokens; its layers have 10.6 million weights


def encoder_part(results: Results) -> str:
    """Return the tables of encoders."""
    sets = ("photos 192", "photos 500", "texts")
    parts = [_table(results, f"encode {name}") for name in sets]
    if not any(parts):
        return ""
    return f"## Encoders\n\n{NOTE}\n" + "".join(parts) + _share_of_machine(results)


def _share_of_machine(results: Results) -> str:
    """Say how near the arithmetic of the default encoders is to the machine's matrix product."""
    said = []
    for what, flops in (("photos 192", LITE0_FLOPS), ("texts", MINILM_FLOPS)):
        found = results.get(f"encode {what} openvino fp32")
        if found is None or "failed" in found:
            return ""
        reached = found["per_second"] * flops / 1e9
        share = reached / results["machine"]["gflops"]
        said.append(f"{reached:.0f} GFLOP/s ({100 * share:.0f} %)")
    return (
        f"In fp32 OpenVINO gets to {said[0]} of the machine's matrix product with Lite0 and to "
        f"{said[1]} with MiniLM: no runtime can be twice as fast as sentence-transformers here "
        "without computing in less than fp32, which this processor (AVX2) does no faster for "
        "texts.\n\n"
    )


def training_part(results: Results) -> str:
    """Return the tables of training."""
    parts = [_table(results, f"training {kind}") for kind in ("load", "train")]
    return f"## Training\n\n{TRAINING_NOTE}\n" + "".join(parts) if any(parts) else ""


def _table(results: Results, name: str) -> str:
    start = f"{name} "
    found = {
        key.removeprefix(start): one
        for key, one in results.items()
        if key.startswith(start) and "failed" not in one
    }
    if not found:
        return ""
    bases = [key for key in found if key.startswith(("plain", "sentence", "timm"))]
    base, cpu_base = (
        max(found[key][rate] for key in bases) for rate in ("per_second", "per_cpu_second")
    )
    unit = "texts" if name.endswith("texts") else "images"
    against = "sentence-transformers" if unit == "texts" else "the fastest other loop"
    head = (
        name.partition(" ")[2],
        f"{unit}/s",
        f"times {against}",
        f"{unit} a CPU second",
        "times",
    )
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for key, one in sorted(found.items(), key=lambda item: item[1]["per_second"]):
        rates = one["per_second"], one["per_cpu_second"]
        times = [f"{rate / by:.1f}" for rate, by in zip(rates, (base, cpu_base), strict=True)]
        if key.startswith("decode"):
            times = ["-", "-"]
        cells = (key, f"{rates[0]:.0f}", times[0], f"{rates[1]:.0f}", times[1])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n\n"
