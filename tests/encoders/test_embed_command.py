"""A whole crawl embedded by one command."""

import numpy as np
import pytest
from click.testing import CliRunner
from test_image_encoders import blobs, jpeg
from test_vector_store import crawl_of

from vsgraph.cli import main
from vsgraph.encoders import Embedding, embed_crawl
from vsgraph.encoders.runtimes.runners import TOLERANCE
from vsgraph.errors import InputError, VSGraphWarning


@pytest.fixture
def crawl(tmp_path):
    root = tmp_path / "pictures"
    root.mkdir()
    names = [f"{i}.jpg" for i in range(70)]
    for i, name in enumerate(names):
        (root / name).write_bytes(jpeg(blobs(i)) if i != 3 else b"<html>")
    titles = [f"a {'gray' if i % 2 else 'tower'} crane number {i}" if i else "" for i in range(70)]
    return crawl_of(root, names, title=titles)


@pytest.mark.slow
def test_the_command_embeds_pictures_and_texts_and_says_what_was_wrong(
    crawl, tmp_path, model_cache
):
    table = crawl.root / "crawl.csv"
    lines = zip(crawl.table["image"].to_pylist(), crawl.texts(), strict=True)
    table.write_text("\n".join(["path,label,title", *(f"{n},crane,{t}" for n, t in lines)]))
    out = tmp_path / "vectors"
    done = CliRunner().invoke(main, ["embed", str(table), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "1 x not a picture: 3.jpg" in done.output
    assert "pictures: lite0 (1280-d, squeeze 224x224" in done.output
    assert "texts: minilm (384-d" in done.output
    images, texts = (Embedding.load(out / name, verify=True) for name in ("images", "texts"))
    assert images.vectors.shape == (70, 1280)
    assert texts.vectors.shape == (70, 384)
    assert (np.flatnonzero(~images.vectors.any(axis=1)) == [3]).all()
    assert (np.flatnonzero(~texts.vectors.any(axis=1)) == [0]).all()
    assert "not a picture\t3.jpg" in (out / "problems.tsv").read_text()
    again = CliRunner().invoke(main, ["embed", str(table), "-o", str(out), "--runtime", "torch"])
    assert again.exit_code == 1
    assert "made in another way" in again.output


@pytest.mark.slow
def test_int8_and_lsa_learn_from_the_crawl_itself(crawl, tmp_path, model_cache, monkeypatch):
    monkeypatch.setitem(TOLERANCE, "int8", 0.5)
    made = embed_crawl(
        crawl, tmp_path / "out", texts="lsa", runtime="openvino", precision="int8", dtype="float32"
    )
    assert made.image_encoder.runner.precision == "int8"
    assert made.text_encoder.name == "lsa"
    assert made.images.vectors.dtype == made.texts.vectors.dtype == np.float32
    assert len(made.texts.vectors) == 70


@pytest.mark.slow
def test_vectors_of_another_list_of_images_are_not_replaced_silently(crawl, tmp_path, model_cache):
    embed_crawl(crawl.take(slice(4, 70)), tmp_path / "out", texts="lsa")
    with pytest.warns(VSGraphWarning, match="held vectors of another list of images"):
        embed_crawl(crawl.take(slice(69, 3, -1)), tmp_path / "out", texts="lsa", overwrite=True)


def test_a_file_in_the_way_is_refused(crawl, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError, match="is a file; choose the name of a folder"):
        embed_crawl(crawl, tmp_path / "out")
