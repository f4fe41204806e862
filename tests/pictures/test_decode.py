"""Pictures as the web has them: fine, odd, broken, hostile."""

import contextlib
import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from vsgraph.pictures import decode
from vsgraph.pictures.decode import Preparation, read_picture
from vsgraph.pictures.opener import PictureError, quiet_pillow

SIZE = Preparation(64, 64)
DECODERS = ("simplejpeg, OpenCV", "Pillow")


@pytest.fixture(params=DECODERS)
def decoder(request, monkeypatch):
    monkeypatch.setattr(decode, "decoder", lambda: request.param)
    return request.param


def scene(width=200, height=120):
    """Red in the left upper corner, blue to the right, green below."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, width // 2 :, 2] = 250
    pixels[height // 2 :, :, 1] = 250
    pixels[: height // 2, : width // 2, 0] = 250
    return Image.fromarray(pixels)


def file_of(image, kind="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def looks_like_scene(pixels, tolerance=25):
    expected = np.asarray(scene().resize((64, 64), Image.Resampling.BOX), int)
    inner = np.s_[4:28, 4:28], np.s_[4:28, 36:60], np.s_[36:60, 4:28], np.s_[36:60, 36:60]
    return all(abs(pixels[s].astype(int) - expected[s]).max() <= tolerance for s in inner)


PLAIN = {
    "jpeg": lambda: file_of(scene(), "JPEG", quality=95),
    "progressive jpeg": lambda: file_of(scene(), "JPEG", quality=95, progressive=True),
    "large jpeg": lambda: file_of(scene(1600, 960), "JPEG", quality=95),
    "jpeg, 4:4:4": lambda: file_of(scene(), "JPEG", quality=95, subsampling=0),
    "png": lambda: file_of(scene()),
    "webp": lambda: file_of(scene(), "WEBP", quality=95),
    "bmp": lambda: file_of(scene(), "BMP"),
    "tiff": lambda: file_of(scene(), "TIFF"),
    "palette png": lambda: file_of(scene().convert("P", palette=Image.Palette.ADAPTIVE)),
    "gif": lambda: file_of(scene(), "GIF"),
    "cmyk jpeg": lambda: file_of(scene().convert("CMYK"), "JPEG", quality=95),
    "cmyk tiff": lambda: file_of(scene().convert("CMYK"), "TIFF"),
    "opaque rgba": lambda: file_of(scene().convert("RGBA")),
}


@pytest.mark.parametrize("kind", PLAIN)
def test_every_kind_of_file_gives_the_same_picture(kind, decoder):
    pixels = read_picture(PLAIN[kind](), SIZE)
    assert pixels.shape == (64, 64, 3)
    assert pixels.dtype == np.uint8
    assert looks_like_scene(pixels)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_exif_rotation_is_undone(orientation, kind, decoder):
    undo = {
        2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }  # fmt: skip
    turned = scene().transpose(undo[orientation]) if orientation in undo else scene()
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"quality": 95} if kind == "JPEG" else {}
    assert looks_like_scene(read_picture(file_of(turned, kind, exif=exif, **options), SIZE))


def test_broken_exif_does_not_lose_the_picture(decoder):
    data = file_of(scene(), "JPEG", quality=95, exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xff")
    with quiet_pillow():
        assert looks_like_scene(read_picture(data, SIZE))


def test_gray_and_sixteen_bits(decoder):
    ramp = np.tile(np.linspace(0, 65535, 64).astype(np.uint16), (64, 1))
    pixels = read_picture(file_of(Image.fromarray(ramp)), SIZE)
    assert abs(pixels[32, :, 0].astype(int) - ramp[0] // 256).max() <= 1
    assert (pixels[..., 0] == pixels[..., 2]).all()
    gray = Image.fromarray((ramp // 256).astype(np.uint8))
    for data in (file_of(gray, "JPEG", quality=100), file_of(gray)):
        assert abs(read_picture(data, SIZE).astype(int) - pixels).max() <= 8
    floats = file_of(Image.fromarray(ramp.astype(np.float32) / 65535), "TIFF")
    assert abs(read_picture(floats, SIZE).astype(int) - pixels).max() <= 2


def test_an_animation_gives_its_first_frame(decoder):
    frames = [Image.new("RGB", (64, 64), color) for color in ("blue", "white", "black")]
    for kind in ("GIF", "WEBP", "PNG"):
        data = file_of(frames[0], kind, save_all=True, append_images=frames[1:])
        assert abs(read_picture(data, SIZE)[32, 32].astype(int) - [0, 0, 255]).max() <= 8


def test_transparency_lies_on_white(decoder):
    clear = Image.new("RGBA", (64, 64), (255, 0, 0, 0))
    assert (read_picture(file_of(clear), SIZE) == 255).all()
    palette = Image.new("P", (64, 64), 0)
    palette.putpalette([255, 0, 0] * 256)
    assert (read_picture(file_of(palette, "GIF", transparency=0), SIZE) == 255).all()


def bomb_png(width, height):
    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def bomb_jpeg():
    data = bytearray(file_of(scene(), "JPEG"))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", 65000, 65000)
    return bytes(data)


BAD = {
    "missing or empty": (lambda: b"", "missing or empty"),
    "web page": (lambda: b"<!DOCTYPE html><html>404</html>", "not a picture: a web page"),
    "noise": (lambda: b"\x00\x01nonsense" * 99, "not a picture"),
    "script": (lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n", "not a picture"),
    "png bomb": (lambda: bomb_png(60000, 60000), "too large: 60000 x 60000"),
    "png just too large": (lambda: bomb_png(12000, 8000), "too large"),
    "jpeg bomb": (bomb_jpeg, "too large: 65000 x 65000"),
    "tiny": (lambda: file_of(Image.new("RGB", (1, 1))), "too small: 1 x 1"),
    "truncated jpeg": (lambda: PLAIN["large jpeg"]()[:6000], "broken"),
    "truncated png": (lambda: file_of(Image.effect_noise((99, 99), 50))[:2000], "broken"),
    "truncated webp": (lambda: PLAIN["webp"]()[:200], "broken"),
    "head only": (lambda: PLAIN["jpeg"]()[:3], "broken|not a picture"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_used_says_why(kind, decoder):
    make, reason = BAD[kind]
    with pytest.raises(PictureError, match=reason):
        read_picture(make(), SIZE)


def test_a_crop_keeps_the_middle(decoder):
    wide = np.zeros((100, 300, 3), np.uint8)
    wide[:, 100:200] = 255
    middle = read_picture(file_of(Image.fromarray(wide)), Preparation(50, 50, crop=1.0))
    assert middle.shape == (50, 50, 3)
    assert (middle[:, 2:-2] == 255).all()
    inner = read_picture(file_of(Image.fromarray(wide)), Preparation(50, 50, crop=0.5))
    assert inner.shape == (50, 50, 3)


def test_both_decoders_nearly_agree_on_photos(monkeypatch):
    random = np.random.default_rng(0)
    blobs = Image.fromarray(random.integers(0, 255, (12, 16, 3), np.uint8)).resize((800, 600), 3)
    found = []
    for name in DECODERS:
        monkeypatch.setattr(decode, "decoder", lambda name=name: name)
        found.append(read_picture(file_of(blobs, "JPEG", quality=90), SIZE).astype(int))
    assert abs(found[0] - found[1]).mean() < 3


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), kind=st.sampled_from(sorted(PLAIN)))
def test_damaged_files_are_refused_or_read_never_worse(seed, kind):
    random = np.random.default_rng(seed)
    data = bytearray(PLAIN[kind]())
    for place in random.integers(len(data), size=random.integers(1, 30)):
        data[place] = random.integers(256)
    with contextlib.suppress(PictureError):
        assert read_picture(bytes(data[: random.integers(1, len(data))]), SIZE).shape == (64, 64, 3)
