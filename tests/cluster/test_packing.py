"""Work as bytes, errors of a task, and addresses that are wrong: no cluster is needed."""

import functools
import socket
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from vsgraph.cluster import workers
from vsgraph.cluster.parts import Part, _read, make_part
from vsgraph.common.stores import StorePath, place
from vsgraph.common.version import __version__
from vsgraph.crawls import Crawl
from vsgraph.encoders import Preparation, embed_images
from vsgraph.encoders.batches import Errand, Loaded, run_errand
from vsgraph.encoders.known import KnownKeys
from vsgraph.encoders.places import Look
from vsgraph.encoders.runtimes.runners import Opening
from vsgraph.encoders.store import Form, content_key
from vsgraph.encoders.vectors import NOTHING, load_batch
from vsgraph.errors import ClusterError, FileError, InputError, MissingExtraError
from vsgraph.runs import run

packing = pytest.importorskip(
    "vsgraph.cluster.packing", reason="Ray is not installed: pip install vsgraph[cluster]",
    exc_type=ImportError,
)  # fmt: skip


def packed_size(folder, *values):
    return len(packing.pack(functools.partial(print, *values), folder))


def carried(folder, *values):
    return packing.unpack(packing.pack(functools.partial(print, *values), folder)).args


def test_a_mapped_array_travels_as_the_name_of_its_file(tmp_path):
    np.save(tmp_path / "large.npy", np.arange(90_000.0).reshape(300, 300))
    mapped = np.load(tmp_path / "large.npy", mmap_mode="r")
    folder = tmp_path / "arrays"
    assert packed_size(folder, mapped, np.asarray(mapped)[100:], mapped.T) < 1000
    whole, part, turned = carried(folder, mapped, np.asarray(mapped)[100:], mapped.T)
    np.testing.assert_array_equal(whole, mapped)
    np.testing.assert_array_equal(part, mapped[100:])
    np.testing.assert_array_equal(turned, mapped.T)
    assert turned.flags.f_contiguous
    assert not list(folder.iterdir())


def test_another_large_array_or_table_is_written_once(tmp_path):
    folder = tmp_path / "arrays"
    array = np.random.default_rng(0).normal(size=(200, 100))
    table = pa.table({"text": [f"a text of row {row}" for row in range(9000)]})
    for _ in range(2):
        one, strided, turned, other, small = carried(
            folder, array, array[:, ::2], np.asfortranarray(array), table, np.arange(3)
        )
    np.testing.assert_array_equal(one, array)
    np.testing.assert_array_equal(strided, array[:, ::2])
    assert turned.flags.f_contiguous
    assert other.equals(table)
    assert small.tolist() == [0, 1, 2]
    assert len(list(folder.iterdir())) == 4


def test_the_key_changes_with_a_file_that_is_written_again(tmp_path):
    path = tmp_path / "large.npy"
    keys = []
    for factor in (1, 2, 2):
        if len(keys) < 2:
            np.save(path, factor * np.arange(90_000.0))
        work = functools.partial(print, np.load(path, mmap_mode="r"))
        keys.append(packing.digest_of(packing.pack(work, tmp_path / "arrays")))
    assert keys[0] != keys[1] == keys[2]


def test_paths_travel_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stored = place("s3://bucket/crawl")
    got = carried(tmp_path / "arrays", Path("crawl"), stored)
    assert got == (tmp_path / "crawl", stored)
    assert str(got[1]) == "s3://bucket/crawl"


def raising(error):
    def work(_):
        raise error

    return work


@pytest.mark.parametrize(
    ("work", "outcome", "why"),
    [
        (abs, "done", 3),
        (raising(InputError("no such row")), "refused", "no such row (on "),
        (raising(FileError("disk full")), "failed", "disk full (on "),
        (raising(FileNotFoundError("no such file")), "failed", "no such file (on "),
        (raising(KeyError("x")), "failed", "KeyError: 'x' (on "),
    ],
)
def test_what_a_task_returns(work, outcome, why, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "limit_threads", lambda _: None)
    packed = packing.pack(work, tmp_path)
    got, cpu_seconds = workers.do_task(packed, packing.digest_of(packed), __version__, -3)
    assert cpu_seconds >= 0
    assert got[0] == outcome
    assert got[1] == why if outcome == "done" else got[1].startswith(why)


