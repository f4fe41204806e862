"""Contents of picture files that try to harm: bombs, other formats, polyglots, cuts, noise."""

import io
import random
import struct
import zipfile
import zlib

from PIL import Image

from made_pictures import jpeg

EVIL_SCRIPT = b"<script>window.hacked=1</script>"
KINDS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM")
HUGE = 60_000


def picture(kind, size=(40, 30)):
    raw = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert("RGB").save(raw, kind)
    return raw.getvalue()


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, *more, pixels=b"\0"):
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [
        chunk(b"IHDR", head),
        *more,
        chunk(b"IDAT", zlib.compress(pixels)),
        chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def tiff(entries, *, next_ifd=0):
    """Return a TIFF of one directory with entries (tag, type, count, value)."""
    packed = b"".join(struct.pack("<HHII", *entry) for entry in entries)
    head = b"II*\0" + struct.pack("<I", 8) + struct.pack("<H", len(entries))
    return head + packed + struct.pack("<I", next_ifd) + b"\0" * 64


def tiff_of(width, height, **more):
    plain = [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (259, 3, 1, 1),
             (262, 3, 1, 1), (273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, height),
             (279, 4, 1, 64)]  # fmt: skip
    return tiff(plain, **more)


def bombs():
    """Small files that claim, or unpack to, very much."""
    text = zlib.compress(b"z" * 50_000_000, 9)
    frames = [Image.new("L", (8, 8), n % 255) for n in range(500)]
    many = io.BytesIO()
    frames[0].save(many, "GIF", save_all=True, append_images=frames[1:])
    webp = b"VP8X" + struct.pack("<I", 10) + b"\0" * 4 + b"\xff\xff\xff" * 2 + b"\0" * 20
    yield "png-header", png(HUGE, HUGE)
    yield "png-wide", png(2**31 - 1, 1)
    yield "png-negative", png(2**32 - 1, 2**32 - 1)
    yield "png-none", png(0, 0)
    yield "png-pixels", png(9000, 3000, pixels=b"\0" * (9000 * 9 + 3))
    yield "png-text", png(20, 20, chunk(b"zTXt", b"a\0\0" + text))
    yield "png-profile", png(20, 20, chunk(b"iCCP", b"a\0\0" + text))
    yield "png-texts", png(20, 20, *[chunk(b"tEXt", b"k%d\0v" % i) for i in range(20_000)])
    yield "gif-screen", b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0, 0, 0) + b",\0\0\0\0;"
    yield (
        "gif-frame",
        picture("GIF")[:6]
        + struct.pack("<HHBBB", 9, 9, 0, 0, 0)
        + b","
        + (struct.pack("<HHHHB", 0, 0, 65535, 65535, 0) + b"\x02\x02\x4c\x01\0;"),
    )
    yield "gif-frames", many.getvalue()
    yield "tiff-header", tiff_of(HUGE, HUGE)
    yield "tiff-largest", tiff_of(2**32 - 1, 2**32 - 1)
    yield "tiff-loop", tiff_of(20, 20, next_ifd=8)
    yield "tiff-tags", tiff([(256, 4, 2**31, 8), (257, 5, 2**30, 8), (270, 2, 2**31, 9)])
    yield (
        "bmp",
        b"BM" + struct.pack("<IHHIIiiHHIIiiII", 99, 0, 0, 54, 40, HUGE, HUGE, 1, 24, *[0] * 6),
    )
    yield "ppm", b"P6 99999999 99999999 255\n" + b"\0" * 99
    yield "ppm-digits", b"P6 " + b"9" * 5000 + b" 3 255\n"
    yield "webp", b"RIFF" + struct.pack("<I", len(webp) + 4) + b"WEBP" + webp
    start = jpeg().find(b"\xff\xc0")
    yield "jpeg", jpeg()[: start + 5] + b"\xff\xdc\xff\xdc" + jpeg()[start + 9 :]
    yield "zeros", b"\0" * 100_000


