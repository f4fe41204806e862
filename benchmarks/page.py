"""Turn the results of a benchmark into docs/performance.md."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import vsgraph
from encoder_page import encoder_part, training_part
from picture import draw
from vsgraph.method.estimate import REFERENCE_FLOPS
from vsgraph.neighbors.search import EXACT_UP_TO

Results = dict[str, Any]
STAGES = ("reading", "graph", "text", "network", "evidence", "labels")

TOP = """\
# Performance

Made by `make bench` (`benchmarks/`): every measurement in a process of its own, one after the
other. Seconds depend on the machine and on what else it does: read the ratios, and CPU time where
both are given.

"""
SEARCH_NOTE = """\
The ten nearest of every row by cosine. *real*: EfficientNet-Lite0 features (1280-d) of the 8,631
photos of COCO-Web, grown to the size by adding differences of neighbors. *made-up 500k*: 2048-d,
fp16, 2,000 clusters with the falling spectrum of real features, only for the methods that were
fastest at 100k. Times hold everything from
features to neighbors; ours includes measuring its recall. Methods that end in *-pca* are given
256 principal components and have their 48 best candidates ranked by the full features with our
compiled loop, which helps them most. Above 50,000 rows scikit-learn is asked for every tenth row
and its time multiplied by ten. *CPU / ours*: exact methods beside our exact search, the others
beside our approximate one, by processor time of both cores, since other work shared the machine
during some of the measurements (where *seconds* is far above half of *CPU s*). Neighbors that tie
with the true tenth count as found. Recall here is measured on 512 rows that no search was set by.
*memory* is what a search holds beyond the features.
"""
NETWORK_NOTE = """\
Printed form, 10 anchors a class, weight decay 1e-6, learning rate 0.1 as in the paper, on the
same anchors of a made-up crawl. *loss* includes the weight decay; *over tau_f* is the share of
images whose highest p_g reaches 0.7. The optimum depends on neither start nor epochs. Adam starts
from random weights: with few anchors it is at the optimum after 5000 epochs and, its steps not
growing shorter, leaves it again; with many it is far from it. So there is no number of epochs at
which it has converged, and what it has learned depends on where it was stopped.
"""
WHOLE_NOTE = """\
From features, texts, label meanings (and, at 500k, p_c) in fp16 on disk to the corrected record.
*memory* is what the process holds; *with files* adds the pages of the mapped files, which the
system drops when it needs room.
"""


READER_NOTE = """\
Made-up crawls: tables of a million rows with title, tags and description, 50,000 samples or images
in the others (200,000 in WebVision). The other libraries only read; ours also numbers the classes,
makes text plain and looks for twins. *inspect* also looks for every picture on disk.
"""


def write_page(results: Results, path: Path) -> None:
    """Write the page."""
    searches = [_searches(results, data) for data in ("real 20k", "real 100k", "made-up 500k")]
    rest = [_networks(results), _whole(results), _curves(results), _plan()]
    ways = [_readers(results), encoder_part(results), training_part(results)]
    page = "".join([TOP, _machine(results["machine"]), *searches, *rest, *ways])
    path.write_text(page.rstrip() + "\n", encoding="utf-8")
    points = curve_points(results)
    if points:
        picture = path.parent / "images" / "cost-curves.svg"
        picture.write_text(draw(points), encoding="utf-8")


def _machine(found: Results) -> str:
    return (
        f"Machine: {found['cpu']}, {found['cores']} cores, {found['memory_gb']:.0f} GB, "
        f"{found['gflops']:.0f} GFLOP/s in a float32 matrix product, no GPU.\n\n"
        f"## Neighbors\n\n{SEARCH_NOTE}\n"
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *map(list, rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines) + "\n"


def _part(results: Results, start: str) -> dict[str, Results]:
    return {
        name.removeprefix(start).strip(): found
        for name, found in results.items()
        if name.startswith(start)
    }


def _searches(results: Results, data: str) -> str:
    """Return the table of one data set, exact methods beside ours exact, others beside ours."""
    found = _part(results, f"search {data} ")
    if not found:
        return ""
    exact = {"vsgraph-exact", "faiss-flat", "sklearn", "naive-dense"}
    rows = []
    for name, one in sorted(found.items(), key=lambda item: item[1].get("cpu_seconds", math.inf)):
        if "failed" in one:
            rows.append([name, one["failed"], "-", "-", "-", "-"])
            continue
        ours = found.get("vsgraph-exact" if name in exact else "vsgraph-approximate", one)
        rows.append([
            f"**{name}**" if name.startswith("vsgraph") else name, f"{one['seconds']:.1f}",
            f"{one['cpu_seconds']:.0f}", f"{one['cpu_seconds'] / ours['cpu_seconds']:.1f}x",
            f"{one['recall']:.4f}", f"{one['memory_gb']:.1f}",
        ])  # fmt: skip
    head = ("method", "seconds", "CPU s", "CPU / ours", "recall", "memory, GB")
    return f"### {data}\n\n" + _table(head, rows) + _speed_reached(results, data, found)


def _readers(results: Results) -> str:
    """Return the table of readers."""
    found = _part(results, "reader ")
    rows = []
    for name, one in found.items():
        kind, who = name.split()
        ours = found.get(f"{kind} vsgraph", one)
        rows.append((
            kind, who, f"{one['rows_a_second']:,.0f}",
            f"{one['seconds'] / ours['seconds']:.1f}", f"{one['memory_gb']:.2f} GB",
        ))  # fmt: skip
    if not rows:
        return ""
    head = ("format", "read by", "rows a second", "time / ours", "memory")
    return f"## Reading crawls\n\n{READER_NOTE}\n{_table(head, rows)}\n"


def _speed_reached(results: Results, data: str, found: Results) -> str:
    """Say what share of the machine's matrix product speed comparing all pairs amounts to."""
    ours = found.get("vsgraph-exact")
    if ours is None or "failed" in ours:
        return ""
    n = int(data.split()[1].removesuffix("k")) * 1000
    reached = 2 * n * n * 1280 / ours["seconds"] / 1e9
    share = reached / results["machine"]["gflops"]
    return (
        f"Comparing all pairs in full would be {2 * n * n * 1280 / 1e12:.1f} TFLOP: the exact "
        f"search gets their result at {reached:.0f} GFLOP/s, {share:.1f} times what the machine's "
        "matrix product does, since most pairs are ruled out by their sketches and each is looked "
        "at once.\n\n"
    )


