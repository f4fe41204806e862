"""Tables of images in every shape that people write them in."""

import csv
import io
import json
import string

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_pictures import put
from vsgraph.crawls import read_crawl
from vsgraph.crawls.texts import plain_text
from vsgraph.errors import InputError, VSGraphWarning

ROWS = [
    {"path": "a.jpg", "label": "crane", "title": "a bird", "tags": "marsh wings"},
    {"path": "sub/b.jpg", "label": "bat", "title": "", "tags": "cave"},
]


def write_rows(path, rows, **options):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), **options)
        writer.writeheader()
        writer.writerows(rows)
    return path


def as_read(crawl):
    labels = [crawl.class_names[c] for c in crawl.web_labels]
    return list(zip(crawl.table["image"].to_pylist(), labels, crawl.texts(), strict=True))


EXPECTED = [("a.jpg", "crane", "a bird marsh wings"), ("sub/b.jpg", "bat", "cave")]


@pytest.mark.parametrize("between", [",", ";", "\t", "|"])
def test_a_csv_is_read_whatever_stands_between(tmp_path, between):
    path = write_rows(tmp_path / "crawl.csv", ROWS, delimiter=between)

    assert as_read(read_crawl(path)) == EXPECTED


def test_tsv_json_lines_and_parquet_say_the_same(tmp_path):
    tsv = write_rows(tmp_path / "crawl.tsv", ROWS, delimiter="\t")
    lines = put(tmp_path / "crawl.jsonl", "\n".join(map(json.dumps, ROWS)))
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "crawl.parquet")

    for path in (tsv, lines, tmp_path / "crawl.parquet"):
        assert as_read(read_crawl(path)) == EXPECTED


