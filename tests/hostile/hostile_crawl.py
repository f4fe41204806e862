# ruff: noqa: E501
"""A hostile crawl on disk: hundreds of files, tables and shards that try to harm their reader."""

import contextlib
import io
import itertools
import json
import os
import random
import socket
import stat
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
from hostile_pictures import all_pictures, picture

from made_pictures import jpeg, put

EVIL = (
    '"><script>window.hacked=1</script>',
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script>",
    "&lt;script&gt;window.hacked=1&lt;/script&gt;",
    "javascript:window.hacked=1",
    "' onmouseover='window.hacked=1",
    "</title></textarea></svg><svg onload=window.hacked=1>",
    "{{ 7 * 7 }}{% for x in y %}${7*7}",
    "\u202eesrever \u2028\u2029\u0085",
    "\x1b[31mred\x07\x1b]0;title\x07",
    "=cmd|' /C calc'!A0",
    "x" * 5000,
    "<" * 3000,
    "&" * 3000,
)
CLASSES = (
    "../x", "..", ".", "con", "CON", "nul.txt", "-rf", "--help", "<script>window.hacked=1</script>",
    "#hash", "=1+1", "@cmd", "a/b", "a\\b", "a:b", "x" * 300, "Crane", "crane", "cra\u006ee ",
    "\u202egnorw", "line\nbreak", "tab\there", "\x1b[31mred", "caf\u00e9", "cafe\u0301",
    "%s %d {0} {x}", "$(touch hacked)", "`touch hacked`", "; rm -rf ~", "'; DROP TABLE x; --",
    "\U0001f600", "0", "-1", "nan", "none", "null", "true", "_rejected", "record.json",
)  # fmt: skip
NAMES = (
    "\u202egpj.exe.jpg", "line\nbreak.jpg", "tab\t.jpg", "-rf.jpg", "#hash.jpg", "=1+1.jpg",
    "con.jpg", "CON.jpg", "aux.jpg", "a b.jpg", "a;b.jpg", "a&b.jpg", "$(touch hacked).jpg",
    "`touch hacked`.jpg", "'quote'.jpg", '"quote".jpg', "<script>window.hacked=1<", "caf\u00e9.jpg",
    "cafe\u0301.jpg", "CAFE\u0301.jpg", "Twin.jpg", "twin.jpg", "TWIN.JPG", "twin_.jpg", "twin?.jpg",
    "twin*.jpg", "dots....jpg", "%2e%2e%2fx.jpg", "\x1b[31m.jpg", "x" * 251 + ".jpg",
    "\u00e9" * 125 + ".jpg", " lead.jpg", "trail .jpg", "no-suffix", "two.jpg.exe", "back\\slash.jpg",
    "{{7*7}}.jpg", "http:.jpg", "C:.jpg", "~.jpg", "\u2028.jpg",
)  # fmt: skip
PATHS = (
    "", ".", "..", "../../../etc/passwd", "/etc/passwd", "/dev/zero", "/dev/stdin", "/proc/self/mem",
    "C:\\boot.ini", "\\\\host\\share\\x.jpg", "a\0b.jpg", "\0", "x" * 5000 + ".jpg", "d/" * 2000 + "x.jpg",
    "file:///etc/passwd", "http://localhost:1/x.jpg", "data:image/png;base64,AAAA", "missing.jpg",
    "links/passwd.jpg", "links/above/etc/passwd", "links/loop.jpg", "links/self/self/self/x.jpg",
    "links/pipe.jpg", "links/zero.jpg", "links/folder.jpg", "links/socket.jpg", "links/nothing.jpg",
    "links/huge.jpg", "links/./../links/passwd.jpg", "links//passwd.jpg", "\ud800.jpg",
)  # fmt: skip
WRONG = (None, True, -1, 1e308, "", " ", [], {}, [[]], [None], {"a": {"b": []}}, ["x", 5, None], "\0",
         "\ud800", 10**40, [[["deep"]]], {"": ""}, "x" * 5000)  # fmt: skip


