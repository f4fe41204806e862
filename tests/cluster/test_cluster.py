"""Crawls corrected by three machines: the same results, also when some of them are lost."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from three_nodes import COCO_WEB, NODE, files_of

import vsgraph
from vsgraph.cluster.parts import Parts
from vsgraph.cluster.workers import AHEAD, RayWorkers
from vsgraph.common.blocks import fill_rows, machines_at_work, map_rows, row_blocks
from vsgraph.encoders.vectors import Batch
from vsgraph.errors import ClusterError
from vsgraph.runs import run

pytestmark = pytest.mark.slow


def correct_arrays(folder, out, **options):
    return run(
        folder / "web.npy", out, features=folder / "features.npy",
        text_embeddings=folder / "texts.npy", label_embeddings=folder / "meanings.npy", **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def corrected_here(arrays, tmp_path_factory):
    return files_of(correct_arrays(arrays, tmp_path_factory.mktemp("here") / "run"))


@pytest.fixture
def workers(cluster):
    import ray

    return RayWorkers(ray)


def wait_for(condition, seconds=100.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.data
def test_photos_are_corrected_as_on_one_machine(photos, cluster, tmp_path, monkeypatch):
    options = {"images": COCO_WEB, "with_report": False, "anchors_per_class": 3}
    here = run(photos, tmp_path / "a" / "run", **options)
    lines = []
    options |= {"cluster": cluster.address, "tell": lines.append}
    there = run(photos, tmp_path / "b" / "run", **options)
    assert lines[0] == "cluster: 3 machines, 3 processors"
    assert re.match(r"processor time of all workers: \d+ s \(.*pictures \d+ s", lines[-1])
    assert files_of(there) == files_of(here)
    assert len(files_of(here)) > 40
    assert not (tmp_path / "b" / "run" / "parts").exists()
    batches, each = [], RayWorkers.each

    def watched(*given):
        for batch in each(*given):
            batches.append(batch)
            yield batch

    monkeypatch.setattr(RayWorkers, "each", watched)
    beside = run(photos, tmp_path / "b" / "beside", **options)  # nothing is encoded again
    assert files_of(beside) == files_of(here)
    encoded = [batch for batch in batches if isinstance(batch, Batch)]
    assert len(encoded) >= 4
    assert not any(batch.new for batch in encoded)


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_a_machine_may_be_lost_in_the_middle_of_a_stage(
    search, arrays, corrected_here, cluster, tmp_path
):
    changed = {"neighbor_search": search, "neighbor_recall": 0.95}
    here = files_of(correct_arrays(arrays, tmp_path / "here", settings=changed))
    lost = cluster.add_node(**NODE)
    out = tmp_path / "there"
    done = []
    options = {"settings": changed, "cluster": cluster.address}
    thread = threading.Thread(target=lambda: done.append(correct_arrays(arrays, out, **options)))
    thread.start()
    wait_for(lambda: any(out.glob("parts/graph/*/*.npz")))
    cluster.remove_node(lost, allow_graceful=False)
    thread.join(100)
    assert files_of(done[0]) == here
    assert (here["graph/adjacency_data.npy"] == corrected_here["graph/adjacency_data.npy"]) == (
        search == "exact"
    )


def test_a_run_whose_driver_is_killed_resumes_with_fewer_machines(
    arrays, corrected_here, cluster, tmp_path, monkeypatch
):
    out = tmp_path / "run"
    fourth = cluster.add_node(**NODE)
    options = ["--features", "features", "--text-embeddings", "texts", "--label-embeddings"]
    files = [word if word.startswith("-") else str(arrays / f"{word}.npy") for word in options]
    start = "from vsgraph.cli import main; main()"  # as the script vsgraph does
    command = [
        sys.executable,
        "-P",
        "-c",
        start,
        "correct",
        str(arrays / "web.npy"),
        "-o",
        str(out),
    ]
    command += [*files, str(arrays / "meanings.npy"), "--cluster", cluster.address]
    (tmp_path / "threadpoolctl.py").write_text("raise SystemExit('a file of the crawl was run')")
    source = os.environ | {"PYTHONPATH": str(Path(vsgraph.__file__).parents[1])}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=tmp_path, env=source, **quiet) as driver:
        wait_for(lambda: any(out.glob("parts/graph/all-pairs-*/*.npz")), 200)
        driver.send_signal(signal.SIGKILL)
    kept = set(out.glob("parts/graph/*/*.npz")) | set(out.glob("parts/graph/*/whole"))
    cluster.remove_node(fourth)
    sent = []
    each = RayWorkers.each

    def watched(self, packed, key, items, name):
        items = list(items)
        sent.extend(items)
        return each(self, packed, key, items, name)

    monkeypatch.setattr(RayWorkers, "each", watched)
    assert files_of(correct_arrays(arrays, out, cluster=cluster.address)) == corrected_here
    again = {part.path for part in sent if (part.folder / "whole") in kept or part.path in kept}
    assert len(kept) > 3
    assert not again


def test_a_killed_run_ends_on_one_machine(arrays, corrected_here, cluster, tmp_path):
    out, steps = tmp_path / "run", []

    def stop(line):
        steps.append(line)
        if line.startswith("network"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        correct_arrays(arrays, out, cluster=cluster.address, tell=stop)
    steps.clear()
    assert files_of(correct_arrays(arrays, out, tell=steps.append)) == corrected_here
    assert "graph: done before" in steps
    assert not (out / "parts").exists()


def test_rows_are_filled_and_yielded_in_order_once(workers, tmp_path):
    values = np.arange(50_000)

    def double(rows):
        return 2 * values[rows], values[rows, None] > 7

    blocks = row_blocks(len(values), most=9000)
    parts = Parts(workers, tmp_path)
    with machines_at_work(parts):
        first = fill_rows(double, blocks, title="doubles")
        again = fill_rows(double, blocks, title="doubles")
        listed = [part[0] for part in map_rows(double, blocks)]
    np.testing.assert_array_equal(first[0], 2 * values)
    np.testing.assert_array_equal(first[1][:, 0], values > 7)
    assert isinstance(first[0], np.memmap)
    assert first[0].filename == again[0].filename
    np.testing.assert_array_equal(np.concatenate(listed), 2 * values)
    parts.drop("run")
    assert not list(tmp_path.iterdir())


def test_a_worker_that_dies_is_replaced(workers, tmp_path):
    mark = tmp_path / "died"

    def die_once(rows):
        if rows.start and not mark.exists():
            mark.touch()
            os._exit(1)
        return (np.arange(rows.start, rows.stop),)

    with machines_at_work(Parts(workers, tmp_path / "parts")):
        (result,) = fill_rows(die_once, row_blocks(6, most=2))
    assert mark.exists()
    assert result.tolist() == list(range(6))


def test_a_slow_block_does_not_keep_the_others_waiting(workers, tmp_path):
    mark, n_blocks = tmp_path / "late", 4 * AHEAD

    def wait_for_the_last(rows):
        if rows.start == n_blocks - 1:
            mark.touch()
        deadline = time.monotonic() + 60
        while rows.start == 0 and not mark.exists():
            assert time.monotonic() < deadline, "the last block was never sent"
            time.sleep(0.05)
        return (np.arange(rows.start, rows.stop),)

    with machines_at_work(Parts(workers, tmp_path / "parts")):
        (result,) = fill_rows(wait_for_the_last, row_blocks(n_blocks, most=1))
    assert result.tolist() == list(range(n_blocks))


def test_rows_that_fail_three_times_are_named(workers, tmp_path):
    counts = tmp_path / "tries"

    def fail(rows):
        if rows.start == 4:
            with counts.open("a") as file:
                file.write("x")
            raise ZeroDivisionError("no row there")
        return (np.zeros(2),)

    with (
        machines_at_work(Parts(workers, tmp_path / "parts", "scores")),
        pytest.raises(
            ClusterError,
            match=r"rows 4 to 5 \(scores, doubles\) failed 3 times: ZeroDivisionError: no row",
        ),
    ):
        fill_rows(fail, row_blocks(8, most=2), title="doubles")
    assert counts.read_text() == "xxx"


def test_machines_with_another_version_are_refused(cluster, workers, tmp_path):
    old = shutil.copytree(Path(vsgraph.__file__).parent, tmp_path / "old" / "vsgraph")
    (old / "common" / "version.py").write_text('__version__ = "0.1.9"\n')
    path = os.pathsep.join([str(old.parent), os.environ.get("PYTHONPATH", "")])
    node = cluster.add_node(**NODE | {"num_cpus": 8}, env_vars={"PYTHONPATH": path})
    try:
        with (
            machines_at_work(Parts(workers, tmp_path / "parts")),
            pytest.raises(ClusterError, match=r"has vsgraph 0\.1\.9, not .* install the same"),
        ):
            fill_rows(lambda rows: (np.zeros(1),), row_blocks(40, most=1))
    finally:
        cluster.remove_node(node)
