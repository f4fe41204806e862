"""One opener for every part of the package: allowed formats, size limits, no programs started."""

import io
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import EpsImagePlugin, Image
from test_decode import bomb_png, file_of

import vsgraph
from made_pictures import jpeg, put
from vsgraph.crawls import inspect_crawl
from vsgraph.crawls.crawl import Crawl
from vsgraph.encoders import Encoded, Preparation, embed_images
from vsgraph.exports import export
from vsgraph.pictures import decode, opener
from vsgraph.pictures.decode import read_picture
from vsgraph.pictures.opener import PictureError, read_header, small_jpeg
from vsgraph.report.thumbnails import write_pictures

SOURCE = Path(vsgraph.__file__).parent
EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 40 30
%%EndComments
newpath 0 0 moveto 40 30 lineto stroke
showpage
%%EOF
"""
WEB_FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "MPO")


def test_only_one_package_opens_picture_files():
    opens = re.compile(r"\bImage\.open\b|\bImage\.OPEN\b|\bimport open\b.*PIL|ImageFile\.Parser")
    found = {
        path.relative_to(SOURCE).parts[0]
        for path in SOURCE.rglob("*.py")
        if opens.search(path.read_text())
    }
    assert found == {"pictures"}


@pytest.fixture
def calls_of_gs(tmp_path, monkeypatch):
    """Put a stub of Ghostscript into PATH; return the file that it leaves when it is called."""
    marker = tmp_path / "gs was called"
    stub = put(tmp_path / "bin" / "gs", f"#!/bin/sh\ntouch '{marker}'\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stub.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    return marker


@pytest.fixture
def crawl(tmp_path):
    """Return eight pictures; the last is an EPS file named .jpg."""
    names = [f"{i}.jpg" for i in range(8)]
    for i, name in enumerate(names):
        put(tmp_path / "crawl" / name, EPS if i == 7 else jpeg((30 * i, 9, 9)))
    table = pa.table({"image": names, "web_labels": pa.array([0, 1] * 4, pa.int32())})
    return Crawl("a folder", tmp_path / "crawl", table, ("ant", "bee"))


def test_the_stub_of_ghostscript_would_notice(calls_of_gs):
    with pytest.raises(OSError, match=r"."):
        Image.open(io.BytesIO(EPS)).load()
    assert calls_of_gs.exists()


class MeanColor:
    """The smallest image encoder."""

    name, fingerprint, n_dims, n_classes = "mean color", "mean color 1", 3, 0
    preparation = Preparation(16, 16)

    def encode(self, pixels):
        return Encoded(pixels.mean(axis=(1, 2)))


def test_inspecting_embedding_and_reporting_start_no_program(crawl, calls_of_gs, tmp_path):
    inspection = inspect_crawl(crawl)
    assert inspection.pictures.unreadable == 1
    assert crawl.problems.counts == {"not a picture": 1}
    vectors = embed_images(crawl, MeanColor(), tmp_path / "vectors").vectors
    assert vectors.any(axis=1).tolist() == [True] * 7 + [False]
    assert crawl.problems.counts == {"not a picture": 2}
    small = write_pictures(tmp_path / "small", crawl, np.arange(8), most_bytes=10**6)
    assert small == frozenset(range(7))
    assert not calls_of_gs.exists()


@pytest.mark.parametrize("to", ["imagefolder", "hf", "webdataset", "coco", "labelstudio"])
def test_exports_start_no_program(crawl, calls_of_gs, tmp_path, to):
    features = np.eye(2)[crawl.web_labels] + np.linspace(0, 0.1, 16).reshape(8, 2)
    correction = vsgraph.correct(
        features, np.eye(2)[crawl.web_labels], np.eye(2), crawl.web_labels,
        settings=vsgraph.Settings(n_neighbors=2, anchors_per_class=2, epochs=2),
        class_names=crawl.class_names,
    )  # fmt: skip
    exported = export(crawl, correction, tmp_path / "out", to=to)
    assert exported.problems.counts == {"not a picture": 1}
    assert not calls_of_gs.exists()


@pytest.mark.parametrize("kind", WEB_FORMATS)
def test_headers_say_the_format_and_the_size(kind, tmp_path):
    data = file_of(Image.new("RGB", (30, 20)), kind)
    suffix = {"JPEG": ".jpg", "MPO": ".jpg", "TIFF": ".tif"}.get(kind, f".{kind.lower()}")
    assert read_header(data) == read_header(put(tmp_path / "a", data)) == (suffix, 30, 20)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "picture missing or empty"),
        (b"", "picture missing or empty"),
        (b"<html>404</html>", "not a picture"),
        (EPS, "not a picture"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 20, "not a picture"),
        (bomb_png(60_000, 60_000), "picture too large"),
    ],
)
def test_headers_that_cannot_be_read_say_why(content, reason, tmp_path):
    path = tmp_path / "absent" if content is None else put(tmp_path / "a", content)
    with pytest.raises(PictureError) as caught:
        read_header(path)
    assert caught.value.reason == reason


def test_a_folder_is_not_a_picture(tmp_path):
    with pytest.raises(PictureError, match="picture missing or empty"):
        read_header(tmp_path)


def made_small(data):
    return Image.open(io.BytesIO(small_jpeg(data, side=128, quality=75)))


@pytest.mark.parametrize(
    "data",
    [b"", b"<svg onload=alert(1)>", jpeg()[:200], bomb_png(60_000, 60_000), bomb_png(900, 900),
     EPS, b"GIF89a" + b"\xff" * 99],
    ids=["empty", "svg", "cut", "bomb", "no pixels", "eps", "noise"],
)  # fmt: skip
def test_what_cannot_be_read_has_no_small_jpeg(data):
    assert small_jpeg(data, side=128, quality=75) == b""


@pytest.mark.parametrize("kind", WEB_FORMATS)
def test_the_formats_of_the_web_have_a_small_jpeg(kind):
    assert made_small(file_of(Image.new("RGB", (300, 150), "red"), kind)).size == (128, 64)


def test_small_jpegs_of_odd_pictures_are_plain():
    cmyk = made_small(file_of(Image.new("CMYK", (300, 200), (0, 255, 255, 0)), "JPEG"))
    assert (cmyk.mode, cmyk.size) == ("RGB", (128, 85))
    assert cmyk.getpixel((9, 9))[0] > 200 > 60 > cmyk.getpixel((9, 9))[2]
    frames = [Image.new("P", (30, 20), number) for number in range(3)]
    animation = file_of(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert made_small(animation).size == (30, 20)
    clear = made_small(file_of(Image.new("RGBA", (8, 8), (255, 0, 0, 0))))
    assert min(clear.getpixel((4, 4))) > 250
    deep = made_small(file_of(Image.fromarray(np.full((20, 20), 128 * 256, np.uint16))))
    assert abs(deep.getpixel((4, 4))[0] - 128) < 3
    turned = Image.new("RGB", (300, 100))
    exif = turned.getexif()
    exif[0x0112] = 6
    upright = made_small(file_of(turned, "JPEG", exif=exif))
    assert upright.size == (43, 128)
    assert not upright.getexif()


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "LA", "P", "CMYK", "I;16", "F"])
def test_pixels_by_strips_are_those_of_the_whole_picture(mode):
    pixels = np.random.default_rng(0).integers(0, 255, (2 * opener.STRIP + 5, 7, 4), np.uint8)
    image = Image.fromarray(pixels[..., 0]) if mode in {"I;16", "F"} else Image.fromarray(pixels)
    image = image.convert(mode)
    np.testing.assert_array_equal(opener.rgb_pixels(image), np.asarray(opener.as_rgb(image)))


def test_few_large_pictures_are_decoded_at_a_time(monkeypatch):
    monkeypatch.setattr(opener, "MANY_PIXELS", 10)
    decoding, most = [], []

    def upright(image, least):
        decoding.append(id(image))
        most.append(len(decoding))
        time.sleep(0.01)
        decoding.remove(id(image))
        return image

    monkeypatch.setattr(decode, "upright", upright)
    buffer = io.BytesIO()
    Image.new("RGB", (20, 20)).save(buffer, "PNG")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: read_picture(buffer.getvalue(), Preparation(8, 8)), range(16)))
    assert max(most) == 2