def test_columns_can_be_told(tmp_path):
    path = put(tmp_path / "c.csv", "where,what,words,more\na.jpg,crane,a bird,in a marsh\n")

    told = {"image": "where", "label": "what", "text": "more,words"}

    assert as_read(read_crawl(path, columns=told)) == [("a.jpg", "crane", "in a marsh a bird")]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("name,label\na,b\n", {}, r"no column for the image; it has name, label: name one"),
        ("path,kind\na.jpg,b\n", {}, r"no column for the label; name one"),
        ("path,label\na,b\n", {"columns": {"label": "lable"}}, r"has no column 'lable'; it has"),
        ("path,label\na,b\n", {"columns": {"lable": "label"}}, r"no such role 'lable'; roles are"),
        ("path,label\na,b\n", {"split": "train"}, r"the format table has no option split"),
        ("path,label\n", {}, r"holds no image with a label"),
        ("path,label\n,\n", {}, r"holds no image with a label.*1 x no image"),
        ("", {}, r"c\.csv is empty"),
        (b"\xff\xfep\x00", {}, r"is UTF-16; save it as UTF-8"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_a_reason(tmp_path, content, options, message):
    path = put(tmp_path / "c.csv", content)

    with pytest.raises(InputError, match=message):
        read_crawl(path, **options)


def test_what_is_wrong_in_rows_is_counted_and_the_rest_is_read(tmp_path):
    lines = [
        "path,label,title",
        "a.jpg,crane,fine",
        ",crane,no path",
        "b.jpg,,no label",
        "../../etc/passwd,crane,climbs",
        "/etc/passwd,crane,absolute",
        "https://example.org/a.jpg,crane,not fetched",
        "c.jpg,crane",
        "d.jpg,crane,too,many",
        "a.jpg,crane,again",
        "A.jpg,crane,by case",
    ]
    path = put(tmp_path / "c.csv", "\n".join(lines))

    crawl = read_crawl(path)

    assert crawl.table["image"].to_pylist() == ["a.jpg", "a.jpg", "A.jpg"]
    assert crawl.problems.counts == {
        "no image": 1,
        "no label": 1,
        "image path leads out of the folder": 2,
        "image is a web address": 1,
        "broken line": 2,
        "image listed twice": 1,
        "image names that differ only by case": 1,
    }
    crawl.problems.save(tmp_path / "problems.tsv")
    kept = (tmp_path / "problems.tsv").read_text().splitlines()
    assert len(kept) == 1 + len(crawl.problems)
    assert any("c.csv, row 2" in line for line in kept)


def test_strict_makes_the_first_problem_an_error(tmp_path):
    path = put(tmp_path / "c.csv", "path,label\na.jpg,crane\nb.jpg,\n")

    with pytest.raises(InputError, match=r"no label: .*c\.csv, row 2"):
        read_crawl(path, strict=True)


def test_text_of_another_encoding_is_read_and_counted(tmp_path):
    path = put(tmp_path / "c.csv", "path,label,title\na.jpg,bar,caf\xe9\n".encode("cp1252"))
    lines = put(tmp_path / "c.jsonl", b'{"path": "a.jpg", "label": "bar", "title": "caf\xe9"}\n')

    for file in (path, lines):
        crawl = read_crawl(file)
        assert crawl.texts() == ["café"]
        assert crawl.problems.counts == {"text not in UTF-8": 1}


def test_columns_are_found_however_their_names_are_written(tmp_path):
    path = put(tmp_path / "c.csv", "File Path,Search-Query,Alt Text\na.jpg,crane,a bird\n")

    assert as_read(read_crawl(path)) == [("a.jpg", "crane", "a bird")]


def test_labels_that_look_like_several_are_hinted_at(tmp_path):
    path = put(tmp_path / "c.csv", "path,label\na.jpg,sea|sky\nb.jpg,sky|sun\n")

    with pytest.warns(VSGraphWarning, match=r"most labels contain '\|'.*--label-separator"):
        read_crawl(path)


def test_numbers_and_truths_are_names_of_classes_too(tmp_path):
    lines = ['{"path": "a", "label": 5}', '{"path": "b", "label": 5.0}',
             '{"path": "c", "label": true}']  # fmt: skip

    assert read_crawl(put(tmp_path / "c.jsonl", "\n".join(lines))).class_names == ("5", "true")


def test_quotes_line_breaks_and_a_byte_order_mark_are_read(tmp_path):
    path = put(tmp_path / "c.csv", '\ufeffpath,label,title\na.jpg,crane,"one, ""two""\nthree"\n')

    assert read_crawl(path).texts() == ['one, "two" three']


def test_html_in_text_is_made_plain(tmp_path):
    title = "<b>Crane</b> &amp; chick <script>alert(1)</script>&lt;img src=x onerror=alert(1)&gt;"
    path = write_rows(tmp_path / "c.csv", [{"path": "a.jpg", "label": "x", "title": title}])

    assert read_crawl(path).texts() == ["Crane & chick"]


def test_broken_json_lines_are_counted(tmp_path):
    good = json.dumps(ROWS[0])
    path = put(tmp_path / "c.jsonl", f'{good}\n{{"path": \n[1]\n\n{"[" * 5000}\n{good}\n')

    crawl = read_crawl(path)

    assert len(crawl) == 2
    assert crawl.problems.counts["broken line"] == 3


def test_labels_in_lists_or_between_separators_make_a_crawl_of_several_labels(tmp_path):
    lines = [{"path": "a.jpg", "label": ["sea", "sky"]}, {"path": "b.jpg", "label": ["sky"]},
             {"path": "c.jpg", "label": []}]  # fmt: skip
    listed = read_crawl(put(tmp_path / "c.jsonl", "\n".join(map(json.dumps, lines))))
    table = put(tmp_path / "c.csv", "path,label\na.jpg,sea| sky\nb.jpg,sky\nc.jpg,\n")
    split = read_crawl(table, label_separator="|", format="table")

    for crawl in (listed, split):
        assert crawl.has_several_labels
        assert crawl.class_names == ("sea", "sky")
        assert crawl.web_labels.toarray().tolist() == [[True, True], [False, True]]
        assert crawl.problems.counts == {"no label": 1}


def test_truth_and_source_are_kept(tmp_path):
    rows = [{"path": "a.jpg", "label": "sea", "truth": ["sky", "other"], "source": "flickr"},
            {"path": "b.jpg", "label": "sky", "truth": [], "source": "google"}]  # fmt: skip
    crawl = read_crawl(put(tmp_path / "c.jsonl", "\n".join(map(json.dumps, rows))))

    assert crawl.truth.toarray().tolist() == [[False, True], [False, False]]
    assert crawl.sources.tolist() == ["flickr", "google"]


def test_a_hugging_face_folder_is_recognized_with_or_without_a_label_column(tmp_path):
    put(tmp_path / "one" / "metadata.csv", "file_name,label,text\na.jpg,crane,a bird\n")
    put(tmp_path / "two" / "metadata.jsonl", '{"file_name": "crane/a.jpg", "text": "a bird"}\n')
    for split in ("train", "test"):
        put(tmp_path / "three" / split / "metadata.csv", "file_name,label\na.jpg,crane\n")

    for name, image in (("one", "a.jpg"), ("two", "crane/a.jpg")):
        assert as_read(read_crawl(tmp_path / name)) == [(image, "crane", "a bird")]
    assert read_crawl(tmp_path / "three").table["image"].to_pylist() == [
        "test/a.jpg",
        "train/a.jpg",
    ]


def test_a_list_of_classes_narrows_orders_and_names_numbers(tmp_path):
    names = put(tmp_path / "classes.txt", "owl\ncrane\n")
    by_name = put(tmp_path / "a.csv", "path,label\na.jpg,crane\nb.jpg,bat\nc.jpg,owl\n")
    by_number = put(tmp_path / "b.csv", "path,label\na.jpg,1\nc.jpg,0\n")

    for path in (by_name, by_number):
        crawl = read_crawl(path, classes=names)
        assert crawl.class_names == ("owl", "crane")
        assert crawl.table["image"].to_pylist() == ["a.jpg", "c.jpg"]
        assert crawl.web_labels.tolist() == [1, 0]


def test_numbers_as_labels_are_sorted_by_size_and_lookalike_labels_told(tmp_path):
    numbers = read_crawl(put(tmp_path / "n.csv", "path,label\na,10\nb,9\n"))
    alike = read_crawl(put(tmp_path / "c.csv", "path,label\na,Crane\nb,crane\n"))

    assert numbers.class_names == ("9", "10")
    assert alike.problems.lines() == [
        "1 x labels that differ only by case or spaces: 'Crane' and 'crane'"
    ]


def test_a_broken_parquet_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"c\.parquet cannot be read"):
        read_crawl(put(tmp_path / "c.parquet", b"PAR1 no more"))