def make_hostile(folder):
    """Write everything below a folder; return the table that lists the pictures."""
    crawl = folder / "crawl"
    contents = all_pictures()
    places = _pictures(crawl, contents)
    _links(crawl / "links")
    table = _main_table(crawl, places)
    _class_folders(folder / "folders", contents)
    _csv_files(folder / "tables")
    _json_files(folder / "tables")
    _parquet_files(folder / "tables")
    _shards(folder / "shards", contents)
    _layouts(folder / "layouts")
    return table


def count_files(folder):
    """Return how many files, links, pipes and devices there are."""
    return sum(len(files) for _, _, files in os.walk(folder))


def _pictures(crawl, contents):
    """Write every content under a plain name, and a real picture under every odd name."""
    names = [f"pictures/{name}.jpg" for name in contents]
    for name, data in zip(names, contents.values(), strict=True):
        put(crawl / name, data)
    for number, name in enumerate(NAMES):
        put(crawl / "names" / name, jpeg((5 * number, 90, 200)))
        names.append(f"names/{name}")
    for number in range(80):
        put(crawl / f"good/{number}.jpg", picture("JPEG", (30 + number, 30)))
        names.append(f"good/{number}.jpg")
    put(crawl / "names" / os.fsdecode(b"not-utf8-\xff.jpg"))
    return names


def _links(folder):
    folder.mkdir(parents=True)
    (folder / "passwd.jpg").symlink_to("/etc/passwd")
    (folder / "above").symlink_to("/")
    (folder / "parent").symlink_to("..")
    (folder / "loop.jpg").symlink_to("loop.jpg")
    (folder / "self").symlink_to(".")
    (folder / "nothing.jpg").symlink_to("nowhere")
    (folder / "folder.jpg").mkdir()
    os.mkfifo(folder / "pipe.jpg")
    with (folder / "huge.jpg").open("wb") as file:
        file.truncate(2**40)
    listener = socket.socket(socket.AF_UNIX)
    with contextlib.closing(listener), contextlib.suppress(OSError):  # the path may be too long
        listener.bind(str(folder / "socket.jpg"))
    for name, number in (("zero.jpg", 5), ("full.jpg", 7)):
        with contextlib.suppress(PermissionError):
            os.mknod(folder / name, 0o600 | stat.S_IFCHR, os.makedev(1, number))


def _main_table(crawl, places):
    labels, evil = itertools.cycle(CLASSES), itertools.cycle(EVIL)
    lines = [
        json.dumps({"path": place, "label": next(labels), "title": next(evil), "tags": ["a", place],
                    "truth": next(labels) if number % 3 else None, "source": next(evil)})
        for number, place in enumerate([*places, *PATHS])
    ]  # fmt: skip
    lines += [json.dumps({"path": "good/1.jpg", "label": value, "title": value}) for value in WRONG[3:]
              if not isinstance(value, list)]  # fmt: skip
    lines += ["{", "[]", "null", '"x"', "[" * 2000, '{"path": ' * 900, "\0", "NaN", '{"path": NaN}']
    return put(crawl / "crawl.jsonl", "\n".join(lines))


def _class_folders(root, contents):
    """Write class folders with odd names, links among them, and files of text of any kind."""
    data = itertools.cycle(contents.values())
    for name in {name.replace("/", "_")[:80] for name in CLASSES} - {".", ".."}:
        for number in range(4):
            put(root / name / f"{number}.jpg", next(data) if number else jpeg())
        put(root / name / "0.txt", random.Random(0).randbytes(300))
        put(root / name / "1.json", json.dumps({"title": EVIL[0], "tags": WRONG[8]}))
        put(root / name / "2.json", "[" * 100_000)
        os.mkfifo(root / name / "3.txt")
    (root / "linked").symlink_to("/etc")
    (root / "again").symlink_to(".")
    put(root / os.fsdecode(b"\xff\xfe") / "a.jpg")