def _networks(results: Results) -> str:
    trained = [one for one in _part(results, "network ").values() if "failed" not in one]
    if not trained:
        return ""
    found = sorted(trained, key=lambda one: (one["n_images"], one["epochs"]))
    rows = []
    for one in found:
        adam, best = one["adam"], one["optimum"]
        for name, it in (("optimum", best), (f"Adam, {one['epochs']} epochs", adam)):
            rows.append([
                f"{one['n_images']:,}", name, f"{it['seconds']:.1f}",
                f"{it['cpu_seconds'] / best['cpu_seconds']:.0f}x", f"{it['loss']:.5f}",
                f"{100 * it['right']:.1f}", f"{100 * it['over_tau']:.1f}", f"{it['norm']:.0f}",
            ])  # fmt: skip
    head = (
        "images",
        "solver",
        "seconds",
        "CPU / ours",
        "loss",
        "p_g right, %",
        "over tau_f, %",
        "norm",
    )
    agree = "".join(
        f"- {one['n_images']:,} images, {one['epochs']} epochs: {100 * one['labels_agree']:.1f} % "
        f"of the likeliest labels agree, and {100 * one['over_tau_agree']:.1f} % of the images on "
        f"whether they are over tau_f.{_times_faster(one)}\n"
        for one in found
    )
    return "## Graph network\n\n" + NETWORK_NOTE + "\n" + _table(head, rows) + agree + "\n"


def _times_faster(one: Results) -> str:
    """Say how much longer the paper's 5000 epochs take than the optimum, at the speed measured."""
    if one["epochs"] > 5000:
        return ""
    clock, cpu = (
        one["adam"][kind] * 5000 / one["epochs"] / one["optimum"][kind]
        for kind in ("seconds", "cpu_seconds")
    )
    return f" 5000 epochs take {clock:.0f} times as long by the clock, {cpu:.0f} times by CPU time."


