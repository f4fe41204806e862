"""Learn the weights of `vsgraph.method.doubt` from COCO-Web, and judge them on other crawls.

The weights are learned from crawls that are made of one set of photos: all of it, halves of its
classes, one without wrong labels, one in which half of the labels are wrong; each with captions as
they are and with web-like text. The truth serves here only; a correction never sees it.

    python experiments/doubt_weights.py ../shared/data/coco-web --judge ../shared/data/coco-web-b
"""

import argparse
import dataclasses
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from coco_web_data import CocoWeb, read_coco_web, web_like
from encode import cached, describe, photo_features, text_vectors
from ranked import ranked_by_confidence
from vsgraph import Settings, linear_probe
from vsgraph.common.checks import filled_rows, unit_rows
from vsgraph.meanings.crawl_words import Lexicon
from vsgraph.meanings.mentions import find_mentions
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.wordnet import WordNet
from vsgraph.method.algorithm import Solver
from vsgraph.method.calibration import SURELY_WRONG
from vsgraph.method.doubt import EDGES, HARDLY, N_WITHOUT_WORDS, TERMS, Doubt, at_most
from vsgraph.method.inputs import Inputs, Words, check_inputs
from vsgraph.result.scores import log_odds

PENALTY_OF_PICTURES = 2e-3
PENALTY = 5e-4  # the likeliest for the other half of the classes, if it is learned from one
TINY, HALF = 1e-9, 0.5
CANDIDATES = 3  # classes per photo that are learned from: the web label and the likeliest


@dataclasses.dataclass(frozen=True)
class Form:
    """A crawl made of some photos and classes of a data set."""

    name: str
    web_like: bool
    classes: NDArray[np.intp]
    rows: NDArray[np.intp]
    counts: float  # among the forms that are learned from


def forms(data: CocoWeb) -> list[Form]:
    """Return the crawls to learn from; those like most crawls count the most."""
    random = np.random.default_rng(11)
    order = random.permutation(len(data.class_names))
    every = np.arange(len(order))
    first, second = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    clean = data.clean
    wrong = float((~clean).mean())
    half_wrong = ~clean | (random.random(len(clean)) < wrong / (1 - wrong))
    all_rows = np.ones(len(clean), bool)
    chosen = {
        "all": (every, all_rows, 4),
        "first half": (first, all_rows, 1),
        "second half": (second, all_rows, 1),
        "half of the labels wrong": (every, half_wrong, 1),
        "no wrong labels": (every, clean, 1),
    }
    return [
        Form(
            f"{name}{', web-like' * web}", web, classes,
            np.flatnonzero(keep & np.isin(data.web_labels, classes)), counts / (1 + web),
        )
        for web in (False, True)
        for name, (classes, keep, counts) in chosen.items()
    ]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Judged:
    """The terms of every pair of a photo and a class, and whether the photo shows it."""

    name: str
    heard: NDArray[np.float32]  # (n_photos, n_classes, n_terms), own texts are heard
    bare: NDArray[np.float32]  # the same, own texts are not heard
    own: NDArray[np.float32]  # (n_photos,), how far texts are the photos' own
    shown: NDArray[np.bool_]
    web_labels: NDArray[np.intp]
    evidence: NDArray[np.floating]
    counts: float

    @property
    def candidates(self) -> NDArray[np.bool_]:
        """The pairs that matter: the web label and the likeliest classes."""
        chosen = np.zeros(self.shown.shape, bool)
        best = np.argsort(-self.evidence, axis=1)[:, : CANDIDATES - 1]
        np.put_along_axis(chosen, best, values=True, axis=1)
        chosen[np.arange(len(chosen)), self.web_labels] = True
        return chosen


def prepare(data: CocoWeb, form: Form, *, with_words: bool) -> Inputs:
    """Return the arrays of a crawl."""
    number = {c: i for i, c in enumerate(form.classes)}
    web_labels = np.array([number[c] for c in data.web_labels[form.rows]])
    texts = np.array(data.texts, object)[form.rows]
    vectors = text_vectors(list(data.texts))[form.rows].copy()
    if form.web_like:
        vectors, texts = web_like(vectors, seed=0), web_like(texts, seed=0)
        texts[texts == 0] = ""
    names = [data.class_names[c] for c in form.classes]
    wnids = [data.wnids[c] for c in form.classes]
    features = photo_features(data.images)[form.rows]
    meanings = text_vectors(describe(wnids))
    words = words_of(names, wnids, texts) if with_words else None
    key = ["2", str(data.images[0].parent), *map(str, form.rows), *names]
    probe = cached("doubt-probe", key, lambda: _probe(features, web_labels, len(names)))
    return check_inputs(features, vectors, meanings, web_labels, probe, words=words)


