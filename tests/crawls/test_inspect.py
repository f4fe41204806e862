"""What a crawl is, before anything long starts: sizes, text, pictures that cannot be read."""

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import vsgraph
from made_pictures import jpeg, put
from vsgraph.cli import main
from vsgraph.crawls import inspect_crawl, read_crawl
from vsgraph.errors import InputError
from vsgraph.meanings.table import read_meanings


@pytest.fixture(scope="module")
def bomb():
    """Return a small file that holds a huge picture."""
    file = io.BytesIO()
    Image.new("1", (30_000, 30_000)).save(file, "png", compress_level=1)
    return file.getvalue()


@pytest.fixture
def crawl_folder(tmp_path, bomb):
    """Return a crawl with good, broken, empty, missing and hostile pictures."""
    root = tmp_path / "crawl"
    put(tmp_path / "secret.jpg")
    rows = ["path,label,title,source"]
    for i in range(8):
        put(root / f"good{i}.jpg")
        rows.append(f"good{i}.jpg,{'bat' if i < 5 else 'crane'},{'a bat' if i < 2 else ''},google")
    put(root / "html.jpg", "<html>not found</html>")
    put(root / "cut.jpg", jpeg(size=(400, 300))[:900])
    put(root / "empty.jpg", b"")
    (root / "out.jpg").symlink_to(tmp_path / "secret.jpg")
    put(root / "bomb.png", bomb)
    rows += [f"{n},bat,,flickr" for n in ("html.jpg", "cut.jpg", "empty.jpg", "out.jpg", "bomb.png",
                                          "missing.jpg")]  # fmt: skip
    put(root / "crawl.csv", "\n".join(rows))
    return root


def test_inspection_counts_what_is_there_and_what_is_not(crawl_folder):
    crawl = read_crawl(crawl_folder / "crawl.csv")

    found = inspect_crawl(crawl)

    assert (found.n_images, found.n_classes) == (14, 2)
    assert found.largest == {"bat": 11, "crane": 3}
    assert found.sources == {"google": 8, "flickr": 6}
    assert found.text_coverage["title"] == pytest.approx(2 / 14)
    assert found.pictures.missing.tolist() == [10, 11, 13]
    assert (found.pictures.sampled, found.pictures.unreadable) == (11, 3)
    assert crawl.problems.counts == {
        "picture missing or empty": 2,
        "image path leads out of the folder": 1,
        "not a picture": 1,
        "picture broken": 1,
        "picture too large": 1,
    }
    reasons = "\n".join(found.problems)
    assert "html.jpg (a web page or drawing in text)" in reasons
    assert "bomb.png (30000 x 30000 pixels)" in reasons


def test_a_link_out_of_the_folder_is_never_read(crawl_folder):
    crawl = read_crawl(crawl_folder / "crawl.csv")

    assert crawl.table["image"][11].as_py() == "out.jpg"
    assert crawl.read_image(11) == b""


def test_the_command_says_it_in_words_or_in_json_and_keeps_every_case(crawl_folder, tmp_path):
    table = str(crawl_folder / "crawl.csv")
    words = CliRunner().invoke(main, ["inspect", table, "--problems", str(tmp_path / "p.tsv")])
    asked = CliRunner().invoke(main, ["inspect", table, "--json"])

    assert words.exit_code == asked.exit_code == 0, words.output + asked.output
    assert "recognized as a table (csv)" in words.output
    assert "14 images, 2 classes: bat 11, crane 3" in words.output
    assert "a run would take about" in words.output
    assert len((tmp_path / "p.tsv").read_text().splitlines()) == 7
    assert json.loads(asked.output)["pictures"]["missing"] == 3


def test_strict_makes_a_missing_picture_an_error(crawl_folder):
    result = CliRunner().invoke(main, ["inspect", str(crawl_folder / "crawl.csv"), "--strict"])

    assert result.exit_code == 1
    assert result.output.count("\n") == 1
    assert "picture missing or empty: empty.jpg (an empty file)" in result.output


def test_columns_are_told_on_the_command_line(tmp_path):
    put(tmp_path / "a.jpg")
    table = put(tmp_path / "c.csv", "where,what\na.jpg,sea;sky\n")
    arguments = ["inspect", str(table), "--column", "image=where", "--column", "label=what"]
    result = CliRunner().invoke(main, [*arguments, "--label-separator", ";"])

    assert result.exit_code == 0, result.output
    assert "2 classes (several labels per image)" in result.output
    wrong = CliRunner().invoke(main, ["inspect", str(table), "--column", "where"])
    assert "--column needs ROLE=NAME" in wrong.output


def test_a_crawl_gives_rows_texts_and_pictures_by_slice_or_by_number(crawl_folder):
    crawl = read_crawl(crawl_folder / "crawl.csv")
    some = crawl.take(np.array([7, 0]))

    assert some.table["image"].to_pylist() == ["good7.jpg", "good0.jpg"]
    assert some.texts() == ["", "a bat"]
    assert crawl.texts(slice(0, 6, 3)) == ["a bat", ""]
    assert list(crawl.read_images(slice(13, 14))) == [b""]
    assert crawl.image_path(0) == crawl_folder / "good0.jpg"
    with pytest.raises(InputError, match=r"no text field 'tags'; it has title"):
        crawl.texts(fields=["tags"])


