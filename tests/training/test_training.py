"""Networks that learn from a crawl: the loop, its recipes, resuming, several processes."""

import errno
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file
from scipy.sparse import csr_array
from training_data import SIDE, tiny_network, write_photos

from vsgraph.crawls import read_crawl
from vsgraph.encoders import image_encoder
from vsgraph.encoders.sources.checkpoints import Checkpoint
from vsgraph.errors import FileError, InputError, TrainingError, VSGraphWarning
from vsgraph.result.scores import TopScores
from vsgraph.training import Labels, Recipe, Start, train, trainer, web_labels
from vsgraph.training.batches import cut_batches, epoch_order, read_batches
from vsgraph.training.crops import RandomCrop
from vsgraph.training.losses import class_weights, image_losses, image_weights
from vsgraph.training.recipe import learning_rate

SCRIPT = Path(__file__).with_name("training_data.py")
SHORT = {"epochs": 2, "batch_size": 12, "learning_rate": 0.05, "warmup_epochs": 0.5}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    root = write_photos(tmp_path_factory.mktemp("photos") / "crawl")
    (root / "bee" / "broken.jpg").write_bytes(b"<html>not found</html>")
    return root


@pytest.fixture(scope="module")
def networks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("networks")
    return {kind: tiny_network(folder / kind, kind) for kind in ("resnet", "vit", "dropout")}


def weights_of(folder):
    return load_file(folder / "model.safetensors")


def assert_same(one, other, **tolerance):
    first, second = weights_of(one), weights_of(other)
    assert first.keys() == second.keys()
    for name, values in first.items():
        np.testing.assert_allclose(values, second[name], err_msg=name, **tolerance)


# --- recipes


def test_presets_are_the_papers():
    google, webvision, nus = map(Recipe.preset, ("google-500", "webvision-1000", "nus-81-web"))
    assert (google.epochs, google.learning_rate, google.batch_size) == (120, 0.1, 256)
    assert (webvision.epochs, webvision.learning_rate, webvision.batch_size) == (150, 0.4, 1024)
    assert (nus.epochs, nus.learning_rate, nus.loss) == (100, 0.002, "sigmoid")
    for recipe in (google, webvision, nus):
        assert (recipe.momentum, recipe.weight_decay, recipe.warmup_epochs) == (0.9, 1e-4, 10)
    fine = google.for_finetuning()
    assert (fine.learning_rate, fine.warmup_epochs, fine.epochs) == (0.05, 0, 120)
    assert Recipe.preset("google-500", epochs=3).epochs == 3
    assert Recipe.preset("small") == Recipe()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"learning_rate": -1}, "learning_rate must be at least 0"),
        ({"momentum": 1.5}, "momentum must"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"smallest_crop": 0.0}, "smallest_crop must be above 0"),
    ],
)
def test_impossible_recipes_are_refused(change, told):
    with pytest.raises(InputError, match=told):
        Recipe(**change)


def test_a_misspelled_name_is_answered_with_the_right_one():
    with pytest.raises(InputError, match="no 'learnin_rate'; did you mean learning_rate"):
        Recipe.preset("small", learnin_rate=1)
    with pytest.raises(InputError, match="no 'zzz'; it has epochs, "):
        Recipe.preset("google-500", zzz=1)
    with pytest.raises(InputError, match="preset must be one of small, google-500, "):
        Recipe.preset("imagenet")


def test_the_rate_rises_and_falls():
    recipe = Recipe.preset("google-500")
    rates = [learning_rate(recipe, step, 100) for step in range(120 * 100)]
    assert rates[:1000] == pytest.approx(np.linspace(0.0001, 0.1, 1000))
    assert np.argmax(rates) in {999, 1000}
    assert rates[1000 + 5500] == pytest.approx(0.05)
    assert 0 < rates[-1] < 1e-5
    assert learning_rate(recipe.for_finetuning(), 0, 100) == 0.05


# --- losses


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), n_classes=st.integers(1, 5))
def test_losses_agree_with_the_paper(seed, n, n_classes):
    import torch

    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)) * 3
    labels = rng.dirichlet(np.ones(n_classes), size=n)
    soft = image_losses(torch.tensor(logits), torch.tensor(labels), "softmax").numpy()
    binary = image_losses(torch.tensor(logits), torch.tensor(labels), "sigmoid").numpy()
    for i in range(n):
        p = np.exp(logits[i]) / np.exp(logits[i]).sum()
        s = 1 / (1 + np.exp(-logits[i]))
        assert soft[i] == pytest.approx(-sum(labels[i] * np.log(p)))
        entropy = -(labels[i] * np.log(s) + (1 - labels[i]) * np.log(1 - s))
        assert binary[i] == pytest.approx(entropy.sum())