def test_a_task_of_another_version_is_refused():
    (outcome, why), _ = workers.do_task(b"", "", "0.0.1", None)
    assert outcome == "refused"
    assert f"has vsgraph {__version__}, not 0.0.1; install the same" in why


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vsgraph\[cluster\]'"):
        run(tmp_path / "crawl", tmp_path / "run", cluster="auto")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.1:1", r"no cluster answers at '127\.0\.0\.1:1' \(.*refused"),
        ("ray://there:10001", "must be HOST:PORT or auto, got 'ray://there:10001'"),
        ("there", "must be HOST:PORT or auto, got 'there'"),
    ],
)
def test_a_wrong_address_gets_one_line(address, why, tmp_path):
    with pytest.raises(ClusterError, match=why):
        run(tmp_path / "crawl", tmp_path / "run", cluster=address)
    assert not (tmp_path / "run").exists()


def test_an_address_that_never_answers_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "PATIENCE", 2)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        port = deaf.getsockname()[1]
        with pytest.raises(
            ClusterError, match=rf"no cluster answers at '127\.0\.0\.1:{port}' \(2 s"
        ):
            run(tmp_path / "crawl", tmp_path / "run", cluster=f"127.0.0.1:{port}")


def test_known_keys_are_found_whatever_their_bytes():
    keys = [bytes([i, 255 - i] * 7 + [i % 3, 0]) for i in range(90)]
    known = KnownKeys(np.sort(np.frombuffer(b"".join(keys), "S16")))
    assert all(key in known for key in keys)
    assert bytes(16) not in known
    assert keys[0][:15] + b"\1" not in known
    assert keys[0] not in KnownKeys(np.empty(0, "S16"))


def test_pictures_that_a_machine_does_not_see_are_not_taken_for_missing(tmp_path):
    table = pa.table({"image": ["a.jpg"], "web_labels": pa.array([0], pa.int32())})
    crawl = Crawl("a table", tmp_path / "not mounted", table, ("crane",))
    with pytest.raises(InputError, match=r"does not see .*not mounted, where the pictures are"):
        embed_images(crawl, MeanColor(), tmp_path / "vectors")


def test_a_part_is_written_whole_and_damage_is_named(tmp_path):
    part = Part([slice(0, 2), slice(2, 3)], tmp_path)
    make_part(lambda rows: (np.arange(rows.start, rows.stop), np.ones((1, 2))), part)
    assert [path.name for path in tmp_path.iterdir()] == ["000000000000-000000000003.npz"]
    assert part.name == "rows 0 to 2"
    first, second = _read(part)
    assert (first[0].tolist(), second[0].tolist(), second[1].shape) == ([0, 1], [2], (1, 2))
    part.path.write_bytes(part.path.read_bytes()[:200])
    with pytest.raises(ClusterError, match=r"000003\.npz is damaged; start again to repeat its"):
        list(_read(part))
    assert not part.path.exists()


@pytest.mark.parametrize("places", [None, [1]])
def test_an_errand_encodes_what_is_not_known(places, tmp_path):
    texts = ["a known one", "a new one", "", "a new one"]
    keys = [content_key(text.encode()) if text else NOTHING for text in texts]
    known = KnownKeys(np.frombuffer(keys[0], "S16"))
    batch = run_errand(
        lambda span, *_: Loaded(keys[slice(*span)], texts[slice(*span)], []),
        lambda new: np.array([[len(text)] for text in new], np.float32),
        Form("lengths", np.dtype("float16")),
        known,
        Errand((0, 4), Look("x"), [NOTHING] * 4, places, tmp_path / "b.npz"),
    )
    saved = load_batch(tmp_path / "b.npz")
    assert (batch.new, len(batch.values)) == ([1], 0)
    assert (saved.new, saved.values.tolist(), saved.keys) == ([1], [[9.0]], keys)


class MeanColor:
    name, fingerprint, n_dims, n_classes = "mean color", "mean color 1", 3, 0
    preparation = Preparation(8, 8)


class Other:
    fingerprint, runtime, precision = "other", "openvino", "fp32"


def test_an_encoder_that_differs_elsewhere_is_refused():
    opening = Opening(lambda *_, **__: Other(), "model", {}, Other())
    again, arguments = opening.elsewhere("this one")
    with pytest.raises(InputError, match=r"model gives other vectors on .* than where the run was"):
        again(*arguments)
    assert again(*opening.elsewhere("other")[1]).fingerprint == "other"


def test_an_address_in_a_store_stays_one(tmp_path):
    address = place("s3://bucket/crawl")
    assert carried(tmp_path, address) == (address,)
    assert isinstance(carried(tmp_path, address)[0], StorePath)