def _csv_files(folder):
    """Write one small table in every encoding and line end, and broken in many ways."""
    rows = [
        ["path", "label", "title"],
        ["good/1.jpg", "caf\u00e9", "na\u00efve"],
        ["good/2.jpg", "b", ""],
    ]
    for end, encoding in itertools.product(
        ("\n", "\r\n", "\r", "\n\r", "\x85", "\u2028"),
        (
            "utf-8",
            "utf-8-sig",
            "utf-16",
            "utf-16-le",
            "utf-16-be",
            "utf-32",
            "latin-1",
            "cp1252",
            "cp037",
        ),
    ):
        for mark in (",", ";", "\t"):
            text = end.join(mark.join(row) for row in rows) + end
            name = f"{encoding}-{ord(end[0])}-{len(end)}-{ord(mark)}.csv"
            put(folder / name, text.encode(encoding, "replace"))
    head = b"path,label,title\n"
    draw = random.Random(1)
    broken = {
        "mixed": head + b"a.jpg,x,1\rb.jpg,x,2\r\nc.jpg,x,3\n",
        "open-quote": head + b"a.jpg,x,1\n" * 50 + b'b.jpg,x,"open\n' + b"c.jpg,x,2\n" * 100,
        "open-quotes": head + b'b.jpg,x,"open\n' * 3000,
        "quotes": head + b'a.jpg,x,"' + b'"' * 99_999 + b"\n",
        "large-field": head + b"a.jpg,x," + b"z" * 2**20 + b'\nb.jpg,x,"' + b"y\n" * 2**19 + b'"\n',
        "large-header": b"path,label," + b"x" * 200_000 + b"\na,b,c\n",
        "columns": b"path,label" + b",x" * 50_000 + b"\na.jpg,y" + b",z" * 50_000 + b"\n",
        "same-columns": b"path,path,label,label\na,b,c,d\n",
        "empty-columns": b",,,\na,b,c,d\n",
        "only-header": head, "no-header": b"a.jpg,x\nb.jpg,y\n", "blank": b"\n\n\n\n", "nul": b"\0" * 500,
        "nul-cells": head + b"a\0.jpg,x\0y,\0\n", "noise": draw.randbytes(5000),
        "noise-below": head + draw.randbytes(50_000), "commas": b"," * 100_000,
        "formulas": head + b"a.jpg,=1+1,@x\nb.jpg,+1,-1\n", "bidi": head + "a.jpg,\u202ex,y\n".encode(),
        "surrogates": head + b"a.jpg,\xed\xa0\x80,y\n", "overlong": head + b"a.jpg,\xc0\xaf,y\n",
        "many-bad": head + b"a.jpg,\xe9,\xe9\n" * 500, "escape": head + b"a.jpg,\x1b[31m,y\n",
        "huge-number": head + b"a.jpg," + b"9" * 5000 + b",y\n", "no-newline": b"path,label",
        "quoted-header": b'"path","la""bel","label"\na,b,c\n', "open-header": b'path,"label\na,b\n',
    }  # fmt: skip
    for name, content in broken.items():
        for ending in ("csv", "tsv"):
            put(folder / f"{name}.{ending}", content)


def _json_files(folder):
    for number, (one, other) in enumerate(itertools.product(WRONG, WRONG[:6])):
        rows = [{"path": "good/1.jpg", "label": "x", "title": "y"}, {"path": one, "label": other},
                {"path": "good/2.jpg", "label": one, "title": other, "truth": one}]  # fmt: skip
        put(folder / f"types-{number}.jsonl", "\n".join(map(json.dumps, rows)))
    deep = '{"path": "a", "label": ' + "[" * 950 + "]" * 950 + "}"
    lines = ['{"path": "good/1.jpg", "label": "x"}', deep, "9" * 5000, '{"path": "a", "path": "b"}']
    put(folder / "lines.jsonl", "\n".join(lines))
    put(folder / "utf16.jsonl", lines[0].encode("utf-16"))
    put(folder / "bom.jsonl", lines[0].encode("utf-8-sig"))
    put(folder / "one-array.jsonl", json.dumps([json.loads(lines[0])]))
    put(folder / "noise.ndjson", random.Random(2).randbytes(5000))
    put(folder / "large.jsonl", json.dumps({"path": "a.jpg", "label": "x", "title": "z" * 2**22}))