@given(counts=st.lists(st.integers(0, 50), min_size=1, max_size=8))
def test_every_class_weighs_the_same(counts):
    n = np.array(counts, float)
    weights = class_weights(n)
    there = n > 0
    np.testing.assert_allclose((weights * n)[there], n.sum() / max(there.sum(), 1), rtol=1e-5)
    assert (weights[~there] == 1).all()


def test_an_image_weighs_as_its_classes():
    import torch

    labels = torch.tensor([[1.0, 0.0], [0.5, 0.5], [1.0, 1.0], [0.0, 0.0]])
    found = image_weights(labels, torch.tensor([2.0, 4.0]))
    assert found.tolist() == [2, 3, 3, 0]


# --- crops and batches


@given(
    seed=st.integers(0, 2**31),
    smallest=st.floats(0.01, 1),
    height=st.integers(8, 900),
    width=st.integers(8, 900),
)
def test_crops_lie_within_the_picture(seed, smallest, height, width):
    crop = RandomCrop.draw(SIDE, SIDE, smallest=smallest, seed=(seed, 1))
    top, left, tall, wide = crop.box(height, width)
    assert 0 <= top <= top + tall <= height
    assert 0 <= left <= left + wide <= width
    assert tall >= 1
    assert wide >= 1
    least = crop.before_crop(height, width)
    assert least[0] <= height
    assert least[1] <= width
    assert crop == RandomCrop.draw(SIDE, SIDE, smallest=smallest, seed=(seed, 1))


def test_a_crop_is_the_part_of_the_picture_it_says():
    pixels = np.arange(40 * 60 * 3, dtype=np.uint8).reshape(40, 60, 3)
    whole = RandomCrop(40, 60, area=1.0, ratio=1.5, down=0.0, right=0.0)
    np.testing.assert_array_equal(whole.fit(pixels), pixels)
    mirrored = RandomCrop(40, 60, area=1.0, ratio=1.5, down=0.0, right=0.0, mirrored=True)
    np.testing.assert_array_equal(mirrored.fit(pixels), pixels[:, ::-1])
    corner = RandomCrop(20, 30, area=0.25, ratio=1.5, down=1.0, right=1.0)
    np.testing.assert_array_equal(corner.fit(pixels), pixels[20:, 30:])


def draw(*seed):
    return RandomCrop.draw(SIDE, SIDE, smallest=0.3, seed=seed)


def test_crops_differ_by_seed_and_about_half_are_mirrored():
    drawn = {draw(row, epoch) for row in range(20) for epoch in range(20)}
    assert len(drawn) == 400
    assert 150 < sum(crop.mirrored for crop in drawn) < 250


def test_every_epoch_has_an_order_of_its_own():
    rows = np.arange(50)
    first, second = (epoch_order(rows, epoch, 3) for epoch in (0, 1))
    assert sorted(first) == sorted(second) == rows.tolist()
    assert first.tolist() != second.tolist()
    assert [len(b) for b in cut_batches(first, 20)] == [20, 20]


def test_batches_come_in_order_without_what_cannot_be_read(photos, tmp_path):
    crawl = read_crawl(photos)
    names = crawl.table["image"].to_pylist()
    rows = np.random.default_rng(0).permutation(len(crawl))
    found = list(read_batches(crawl, np.array_split(rows, 3), draw))
    broken = names.index("bee/broken.jpg")
    assert np.concatenate([b.rows for b in found]).tolist() == [r for r in rows if r != broken]
    assert [p for b in found for p in b.problems] == [
        (broken, "not a picture", "a web page or drawing in text")
    ]
    assert all(b.pixels.shape[1:] == (SIDE, SIDE, 3) for b in found)

    with tarfile.open(tmp_path / "00000.tar", "w") as tar:
        for number, name in enumerate(names):
            tar.add(photos / name, f"{number:05}.jpg")
            label = tmp_path / "label.cls"
            label.write_text(str(sorted(["ant", "bee", "cat"]).index(name.split("/")[0])))
            tar.add(label, f"{number:05}.cls")
    shards = read_crawl(tmp_path / "00000.tar")
    again = list(read_batches(shards, np.array_split(rows, 3), draw))
    for one, two in zip(found, again, strict=True):
        np.testing.assert_array_equal(one.pixels, two.pixels)