def judge(data: CocoWeb, form: Form, *, with_words: bool = True) -> Judged:
    """Correct a crawl and return its terms."""
    inputs = prepare(data, form, with_words=with_words)
    solver = Solver(inputs, settings=Settings(kept_scores=len(form.classes)))
    weigher, doubt, network = (solver.result(name) for name in ("evidence", "doubt", "network"))
    terms = _terms(doubt, weigher, network.network, solver.inputs.cnn_probs)
    shown = data.truth[np.ix_(form.rows, form.classes)]
    return Judged(form.name, *terms[:3], shown, inputs.web_labels, terms[3], form.counts)


def judge_pictures(data: CocoWeb, form: Form) -> Judged:
    """Correct a crawl whose texts are all missing, and return its terms: bias, graph, web label."""
    number = {c: i for i, c in enumerate(form.classes)}
    web_labels = np.array([number[c] for c in data.web_labels[form.rows]])
    features = photo_features(data.images)[form.rows]
    nothing = np.zeros((len(features), 2), np.float32)
    inputs = check_inputs(features, nothing, np.ones((len(number), 2), np.float32), web_labels)
    network = Solver(inputs).result("network").network
    graph = np.concatenate([network[rows] for rows in network.blocks()])
    terms = [np.ones_like(graph), np.clip(log_odds(graph), -7, 7), inputs.labels.toarray()]
    shown, every = data.truth[np.ix_(form.rows, form.classes)], np.stack(terms, axis=-1)
    own = np.ones(len(graph), np.float32)
    return Judged(form.name, every, every, own, shown, web_labels, graph, form.counts)


def _probe(features: Any, web_labels: Any, n_classes: int) -> NDArray[np.float32]:  # noqa: ANN401
    scores = linear_probe(features, web_labels, n_classes=n_classes, n_kept=n_classes)
    return np.asarray(scores)


def words_of(names: list[str], wnids: list[str], texts: NDArray[Any]) -> Words:
    """Return which texts mention the classes; no sense is unwanted."""
    lexicon = Lexicon(WordNet.open())
    meanings = [Meaning(name, wnid, "") for name, wnid in zip(names, wnids, strict=True)]
    found = find_mentions(
        texts, [*map(lexicon.names_of, meanings), *map(lexicon.words_for, meanings)], lexicon
    )
    vectors = text_vectors(names)
    nothing = np.empty((0, vectors.shape[1]), np.float32)
    return Words(
        vectors, found[:, : len(names)], found[:, len(names) :], nothing, np.empty(0, np.intp), ()
    )


def _terms(doubt: Doubt, weigher: Any, network: Any, cnn: Any) -> list[Any]:  # noqa: ANN401
    """Return the terms of all pairs with and without own texts, whose texts are, the evidence."""
    parts = []
    for rows in network.blocks():
        graph = network[rows]
        weighed = weigher.weigh(rows, [graph, np.asarray(cnn[rows])])
        both = [
            np.stack([np.broadcast_to(term, graph.shape) for term in terms], axis=-1)
            for terms in doubt.both(rows, graph, weighed)
        ]
        parts.append((*(terms.astype(np.float32) for terms in both), weighed.own, weighed.probs))
    return [np.concatenate(part) for part in zip(*parts, strict=True)]


def near_shares(data: CocoWeb, form: Form, *, heard: bool) -> NDArray[np.floating]:
    """Return how the nearness of texts is distributed over right labels, for `RIGHT_SHARES`."""
    inputs = prepare(data, form, with_words=True)
    doubt = Solver(inputs).result("doubt")
    every, labels = slice(0, len(form.rows)), inputs.web_labels
    text = unit_rows(inputs.text_embeddings)
    bins = doubt.distance.bins_of(text, unit_rows(doubt.distance.around[every]), labels)
    counted = data.clean[form.rows] & (filled_rows(text) == heard)
    counts = np.bincount(bins[0 if heard else 1][counted], minlength=len(EDGES) + 1)
    return counts / counts.sum()