def _whole(results: Results) -> str:
    found = {k: v for k, v in _part(results, "whole ").items() if "failed" not in v}
    if not found:
        return ""
    head = (
        "images x d, C",
        "seconds",
        *STAGES,
        "memory, GB",
        "with files",
        "recall",
        "right before, after, %",
    )
    rows = [
        [
            f"{one['n_images']:,} x {one['n_dims']}, {one['n_classes']}",
            f"{one['seconds']:.0f}" + (f" ({one['note']})" if "note" in one else ""),
            *(f"{one['stages'].get(stage, 0):.0f}" for stage in STAGES),
            f"{one['memory_gb']:.1f}", f"{one['with_files_gb']:.1f}", f"{one['recall']:.4f}",
            f"{100 * one['right_before']:.1f}, {100 * one['right_after']:.1f}",
        ]
        for one in found.values()
    ]  # fmt: skip
    return "## A whole correction\n\n" + WHOLE_NOTE + "\n" + _table(head, rows)


def _curves(results: Results) -> str:
    """Return the cost curves, and beside each what the estimate said."""
    text = ""
    for axis in ("N", "d", "C", "k", "m"):
        found = [one for one in _part(results, f"curve {axis} ").values() if "failed" not in one]
        if not found:
            continue
        values = [_value(axis, one) for one in found]
        head = (axis, "seconds", *STAGES, "memory, GB", "estimated / taken")
        rows = [
            [f"{value:,}", f"{one['seconds']:.1f}",
             *(f"{one['stages'].get(stage, 0):.1f}" for stage in STAGES),
             f"{one['memory_gb']:.2f}", f"{one['expected_seconds'] / one['seconds']:.1f}"]
            for value, one in zip(values, found, strict=True)
        ]  # fmt: skip
        text += f"### Against {axis}\n\n" + _table(head, rows) + _growth(axis, values, found)
    note = (
        "Seconds by stage of a whole correction of made-up crawls; 50,000 images, d = 512, "
        "C = 100, k = 5, m = 50 where not said. Up to 100,000 images the graph is exact. "
        "That one point stands in every table: how far its runs differ says how far to trust the "
        "others.\n\n"
    )
    picture = "![Cost curves](images/cost-curves.svg)\n\n"
    return f"## Cost curves\n\n{note}{picture}{text}" if text else ""


def curve_points(results: Results) -> dict[str, tuple[list[float], list[float], list[float]]]:
    """Return values, seconds and memory along each axis."""
    points = {}
    for axis in ("N", "d", "C", "k", "m"):
        found = [one for one in _part(results, f"curve {axis} ").values() if "failed" not in one]
        if len(found) > 1:
            values = [_value(axis, one) for one in found]
            memory = [one["memory_gb"] for one in found]
            points[axis] = values, [one["seconds"] for one in found], memory
    return points


def _growth(axis: str, values: list[int], found: list[Results]) -> str:
    """Say how the total grows, over points with one kind of search, if beyond what runs vary by."""
    alike = [i for i, one in enumerate(found) if one["n_images"] <= EXACT_UP_TO]
    first, last = alike[0], alike[-1]
    times = found[last]["seconds"] / found[first]["seconds"]
    if times < 1.5:
        return ""
    growth = math.log(times) / math.log(values[last] / values[first])
    reach = f"{axis} = {values[last]:,}"
    return f"Total time grows as {axis}^{growth:.2f} up to {reach}.\n\n"


def _value(axis: str, one: Results) -> int:
    if axis in "NdC":
        return one[{"N": "n_images", "d": "n_dims", "C": "n_classes"}[axis]]
    return int(one["changes"][0].split("=")[1])


def _plan() -> str:
    """Return what the paper's data sets are expected to take on the machine of the costs."""
    sets = {
        "Google-500": (489_755, 500, vsgraph.Settings(anchors_per_class=10)),
        "WebVision-1000": (2_446_037, 1000, vsgraph.Settings(anchors_per_class=10)),
    }
    rows = []
    for name, (n, c, settings) in sets.items():
        plan = vsgraph.estimate(
            settings, n_images=n, n_dims=2048, n_classes=c, machine_flops=REFERENCE_FLOPS
        )
        rows.append([
            name, f"{n:,} x 2048", f"{sum(plan.seconds.values()) / 60:.0f}",
            f"{plan.memory / 1e9:.1f}", f"{plan.disk / 1e9:.1f}", f"{n * 2048 * 2 / 1e9:.1f}",
        ])  # fmt: skip
    head = ("data set", "features", "minutes", "memory, GB", "disk, GB", "features fp16, GB")
    return (
        "## The paper's data sets\n\nBy `vsgraph.estimate`, at the speed of the machine its "
        "costs were measured on:\n\n" + _table(head, rows)
    )