# --- the loop


@pytest.fixture(scope="module")
def trained(photos, networks, tmp_path_factory):
    """Return what a training left, and what it said."""
    lines = []
    crawl = read_crawl(photos)
    recipe = Recipe(**(SHORT | {"epochs": 5}))
    made = train(
        crawl, tmp_path_factory.mktemp("trained") / "model", start=Start(networks["resnet"]),
        recipe=recipe, validation=crawl, tell=lines.append,
    )  # fmt: skip
    return made, lines, crawl


def test_a_network_learns_and_says_so(trained):
    made, lines, crawl = trained
    first, last = made.history[0], made.history[-1]
    assert last["loss"] < 0.5 * first["loss"]
    assert last["top_1"] > 0.9
    assert [line["epoch"] for line in made.history] == [1, 2, 3, 4, 5]
    assert lines[0].endswith("5 epochs of 3 steps, 12 of 37 images per step")
    assert any(line.startswith("epoch 5: loss ") for line in lines)
    assert made.n_unreadable == 1
    best = max(line["top_1"] for line in made.history)
    assert made.history[made.kept_epoch - 1]["top_1"] == best
    assert "top_5" not in last  # every class is among five
    assert crawl.problems.counts["not a picture"] == 1
    kept = [json.loads(line) for line in (made.path / "metrics.jsonl").read_text().splitlines()]
    assert kept == made.history
    assert (made.path / "curves.svg").read_text().startswith("<svg")


def test_a_trained_network_is_an_encoder_with_probabilities(trained, photos, model_cache):
    made, _, crawl = trained
    encoder = image_encoder(made.path)
    assert encoder.n_classes == 3
    pixels = np.stack(
        [np.full((SIDE, SIDE, 3), c, np.uint8) for c in [(200, 60, 60), (60, 60, 200)]]
    )
    probs = encoder.encode(pixels).probs
    assert probs.sum(axis=1) == pytest.approx([1, 1], abs=1e-3)
    assert [crawl.class_names[i] for i in probs.argmax(axis=1)] == ["ant", "cat"]


def test_a_finished_training_is_not_done_again(trained, networks, tmp_path):
    made, _, crawl = trained
    before = (made.path / "model.safetensors").stat().st_mtime_ns
    lines = []
    recipe = Recipe(**(SHORT | {"epochs": 5}))
    train(crawl, made.path, start=Start(networks["resnet"]), recipe=recipe, validation=crawl,
          tell=lines.append)  # fmt: skip
    assert lines == [f"{networks['resnet']}: 5 epochs of 3 steps, 12 of 37 images per step, "
                     "5 epochs and 0 steps done before"]  # fmt: skip
    assert (made.path / "model.safetensors").stat().st_mtime_ns == before


def test_another_training_never_goes_on_from_its_files(trained, networks, tmp_path):
    made, _, crawl = trained
    with pytest.raises(InputError, match=r"another training: .*epochs was 5, now 2.*--overwrite"):
        train(crawl, made.path, start=Start(networks["resnet"]), recipe=Recipe(**SHORT))
    other = Labels(csr_array(np.eye(3, dtype=bool)[np.zeros(len(crawl), int)]), several=False)
    with (
        pytest.warns(VSGraphWarning, match="2 of 3 classes have no image to learn from: bee, cat"),
        pytest.raises(InputError, match="labels were different, validation was different"),
    ):
        train(crawl, made.path, labels=other, start=Start(networks["resnet"]))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match="holds something other than a training"):
        train(crawl, tmp_path / "mine", overwrite=True)
    with pytest.raises(InputError, match="is a file"):
        train(crawl, tmp_path / "mine" / "thesis.txt")


@pytest.mark.slow
def test_overwriting_starts_anew(photos, networks, tmp_path):
    crawl, start = read_crawl(photos), Start(networks["resnet"])
    train(crawl, tmp_path / "m", start=start, recipe=Recipe(**SHORT))
    again = train(
        crawl, tmp_path / "m", start=start, recipe=Recipe(**(SHORT | {"epochs": 1})), overwrite=True
    )
    assert len(again.history) == 1