def test_a_picture_of_another_name_and_a_folder_without_labels_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"x\.bin is not recognized: give a table"):
        read_crawl(put(tmp_path / "x.bin", b"1"))
    with pytest.raises(InputError, match=r"images but no labels: put images into one folder"):
        read_crawl(put(tmp_path / "flat" / "a.jpg").parent)
    with pytest.raises(InputError, match=r"is not a crawl itself; give the table, .*c\.csv"):
        read_crawl(put(tmp_path / "lone" / "c.csv", "note,label\na,b\n").parent)
    put(tmp_path / "both" / "images" / "a.jpg")
    with pytest.raises(InputError, match=r"holds a table and one folder; give the table, .*c\.csv"):
        read_crawl(put(tmp_path / "both" / "c.csv", "note,label\na,b\n").parent)
    with pytest.raises(InputError, match=r"nowhere does not exist"):
        read_crawl(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"format must be one of folder, table"):
        read_crawl(tmp_path, format="zip")


@settings(deadline=None)  # files
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\x00")), min_size=1))
def test_any_text_comes_back_plain(texts):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        rows = [{"path": f"{i}.jpg", "label": "x", "title": t} for i, t in enumerate(texts)]
        path = write_rows(Path(folder) / "c.csv", rows)

        assert read_crawl(path).texts() == [plain_text(t.strip()) for t in texts]


@given(st.text(string.printable, max_size=300))
def test_plain_text_holds_no_tag_and_is_settled(text):
    plain = plain_text(f"<p>{text}</p>")

    assert "<p>" not in plain
    assert "\n" not in plain
    assert io.StringIO(plain).readline() == plain


