"""Vectors on disk: whole, resumable, never mixed, each content once."""

import dataclasses
import errno
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import textwrap
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders import Embedding, Encoded, Preparation, embed_images, embed_texts
from vsgraph.encoders.vectors import Batch, load_batch
from vsgraph.errors import FileError, InputError

N = 200


def mean_colors(pixels):
    grid = pixels.reshape(len(pixels), 4, 4, 4, 4, 3).mean(axis=(2, 4))
    return grid.reshape(len(pixels), -1)


class Own:
    """A function on pixels as an image encoder."""

    n_classes = 0

    def __init__(
        self, function=mean_colors, *, name="mean colors", size=16, version="1", crop=None
    ):
        self.name = name
        self.preparation = Preparation(size, size, crop)
        self.fingerprint = f"{name} {version} {self.preparation.describe()}"
        self.function = function
        self.n_dims = function(np.zeros((1, size, size, 3), np.uint8)).shape[1]

    def encode(self, pixels):
        return Encoded(np.asarray(self.function(pixels), np.float32))


def picture(seed):
    colors = np.random.default_rng(seed).integers(0, 255, (24, 32, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(colors).save(buffer, "PNG")
    return buffer.getvalue()


def crawl_of(root, names, **columns):
    labels = pa.array([0] * len(names), pa.int32())
    table = pa.table({"image": names, "web_labels": labels, **columns})
    return Crawl("a folder", root, table, ("crane",), text_fields=("title",))


@pytest.fixture
def crawl(tmp_path):
    """200 pictures: every tenth the same, one missing, one broken."""
    root = tmp_path / "pictures"
    root.mkdir()
    names = [f"{i:03d}.png" for i in range(N)]
    for i, name in enumerate(names):
        (root / name).write_bytes(picture(0 if i % 10 == 0 else i))
    (root / "005.png").unlink()
    (root / "007.png").write_bytes(b"<html>404</html>")
    return crawl_of(root, names, title=[f"text {i % 50}" if i % 3 else "" for i in range(N)])


def test_rows_stay_aligned_and_reasons_are_counted(crawl, tmp_path):
    made = embed_images(crawl, Own(), tmp_path / "out", dtype="float32")
    assert made.vectors.shape == (N, 48)
    assert made.probs is None
    assert not made.vectors[[5, 7]].any()
    assert made.vectors[np.setdiff1d(np.arange(N), [5, 7])].any(axis=1).all()
    assert crawl.problems.counts == {"picture missing or empty": 1, "not a picture": 1}
    assert "007.png (a web page or drawing in text)" in str(crawl.problems)
    assert made.record["problems"] == dict(crawl.problems.counts)
    pixels = np.asarray(Image.open(crawl.image_path(11)), float)
    assert made.vectors[11].mean() == pytest.approx(pixels.mean(), abs=0.5)


def test_the_same_picture_is_encoded_once(crawl, tmp_path):
    seen = []

    def counting(pixels):
        seen.append(len(pixels))
        return mean_colors(pixels)

    encoder = Own(counting)
    seen.clear()
    made = embed_images(crawl, encoder, tmp_path / "out")
    assert sum(seen) == N - 19 - 2
    assert (made.vectors[::10] == made.vectors[0]).all()
    assert len(np.unique(made.keys, axis=0)) == N - 19 - 2 + 1


def test_the_result_is_one_plain_array(crawl, tmp_path):
    embed_images(crawl, Own(), tmp_path / "out")
    plain = np.load(tmp_path / "out" / "vectors.npy", mmap_mode="r")
    assert isinstance(plain, np.memmap)
    assert plain.dtype == np.float16
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pictures"]
    Embedding.load(tmp_path / "out", verify=True)


def test_a_finished_folder_is_not_done_again(crawl, tmp_path):
    encoder = Own()
    first = embed_images(crawl, encoder, tmp_path / "out")
    before = (first.folder / "vectors.npy").stat()
    encoder.encode = None  # would fail if it were called
    embed_images(crawl, encoder, tmp_path / "out")
    assert (first.folder / "vectors.npy").stat() == before
    assert crawl.problems.counts == {"picture missing or empty": 2, "not a picture": 2}


def test_a_crawl_that_grew_encodes_only_what_is_new(crawl, tmp_path):
    encoder = Own()
    first = np.array(embed_images(crawl.take(slice(0, 150)), encoder, tmp_path / "out").vectors)
    seen = []
    encoder.encode, encode = lambda p: seen.append(len(p)) or encode(p), encoder.encode
    grown = embed_images(crawl, encoder, tmp_path / "out")
    assert sum(seen) == 45
    assert (grown.vectors[:150] == first).all()
    assert (grown.vectors == embed_images(crawl, Own(), tmp_path / "fresh").vectors).all()


def test_few_new_pictures_here_and_there_are_encoded_together(crawl, tmp_path, monkeypatch):
    monkeypatch.setattr("vsgraph.encoders.pipeline.IMAGE_BATCH", 8)
    encoder, old = Own(), np.arange(N) % 11 != 3
    embed_images(crawl.take(np.flatnonzero(old)), encoder, tmp_path / "out")
    seen, saved = [], []
    encoder.encode, encode = lambda p: seen.append(len(p)) or encode(p), encoder.encode
    monkeypatch.setattr(
        Batch, "save", lambda b, path, save=Batch.save: saved.append(b) or save(b, path)
    )
    grown = embed_images(crawl, encoder, tmp_path / "out")
    assert seen == [8, 8]  # of 25 batches; two of the 18 new files are copies of row 0
    assert all(len(batch.new) for batch in saved)
    fresh = embed_images(crawl, Own(), tmp_path / "fresh")
    assert (grown.vectors == fresh.vectors).all()
    assert (grown.keys == fresh.keys).all()
    assert [*grown.problems()] == [*fresh.problems()]


def test_a_changed_file_is_read_again(crawl, tmp_path):
    embed_images(crawl, Own(), tmp_path / "out")
    (crawl.root / "011.png").write_bytes(picture(999))
    made = embed_images(crawl, Own(), tmp_path / "out")
    assert (made.vectors == embed_images(crawl, Own(), tmp_path / "fresh").vectors).all()


@pytest.mark.parametrize(
    "other", [{"name": "other"}, {"size": 32}, {"version": "2"}, {"crop": 1.0}], ids=str
)
def test_other_encoders_never_mix(other, crawl, tmp_path):
    def colors(pixels):
        return pixels.mean(axis=(1, 2))

    embed_images(crawl, Own(colors), tmp_path / "out")
    with pytest.raises(InputError, match=r"made in another way .* choose another folder"):
        embed_images(crawl, Own(colors, **other), tmp_path / "out")
    made = embed_images(crawl, Own(colors, **other), tmp_path / "out", overwrite=True)
    fresh = embed_images(crawl, Own(colors, **other), tmp_path / "fresh")
    assert (made.vectors == fresh.vectors).all()


def test_another_dtype_does_not_mix(crawl, tmp_path):
    embed_images(crawl, Own(), tmp_path / "out")
    with pytest.raises(InputError, match="made in another way"):
        embed_images(crawl, Own(), tmp_path / "out", dtype="float32")
    with pytest.raises(InputError, match="dtype must be one of float16, float32, got 'int8'"):
        embed_images(crawl, Own(), tmp_path / "out", dtype="int8")


def test_tar_shards_give_the_same_as_folders(crawl, tmp_path):
    names, offsets, sizes = [], [], []
    with tarfile.open(tmp_path / "00000.tar", "w") as tar:
        for path in sorted(crawl.root.iterdir()):
            tar.add(path, path.name)
    with tarfile.open(tmp_path / "00000.tar") as tar:
        for member in tar:
            names.append(member.name)
            offsets.append(member.offset_data)
            sizes.append(member.size)
    shards = crawl_of(
        tmp_path, names, shard=["00000.tar"] * len(names), offset=offsets, size=sizes,
        title=[""] * len(names),
    )  # fmt: skip
    made = embed_images(shards, Own(), tmp_path / "out")
    rows = [i for i in range(N) if i != 5]
    assert (made.vectors == embed_images(crawl, Own(), tmp_path / "folder").vectors[rows]).all()
    assert "1 x not a picture: 007.png" in str(shards.problems)


def test_class_probabilities_are_kept_beside_the_vectors(crawl, tmp_path):
    encoder = Own()
    plain = encoder.encode
    encoder.n_classes = 2
    encoder.encode = lambda p: plain(p)._replace(probs=np.tile([0.25, 0.75], (len(p), 1)))
    made = embed_images(crawl, encoder, tmp_path / "out")
    assert made.vectors.shape == (N, 48)
    assert made.probs.shape == (N, 2)
    assert (made.probs[11] == [0.25, 0.75]).all()
    assert (made.probs[5] == 0).all()
    (crawl.root / "005.png").write_bytes(picture(5))
    grown = embed_images(crawl, encoder, tmp_path / "out")
    assert (grown.probs[5] == [0.25, 0.75]).all()


class Lengths:
    """A text encoder that counts letters."""

    name, n_dims, fingerprint = "lengths", 2, "lengths-1"
    seen = 0

    def encode(self, texts):
        self.seen += len(texts)
        return np.array([[len(text), text.count("1")] for text in texts], np.float32)


def test_texts_empty_ones_are_zeros_and_same_ones_encoded_once(crawl, tmp_path):
    encoder = Lengths()
    made = embed_texts(crawl, encoder, tmp_path / "out")
    assert encoder.seen == 50
    assert not made.vectors[::3].any()
    assert made.vectors[11].tolist() == [7, 2]
    listed = embed_texts([" text 11 ", ""], encoder, tmp_path / "list", dtype="float32")
    assert listed.vectors.tolist() == [[7, 2], [0, 0]]
    assert len(embed_texts([], encoder, tmp_path / "none").vectors) == 0


def test_numbers_too_large_for_fp16_are_refused(crawl, tmp_path):
    huge = Own(lambda pixels: np.full((len(pixels), 3), 1e6), name="huge")
    with pytest.raises(InputError, match="float16 cannot hold; use dtype float32"):
        embed_images(crawl, huge, tmp_path / "out")


KILLED = """
    import sys, time
    from pathlib import Path
    sys.path.insert(0, {tests!r})
    from test_vector_store import Own, crawl_of, mean_colors

    def slow(pixels):
        time.sleep(0.15)
        return mean_colors(pixels)

    from vsgraph.encoders import embed_images, pipeline
    pipeline.IMAGE_BATCH = 8
    root = Path({root!r})
    names = [f"{{i:03d}}.png" for i in range(200)]
    embed_images(crawl_of(root, names, title=names), Own(slow), {out!r})
"""


def batch_files(folder):
    return sorted(folder.glob("out.parts-*/batch-*.npz"))


@pytest.mark.slow
def test_killed_in_the_middle_and_started_again_it_leaves_the_same_bytes(
    crawl, tmp_path, monkeypatch
):
    script = KILLED.format(
        tests=str(Path(__file__).parent), root=str(crawl.root), out=str(tmp_path / "out")
    )
    for wanted in (3, 7):
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)])
        deadline = time.monotonic() + 60
        while len(batch_files(tmp_path)) < wanted and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    *_, last = batch_files(tmp_path)
    last.write_bytes(last.read_bytes()[:300])  # torn, as by a loss of power

    monkeypatch.setattr("vsgraph.encoders.pipeline.IMAGE_BATCH", 8)
    seen = []
    encoder = Own(lambda p: seen.append(len(p)) or mean_colors(p))
    seen.clear()
    resumed = embed_images(crawl, encoder, tmp_path / "out")
    assert 0 < sum(seen) < N - 30
    whole = embed_images(
        crawl_of(crawl.root, crawl.table["image"].to_pylist()), Own(), tmp_path / "whole"
    )
    for name in ("vectors.npy", "keys.npy", "record.json"):
        assert (resumed.folder / name).read_bytes() == (whole.folder / name).read_bytes(), name
    assert crawl.problems.counts == {"picture missing or empty": 1, "not a picture": 1}