@pytest.mark.slow
def test_an_old_model_stands_until_the_new_one_is_finished(photos, networks, tmp_path, monkeypatch):
    crawl, out = read_crawl(photos), tmp_path / "m"
    given = {"start": Start(networks["resnet"]), "overwrite": True}
    train(crawl, out, start=given["start"], recipe=Recipe(**SHORT))
    (out / "notes.txt").write_text("mine")
    old, other = weights_of(out), Recipe(**(SHORT | {"learning_rate": 0.5}))
    save = trainer.Trainer.save

    def fail_at_the_end(self):
        save(self)
        if self.progress.epoch == 2:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(trainer.Trainer, "save", fail_at_the_end)
    with pytest.raises(FileError, match="Input/output error"):
        train(crawl, out, recipe=other, **given)
    for name, values in weights_of(out).items():
        np.testing.assert_array_equal(values, old[name])
    with pytest.raises(InputError, match=r"learning_rate was 0\.05, now 0\.1"):
        train(crawl, out, start=given["start"], recipe=Recipe(**(SHORT | {"learning_rate": 0.1})))

    monkeypatch.undo()
    (out / ".next" / ".vsgraph-model.safetensors-a1b2c3d4").write_text("of a killed process")
    lines = []
    assert len(train(crawl, out, recipe=other, tell=lines.append, **given).history) == 2
    assert "2 epochs and 0 steps done before" in lines[0]
    whole = train(crawl, tmp_path / "whole", start=given["start"], recipe=other)
    assert_same(out, whole.path)
    assert {path.name for path in out.iterdir()} == {
        "notes.txt", *(path.name for path in whole.path.iterdir() if path.name != ".lock")
    }  # fmt: skip


def _kill_twice(start, out, moments):
    """Kill a training at two moments after it has kept something; begin anew if it ends before."""
    last, kills = out / "last.safetensors", 0
    while kills < 2:
        child = start(out)
        seen = last.stat().st_mtime_ns if last.exists() else 0
        while child.poll() is None and (not last.exists() or last.stat().st_mtime_ns == seen):
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.15))
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            kills += 1
        else:  # too fast to be killed this time
            assert child.returncode == 0
            shutil.rmtree(out)
            kills = 0
        child.wait()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["resnet", "dropout"])