def others(crawl):
    """Return the columns that are only passed on, row by row."""
    return crawl.table["others"].to_pylist() if crawl.other_columns else []


def test_columns_without_a_role_are_passed_on_as_they_are(tmp_path):
    rows = [
        {"path": "a.jpg", "label": "crane", "url": "http://x/?a=1&copy=2", "": "0", "licence": ""},
        {"path": "b.jpg", "label": "bat", "url": "  <b>", "": "1", "licence": "CC BY"},
    ]
    plain = [
        {"url": "http://x/?a=1&copy=2", "licence": None}, {"url": "  <b>", "licence": "CC BY"},
    ]  # fmt: skip
    lines = put(tmp_path / "crawl.jsonl", "\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "crawl.parquet")

    for path in (write_rows(tmp_path / "c.csv", rows), lines, tmp_path / "crawl.parquet"):
        assert others(read_crawl(path)) == plain


def test_columns_of_any_type_are_passed_on_as_text_and_bytes_are_not(tmp_path):
    table = pa.table({
        "path": ["a.jpg"], "label": ["crane"], "width": [640], "faces": [[1, 2]],
        "from": [{"site": "x", "n": 1}], "hash": pa.array([b"\0\1"]),
        "raw": pa.array([{"data": b"\xff"}]),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "c.parquet")

    assert others(read_crawl(tmp_path / "c.parquet")) == [
        {"width": "640", "faces": "[1, 2]", "from": '{"site": "x", "n": 1}'}
    ]


def test_files_with_other_columns_each_are_joined(tmp_path):
    put(tmp_path / "a" / "metadata.csv", "file_name,label,url\n1.jpg,crane,u1\n")
    put(tmp_path / "b" / "metadata.csv", "file_name,label,engine\n2.jpg,bat,\n")
    put(tmp_path / "c" / "metadata.csv", "file_name,label,licence\n3.jpg,bat,CC0\n")

    assert others(read_crawl(tmp_path)) == [
        {"url": "u1", "licence": None}, {"url": None, "licence": None},
        {"url": None, "licence": "CC0"},
    ]  # fmt: skip


def test_a_table_with_hundreds_of_columns_passes_on_the_first_and_says_so(tmp_path):
    row = {"path": "a.jpg", "label": "crane"} | {f"c{i}": str(i) for i in range(300)}
    crawl = read_crawl(write_rows(tmp_path / "c.csv", [row]))

    assert crawl.other_columns == tuple(f"c{i}" for i in range(64))
    assert crawl.problems.counts == {"too many other columns": 1}


@pytest.mark.parametrize("paths", ["images/a.jpg", "a.jpg"])
def test_a_table_beside_a_folder_of_pictures_is_a_crawl(tmp_path, paths):
    put(tmp_path / "images" / "a.jpg")
    table = put(tmp_path / "scraped.csv", f"filename,query,alt\n{paths},bat,a cave\n")

    for path in (tmp_path, table):
        crawl = read_crawl(path)
        assert as_read(crawl) == [("images/a.jpg", "bat", "a cave")]
        assert crawl.read_image(0)


def test_pictures_in_two_folders_are_not_guessed(tmp_path):
    for folder in ("a", "b"):
        put(tmp_path / folder / "1.jpg")
    crawl = read_crawl(put(tmp_path / "c.csv", "path,label\n1.jpg,bat\n"))
    assert crawl.table["image"].to_pylist() == ["1.jpg"]


def test_a_table_without_labels_beside_one_folder_is_refused(tmp_path):
    put(tmp_path / "images" / "a.jpg", b"x")
    put(tmp_path / "images" / "b.jpg", b"x")
    table = put(tmp_path / "items.csv", "file,found_by,title\na.jpg,crane,t\nb.jpg,bat,u\n")
    with pytest.raises(InputError, match=r"one folder, 'images'; it has file, found_by, title: na"):
        read_crawl(tmp_path)
    assert read_crawl(tmp_path, columns={"label": "found_by"}).class_names == ("bat", "crane")
    table.write_text(table.read_text().replace("found_by", "Search Term"))
    assert read_crawl(tmp_path).class_names == ("bat", "crane")
