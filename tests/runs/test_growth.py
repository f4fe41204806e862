"""A crawl that grew, shrank and was edited: corrected from what was known, and what it says."""

import json
import os

import numpy as np
import pytest
from click.testing import CliRunner
from small_crawl import Tiny

import vsgraph
from vsgraph.cli import main
from vsgraph.demo.made_up import make_crawl, write_crawl
from vsgraph.runs import Choices, Run, run

FEW = vsgraph.Settings(n_neighbors=4, anchors_per_class=5)
N_NEW, N_GONE, N_EDITED = 9, 4, 5


@pytest.fixture
def grown(tmp_path, monkeypatch, model_cache):
    """Return a table before and after it changed, and how to correct it."""
    monkeypatch.setattr("vsgraph.runs.job.open_image_encoder", lambda *_: Tiny())
    table = write_crawl(make_crawl(per_class=12), tmp_path / "crawl")
    lines = table.read_text().splitlines()
    before, edited = lines[:-N_NEW], lines[N_GONE:]
    for place in range(N_EDITED):
        row = json.loads(edited[place])
        row["title"] = f"an edited text, number {place}"
        edited[place] = json.dumps(row)

    def write(rows):
        table.write_text("\n".join(rows) + "\n")

    def correct(out, **options):
        lines = []
        choices = Choices(text_encoder="lsa", meanings=table.parent / "meanings.csv")
        made = run(table, out, settings=FEW, choices=choices, tell=lines.append, **options)
        return made, lines

    write(before)
    return lambda: write(edited), correct


def files_of(made, stage):
    return {path.name: path.read_bytes() for path in made.outputs[stage].glob("*.npy")}


@pytest.mark.slow
def test_a_changed_crawl_gives_what_a_new_run_gives_and_says_what_changed(grown, tmp_path):
    change, correct = grown
    first, _ = correct(tmp_path / "run")
    assert first.since is None
    change()

    made, told = correct(tmp_path / "run")
    fresh, _ = correct(tmp_path / "elsewhere" / "run", with_report=False)

    for name in ("final_labels", "decisions", "rules"):
        assert np.array_equal(getattr(made.correction, name), getattr(fresh.correction, name))
    assert files_of(made, "screening") == files_of(fresh, "screening")
    counts = made.since.counts
    assert (counts["new"], counts["gone"], counts["edited"]) == (N_NEW, N_GONE, N_EDITED)
    line = next(line for line in told if line.startswith("since the last result"))
    assert f"{N_NEW} images new, {N_GONE} gone, {N_EDITED} edited" in line
    assert any("since.csv" in line for line in told)
    assert made.record["stages"]["network"]["started_from"] == first.keys["network"]
    page = (made.page.parent / "since.html").read_text()
    assert f"<b>{N_NEW}</b> images are new" in page
    assert "pictures/" in page
    assert "Before: " in page
    assert "since.html" in made.page.read_text()
    table = (made.outputs["since"] / "since.csv").read_text()
    assert len(table.splitlines()) == 1 + sum(counts.values())


@pytest.mark.slow
def test_the_comparison_stays_while_the_result_does(grown, tmp_path):
    change, correct = grown
    correct(tmp_path / "run", with_report=False)
    change()
    made, _ = correct(tmp_path / "run", with_report=False)
    again, told = correct(tmp_path / "run")
    assert again.since.counts == made.since.counts
    assert "since: done before" in told

    other, _ = correct(tmp_path / "run", purity=0.5, with_report=False)
    assert other.since is None


@pytest.mark.slow
def test_answers_of_people_outlast_a_change(grown, tmp_path):
    change, correct = grown
    first, _ = correct(tmp_path / "run", with_report=False)
    image = first.crawl.table["image"][20].as_py()
    table = tmp_path / "answers.csv"
    table.write_text(f"image,label\n{image},none\n")
    CliRunner().invoke(main, ["decide", str(tmp_path / "run"), str(table), "--reviewer", "ann"])
    change()

    made, _ = correct(tmp_path / "run", with_report=False)

    rows = made.to_arrow().to_pylist()
    assert next(row for row in rows if row["image"] == image)["why"] == "a person decided"
    pictures = tmp_path / "crawl" / "images"
    taught = made.label(pictures).table
    (tmp_path / "run" / "answers" / "ann.jsonl").unlink()
    untaught = correct(tmp_path / "run", with_report=False)[0].label(pictures).table
    at = taught["image"].to_pylist().index(image.removeprefix("images/"))
    assert taught["confidence"][at].as_py() < untaught["confidence"][at].as_py()