def test_killed_again_and_again_it_ends_with_the_same_weights(photos, networks, tmp_path, kind):
    recipe = json.dumps(SHORT | {"epochs": 3})

    def start(out):
        command = [sys.executable, str(SCRIPT), str(photos), networks[kind], str(out), recipe]
        return subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})

    undisturbed = start(tmp_path / "whole")
    assert undisturbed.wait(300) == 0
    _kill_twice(start, tmp_path / "killed", random.Random(kind))
    assert start(tmp_path / "killed").wait(300) == 0
    assert_same(tmp_path / "whole", tmp_path / "killed", rtol=0, atol=0)
    whole, killed = ((tmp_path / n / "metrics.jsonl").read_text() for n in ("whole", "killed"))
    for one, two in zip(whole.splitlines(), killed.splitlines(), strict=True):
        first, second = json.loads(one), json.loads(two)
        assert first.pop("images_per_second") > 0
        assert second.pop("images_per_second", 1) > 0  # none where no step was left
        assert first == second
    left = {p.name for p in (tmp_path / "killed").iterdir()}
    assert left >= {p.name for p in (tmp_path / "whole").iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("change", [{}, {"forget_rate": 0.3, "forget_epochs": 1}])
def test_two_processes_agree_with_one(photos, networks, tmp_path, change):
    recipe = json.dumps(SHORT | change)
    arguments = [str(SCRIPT), str(photos), networks["resnet"]]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    one = [sys.executable, *arguments, str(tmp_path / "one"), recipe]
    subprocess.run(one, check=True, timeout=300, env=environment)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    two = [*launch, *arguments, str(tmp_path / "two"), recipe]
    subprocess.run(two, check=True, timeout=300, env=environment, capture_output=True)
    assert_same(tmp_path / "one", tmp_path / "two", rtol=2e-3, atol=2e-4)
    histories = [
        [json.loads(line) for line in (tmp_path / n / "metrics.jsonl").read_text().splitlines()]
        for n in ("one", "two")
    ]
    for first, second in zip(*histories, strict=True):
        assert first["loss"] == pytest.approx(second["loss"], abs=2e-3)
        assert first["accuracy"] == second["accuracy"]


# --- what it starts from


@pytest.mark.slow
def test_lite0_starts_from_its_published_weights(photos, tmp_path):
    from vsgraph.training.start_network import start_networks

    found, made = start_networks(Start("lite0", 64), ["ant", "bee"], Recipe())
    again, _ = start_networks(Start("lite0", 64), ["ant", "bee"], Recipe())
    scratch, _ = start_networks(Start("lite0", 64, pretrained=False), ["ant", "bee"], Recipe())
    stem = [n[0].state_dict()["body._conv_stem.weight"] for n in (found, again, scratch)]
    assert (stem[0] == stem[1]).all()
    assert not (stem[0] == stem[2]).any()
    assert (found[0].head.weight == again[0].head.weight).all()
    assert made.preparation.describe() == "squeeze 64x64"
    assert found[0].body._bn0.momentum == 0.1


@pytest.mark.slow
def test_resnet50_is_the_papers():
    from vsgraph.training.start_network import start_networks

    (network,), made = start_networks(
        Start("resnet50", 64, pretrained=False), ["ant", "bee"], Recipe()
    )
    n_body = sum(p.numel() for p in network.body.parameters())
    assert n_body == 23_508_032  # ResNet50 without its classifier
    assert network.head.in_features == 2048
    assert made.crop == 0.875
    with pytest.raises(InputError, match=r"resnet50 comes without weights.*--from-scratch"):
        start_networks(Start("resnet50"), ["ant"], Recipe())


@pytest.mark.slow
def test_a_trained_model_is_fine_tuned_on_its_own_classes_only(trained, photos, tmp_path):
    made, _, crawl = trained
    recipe = Recipe(**SHORT).for_finetuning()
    tuned = train(crawl, tmp_path / "tuned", start=Start(str(made.path)), recipe=recipe)
    assert tuned.history[0]["loss"] < made.history[0]["loss"]
    fewer = write_photos(
        tmp_path / "other", per_class=2, colors={"ant": (9, 9, 9), "dog": (0, 0, 0)}
    )
    with pytest.raises(InputError, match="it lacks 'dog'; it has in addition 'bee', 'cat'"):
        train(read_crawl(fewer), tmp_path / "x", start=Start(str(made.path)))
    with pytest.raises(InputError, match="was trained at 32 pixels"):
        train(crawl, tmp_path / "y", start=Start(str(made.path), 64))


def test_checkpoints_that_are_none_are_refused(trained, tmp_path):
    made, _, _ = trained
    with pytest.raises(InputError, match="holds no trained model"):
        Checkpoint.load(tmp_path)
    broken = tmp_path / "broken"
    broken.mkdir()
    record = (made.path / "record.json").read_text()
    (broken / "record.json").write_text(record)
    (broken / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(InputError, match=r"model\.safetensors cannot be read"):
        image_encoder(broken, runtime="torch")
    (broken / "model.safetensors").write_bytes((made.path / "last.safetensors").read_bytes())
    with pytest.raises(InputError, match="holds no weights of a trained model"):
        image_encoder(broken, runtime="torch")
    (broken / "model.safetensors").write_bytes((made.path / "model.safetensors").read_bytes())
    (broken / "record.json").write_text(record.replace('"ant",', ""))
    with pytest.raises(InputError, match="names 2 classes, its network has 3"):
        image_encoder(broken, runtime="torch")
    (broken / "record.json").write_text(
        record.replace('"hidden_sizes": [\n    8', '"hidden_sizes": [\n    9')
    )
    changed = json.loads(record)
    changed["architecture"]["config"]["hidden_sizes"] = [24, 16]
    (broken / "record.json").write_text(json.dumps(changed))
    with pytest.raises(InputError, match="does not fit"):
        image_encoder(broken, runtime="torch")


# --- bad input and bad luck


def test_a_loss_that_is_no_number_stops_with_the_batch_named(photos, networks, tmp_path):
    crawl = read_crawl(photos)
    recipe = Recipe(**(SHORT | {"learning_rate": 1e30, "epochs": 5}))
    with pytest.raises(
        TrainingError, match=r"the loss became (nan|inf) in epoch \d, step \d, at \w+/\d\d.jpg"
    ):
        train(crawl, tmp_path / "m", start=Start(networks["resnet"]), recipe=recipe, save_seconds=0)
    kept = load_file(tmp_path / "m" / "last.safetensors")
    assert all(np.isfinite(value).all() for name, value in kept.items() if "momentum" in name)


@pytest.mark.slow
def test_a_full_disk_leaves_the_last_checkpoint(photos, networks, tmp_path):
    crawl, start = read_crawl(photos), Start(networks["resnet"])
    train(crawl, tmp_path / "m", start=start, recipe=Recipe(**SHORT), save_seconds=0)
    before = (tmp_path / "m" / "last.safetensors").read_bytes()
    training = tmp_path / "m" / "training.json"
    longer = SHORT | {"epochs": 4}
    key = json.loads(training.read_text())
    key["recipe"]["epochs"] = 4
    training.write_text(json.dumps(key))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(
            TrainingError, match=r"could not be written .*; make room and start again"
        ):
            train(crawl, tmp_path / "m", start=start, recipe=Recipe(**longer), save_seconds=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "m" / "last.safetensors").read_bytes() == before
    assert not [p for p in (tmp_path / "m").iterdir() if p.name.startswith(".last")]
    made = train(crawl, tmp_path / "m", start=start, recipe=Recipe(**longer))
    assert len(made.history) == 4


def test_what_cannot_be_trained_on_is_refused(photos, networks, tmp_path):
    crawl = read_crawl(photos)
    n = len(crawl)
    with pytest.raises(InputError, match=rf"labels must have shape \({n}, 3\).* got \(2, 3\)"):
        train(
            crawl, tmp_path / "m", labels=Labels(csr_array(np.eye(2, 3, dtype=bool)), several=False)
        )
    with pytest.raises(InputError, match="at least two images with a label"):
        train(crawl, tmp_path / "m", labels=Labels(csr_array((n, 3), dtype=bool), several=False))
    several = Labels(web_labels(crawl).table, several=True)
    with pytest.raises(InputError, match="several labels: train with loss sigmoid"):
        train(crawl, tmp_path / "m", labels=several, recipe=Recipe(loss="softmax"))
    other = read_crawl(write_photos(tmp_path / "o", per_class=1, colors={"ant": (1, 2, 3)}))
    with pytest.raises(InputError, match=r"other classes than validation.*'bee', 'cat'"):
        train(crawl, tmp_path / "m", validation=other)


def test_classes_without_a_picture_that_can_be_read_are_named(photos, networks, tmp_path):
    root = write_photos(tmp_path / "crawl", per_class=6)
    for path in (root / "bee").iterdir():
        path.write_bytes(b"<html>")
    start = Start(networks["resnet"])
    with pytest.warns(VSGraphWarning, match="1 of 3 classes have no image to learn from: bee"):
        made = train(
            read_crawl(root), tmp_path / "m", start=start, recipe=Recipe(epochs=1, batch_size=6)
        )
    assert made.n_unreadable == 6


def test_nothing_is_left_of_a_training_that_never_began(photos, tmp_path):
    crawl = read_crawl(photos)
    with pytest.raises(InputError, match="there is no network 'lite9'; did you mean lite"):
        train(crawl, tmp_path / "m", start=Start("lite9"))
    assert not (tmp_path / "m").exists()
    one = read_crawl(write_photos(tmp_path / "one", per_class=3, colors={"ant": (1, 2, 3)}))
    with pytest.raises(InputError, match="only one class, 'ant': nothing to tell apart"):
        train(one, tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_images_that_are_left_out_are_never_read(photos, networks, tmp_path):
    crawl = read_crawl(photos)
    broken = crawl.table["image"].to_pylist().index("bee/broken.jpg")
    scores = np.eye(3, dtype=np.float32)[crawl.web_labels]
    scores[broken] = 0
    soft = Labels(TopScores.of(scores, n_kept=2), several=False)
    made = train(crawl, tmp_path / "m", labels=soft, start=Start(networks["resnet"]),
                 recipe=Recipe(**SHORT))  # fmt: skip
    assert made.n_unreadable == 0
    assert soft.rows.tolist() == [i for i in range(len(crawl)) if i != broken]
    assert soft.counts().tolist() == [12, 12, 12]


@pytest.mark.slow
def test_several_labels_are_learned_each_by_itself(photos, networks, tmp_path, model_cache):
    crawl = read_crawl(photos)
    marks = np.eye(3, dtype=bool)[crawl.web_labels]
    marks[:, 2] |= marks[:, 0]  # every ant is a cat, too
    both = Labels(csr_array(marks), several=True)
    made = train(
        crawl, tmp_path / "m", labels=both, start=Start(networks["resnet"]),
        recipe=Recipe(**(SHORT | {"epochs": 8})), validation=crawl,
    )  # fmt: skip
    assert set(made.history[-1]) >= {"mAP", "C-F1", "O-F1"}
    probs = (
        image_encoder(made.path).encode(np.full((1, SIDE, SIDE, 3), (200, 60, 60), np.uint8)).probs
    )
    assert probs[0, [0, 2]].min() > 0.5 > probs[0, 1]
    assert Checkpoint.load(made.path).several
