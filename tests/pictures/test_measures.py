"""What is measured on pictures, and which of them are flawed."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFilter

from made_pictures import as_jpeg, jpeg, page_of_text, photo
from vsgraph.pictures.measures import MEASURES, SIDE, WIDTH, Shrunk, measure_picture
from vsgraph.pictures.opener import PictureError
from vsgraph.screening.screened import flaws_of

PHOTOS = [photo(seed) for seed in range(6)]


def flaws(images, *others):
    """Return the flaws of pictures in a crawl of sharp photos."""
    files = [*(image if isinstance(image, bytes) else as_jpeg(image) for image in images), *others]
    usual = [as_jpeg(image) for image in PHOTOS]
    rows = [measure_picture(data)[: len(MEASURES)] for data in (*files, *usual)]
    found = flaws_of(np.array(rows))
    return [{name for name, mask in found.items() if mask[i]} for i in range(len(files))]


def test_sharp_photos_have_no_flaw():
    assert flaws(PHOTOS) == [set()] * len(PHOTOS)


@pytest.mark.parametrize("radius", [2, 3, 6])
def test_blurred_photos_are_found(radius):
    blurred = [image.filter(ImageFilter.GaussianBlur(radius)) for image in PHOTOS]
    assert flaws(blurred) == [{"blurred"}] * len(PHOTOS)


def test_a_photo_enlarged_many_times_is_blurred():
    small = [
        image.resize((40, 40)).resize((400, 400), Image.Resampling.BICUBIC) for image in PHOTOS
    ]
    assert flaws(small) == [{"blurred"}] * len(PHOTOS)


def test_dark_blank_and_tiny_pictures_are_found():
    dark = PHOTOS[0].point(lambda level: level // 5)
    assert flaws([dark, Image.new("RGB", (200, 200), "gray"), PHOTOS[1].resize((40, 60))]) == [
        {"dark"}, {"blank"}, {"tiny"},
    ]  # fmt: skip


def test_in_a_crawl_of_small_pictures_none_is_tiny():
    rows = np.array([measure_picture(jpeg(size=(32, 32)))[: len(MEASURES)]] * 3)
    assert not flaws_of(rows)["tiny"].any()


@pytest.mark.parametrize("turned", [False, True])
def test_pages_of_text_are_found(turned):
    pages = [page_of_text(seed) for seed in range(3)]
    if turned:  # white on black
        pages = [page.point(lambda level: 255 - level) for page in pages]
    assert all("text" in found for found in flaws(pages))


def test_the_numbers_of_a_picture():
    numbers = measure_picture(jpeg("white", (300, 200)))
    named = dict(zip(MEASURES, numbers.tolist(), strict=False))
    assert len(numbers) == WIDTH == len(MEASURES) + SIDE * SIDE
    assert (named["width"], named["height"], named["page"]) == (300, 200, 1)
    assert named["bytes"] == len(jpeg("white", (300, 200)))
    assert numbers[len(MEASURES) :].min() > 250


def test_the_square_of_a_picture_does_not_depend_on_its_size():
    large, small = (photo(3).resize((side, side), Image.Resampling.LANCZOS) for side in (512, 128))
    squares = [measure_picture(as_jpeg(image))[len(MEASURES) :] for image in (large, small)]
    assert np.abs(squares[0] - squares[1]).max() < 12


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_pictures_are_never_enlarged_and_keep_their_shape(height, width):
    new = Shrunk(256).before_crop(height, width)
    assert max(new) <= max(min(256, max(height, width)), 1)
    assert min(new) >= 1
    if max(height, width) <= 256:
        assert new == (height, width)


@settings(max_examples=40)
@given(st.binary(max_size=200), st.integers(0, 400))
def test_damaged_files_are_refused_or_measured(noise, cut):
    data = as_jpeg(PHOTOS[0].resize((48, 48)))
    broken = data[:cut] + noise + data[cut + len(noise) :]
    try:
        numbers = measure_picture(broken)
    except PictureError:
        return
    assert numbers.shape == (WIDTH,)
    assert np.isfinite(numbers).all()


@pytest.mark.parametrize("kind", ["PNG", "GIF", "WEBP"])
def test_other_formats_are_measured_alike(kind):
    raw = io.BytesIO()
    PHOTOS[2].save(raw, kind, **({"lossless": True} if kind == "WEBP" else {}))
    other, plain = measure_picture(raw.getvalue()), measure_picture(as_jpeg(PHOTOS[2], 98))
    assert np.abs(other[len(MEASURES) :] - plain[len(MEASURES) :]).mean() < 3


@pytest.mark.parametrize("size", [(8, 3000), (3000, 8), (9, 9)])
def test_narrow_and_small_pictures_are_measured(size):
    assert np.isfinite(measure_picture(jpeg("red", size))).all()
