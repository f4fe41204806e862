"""Pictures compared with descriptions, by a tiny CLIP: trained in seconds, or not at all."""

import warnings

import numpy as np
import pytest
from tiny_clip import save_tiny_clip

import vsgraph
from vsgraph.demo import drawings
from vsgraph.demo.made_up import DESCRIPTIONS, QUERIES, MadeUpCrawl, write_crawl
from vsgraph.encoders.text import text_part
from vsgraph.errors import InputError, VSGraphWarning
from vsgraph.method.zero_shot import ZeroShot


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """A crawl of 294 drawings; three of five labels are random, every other title is lost."""
    random, names = np.random.default_rng(0), tuple(DESCRIPTIONS)
    truth = np.arange(294) % len(names)
    web = np.where(random.random(len(truth)) < 0.6, random.integers(len(names), size=294), truth)
    pictures, titles = [], []
    for name in (names[number] for number in truth):
        artist, words = next((a, words) for _, a, words, shown in QUERIES[name][1] if shown == name)
        pictures.append(drawings.draw_picture(artist, random))
        said = random.choice(words.split(), 2, replace=False)
        titles.append(" ".join(said) if random.random() < 0.5 else "")
    made = MadeUpCrawl(np.stack(pictures), titles, web, truth, names, tuple(DESCRIPTIONS.values()))
    folder = tmp_path_factory.mktemp("crawl")
    write_crawl(made, folder)
    return folder


@pytest.fixture(scope="module")
def runs(crawl, tmp_path_factory, model_cache):
    """Runs by a CLIP that knows the drawings and by one that knows nothing, with and without it."""
    folder = tmp_path_factory.mktemp("runs")
    found = {}
    for kind, steps in (("right", 500), ("useless", 0)):
        clip = save_tiny_clip(folder / f"clip-{kind}", steps=steps)
        options = {"text_encoder": "lsa", "runtime": "torch", "meanings": crawl / "meanings.csv",
                   "with_report": False, "anchors_per_class": 5}  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VSGraphWarning)  # of labels that are hardly sure
            first = vsgraph.run(crawl, folder / kind, image_encoder=str(clip), **options)
            vectors = first.outputs["pictures"] / "vectors.npy"  # as vectors of unknown origin
            second = vsgraph.run(crawl, folder / f"{kind}-without", features=vectors, **options)
        found[kind] = first, second
    return found


def right(run, likeliest):
    """Return the share of images whose likeliest label is right."""
    truth, _ = run.read_truth()
    return truth.toarray()[np.arange(len(likeliest)), likeliest].mean()


@pytest.mark.slow
def test_an_encoder_with_a_text_part_is_a_further_witness(runs):
    run, without = runs["right"]
    assert run.record["stages"]["prompts"]["captions"] == 4 * 7
    alone = ZeroShot.of(run.features, run.outputs.prompt_embeddings())[:]
    assert right(run, alone.argmax(axis=1)) > 0.85
    assert run.correction.evidence_weights["zero shot"] > 0.3
    assert "zero shot" not in without.correction.evidence_weights
    both = [right(run, each.correction.final_probs.argmax()) for each in (run, without)]
    assert both[0] >= both[1] > 0.9


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::vsgraph.VSGraphWarning")
def test_new_images_are_compared_with_the_same_descriptions(runs, crawl):
    run, _ = runs["right"]
    found = vsgraph.label(run, [crawl / "images" / f"{row:04d}.jpg" for row in range(14)])
    truth, _ = run.read_truth()
    names = [run.crawl.class_names[row.argmax()] for row in truth.toarray()[:14]]
    likeliest = found.table["likeliest"].to_pylist()
    assert sum(a == b for a, b in zip(likeliest, names, strict=True)) >= 12


@pytest.mark.slow
def test_a_text_part_that_knows_nothing_gets_no_weight_and_hurts_nothing(runs):
    run, without = runs["useless"]
    alone = ZeroShot.of(run.features, run.outputs.prompt_embeddings())[:]
    assert right(run, alone.argmax(axis=1)) < 0.35
    assert run.correction.evidence_weights["zero shot"] < 0.1
    both = [right(run, each.correction.final_probs.argmax()) for each in (run, without)]
    assert both[0] >= both[1] - 0.01


def test_only_models_of_pictures_and_texts_have_a_text_part(tmp_path):
    assert text_part("lite0") is None
    assert text_part("timm:resnet18") is None
    assert text_part("model.onnx") is None
    clip = save_tiny_clip(tmp_path / "clip", steps=0)
    part = text_part(str(clip), runtime="torch")
    assert part.encode(["a bird", ""]).shape == (2, 24)
    (clip / "tokenizer.json").unlink()
    with pytest.warns(VSGraphWarning, match="a text part but no tokenizer"):
        assert text_part(str(clip)) is None
    (clip / "config.json").write_text('{"model_type": "vit"}')
    assert text_part(str(clip)) is None


def test_descriptions_in_the_space_of_pictures_fit_them(two_senses):
    with pytest.raises(InputError, match=r"prompt_embeddings must have shape \(4, 16\).*\(4, 12\)"):
        two_senses.correct(prompt_embeddings=two_senses.meaning)


def test_an_unreadable_picture_says_nothing():
    random = np.random.default_rng(0)
    features = random.normal(size=(50, 8)).astype(np.float32)
    features[3] = 0
    shares = ZeroShot.of(features, np.eye(8, dtype=np.float32)[:3])[:5]
    assert not shares[3].any()
    np.testing.assert_allclose(shares[[0, 1, 2, 4]].sum(axis=1), 1, atol=1e-5)
    assert not ZeroShot.of(np.zeros((4, 8), np.float32), np.eye(8, dtype=np.float32)[:3])[:].any()