def test_an_error_in_the_middle_keeps_what_was_done(crawl, tmp_path, monkeypatch):
    monkeypatch.setattr("vsgraph.encoders.pipeline.IMAGE_BATCH", 16)
    Image.new("RGB", (32, 24), "white").save(crawl.image_path(70))  # in the fifth batch

    def failing(pixels):  # not at a certain call: threads count them in any order
        if (pixels == 255).all(axis=(1, 2, 3)).any():
            raise RuntimeError("no more")
        return mean_colors(pixels)

    with pytest.raises(RuntimeError, match="no more"):
        embed_images(crawl, Own(failing), tmp_path / "out")
    assert len(batch_files(tmp_path)) == 4
    made = embed_images(crawl, Own(), tmp_path / "out")
    assert (made.vectors == embed_images(crawl, Own(), tmp_path / "whole").vectors).all()


def test_damage_in_the_middle_is_found_and_done_again(crawl, tmp_path, monkeypatch):
    monkeypatch.setattr("vsgraph.encoders.pipeline.IMAGE_BATCH", 16)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("vsgraph.encoders.store.VectorStore.finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            embed_images(crawl, Own(), tmp_path / "out")
    damaged = batch_files(tmp_path)[0]
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    for name in ("000.png", "010.png"):  # that file alone held the vector of 020.png and others
        (crawl.root / name).write_bytes(picture(1))
    made = embed_images(crawl, Own(), tmp_path / "out")
    assert made.vectors[20].any()
    assert (made.vectors == embed_images(crawl, Own(), tmp_path / "whole").vectors).all()


def test_damage_of_the_final_array_is_found(crawl, tmp_path):
    made = embed_images(crawl, Own(), tmp_path / "out")
    path = made.folder / "vectors.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"vectors\.npy is damaged; embed again"):
        Embedding.load(made.folder, verify=True)


def test_a_damaged_byte_in_a_batch_file_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "batch.npz"
    values = np.arange(6, dtype=np.float16).reshape(2, 3)
    problems, keys = [(1, "kind", "n\u00e9")], [b"a" * 16, b"b" * 16]
    batch = Batch(0, 2, "digest", keys, [0, 1], values, problems, b"p" * 32)
    batch.save(path)
    whole = path.read_bytes()
    n_noticed = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            again = load_batch(path)
        except InputError:
            n_noticed += 1
            continue
        assert (again.values == values).all()
        assert dataclasses.replace(again, values=values) == batch
    assert n_noticed > len(whole) / 2


@pytest.mark.parametrize("size", [0, 3, 100, -1])
def test_a_torn_batch_file_is_noticed(size, tmp_path):
    path = tmp_path / "batch.npz"
    Batch(0, 1, "digest", [b"a" * 16], [0], np.ones((1, 3), np.float16)).save(path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(InputError, match=r"batch\.npz is damaged"):
        load_batch(path)


def test_two_processes_do_not_fill_one_folder(crawl, tmp_path):
    def nested(pixels):
        if len(pixels) > 1:
            embed_images(crawl, Own(), tmp_path / "out")
        return mean_colors(pixels)

    with pytest.raises(InputError, match="is in use by another process"):
        embed_images(crawl, Own(nested), tmp_path / "out")


def test_no_room_on_the_disk_is_said_before_the_start(crawl, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(100, 90, 10))
    with pytest.raises(
        InputError, match=r"44\.8 kB are needed .* only 10 bytes are free; make room or choose"
    ):
        embed_images(crawl, Own(), tmp_path / "out")


def test_a_disk_that_fills_up_is_said_and_keeps_what_is_there(crawl, tmp_path, monkeypatch):
    monkeypatch.setattr("vsgraph.encoders.pipeline.IMAGE_BATCH", 16)
    savez, calls = np.savez, []

    def fill_up(file, **arrays):
        calls.append(1)
        if len(calls) > 3:
            file.write(b"half of a batch")
            raise OSError(errno.ENOSPC, "No space left on device")
        savez(file, **arrays)

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", fill_up)
        with pytest.raises(FileError, match="No space left on device; make room and start again"):
            embed_images(crawl, Own(), tmp_path / "out")
    assert len(batch_files(tmp_path)) == 3
    made = embed_images(crawl, Own(), tmp_path / "out")
    assert (made.vectors == embed_images(crawl, Own(), tmp_path / "whole").vectors).all()


def test_folders_of_others_are_left_alone(crawl, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="holds other files; choose another folder"):
        embed_images(crawl, Own(), tmp_path / "mine")
    with pytest.raises(InputError, match="is a file; choose the name of a folder"):
        embed_images(crawl, Own(), tmp_path / "mine" / "letter.txt")
    with pytest.raises(InputError, match="holds no vectors of vsgraph"):
        Embedding.load(tmp_path / "mine")
    (tmp_path / "mine" / "record.json").write_text(json.dumps({"format": "other"}))
    with pytest.raises(InputError, match="is not in the format vsgraph-vectors-1"):
        Embedding.load(tmp_path / "mine")
