"""The paper's experiments on small made-up trees of the official layouts, from end to end."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import cost
import figure1_map
import figure4_anchors
import figure5_hyperparameters
import figure6_progressive
import table1_google_500
import table2_webvision_1000
import table3_nus_81_web
import table4_open_set
from command import open_work
from measuring import tune_head
from study import GOOGLE_500
from training_job import Job
from vsgraph.cli import main as vsgraph_main
from vsgraph.judge.metrics import open_set
from vsgraph.runs import Run
from vsgraph.training import Labels, Recipe, web_labels
from work import XLNET

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::vsgraph.VSGraphWarning"),  # so few images
]


def call(experiment, *arguments, code=0):
    made = CliRunner().invoke(experiment.main, [str(a) for a in arguments])
    assert made.exit_code == code, made.output + str(made.exception)
    return made.output


def result(out, name):
    return json.loads((out / "xlnet" / f"{name}.json").read_text())


def found(rows, measure):
    return {row["method"]: row["found"][measure] for row in rows}


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Tiny networks lose time to many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def google(tmp_path_factory):
    """A folder in which table 1 was done, and what was said."""
    out = tmp_path_factory.mktemp("google")
    return out, call(table1_google_500, "--smoke", "-o", out)


# --- tables


def test_table_1_has_every_row_beside_the_papers(google):
    out, said = google
    rows = result(out, "table1")["rows"]
    assert [row["method"] for row in rows] == list(table1_google_500.PAPER)
    for row in rows:
        assert all(0 <= value <= 1 for value in row["found"].values())
        assert row["found"]["WebVision top-1"] <= row["found"]["WebVision top-5"]
        assert row["images"] == {"WebVision": 36, "ImageNet": 36}
    page = (out / "xlnet" / "table1.md").read_text()
    top = f"{100 * rows[-1]['found']['WebVision top-1']:.2f}"
    assert f"| Fine-tuned by p_f | {top} | 68.14 |" in page
    assert "the figures mean nothing" in page
    assert len({row["model"] for row in rows}) == 5
    assert "GPUs: about" in said.split("training pretrained")[0]


def test_the_row_of_p_f_is_what_vsgraph_test_says(google, model_cache):
    out, _ = google
    row = result(out, "table1")["rows"][-1]
    said = CliRunner().invoke(vsgraph_main, [
        "test", str(out / "xlnet" / "p_f"), "--data", str(out / "smoke" / "webvision"),
        "--split", "val", "--classes", str(out / "classes.txt"), "--json",
    ])  # fmt: skip
    told = json.loads(said.output)
    assert told["images"] == 36
    one_image = pytest.approx(told["top_1"], abs=1.01 / 36)  # on another runtime
    assert row["found"]["WebVision top-1"] == one_image


def test_models_are_trained_on_the_labels_they_are_called_after(google):
    out, _ = google
    jobs = {
        name: json.loads((out / f"{name}.json").read_text())
        for name in ("pretrained", "co-teaching", "p_c", "xlnet/p_g", "xlnet/p_f")
    }
    assert [job["labels"] for job in jobs.values()][2:] == ["cnn", "gnn", "final"]
    assert jobs["pretrained"]["correction"] is None
    assert jobs["pretrained"]["reading"]["sources"] == ["google"]
    rate = json.loads((out / "noise.json").read_text())["wrong labels, estimated"]
    assert jobs["co-teaching"]["recipe"]["forget_rate"] == rate
    assert jobs["p_c"]["start"]["network"] == str(out / "pretrained")
    made = Run.open(out / "xlnet" / "run")
    assert made.counts["reject"] == 0  # the paper fine-tunes on all images
    assert set(made.crawl.sources) == {"google"}
    assert not made.correction.settings.text_evidence


def test_what_is_done_is_not_done_again(google):
    out, first = google
    before = result(out, "table1")["rows"]
    files = [*out.glob("**/model.safetensors"), *out.glob("**/vectors.npy")]
    written = {file: file.stat().st_mtime_ns for file in files}
    again = call(table1_google_500, "--smoke", "-o", out)
    assert "epoch 1:" in first
    assert "epoch 1:" not in again
    assert "decisions: done before" in again
    assert "p_f 0 s" in again  # of what it will take
    assert written == {file: file.stat().st_mtime_ns for file in files}
    assert result(out, "table1")["rows"] == before


def test_another_text_model_goes_beside_the_first(google):
    out, _ = google
    said = call(table1_google_500, "--smoke", "-o", out, "--text-encoder", "minilm")
    trained = [part.splitlines()[0] for part in said.split("training ")[1:] if "epoch 1:" in part]
    assert trained == ["minilm/p_g ...", "minilm/p_f ..."]  # the others do not depend on texts
    rows = json.loads((out / "minilm" / "table1.json").read_text())["rows"]
    assert rows[0]["found"] == result(out, "table1")["rows"][0]["found"]
    assert np.load(out / "minilm" / "texts" / "vectors.npy").shape == (96, 384)
    assert np.load(out / "xlnet" / "texts" / "vectors.npy").shape == (96, 32)


def test_other_counts_than_the_papers_are_refused(google, tmp_path):
    out, _ = google
    root = out / "smoke" / "webvision"
    said = call(table1_google_500, root, "-o", tmp_path, code=1)
    assert "not the paper's: 6 classes, not 500; 96 training images, not 475,062 to" in said
    listed = (root / "info" / "synsets.txt").read_text().splitlines()[:4]
    (tmp_path / "mine.txt").write_text("\n".join(listed))
    said = call(table1_google_500, root, "-o", tmp_path, "--classes", tmp_path / "mine.txt", code=1)
    assert "64 training images, not 489,755" in said
    said = call(table1_google_500, root, "-o", tmp_path, "--anyway", "--dry-run")
    assert "not the paper's: 6 classes, not 500" in said
    assert "on the paper's 8 GPUs: about" in said
    assert not (tmp_path / "pretrained").exists()
    assert "give ROOT" in call(table1_google_500, "-o", tmp_path, code=1)


def test_numbered_folders_of_imagenet_are_refused_for_half_of_the_classes(google, tmp_path):
    out, _ = google
    (tmp_path / "0").mkdir()
    said = call(table1_google_500, "--smoke", "-o", out, "--imagenet", tmp_path, code=1)
    assert "name the folders of classes by wnid" in said


def test_table_2_is_of_all_classes_and_sources(tmp_path):
    call(table2_webvision_1000, "--smoke", "-o", tmp_path)
    made = result(tmp_path, "table2")
    assert [row["method"] for row in made["rows"]] == list(table2_webvision_1000.PAPER)
    assert made["made"]["counts"]["classes"] == 12
    run = Run.open(tmp_path / "xlnet" / "run")
    assert set(run.crawl.sources) == {"google", "flickr"}
    assert made["rows"][0]["images"] == {"WebVision": 72, "ImageNet": 72}


def test_table_3_is_of_several_labels_an_image(tmp_path):
    call(table3_nus_81_web, "--smoke", "-o", tmp_path)
    made = result(tmp_path, "table3")
    for row in made["rows"]:
        assert set(row["found"]) == {"C-F1", "O-F1", "mAP"}
        assert all(0 < value < 1 for value in row["found"].values())
    assert made["made"]["counts"]["photos listed for training"] == 120
    assert made["made"]["counts"]["training images"] < 120  # some have no web label
    assert json.loads((tmp_path / "pretrained.json").read_text())["recipe"]["loss"] == "sigmoid"
    root = tmp_path / "smoke" / "nus-wide"
    said = call(table3_nus_81_web, root, "-o", tmp_path, code=1)
    assert "120 photos listed for training, not 161,789" in said


def test_table_4_takes_the_other_half_of_the_classes_as_unknown(google):
    out, _ = google
    said = call(table4_open_set, "--smoke", "-o", out)
    assert "epoch 1:" not in said  # the models of table 1
    assert "36 WebVision images of other classes" in said
    rows = result(out, "table4")["rows"]
    assert list(rows) == ["every", "highest"]
    probs = np.load(out / "tests" / "xlnet-p_f" / "WebVision-all" / "probs.npy").astype(float)
    assert probs.shape == (72, 6)
    listed = (out / "smoke" / "webvision" / "info" / "synsets.txt").read_text().splitlines()
    mine = (out / "classes.txt").read_text().splitlines()
    truth = np.repeat([mine.index(name) if name in mine else -1 for name in listed], 6)
    for reading in rows:
        counted = open_set(probs, truth, reading=reading, threshold=0.2)
        told = found(rows[reading], f"WebVision C-F1 ({reading})")["Fine-tuned by p_f"]
        assert told == pytest.approx(counted.c_f1)


def test_a_training_is_done_by_several_processes(google, tmp_path):
    out, _ = google
    job = dataclasses.replace(Job.load(out / "pretrained.json"), out=str(tmp_path / "model"))
    job = dataclasses.replace(job, recipe=job.recipe | {"epochs": 1})
    made = job.do_in(2)
    (line,) = (made / "metrics.jsonl").read_text().splitlines()
    assert json.loads(line)["epoch"] == 1
    assert job.do() == made  # the same training, found done
    assert len((made / "metrics.jsonl").read_text().splitlines()) == 1


# --- figures


def test_figure_1_shows_three_kinds_of_labels_of_the_same_places(google):
    out, _ = google
    said = call(figure1_map, "--smoke", "-o", out)
    assert "epoch 1:" not in said
    made = result(out, "figure1")
    run = Run.open(out / "xlnet" / "run")
    rows = np.array(made["rows"])
    assert len(rows) == 96
    panels = made["panels"]
    assert panels["Web labels"]["class"] == run.crawl.web_labels[rows].tolist()
    final = panels["Final labels by VSGraph-LC"]
    assert final["class"] == run.correction.final_probs.argmax()[rows].tolist()
    assert final["class"] != panels["Web labels"]["class"]
    assert np.array(made["places"]).shape == (96, 2)
    svg = (out / "xlnet" / "figure1.svg").read_text()
    assert svg.count("<circle") == 3 * 96 + 6 + 1
    few = call(figure1_map, "--smoke", "-o", out, "--show", "n99999999", code=1)
    assert "n99999999 is none of the classes" in few


def test_figure_4_shows_the_anchors_of_the_run_and_what_others_would_choose(google):
    out, _ = google
    call(figure4_anchors, "--smoke", "-o", out)
    shown = result(out, "figure4")["anchors"]
    run = Run.open(out / "xlnet" / "run")
    images = run.crawl.table["image"].to_pylist()
    probs = np.asarray(run.arrays()["cnn_probs"], float)
    assert len(shown) == 3
    for title, by_method in shown.items():
        number = run.crawl.class_names.index(title.split("(")[1].strip(")"))
        own = run.correction.anchors.rows[run.correction.anchors.classes == number]
        assert by_method["graph"] == [images[row] for row in own]
        surest = [probs[images.index(name), number] for name in by_method["p_c"]]
        others = run.crawl.web_labels == number
        assert surest == sorted(probs[others, number], reverse=True)[:4]
    page = (out / "xlnet" / "figure4.html").read_text()
    assert page.count("data:image/jpeg;base64,/9j/") == 3 * 3 * 4


def test_figure_5_measures_every_point_once(google):
    out, _ = google
    first = call(figure5_hyperparameters, "--smoke", "-o", out)
    made = result(out, "figure5")
    assert len(made["a"]) == len(made["b"]) == 4
    assert all(0 < row["average"] < 1 for panel in "ab" for row in made[panel])
    assert first.count(": average accuracy") == 8
    again = call(figure5_hyperparameters, "--smoke", "-o", out)
    assert ": average accuracy" not in again
    rows = result(out, "table1")["rows"]
    known = [rows[0]["found"][name] for name in table1_google_500.COLUMNS]
    assert made["pretrained"] == pytest.approx(np.mean(known))
    assert (out / "xlnet" / "figure5a.svg").read_text().count("<polyline") >= 2
    assert "| pretrained | " in (out / "xlnet" / "figure5.md").read_text()


def test_figure_5_can_fine_tune_the_network_at_each_point(google, monkeypatch):
    out, _ = google
    grid = {"a": {"k": (4,), "w": (0.0,)}, "b": {"tau_f": (0.7,), "lambda": (0.5,)}}
    monkeypatch.setattr(figure5_hyperparameters, "SMOKE", grid)
    call(figure5_hyperparameters, "--smoke", "-o", out, "--tune", "network")
    made = result(out, "figure5")
    rows = result(out, "table1")["rows"]
    p_f = np.mean([rows[-1]["found"][name] for name in table1_google_500.COLUMNS])
    assert made["tuned"] == "network"
    assert made["a"][0]["average"] == made["b"][0]["average"] == pytest.approx(p_f)  # table 1's


def test_figure_6_changes_the_graph_alone(google):
    out, _ = google
    call(figure6_progressive, "--smoke", "-o", out)
    curves = result(out, "figure6")["curves"]
    assert curves["own"][0]["anchors"] == curves["off-the-shelf"][0]["anchors"] == 6 * 4
    assert curves["own"][1]["anchors"] > 6 * 4
    assert ": average accuracy" not in call(figure6_progressive, "--smoke", "-o", out)


def test_the_first_round_is_the_run_itself(google):
    out, _ = google
    given = {"root": None, "out": out, "smoke": True, "network": None, "dry_run": False,
             "imagenet": None, "classes": None, "text_encoder": XLNET}  # fmt: skip
    work = open_work(GOOGLE_500, given)
    made = work.corrected().correction
    first, second = figure6_progressive.rounds_on(work, made.adjacency, 2)
    np.testing.assert_allclose(np.asarray(first.final_probs), np.asarray(made.final_probs))
    assert len(second.anchors) > len(first.anchors)
    assert (second.gnn_probs.max() != first.gnn_probs.max()).any()


def test_the_last_layer_learns_what_it_is_given(google):
    out, _ = google
    run = Run.open(out / "xlnet" / "run")
    recipe = Recipe(epochs=60, batch_size=32, learning_rate=0.5, warmup_epochs=0)
    vectors = np.asarray(run.features, np.float32)
    web = web_labels(run.crawl)
    learned = tune_head(out / "pretrained", vectors, web, recipe)(vectors)
    before = np.asarray(run.arrays()["cnn_probs"]).argmax(axis=1) == run.crawl.web_labels
    assert (learned.argmax(axis=1) == run.crawl.web_labels).mean() > before.mean()
    np.testing.assert_allclose(learned.sum(axis=1), 1, rtol=1e-5)
    shifted = Labels(web.table[:, np.roll(np.arange(6), 1)], several=False)
    other = tune_head(out / "pretrained", vectors, shifted, recipe)(vectors)
    assert (other.argmax(axis=1) == run.crawl.web_labels).mean() < before.mean()


def test_the_costs_are_those_of_the_stated_speeds():
    plan = cost.of_the_paper(GOOGLE_500, cost.ALL)
    found = cost.expect(GOOGLE_500, plan, cost.GPU, 8)
    assert found.seconds["p_f"] == pytest.approx(489_755 * 120 / (8 * 350))
    assert found.seconds["co-teaching"] == pytest.approx(2 * found.seconds["p_f"])
    assert found.disk > 2 * 489_755 * (2048 + 768 + 500)
    done = dataclasses.replace(plan, epochs=dict.fromkeys(cost.ALL, 0))
    assert not cost.expect(GOOGLE_500, done, cost.GPU, 8).seconds["p_f"]
    page = CliRunner().invoke(cost.main).output
    assert page in (Path(__file__).parents[2] / "docs" / "paper.md").read_text()