@pytest.fixture
def arrays(tmp_path):
    """Write so many vectors that neighbors are searched by sketches; return how to correct them."""
    random = np.random.default_rng(0)
    n_images, n_classes = 8600, 6
    truth = random.integers(n_classes, size=n_images)
    centers = np.abs(random.normal(size=(n_classes * 3, 16)))
    center = truth * 3 + random.integers(3, size=n_images)
    features = np.maximum(centers[center] + 0.5 * random.normal(size=(n_images, 16)), 0)
    meanings = random.normal(size=(n_classes, 8)).astype(np.float32)
    texts = meanings[truth] + random.normal(size=(n_images, 8))
    web = np.where(random.uniform(size=n_images) < 0.2, random.integers(n_classes), truth)
    names = ("features", "texts", "meanings")

    def write(rows):
        np.save(tmp_path / "web.npy", web[rows])
        for name, values in zip(names, (features[rows], texts[rows], meanings), strict=True):
            np.save(tmp_path / f"{name}.npy", values.astype(np.float32))

    def correct(out, **options):
        own = Choices(
            features=tmp_path / "features.npy", text_embeddings=tmp_path / "texts.npy",
            label_embeddings=tmp_path / "meanings.npy", probe=False,
        )  # fmt: skip
        return run(tmp_path / "web.npy", out, choices=own, with_report=False, **options)

    return write, correct


@pytest.mark.slow
def test_a_graph_is_updated_and_says_so(arrays, tmp_path):
    pytest.importorskip("numba")
    write, correct = arrays
    write(np.arange(8500))
    first = correct(tmp_path / "run")
    write(np.r_[20:8600])

    made = correct(tmp_path / "run")
    fresh = correct(tmp_path / "fresh")

    facts = made.record["stages"]["graph"]
    assert facts["updated_from"] == first.keys["graph"]
    assert 100 < facts["searched"] < 1000
    assert facts["recall"] == 1
    assert "updated_from" not in fresh.record["stages"]["graph"]
    assert made.keys["graph"] == fresh.keys["graph"]
    for name in ("final_labels", "decisions"):
        same = getattr(made.correction, name) == getattr(fresh.correction, name)
        assert same.mean() > 0.999

    redone = correct(tmp_path / "run", redo_from="graph")
    assert "updated_from" not in redone.record["stages"]["graph"]
    assert "started_from" not in redone.record["stages"]["network"]


@pytest.mark.slow
def test_labels_of_new_images_leave_the_run_as_it_is(grown, tmp_path):
    _, correct = grown
    made, _ = correct(tmp_path / "run", with_report=False)
    files = sorted(path for path in (tmp_path / "run").rglob("*") if path.is_file())
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}
    for folder in {path.parent for path in files}:
        os.chmod(folder, 0o555)  # noqa: PTH101

    pictures = tmp_path / "crawl" / "images"
    flat = made.label(pictures)
    texts = made.label(next((tmp_path / "crawl").glob("*.jsonl")))
    out = tmp_path / "labels.csv"
    ran = CliRunner().invoke(main, ["label", str(tmp_path / "run"), str(pictures), "-o", str(out)])
    for folder in {path.parent for path in files}:
        os.chmod(folder, 0o755)  # noqa: PTH101

    assert ran.exit_code == 0, ran.output
    assert out.read_text().splitlines()[0].startswith('"image","web_label","label","decision"')
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files} == before
    assert sorted(p for p in (tmp_path / "run").rglob("*") if p.is_file()) == files
    assert set(flat.table["decision"].to_pylist()) <= {"label", "none"}
    assert flat.table["web_label"].null_count == len(flat)
    assert set(texts.table["decision"].to_pylist()) <= {"keep", "relabel", "reject"}
    of_run = dict(zip(made.crawl.table["image"].to_pylist(), made.correction.final_labels,
                      strict=True))  # fmt: skip
    names = made.correction.class_names
    same = [
        (names[of_run[row["image"]]] if of_run[row["image"]] >= 0 else None) == row["label"]
        for row in texts.table.to_pylist()
    ]
    assert np.mean(same) > 0.8  # the run had its probe judge them out of fold
    one = made.label([pictures / flat.table["image"][3].as_py()])
    assert one.table["label"][0] == flat.table["label"][3]  # whatever else is asked about
    assert one.table["confidence"][0].as_py() == pytest.approx(
        flat.table["confidence"][3].as_py(), abs=1e-5
    )


@pytest.mark.slow
def test_what_cannot_be_labeled_is_refused_in_one_line(grown, arrays, tmp_path):
    _, correct = grown
    correct(tmp_path / "run", with_report=False)
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.csv").write_text("name,label\nx,y\n")
    write, correct_arrays = arrays
    write(np.arange(300))
    correct_arrays(tmp_path / "own", settings=FEW)

    for words, message in {
        ("run", "empty"): "holds no images",
        ("run", "bad.csv"): "no column for the image",
        ("own", "crawl"): "features of your own",
        ("run", "web.npy"): "has no pictures",
    }.items():
        ran = CliRunner().invoke(main, ["label", *(str(tmp_path / word) for word in words), "-q"])
        assert ran.exit_code == 1
        assert message in ran.output
        assert len(ran.output.strip().splitlines()) == 1

    with pytest.raises(vsgraph.InputError, match="give the images"):
        Run.open(tmp_path / "run").label([])
