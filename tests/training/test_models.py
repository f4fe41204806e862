"""What is done with a trained network: judging, predicting, exporting; Co-teaching beside it."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file
from sklearn.metrics import average_precision_score, f1_score, top_k_accuracy_score
from training_data import SIDE, tiny_network, write_photos

from vsgraph import Settings
from vsgraph.cli import main
from vsgraph.crawls import read_crawl
from vsgraph.demo.made_up import make_crawl, picture_features, text_vectors, write_crawl
from vsgraph.encoders.sources.architectures import Architecture
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.errors import InputError
from vsgraph.judge.noise import noise_rate
from vsgraph.method.probe import linear_probe
from vsgraph.result.scores import TopScores
from vsgraph.runs import Choices, Run, run
from vsgraph.training import Labels, Recipe, Start, corrected_labels, judge_model, train
from vsgraph.training.co_teaching import easiest, kept_share
from vsgraph.training.export_model import export_model
from vsgraph.training.labels import KINDS
from vsgraph.training.losses import class_weights, image_weights
from vsgraph.training.model_scores import judge_scores, truth_for
from vsgraph.training.processes import Processes

ALONE = Processes(0, 1, "cpu")
SHORT = ("--epochs", "3", "--set", "batch_size=12", "--set", "learning_rate=0.05")


def call(*arguments, code=0):
    made = CliRunner().invoke(main, [str(a) for a in arguments])
    assert made.exit_code == code, made.output + str(made.exception)
    return made.output


# --- measures


def test_a_test_agrees_with_sklearn():
    random = np.random.default_rng(0)
    scores, truth = random.dirichlet(np.ones(7), size=200), random.integers(7, size=200)
    found = judge_scores(scores, truth, several=False)
    assert found["top_1"] == pytest.approx(top_k_accuracy_score(truth, scores, k=1))
    assert found["top_5"] == pytest.approx(top_k_accuracy_score(truth, scores, k=5))
    shown = random.uniform(size=(200, 7)) < 0.3
    several = judge_scores(scores, shown, several=True)
    expected = average_precision_score(shown, scores, average="macro")
    assert several["mAP"] == pytest.approx(expected)
    top = np.zeros_like(shown)
    np.put_along_axis(top, np.argsort(-scores, axis=1)[:, :3], True, axis=1)
    assert several["O-F1"] == pytest.approx(f1_score(shown, top, average="micro"))


def a_model(class_names, *, several=False):
    return Checkpoint(Architecture(network="lite0", height=32, width=32), class_names, several)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return write_photos(tmp_path_factory.mktemp("photos") / "crawl")


def test_classes_are_found_by_name(photos):
    crawl = read_crawl(photos)
    model = a_model(("cat", "elk", "bee", "ant"))
    shown = truth_for(model, crawl).toarray()
    names = [model.class_names[i] for i in shown.argmax(axis=1)]
    assert names == [name.split("/")[0] for name in crawl.table["image"].to_pylist()]
    fewer = a_model(("cat", "bee"))
    with pytest.raises(
        InputError, match=r"does not know 1 of the 3 classes, such as 'ant'; .*--open-set"
    ):
        truth_for(fewer, crawl)
    open_truth = truth_for(fewer, crawl, with_unknown=True).toarray()
    assert open_truth.sum(axis=0).tolist() == [12, 12]
    assert open_truth.sum() == 24


def test_an_open_set_is_judged_in_both_readings(photos):
    crawl = read_crawl(photos)  # 12 ants, 12 bees, 12 cats
    model = a_model(("ant", "bee"))
    scores = np.zeros((36, 2))
    scores[:12] = [0.9, 0.0]  # ants, sure
    scores[12:18] = [0.3, 0.25]  # half of the bees: both pass 0.2, ant is higher
    scores[18:24] = [0.0, 0.9]
    scores[24:30] = [0.15, 0.1]  # half of the cats are let go
    scores[30:] = [0.5, 0.0]
    found = judge_model(model, scores, crawl, with_unknown=True)
    highest = {n: v for n, v in found.measures.items() if "highest" in n}
    assert highest["C-P (highest)"] == pytest.approx((12 / 24 + 6 / 6) / 2)
    assert highest["C-R (highest)"] == pytest.approx((12 / 12 + 6 / 12) / 2)
    assert found.measures["C-P (every)"] == pytest.approx((12 / 24 + 12 / 12) / 2)
    assert found.measures["C-R (every)"] == pytest.approx(1.0)
    assert found.measures["top_1"] == pytest.approx(18 / 24)


def test_pictures_that_cannot_be_read_are_left_out_of_a_test(photos):
    crawl = read_crawl(photos)
    scores = np.eye(3)[crawl.web_labels]
    scores[:4] = 0
    found = judge_model(a_model(crawl.class_names), scores, crawl)
    assert (found.n_images, found.n_unreadable, found.measures["top_1"]) == (32, 4, 1.0)
    assert str(found).startswith("32 images, 4 unreadable left out\ntop_1 ")
    values = json.loads(json.dumps(found.to_dict()))
    assert values["classes"][0] == {
        "class": "ant", "true": 8, "given": 8, "right": 8, "precision": 1, "recall": 1, "F1": 1,
    }  # fmt: skip


# --- Co-teaching


@given(
    losses=st.lists(st.floats(0, 10), min_size=1, max_size=30),
    share=st.floats(0.05, 1),
)
def test_the_easiest_images_are_chosen(losses, share):
    values = torch.tensor(losses)
    chosen, n = easiest(values, share, ALONE)
    assert n == chosen.sum() == max(1, int(np.ceil(share * len(losses) - 1e-9)))
    if n < len(losses):
        assert values[chosen > 0].max() <= values[chosen == 0].min()


def test_the_share_to_forget_rises_to_its_end():
    recipe = Recipe(forget_rate=0.4, forget_epochs=4)
    shares = [kept_share(recipe, epoch) for epoch in range(6)]
    assert shares == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.6, 0.6])


@pytest.mark.slow
def test_co_teaching_learns_less_of_wrong_labels(tmp_path):
    photos = write_photos(tmp_path / "crawl", per_class=30, spread=50)
    crawl, network = read_crawl(photos), tiny_network(tmp_path / "net")
    random = np.random.default_rng(0)
    wrong = random.uniform(size=len(crawl)) < 0.35
    given_labels = np.where(wrong, (crawl.web_labels + 1) % 3, crawl.web_labels)
    labels = Labels(TopScores.of(np.eye(3)[given_labels], n_kept=3), several=False)
    loss = {}
    for name, rate in (("plain", None), ("co", 0.35)):
        recipe = Recipe(epochs=12, batch_size=30, learning_rate=0.05, forget_rate=rate,
                        forget_epochs=4)  # fmt: skip
        made = train(crawl, tmp_path / name, labels=labels, start=Start(network), recipe=recipe,
                     validation=crawl)  # fmt: skip
        loss[name] = made.history[-1]
    assert loss["co"]["top_1"] >= loss["plain"]["top_1"]
    assert loss["co"]["top_1"] > 0.9
    assert loss["co"]["loss"] < 0.6 * loss["plain"]["loss"]  # of what it chose


def test_the_loss_is_divided_once(tmp_path):
    """With nothing forgotten, each network of the two learns as it would alone."""
    crawl = read_crawl(write_photos(tmp_path / "crawl", per_class=8))
    network = tiny_network(tmp_path / "net")
    recipe = {"epochs": 1, "batch_size": 12, "learning_rate": 0.05}
    one = train(crawl, tmp_path / "one", start=Start(network), recipe=Recipe(**recipe))
    two = train(
        crawl, tmp_path / "two", start=Start(network), recipe=Recipe(**recipe, forget_rate=0.0)
    )
    a, b = (load_file(m.path / "model.safetensors") for m in (one, two))
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-4, atol=1e-6)


def test_the_share_of_wrong_labels_is_estimated():
    random = np.random.default_rng(0)
    for rate in (0.0, 0.2, 0.4):
        centers = random.normal(size=(5, 20))
        truth = random.integers(5, size=1500)
        features = centers[truth] + 0.6 * random.normal(size=(1500, 20))
        moved = (truth + random.integers(1, 5, size=1500)) % 5
        web = np.where(random.uniform(size=1500) < rate, moved, truth)
        probs = linear_probe(features, web, n_classes=5, n_kept=5)
        assert noise_rate(probs, web) == pytest.approx(rate, abs=0.05)
        assert noise_rate(np.asarray(probs), web) == pytest.approx(noise_rate(probs, web))
    with pytest.raises(InputError, match="must be 1500 class numbers below 5"):
        noise_rate(probs, web - 1)


def test_co_teaching_needs_two_networks_that_differ(model, photos, tmp_path):
    with pytest.raises(InputError, match="gives the same one twice"):
        train(read_crawl(photos), tmp_path / "m", start=Start(str(model)),
              recipe=Recipe(forget_rate=0.1))  # fmt: skip


# --- labels of a correction


@pytest.fixture(scope="module")
def corrected(tmp_path_factory):
    """Return a run on a small made-up crawl with vectors of its own."""
    folder = tmp_path_factory.mktemp("run")
    made = make_crawl(per_class=15)
    table = write_crawl(made, folder / "crawl")
    texts, meanings = text_vectors(made.titles, made.descriptions)
    arrays = {
        "features": picture_features(made.pictures),
        "text_embeddings": texts,
        "label_embeddings": meanings[np.argsort(made.class_names)],
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array.astype(np.float32))
    choices = Choices(
        **{name: folder / f"{name}.npy" for name in arrays}, meanings=folder / "crawl/meanings.csv"
    )
    settings = Settings(n_neighbors=4, anchors_per_class=5, reject_nearness=0.7)
    run(table, folder / "run", settings=settings, choices=choices, with_report=False)
    return folder / "run"


def test_labels_of_a_correction_are_what_they_are_called(corrected):
    made = Run.open(corrected).correction
    gone = made.final_labels < 0
    assert gone.any()
    assert set(np.flatnonzero(gone)).isdisjoint(corrected_labels(made, "final").rows)
    assert len(corrected_labels(made).rows) == len(made)  # all images teach, each as believed
    assert set(np.flatnonzero(gone)).isdisjoint(corrected_labels(made, "decided").rows)
    for kind in ("web", "gnn", "cnn"):
        assert len(corrected_labels(made, kind).rows) == len(made)
    decided = corrected_labels(made, "decided").table.toarray()
    assert (decided.argmax(axis=1)[~gone] == made.final_labels[~gone]).all()
    soft = corrected_labels(made, "gnn").table
    assert np.asarray(soft).sum(axis=1) == pytest.approx(np.ones(len(made)), abs=1e-4)
    digests = {corrected_labels(made, k).digest() for k in KINDS}
    assert len(digests) == len(KINDS)
    with pytest.raises(InputError, match="labels must be one of"):
        corrected_labels(made, "best")


def test_soft_labels_count_by_their_sum_so_that_images_weigh_one_on_average():
    scores = np.array([[0.9, 0.8, 0.0]] * 10 + [[0.0, 0.1, 0.6]] * 2)
    several = Labels(TopScores.of(scores, n_kept=2), several=True)
    np.testing.assert_allclose(several.counts(), scores.sum(axis=0), atol=1e-5)
    soft = scores / scores.sum(axis=1, keepdims=True)
    counts = Labels(TopScores.of(soft, n_kept=2), several=False).counts()
    weights = torch.from_numpy(class_weights(counts))
    assert image_weights(torch.tensor(soft).float(), weights).mean().item() == pytest.approx(1)


@pytest.mark.slow
def test_a_run_is_fine_tuned_on_by_command(corrected, tmp_path):
    network = tiny_network(tmp_path / "net")
    said = call("finetune", corrected, "-o", tmp_path / "m", "--network", network, *SHORT)
    assert "epoch 3: loss " in said
    assert f"the model is {tmp_path / 'm'}" in said
    again = call("finetune", corrected, "-o", tmp_path / "tuned", "--network", tmp_path / "m",
                 "--labels", "decided", "--epochs", "1")  # fmt: skip
    assert "rate 0.01," in again  # half of the recipe's
    record = json.loads((tmp_path / "tuned" / "training.json").read_text())
    assert record["recipe"]["warmup_epochs"] == 0
    call("finetune", corrected, "-o", tmp_path / "co", "--network", network, "--labels", "web",
         "--co-teaching", "--epochs", "1", "-q")  # fmt: skip
    record = json.loads((tmp_path / "co" / "training.json").read_text())
    made = Run.open(corrected).correction
    own = np.asarray(made.final_probs)[np.arange(len(made)), made.web_labels]
    wrong = np.where(made.final_labels < 0, 1, 1 - own).mean()
    assert record["recipe"]["forget_rate"] == pytest.approx(wrong, abs=1e-3)


@pytest.mark.slow
def test_a_trained_network_gives_features_and_p_c_of_a_run(tmp_path, model_cache):
    """The paper's whole way by command: train, correct, fine-tune, judge."""
    table = write_crawl(make_crawl(per_class=10), tmp_path / "crawl")
    network = tiny_network(tmp_path / "net")
    (tmp_path / "crawl" / "images" / "broken.jpg").write_bytes(b"<html>")
    line = json.loads(table.read_text().splitlines()[0]) | {"file_name": "images/broken.jpg"}
    with table.open("a") as file:
        file.write(json.dumps(line) + "\n")
    call("train", table, "-o", tmp_path / "cnn", "--network", network, *SHORT)
    said = call("correct", table, "-o", tmp_path / "run", "--image-encoder", tmp_path / "cnn",
                "--meanings", tmp_path / "crawl" / "meanings.csv", "--no-report")  # fmt: skip
    assert "probe" not in said
    made = Run.open(tmp_path / "run")
    probs = np.load(made.outputs["pictures"] / "probs.npy")
    assert probs.shape == (len(made.crawl), len(made.crawl.class_names))
    np.testing.assert_allclose(np.asarray(made.correction.cnn_probs), probs, atol=1e-3)
    np.testing.assert_array_equal(np.asarray(made.arrays()["cnn_probs"]), probs)
    call("finetune", tmp_path / "run", "-o", tmp_path / "tuned", "--epochs", "1")
    tuned = json.loads((tmp_path / "tuned" / "training.json").read_text())
    assert tuned["network"] == str(tmp_path / "cnn")
    said = call("finetune", tmp_path / "run", "-o", tmp_path / "head", "--freeze", "--epochs", "2")
    assert "cnn, frozen: 2 epochs of " in said
    assert not (tmp_path / "head" / "features").exists()  # the run's vectors are used
    other = write_photos(tmp_path / "other", per_class=2)
    (other / "ant" / "00.txt").write_text("an ant")
    refused = call("correct", other, "-o", tmp_path / "r", "--image-encoder", tmp_path / "cnn",
                   code=1)  # fmt: skip
    assert "trained on other classes than the crawl: it lacks 'ant', 'bee', 'cat'" in refused


