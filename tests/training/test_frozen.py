"""Heads on vectors that are there: the loop, and models that commands treat like any other."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors.numpy import load_file
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from training_data import tiny_network, write_photos

from vsgraph.cli import main
from vsgraph.crawls import read_crawl
from vsgraph.encoders.sources.checkpoints import is_checkpoint
from vsgraph.errors import FileError, InputError, TrainingError
from vsgraph.result.scores import TopScores
from vsgraph.training import Labels, Recipe, Start, frozen, train_frozen
from vsgraph.training.heads import LENGTH, Head, train_head


def call(*arguments, code=0):
    made = CliRunner().invoke(main, [str(a) for a in arguments])
    assert made.exit_code == code, made.output + str(made.exception)
    return made.output


def hard(classes, n_classes):
    return Labels(csr_array(np.eye(n_classes, dtype=bool)[classes]), several=False)


def test_one_step_is_that_of_equation_nine():
    """From a head of zeros, by hand: soft labels, class weights, shares of images."""
    vectors = np.array([[1.0, 0], [3, 0], [0, 2], [0, 4], [0, 0]])  # the last has no picture
    soft = np.array([[0.8, 0.2], [1, 0], [0.4, 0.6], [0, 1], [1, 0]])
    shares = np.array([1, 0.5, 1, 1, 1])
    recipe = Recipe(epochs=1, warmup_epochs=1, batch_size=4, learning_rate=0.1, momentum=0.0)
    start = Head(np.zeros((2, 2), np.float32), np.zeros(2, np.float32))
    labels = Labels(TopScores.of(soft, n_kept=2), several=False)
    head = train_head(vectors, labels, recipe, start=start, shares=shares)
    shown, center = vectors[:4], vectors[:4].mean(axis=0)
    scale = LENGTH / np.sqrt(((shown - center) ** 2).sum(axis=1).mean())
    inputs = (shown - center) * scale
    weight = soft[:4] @ (5 / (2 * soft.sum(axis=0))) * shares[:4]  # N / (C n_y), then the share
    slope = (0.5 - soft[:4]) * weight[:, None] / 4  # p - y at p = 1/2
    np.testing.assert_allclose(head.weights, -0.1 * slope.T @ inputs * scale, rtol=1e-3)
    bias = -0.1 * slope.sum(axis=0) - head.weights @ center
    np.testing.assert_allclose(head.bias, bias, rtol=1e-3, atol=1e-4)
    expected = softmax(vectors @ head.weights.T + head.bias, axis=1)
    np.testing.assert_allclose(head.probs(vectors), expected, rtol=1e-4)


def made_up(seed=0, n=900, n_dims=40, n_classes=6):
    """Return vectors in overlapping clouds, not centered and of any scale, and their classes."""
    random = np.random.default_rng(seed)
    classes = random.integers(n_classes, size=n)
    centers = random.normal(size=(n_classes, n_dims))
    return 7 + 30 * (centers[classes] + 1.6 * random.normal(size=(n, n_dims))), classes


def test_a_head_is_as_good_as_logistic_regression():
    vectors, classes = made_up()
    head = train_head(vectors[:600].astype(np.float16), hard(classes[:600], 6))
    own = (head.probs(vectors[600:]).argmax(axis=1) == classes[600:]).mean()
    scaled = (vectors - vectors[:600].mean(axis=0)) / vectors[:600].std()
    other = LogisticRegression().fit(scaled[:600], classes[:600])
    assert own >= other.score(scaled[600:], classes[600:]) - 0.02
    assert own > 0.85


def test_co_teaching_heads_learn_less_of_wrong_labels():
    vectors, classes = made_up()
    random = np.random.default_rng(1)
    wrong = np.where(random.random(600) < 0.45, random.integers(6, size=600), classes[:600])

    def right(**changes):
        head = train_head(vectors[:600], hard(wrong, 6), Recipe(epochs=20, **changes))
        return (head.probs(vectors[600:]).argmax(axis=1) == classes[600:]).mean()

    assert right(forget_rate=0.37, forget_epochs=5) > right() + 0.02


def test_several_labels_are_learned_by_sigmoids():
    vectors, classes = made_up(n_classes=4)
    both = np.eye(4, dtype=bool)[classes] | (classes < 2)[:, None] & (np.arange(4) == 3)
    head = train_head(vectors, Labels(csr_array(both), several=True), Recipe(epochs=20))
    assert head.several
    assert ((head.probs(vectors) > 0.5) == both).mean() > 0.93


def test_a_head_that_diverges_says_so():
    vectors, classes = made_up(n=100)
    vectors[3] = np.nan
    with pytest.raises(TrainingError, match="the loss became nan in epoch 1; lower learning_rate"):
        train_head(vectors, hard(classes, 6))


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    root = write_photos(tmp_path_factory.mktemp("photos") / "crawl")
    (root / "bee" / "broken.jpg").write_bytes(b"<html>not found</html>")
    return root


@pytest.mark.slow
def test_a_frozen_model_is_a_model(photos, tmp_path, model_cache):
    network, model = tiny_network(tmp_path / "net"), tmp_path / "model"
    say = call("train", photos, "-o", model, "--network", network, "--freeze", "--val", photos)
    assert f"the model is {model}" in say
    body, whole = (
        load_file(tmp_path / "net" / "model.safetensors"),
        load_file(model / "model.safetensors"),
    )
    for name, values in body.items():  # not one weight of the network has moved
        same = [v for key, v in whole.items() if key.startswith("body.") and key.endswith(name)]
        np.testing.assert_array_equal(same[0], values)
    history = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    assert history[-1]["unreadable"] == 1
    said = call("test", model, "--data", photos)
    best = max(line["top_1"] for line in history)
    assert float(said.split("top_1")[1].split("%")[0]) == pytest.approx(100 * best, abs=3)
    assert best > 0.8
    assert "ant" in call("classify", model, photos / "ant" / "00.jpg", "--top", "1")
    call("predict", model, photos, "-o", tmp_path / "predicted")
    probs = np.load(tmp_path / "predicted" / "probs.npy")
    vectors = np.load(tmp_path / "predicted" / "vectors.npy")
    np.testing.assert_allclose(vectors, np.load(model / "features" / "vectors.npy"), atol=2e-2)
    logits = vectors @ whole["head.weight"].T + whole["head.bias"]
    read = vectors.any(axis=1)
    np.testing.assert_allclose(probs[read], softmax(logits[read], axis=1), atol=2e-2)
    call("export-model", model, "-o", tmp_path / "model.pt2")
    again = call("train", photos, "-o", model, "--network", network, "--freeze", "--val", photos)
    assert "epoch" not in again.split("finished")[0]  # it is found done
    refused = call("train", photos, "-o", model, "--network", network, code=1)
    assert "frozen was true, now not set" in refused
    call("train", photos, "-o", model, "--network", network, "--freeze", "--epochs", "1",
         "--overwrite", "-q")  # fmt: skip
    assert len((model / "metrics.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize("written", ["write_history", "Checkpoint", "_write"])
def test_a_head_that_could_not_be_written_is_trained_again(photos, tmp_path, monkeypatch, written):
    crawl, network = read_crawl(photos), tiny_network(tmp_path / "net")
    random = np.random.default_rng(0)
    given = {
        "start": Start(network),
        "recipe": Recipe(epochs=2),
        "vectors": random.random((37, 16)),
    }

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(frozen, written, fail)
        with pytest.raises(FileError, match="No space left"):
            train_frozen(crawl, tmp_path / "model", **given)
    assert not is_checkpoint(tmp_path / "model")
    trained = train_frozen(crawl, tmp_path / "model", **given)
    assert len(trained.history) == 2
    assert train_frozen(crawl, tmp_path / "model", **given).history == trained.history
    other = train_frozen(crawl, tmp_path / "other", **given)
    first, second = (load_file(t.path / "model.safetensors") for t in (trained, other))
    np.testing.assert_array_equal(first["head.weight"], second["head.weight"])


def test_what_cannot_be_frozen_is_refused(photos, tmp_path):
    crawl = read_crawl(photos)
    with pytest.raises(InputError, match="random weights has nothing to freeze"):
        train_frozen(crawl, tmp_path / "a", start=Start("lite0", pretrained=False))
    vectors = np.ones((len(crawl), 3), np.float32)
    with pytest.raises(InputError, match=r"net.onnx is an ONNX file, .*--network"):
        train_frozen(crawl, tmp_path / "b", vectors=vectors, start=Start("net.onnx"))
    network = tiny_network(tmp_path / "net")
    with pytest.raises(InputError, match=r"vectors must have shape \(37, 16\).* got \(37, 3\)"):
        train_frozen(crawl, tmp_path / "c", vectors=vectors, start=Start(network))
    assert not any((tmp_path / name).exists() for name in "abc")