def learn(crawls: list[Judged], penalty: float = PENALTY) -> NDArray[np.floating]:
    """Return the weights, (2, n_terms), under which the truth of all crawls is likeliest."""
    samples = [_sample(crawl) for crawl in crawls]
    total_count = sum(crawl.counts for crawl in crawls)
    n_terms = samples[0][0].shape[1]

    def loss(flat: NDArray[np.floating]) -> tuple[float, NDArray[np.floating]]:
        weights, free = flat.reshape(2, -1), flat.copy()
        free[[0, n_terms]] = 0
        total, slope = penalty * (free**2).sum(), 2 * penalty * free
        for (heard, bare, own, shown), crawl in zip(samples, crawls, strict=True):
            by_text, without = expit(heard @ weights[0]), expit(bare @ weights[1])
            probs = np.clip(own * by_text + (1 - own) * without, TINY, 1 - TINY)
            share = crawl.counts / total_count / len(shown)
            total -= share * np.log(np.where(shown, probs, 1 - probs)).sum()
            up = -share * np.where(shown, 1 / probs, -1 / (1 - probs))
            slope[:n_terms] += (up * own * by_text * (1 - by_text)) @ heard
            slope[n_terms:] += (up * (1 - own) * without * (1 - without)) @ bare
        return total, slope

    found = minimize(loss, np.zeros(2 * n_terms), jac=True, method="L-BFGS-B")
    return found.x.reshape(2, n_terms)


def _sample(crawl: Judged) -> tuple[Any, Any, Any, Any]:
    """Return the terms of the pairs that are learned from, whose their texts are, the truth."""
    chosen = crawl.candidates
    own = crawl.own[np.nonzero(chosen)[0]].astype(np.float64)
    heard, bare = (terms[chosen].astype(np.float64) for terms in (crawl.heard, crawl.bare))
    return heard, bare, own, crawl.shown[chosen]


def believe(crawl: Judged, weights: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the probability that each photo shows each class, as `Doubt.believe` has it."""
    heard, bare = (
        at_most(expit(terms @ own_weights), np.moveaxis(terms, -1, 0), hardly)
        for terms, own_weights, hardly in zip(
            (crawl.heard, crawl.bare), weights, HARDLY, strict=True
        )
    )
    own = crawl.own[:, None]
    return own * heard + (1 - own) * bare


def usual(crawl: Judged, weights: NDArray[np.floating]) -> float:
    """Return the log odds of the estimated share of right web labels, for `calibration.USUAL`."""
    rows = np.arange(len(crawl.web_labels))
    belief = believe(crawl, weights)[rows, crawl.web_labels]
    return float(log_odds(belief[belief > SURELY_WRONG].mean(keepdims=True))[0])


def best_shift(crawl: Judged, weights: NDArray[np.floating]) -> float:
    """Return what must be added to all log odds so that labels likelier right than not are so."""
    shifts = np.linspace(-3, 3, 121)
    misses = []
    for shift in shifts:
        moved = weights.copy()
        moved[:, 0] += shift
        probs = believe(crawl, moved)
        sure = probs.max(axis=1) > HALF
        right = crawl.shown[np.arange(len(probs)), probs.argmax(axis=1)]
        misses.append(abs(probs.max(axis=1)[sure].mean() - right[sure].mean()))
    return float(shifts[np.argmin(misses)])


def main() -> None:
    """Learn, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--judge", type=Path, help="another data set, for judging only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data = read_coco_web(options.data)
    others = [read_coco_web(options.judge)] if options.judge else []
    whole = [form for form in forms(data) if form.name.startswith("all")]
    for form in whole:
        print("nearness of right labels", near_shares(data, form, heard=not form.web_like).round(3))
    silent = [judge_pictures(data, form) for form in forms(data) if not form.web_like]
    print("without text: bias, graph, web label", learn(silent, PENALTY_OF_PICTURES)[0].round(2))
    for with_words in (True, False):
        made = [judge(data, form, with_words=with_words) for form in forms(data)]
        weights = learn(made)
        print(f"{'with' if with_words else 'without'} words: own text heard, no text")
        names = TERMS if with_words else TERMS[:N_WITHOUT_WORDS]
        for name, *pair in zip(names, *weights, strict=True):
            print(f"    {name:20s} {pair[0]:6.2f} {pair[1]:6.2f}")
        for row in weights:
            print("    [" + ", ".join(f"{weight:.2f}" for weight in row) + "],")
        for crawl in made:
            share, shift = usual(crawl, weights), best_shift(crawl, weights)
            print(f"    {crawl.name}: log odds of the share {share:.2f}, best shift {shift:.2f}")
        crawls = [(options.data, crawl) for crawl in made]
        for other in others:
            found = [judge(other, form, with_words=with_words) for form in forms(other)]
            crawls += [(options.judge, crawl) for crawl in found]
        for place, crawl in crawls:
            told = ranked_by_confidence(believe(crawl, weights), crawl.shown, crawl.web_labels)
            print(f"{place.name}, {crawl.name}: {told}", flush=True)


if __name__ == "__main__":
    main()