# --- commands


@pytest.fixture(scope="module")
def model(photos, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    network = tiny_network(folder / "net")
    said = call("train", photos, "-o", folder / "m", "--network", network, "--val", photos, *SHORT)
    assert "top 1" in said
    assert " is kept (top 1 " in said
    return folder / "m"


def test_predicting_gives_features_and_probabilities_in_one_pass(
    model, photos, tmp_path, model_cache
):
    said = call("predict", model, photos, "-o", tmp_path / "out")
    assert "36 images; saved in" in said
    assert np.load(tmp_path / "out" / "vectors.npy").shape == (36, 16)
    probs = np.load(tmp_path / "out" / "probs.npy")
    assert probs.sum(axis=1) == pytest.approx(np.ones(36), abs=1e-2)
    lines = (tmp_path / "out" / "labels.csv").read_text().splitlines()
    assert lines[0] == "image,label,probability"
    assert lines[1].startswith("ant/00.jpg,")
    right = [line.split(",")[0].split("/")[0] == line.split(",")[1] for line in lines[1:]]
    assert np.mean(right) > 0.9


def test_testing_by_command(model, photos, tmp_path, model_cache):
    assert call("test", model, "--data", photos).startswith("36 images\ntop_1 ")
    values = json.loads(call("test", model, "--data", photos, "--json"))
    assert values["top_1"] > 0.9
    assert len(values["classes"]) == 3
    more = write_photos(tmp_path / "more", per_class=3,
                        colors={"ant": (200, 60, 60), "dog": (9, 9, 9)})  # fmt: skip
    assert "does not know 1 of the 2 classes, such as 'dog'" in call(
        "test", model, "--data", more, code=1
    )
    assert "C-F1 (every)" in call("test", model, "--data", more, "--open-set")


def test_a_validation_set_of_other_classes_is_refused_at_once(photos, tmp_path):
    other = write_photos(tmp_path / "o", per_class=2, colors={"elk": (1, 2, 3)})
    said = call("train", photos, "-o", tmp_path / "m", "--val", other, code=1)
    assert "has no image of the crawl's classes to judge by" in said
    assert "elk" in said
    assert not (tmp_path / "m").exists()
    (photos / "ant").rename(tmp_path / "o" / "ant")
    try:
        said = call("train", tmp_path / "o", "-o", tmp_path / "m", "--val", photos, code=1)
    finally:
        (tmp_path / "o" / "ant").rename(photos / "ant")
    assert "has no image of the crawl's classes to judge by, only of 'bee', 'cat'" in said


def test_a_validation_set_may_have_classes_of_any_name(tmp_path):
    colors = {"#cat": (200, 60, 60), "n01440764 tench": (60, 60, 200)}
    photos = write_photos(tmp_path / "photos", per_class=4, colors=colors)
    more = write_photos(tmp_path / "more", per_class=2, colors=colors | {"dog": (1, 2, 3)})
    network = tiny_network(tmp_path / "net")
    said = call("train", photos, "-o", tmp_path / "m", "--network", network, "--val", more, *SHORT)
    assert "left out, not classes of the crawl: 'dog'" in said
    assert "top 1" in said
    assert Checkpoint.load(tmp_path / "m").class_names == tuple(colors)


def test_classifying_by_command(model, photos, tmp_path, model_cache):
    (tmp_path / "b.jpg").write_bytes(b"<html>")
    said = call("classify", model, photos / "ant" / "00.jpg", tmp_path, "--top", "1")
    lines = said.splitlines()
    assert lines[0].startswith(f"{photos}/ant/00.jpg: ant ")
    assert lines[1] == f"{tmp_path}/b.jpg: not a picture: a web page or drawing in text"
    line = json.loads(call("classify", model, photos / "cat" / "00.jpg", "--json"))
    assert next(iter(line["classes"])) == "cat"


@pytest.mark.slow
def test_co_teaching_by_command_estimates_what_to_forget(photos, tmp_path, model_cache):
    network = tiny_network(tmp_path / "net")
    said = call(
        "train", photos, "-o", tmp_path / "m", "--network", network, "--co-teaching", *SHORT
    )
    assert "% of the labels are wrong" in said
    recipe = json.loads((tmp_path / "m" / "training.json").read_text())["recipe"]
    assert 0 <= recipe["forget_rate"] < 0.3
    set_ = call("train", photos, "-o", tmp_path / "s", "--network", network, "--forget-rate",
                "0.25", "-q", *SHORT)  # fmt: skip
    assert set_ == ""
    recipe = json.loads((tmp_path / "s" / "training.json").read_text())["recipe"]
    assert recipe["forget_rate"] == 0.25


def test_a_preset_is_changed_by_name(photos, tmp_path):
    said = call("train", photos, "-o", tmp_path / "m", "--preset", "google-500", "--set",
                "batchsize=3", code=1)  # fmt: skip
    assert "did you mean batch_size?" in said
    said = call("train", photos, "-o", tmp_path / "m", "--set", "epochs", code=1)
    assert "--set needs NAME=VALUE, as in batch_size=32, got 'epochs'" in said
    network = tiny_network(tmp_path / "net")
    call("train", photos, "-o", tmp_path / "m", "--network", network, "--from-scratch",
         "--preset", "google-500", "--epochs", "1", "--set", "batch_size=12")  # fmt: skip
    recipe = json.loads((tmp_path / "m" / "training.json").read_text())["recipe"]
    assert (recipe["learning_rate"], recipe["epochs"], recipe["batch_size"]) == (0.1, 1, 12)


# --- export

LOADER = """
import sys, numpy as np
if sys.argv[1].endswith(".onnx"):
    import onnxruntime
    session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    names = session.get_modelmeta().custom_metadata_map["classes"]
    run = lambda pixels: session.run(["probs"], {"pixels": pixels})[0]
else:
    import torch
    extra = {"classes.txt": ""}
    program = torch.export.load(sys.argv[1], extra_files=extra).module()
    names = extra["classes.txt"]
    run = lambda pixels: program(torch.from_numpy(pixels))[1].detach().numpy()
pixels = np.load(sys.argv[2])
np.save(sys.argv[3], run(pixels))
assert "vsgraph" not in sys.modules
print(names)
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["onnx", "pt2"])
def test_an_exported_model_runs_without_vsgraph(model, tmp_path, ending, model_cache):
    from vsgraph.encoders import image_encoder

    path = tmp_path / f"model.{ending}"
    assert f"written to {path}" in call("export-model", model, "-o", path)
    pixels = np.random.default_rng(0).integers(0, 256, (5, SIDE, SIDE, 3), np.uint8)
    np.save(tmp_path / "pixels.npy", pixels)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOADER, path, "pixels.npy", "p.npy"],
        check=True, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert ran.stdout.split() == ["ant", "bee", "cat"]
    expected = image_encoder(model, runtime="torch").encode(pixels).probs
    np.testing.assert_allclose(np.load(tmp_path / "p.npy"), expected, atol=1e-4)
    assert "exists already" in call("export-model", model, "-o", path, code=1)


def test_an_export_says_by_its_ending_what_it_is(model, tmp_path):
    with pytest.raises(InputError, match=r"must end in \.onnx or \.pt2"):
        export_model(model, tmp_path / "model.h5")