@pytest.fixture
def two_words(tmp_path):
    """Return a crawl of two ambiguous words, whose texts speak of one sense each."""
    rows = ["path,label,title"]
    for i in range(6):
        put(tmp_path / "c" / f"{i}.jpg")
        words = (
            "steel tower lifting heavy loads" if i % 2 else "a nocturnal mammal flying in a cave"
        )
        rows.append(f"{i}.jpg,{'crane' if i % 2 else 'bat'},{words}")
    return put(tmp_path / "c" / "crawl.csv", "\n".join(rows))


def test_senses_are_shown_and_written_to_a_table(two_words, tmp_path):
    out = tmp_path / "meanings.csv"
    first = CliRunner().invoke(main, ["describe", str(two_words), "-o", str(out)])
    again = CliRunner().invoke(main, ["describe", str(two_words), "-o", str(out)])

    assert first.exit_code == 0, first.output
    assert "* 100% n03126707 crane: lifts and moves heavy objects" in first.output
    assert "2 classes, 0 of one sense, 0 doubtful" in first.output
    chosen = [row for row in csv.DictReader(out.read_text().splitlines()) if row["chosen"] == "yes"]
    assert [row["class"] for row in chosen] == ["bat", "crane"]
    assert again.exit_code == 1
    assert "exists already" in again.output


def test_doubtful_senses_are_listed_first_and_marked(two_words, tmp_path):
    more = ["bow,a violin and horsehair", "bow,shooting arrows", "blorf,odd"]
    with two_words.open("a") as file:
        file.writelines(f"\n9{i}.jpg,{line}" for i, line in enumerate(more))
    out = tmp_path / "meanings.csv"
    said = CliRunner().invoke(main, ["describe", str(two_words), "-o", str(out)])
    rows = list(csv.DictReader(out.read_text().splitlines()))

    assert said.output.splitlines()[:3] == [
        "2 of 4 classes are doubtful; look at these first:",
        "  blorf: not in WordNet",
        "  bow: another sense fits nearly as well",
    ]
    assert "\nbow (doubtful: another sense fits nearly as well)\n" in said.output
    assert {row["class"]: row["doubt"] for row in rows if row["chosen"]} == {
        "bat": "", "blorf": "not in WordNet", "crane": "",
        "bow": "another sense fits nearly as well",
    }  # fmt: skip
    assert not any(row["doubt"] for row in rows if not row["chosen"])
    assert len(read_meanings(out, ["bat", "blorf", "crane", "bow"])) == 4


@pytest.fixture
def doubtful(two_words):
    with two_words.open("a") as file:
        file.write("\n9.jpg,stop sign,red\n8.jpg,stop sign,a red board at a crossing")
    return two_words


@pytest.mark.parametrize(
    ("typed", "description"),
    [
        ("\n", "stop sign, a kind of "),
        ("99\n0\n2\n", "stop sign, a kind of "),
        ("a red octagon\n", "a red octagon"),
    ],
)
def test_doubtful_classes_are_asked_for(doubtful, tmp_path, monkeypatch, typed, description):
    monkeypatch.setattr("vsgraph.cli.crawls.can_ask", lambda: True)
    out = tmp_path / "meanings.csv"
    said = CliRunner().invoke(
        main, ["describe", str(doubtful), "-o", str(out), "--ask"], input=typed
    )

    assert said.exit_code == 0, said.output
    assert "stop sign (only its end is in WordNet)\n  1  stop sign, a kind of" in said.output
    assert "\nbat (" not in said.output
    meant = read_meanings(out, ["bat", "crane", "stop sign"])[2].description
    assert meant.startswith(description)
    second = next(line for line in said.output.splitlines() if line.startswith("  2  "))
    assert ("2" in typed) == second[5:].startswith(meant[:80])
    assert ("there is no sense 99" in said.output) == ("99" in typed)


def test_without_a_terminal_nothing_is_asked(doubtful):
    said = CliRunner().invoke(main, ["describe", str(doubtful), "--ask"], input="2\n")
    assert said.exit_code == 0
    assert "--ask: standard input is not a terminal, so nothing is asked" in said.output
    assert "Enter for 1" not in said.output


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_at_a_terminal_the_question_is_asked(doubtful, tmp_path):
    import pty

    out = tmp_path / "meanings.csv"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "vsgraph", "describe", str(doubtful), "-o", str(out), "--ask"]
    os.write(ours, b"a red octagon\n")
    subprocess.run(command, stdin=theirs, capture_output=True, check=True, timeout=120)
    os.close(ours)
    os.close(theirs)

    assert read_meanings(out, ["bat", "crane", "stop sign"])[2].description == "a red octagon"


def test_a_correction_is_exported_from_the_command_line(two_words, tmp_path):
    crawl = read_crawl(two_words)
    vectors = np.eye(2)[crawl.web_labels]
    settings = vsgraph.Settings(n_neighbors=2, anchors_per_class=2)
    made = vsgraph.correct(vectors, vectors, np.eye(2), crawl.web_labels,
                           class_names=crawl.class_names, settings=settings)  # fmt: skip
    made.save(tmp_path / "corrected")
    folder, out = str(tmp_path / "corrected"), str(tmp_path / "out")
    here = ["export", folder, "--crawl", str(two_words), "-o", out]

    done = CliRunner().invoke(main, [*here, "--to", "imagefolder", "--mode", "copy"])
    wrong = CliRunner().invoke(main, [*here, "--to", "csv", "--mode", "copy"])

    assert done.exit_code == 0, done.output
    assert "6 images as imagefolder" in done.output
    assert (tmp_path / "out" / "crane" / "1.jpg").read_bytes() == jpeg()
    assert "csv has no option mode" in wrong.output