def _parquet_files(folder):
    odd = {
        "struct": pa.array([{"a": 1}]), "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
        "bytes": pa.array([b"\xff"]), "fixed": pa.array([b"abc"], pa.binary(3)), "nulls": pa.nulls(1),
        "lists": pa.array([[["a"]]]), "ints": pa.array([2**62]), "nan": pa.array([float("nan")]),
        "time": pa.array([2**62], pa.timestamp("ns")), "bool": pa.array([True]),
        "not-utf8": pa.array([b"\xff\xfe"]).view(pa.string()), "large": pa.array(["x"], pa.large_string()),
        "words": pa.array(["x"]).dictionary_encode(), "few": pa.array([[1, 2]], pa.list_(pa.int8(), 2)),
        "bad-lists": pa.array([[b"\xff"]], pa.list_(pa.binary())).cast(pa.list_(pa.binary())),
        "text": pa.array(["x"]), "duration": pa.array([5], pa.duration("s")),
    }  # fmt: skip
    text = pa.array(["good/1.jpg"])
    for name, column in odd.items():
        pq.write_table(pa.table({"path": text, "label": column}), folder / f"label-{name}.parquet")
        pq.write_table(pa.table({"path": column, "label": text}), folder / f"path-{name}.parquet")
        with_text = pa.table({"path": text, "label": text, "title": column, "truth": column})
        pq.write_table(with_text, folder / f"title-{name}.parquet")
    twice = pa.Table.from_arrays([text, text, text], ["path", "label", "label"])
    pq.write_table(twice, folder / "twice.parquet")
    whole = (folder / "title-text.parquet").read_bytes()
    for number in range(10):
        put(folder / f"cut-{number}.parquet", whole[: number * len(whole) // 10])
        wrong = bytearray(whole)
        for place in random.Random(number).sample(range(len(wrong)), 4):
            wrong[place] ^= 0x55
        put(folder / f"flip-{number}.parquet", bytes(wrong))
    put(folder / "noise.parquet", b"PAR1" + random.Random(3).randbytes(500) + b"PAR1")


def _member(tar, name, data=b"", **changes):
    header = tarfile.TarInfo(name)
    header.size = len(data)
    for key, value in changes.items():
        setattr(header, key, value)
    tar.addfile(header, io.BytesIO(data))


def _shards(folder, contents):
    folder.mkdir()
    with tarfile.open(folder / "odd.tar", "w", format=tarfile.PAX_FORMAT) as tar:
        for name in (
            "/etc/passwd.jpg",
            "../up.jpg",
            "a/../../b.jpg",
            "C:/x.jpg",
            "good.jpg",
            *NAMES,
        ):
            _member(tar, name, jpeg())
            _member(tar, name.replace(".jpg", ".cls"), b"x")
        for kind in (
            tarfile.SYMTYPE,
            tarfile.LNKTYPE,
            tarfile.CHRTYPE,
            tarfile.BLKTYPE,
            tarfile.FIFOTYPE,
        ):
            _member(
                tar,
                f"kind-{ord(kind)}.jpg",
                type=kind,
                linkname="/etc/passwd",
                devmajor=1,
                devminor=5,
            )
        _member(tar, "pax.jpg", jpeg(), pax_headers={"path": "a\0b.jpg", "size": "999999999"})
        _member(tar, "folder.jpg", type=tarfile.DIRTYPE)
        for number, value in enumerate(WRONG):
            _member(tar, f"{number}.jpg", jpeg())
            _member(tar, f"{number}.json", json.dumps({"label": value, "title": value}).encode())
        _member(tar, "last.jpg", jpeg())
        _member(tar, "last.json", b"[" * 9999)
    with tarfile.open(folder / "pictures.tar", "w") as tar:
        for name, data in contents.items():
            _member(tar, f"{name}.jpg", data)
            _member(tar, f"{name}.cls", b"x" if len(name) % 2 else b"y")
    whole = (folder / "odd.tar").read_bytes()
    for number in range(12):
        put(folder / f"cut-{number}.tar", whole[: number * len(whole) // 12 + 100 * number])
        wrong = bytearray(whole)
        for place in random.Random(number).sample(range(4096), 6):
            wrong[place] ^= 0x55
        put(folder / f"flip-{number}.tar", bytes(wrong))
    put(folder / "noise.tar", random.Random(4).randbytes(20_000))
    put(folder / "zeros.tar", b"\0" * 20_000)
    put(folder / "packed" / "a.tar.gz", b"\x1f\x8b" + b"\0" * 99)
    os.mkfifo(folder / "packed" / "b.tar")


def _layouts(root):
    """Write the layouts of known data sets with lists that lie."""
    info = root / "webvision" / "info"
    put(info / "synsets.txt", b"n02012849 crane\n\n\xff\xfe\nn00000000\n")
    paths = [f"{path} 0" for path in PATHS] + [
        "google/a.jpg 99",
        "google/a.jpg -1",
        "google/a.jpg",
        "",
    ]
    put(info / "train_filelist_google.txt", "\n".join(paths).encode("utf-8", "replace"))
    n_lines = len((info / "train_filelist_google.txt").read_text().splitlines())
    metas = itertools.islice(itertools.cycle(
        ["../../../etc/passwd 1", "google/list.json 1", "google/list.json 99999999999", "x", "a\0b 1"]
    ), n_lines)  # fmt: skip
    put(info / "train_meta_list_google.txt", "\n".join(metas))
    put(root / "webvision" / "google" / "list.json", json.dumps(list(WRONG)))
    nus = root / "nus"
    put(nus / "ConceptsList" / "Concepts81.txt", b"../x\ncon\n\xff\n")
    put(nus / "ImageList" / "TrainImagelist.txt", "a\\b.jpg\nc.jpg\n")
    put(nus / "NUS_WID_Tags" / "Train_Tags81.txt", "1 0 0\n0 1 1\n")
    put(nus / "NUS_WID_Tags" / "All_Tags.txt", random.Random(5).randbytes(500))
    photos = [{"id": i, "file_name": path} for i, path in enumerate(PATHS)]
    notes = [
        {"id": i, "image_id": i, "caption": f"a crane {EVIL[i % 9]}"} for i in range(len(PATHS))
    ]
    good = {"images": photos, "annotations": notes}
    kinds = {
        "categories": [{"id": 1, "name": "crane"}],
        "annotations": [{"image_id": 1, "category_id": 1}],
    }
    layouts = {"good": (good, kinds)}
    for number, value in enumerate(WRONG[:10]):
        layouts[f"images-{number}"] = (good | {"images": value}, kinds)
        layouts[f"image-{number}"] = (
            good | {"images": [value, {"id": value, "file_name": value}]},
            kinds,
        )
        layouts[f"caption-{number}"] = (
            good | {"annotations": [{"id": 1, "image_id": 1, "caption": value}]},
            kinds,
        )
        layouts[f"kinds-{number}"] = (good, kinds | {"categories": value})
        layouts[f"marks-{number}"] = (
            good,
            kinds | {"annotations": [{"image_id": value, "category_id": value}]},
        )
        layouts[f"whole-{number}"] = (value, value)
    for name, (captions, instances) in layouts.items():
        put(root / f"coco-{name}" / "captions_x.json", json.dumps(captions))
        put(root / f"coco-{name}" / "instances_x.json", json.dumps(instances))