def others():
    """Files that are no picture, or of a format that is not allowed, whatever their name says."""
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 40 30\n%%EndComments\n(gs-was-here) run\n"
    yield "eps", eps
    yield (
        "eps-binary",
        b"\xc5\xd0\xd3\xc6" + struct.pack("<6I", 30, len(eps), 0, 0, 0, 0) + b"\xff\xff" + eps,
    )
    yield "ps", b"%!PS\n(%pipe%touch hacked) (w) file\n"
    yield "svg", b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.hacked=1'></svg>"
    yield "svg-late", b"<?xml version='1.0'?><!-- x --><svg onload='window.hacked=1'/>"
    laughs = "".join(f"<!ENTITY l{i} '{f'&l{i - 1};' * 10}'>" for i in range(1, 12))
    yield (
        "xml",
        f"<?xml version='1.0'?><!DOCTYPE l [<!ENTITY l0 'ha'>{laughs}]><l>&l11;</l>".encode(),
    )
    yield "html", b"<!doctype html>" + EVIL_SCRIPT
    yield "pdf", b"%PDF-1.4\n1 0 obj<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>endobj"
    yield "shell", b"#!/bin/sh\ntouch hacked\n"
    yield "elf", b"\x7fELF" + b"\0" * 60
    yield "mvg", b"push graphic-context\nimage over 0,0 0,0 '|touch hacked'\npop graphic-context"
    yield "wmf", b"\xd7\xcd\xc6\x9a" + b"\0" * 60
    yield "xpm", b'/* XPM */\nstatic char *a[] = {"999999 999999 1 1", "a c #000"};'
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("../../hacked", "x")
    yield "zip", packed.getvalue()
    for kind in ("ICO", "TGA", "PCX", "SGI", "DDS", "JPEG2000", "PDF", "MSP", "XBM"):
        mode = {"MSP": "1", "XBM": "1"}.get(kind, "RGB")
        raw = io.BytesIO()
        Image.new(mode, (20, 20)).save(raw, kind)
        yield kind.lower(), raw.getvalue()


def polyglots():
    """Files that are two things at once."""
    yield "gif-script", b"GIF89a/*" + picture("GIF")[8:] + b"*/=1;window.hacked=1;//"
    yield "jpeg-page", jpeg() + EVIL_SCRIPT
    yield "jpeg-comment", jpeg()[:2] + b"\xff\xfe\x00\x22" + EVIL_SCRIPT + jpeg()[2:]
    yield "jpeg-zip", jpeg() + dict(others())["zip"]
    yield "pdf-jpeg", b"%PDF-1.4\n" + jpeg()
    yield "png-page", png(20, 20, chunk(b"tEXt", b"Title\0" + EVIL_SCRIPT))
    yield "png-jpeg", b"\x89PNG\r\n\x1a\n" + jpeg()
    yield "jpeg-png", b"\xff\xd8\xff" + picture("PNG")
    yield "tiff-eps", b"II*\0" + dict(others())["eps"]
    yield (
        "exif",
        jpeg()[:2] + b"\xff\xe1\x00\x20Exif\0\0II*\0\xff\xff\xff\xff" + b"\xff" * 12 + jpeg()[2:],
    )


def spoiled(*, cuts=12, flips=12, seed=0):
    """Real pictures cut short or with wrong bytes, and noise."""
    draw = random.Random(seed)
    for kind in KINDS:
        whole = picture(kind)
        for number in range(cuts):
            yield f"{kind}-cut-{number}", whole[: 1 + number * len(whole) // cuts]
        for number in range(flips):
            wrong = bytearray(whole)
            for _ in range(1 + number):
                wrong[draw.randrange(min(len(wrong), 300))] = draw.randrange(256)
            yield f"{kind}-flip-{number}", bytes(wrong)
        yield f"{kind}-noise", whole[:12] + draw.randbytes(500)
    for number in range(10):
        yield f"noise-{number}", draw.randbytes(10**number % 5000 + 1)
    yield "empty", b""


def all_pictures():
    """Return every content by name."""
    return {name: data for group in (bombs, others, polyglots, spoiled) for name, data in group()}
