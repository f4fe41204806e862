"""Learn the weights of `vsgraph.method.doubt` from COCO-Web, and judge them on other crawls.

The weights are learned from crawls that are made of one set of photos: all of it, halves of its
classes, one without wrong labels, one in which most of the right ones are missing; with captions as
they are, and with web-like text. The truth serves here only; a correction never sees it.

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

from coco_web_data import CocoWeb, read_coco_web
from encode import cached, describe, photo_features, text_vectors
from ranked import ranked_by_confidence
from vsgraph import Settings, linear_probe
from vsgraph.meanings.crawl_words import Lexicon
from vsgraph.meanings.mentions import find_mentions
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.wordnet import WordNet
from vsgraph.method.algorithm import Solver
from vsgraph.method.doubt import HARDLY, N_WITHOUT_WORDS, TERMS, Doubt
from vsgraph.method.inputs import Words, check_inputs
from vsgraph.result.scores import log_odds

PENALTY_OF_PICTURES = 2e-3
PENALTY = 5e-4  # the likeliest for the other half of the classes, if it is learned from one
CANDIDATES = 3  # classes per photo that are learned from: the web label and the likeliest


@dataclasses.dataclass(frozen=True)
class Form:
    """A crawl made of some photos and classes of a data set."""

    name: str
    web_like: bool
    classes: NDArray[np.intp]
    rows: NDArray[np.intp]


def forms(data: CocoWeb) -> list[Form]:
    """Return the crawls to learn from."""
    random = np.random.default_rng(7)
    order = random.permutation(len(data.class_names))
    every = np.arange(len(order))
    first, second = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    clean = data.clean
    heavy = ~clean | (random.random(len(clean)) < 0.35)

    def form(name: str, classes: NDArray[np.intp], keep: NDArray[np.bool_], web: bool) -> Form:  # noqa: FBT001
        rows = np.flatnonzero(keep & np.isin(data.web_labels, classes))
        return Form(name, web, classes, rows)

    all_rows = np.ones(len(clean), bool)
    return [
        form("all", every, all_rows, web=False),
        form("first half", first, all_rows, web=False),
        form("no wrong labels", second, clean, web=False),
        form("most right labels missing", every, heavy, web=False),
        form("all, web-like", every, all_rows, web=True),
        form("second half, web-like", second, all_rows, web=True),
        form("most right labels missing, web-like", first, heavy, web=True),
    ]


@dataclasses.dataclass(frozen=True)
class Judged:
    """The terms of every pair of a photo and a class, and whether the photo shows it."""

    name: str
    terms: NDArray[np.float32]  # (n_photos, n_classes, n_terms)
    shown: NDArray[np.bool_]
    web_labels: NDArray[np.intp]
    evidence: NDArray[np.floating]
    trust: float

    @property
    def candidates(self) -> NDArray[np.bool_]:
        """The pairs that matter: the web label and the likeliest classes."""
        chosen = np.zeros(self.shown.shape, bool)
        best = np.argsort(-self.evidence, axis=1)[:, : CANDIDATES - 1]
        np.put_along_axis(chosen, best, values=True, axis=1)
        chosen[np.arange(len(chosen)), self.web_labels] = True
        return chosen


def judge(data: CocoWeb, form: Form, *, with_words: bool = True) -> Judged:
    """Correct a crawl and return its terms."""
    number = {c: i for i, c in enumerate(form.classes)}
    web_labels = np.array([number[c] for c in data.web_labels[form.rows]])
    texts = np.array(data.texts, object)[form.rows]
    vectors = text_vectors(list(data.texts))[form.rows].copy()
    if form.web_like:
        order = np.random.default_rng(0).permutation(len(texts))
        cuts = [int(0.4 * len(texts)), int(0.6 * len(texts))]
        missing, swapped, _ = np.split(order, cuts)
        source = np.arange(len(texts))
        source[swapped] = np.roll(swapped, 1)
        texts, vectors = texts[source], vectors[source]
        texts[missing], vectors[missing] = "", 0
    names = [data.class_names[c] for c in form.classes]
    wnids = [data.wnids[c] for c in form.classes]
    features = photo_features(data.images)[form.rows]
    meanings = text_vectors(describe(wnids))
    words = words_of(names, wnids, texts) if with_words else None
    key = ["1", form.name, str(data.images[0].parent), *map(str, form.rows[:50])]
    probe = cached("doubt-probe", key, lambda: _probe(features, web_labels, len(names)))
    inputs = check_inputs(features, vectors, meanings, web_labels, probe, words=words)
    solver = Solver(inputs, settings=Settings(kept_scores=len(names)))
    weigher, doubt, network = (solver.result(name) for name in ("evidence", "doubt", "network"))
    terms, evidence = _terms(doubt, weigher, network.network, solver.inputs.cnn_probs)
    shown = data.truth[np.ix_(form.rows, form.classes)]
    return Judged(form.name, terms, shown, web_labels, evidence, weigher.model.trust)


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
    shown = data.truth[np.ix_(form.rows, form.classes)]
    return Judged(form.name, np.stack(terms, axis=-1), shown, web_labels, graph, 0.0)


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


def _terms(doubt: Doubt, weigher: Any, network: Any, cnn: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Return the terms of all pairs, and the evidence."""
    parts, evidence = [], []
    for rows in network.blocks():
        graph = network[rows]
        final, _ = weigher.weigh(rows, [graph, np.asarray(cnn[rows])])
        terms = [np.broadcast_to(term, graph.shape) for term in doubt.terms(rows, graph, final)]
        parts.append(np.stack(terms, axis=-1).astype(np.float32))
        evidence.append(final)
    return np.concatenate(parts), np.concatenate(evidence)


def learn(crawls: list[Judged], penalty: float = PENALTY) -> NDArray[np.floating]:
    """Return the weights under which the truth of all crawls is likeliest; each counts the same."""
    samples = [(c.terms[c.candidates].astype(np.float64), c.shown[c.candidates]) for c in crawls]

    def loss(weights: NDArray[np.floating]) -> tuple[float, NDArray[np.floating]]:
        free = weights.copy()
        free[0] = 0
        total, slope = penalty * (free**2).sum(), 2 * penalty * free
        for terms, shown in samples:
            odds = terms @ weights
            total += (np.logaddexp(0, odds) - shown * odds).mean() / len(samples)
            slope += (expit(odds) - shown) @ terms / len(shown) / len(samples)
        return total, slope

    return minimize(loss, np.zeros(samples[0][0].shape[1]), jac=True, method="L-BFGS-B").x


def usual(crawl: Judged, weights: NDArray[np.floating]) -> float:
    """Return the log odds of the estimated share of right web labels, for `calibration.USUAL`."""
    terms = crawl.terms[np.arange(len(crawl.web_labels)), crawl.web_labels]
    probs, right = expit(terms @ weights), np.exp(terms[:, TERMS.index("distance")])
    believed = np.where(right < HARDLY, np.minimum(probs, right), probs)
    return float(log_odds(believed.mean(keepdims=True))[0])


def main() -> None:
    """Learn, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--judge", type=Path, help="another data set, for judging only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    data = read_coco_web(options.data)
    other = read_coco_web(options.judge) if options.judge else None
    silent = [judge_pictures(data, form) for form in forms(data) if not form.web_like]
    print("without text: bias, graph, web label", learn(silent, PENALTY_OF_PICTURES).round(2))
    for with_words in (True, False):
        made = [(form, judge(data, form, with_words=with_words)) for form in forms(data)]
        sets = {
            web: learn([c for form, c in made if form.web_like == web]) for web in (False, True)
        }
        print(f"{'with' if with_words else 'without'} words:")
        names = TERMS if with_words else TERMS[:N_WITHOUT_WORDS]
        for name, *pair in zip(names, *sets.values(), strict=True):
            print(f"    {name:20s} {pair[0]:6.2f} {pair[1]:6.2f}")
        for weights in sets.values():
            print("    [" + ", ".join(f"{weight:.2f}" for weight in weights) + "],")
        whole = [crawl for form, crawl in made if form.name in {"all", "all, web-like"}]
        print(
            "    usual log odds",
            *(f"{usual(*pair):.2f}" for pair in zip(whole, sets.values(), strict=True)),
        )
        if other is not None:
            made += [(form, judge(other, form, with_words=with_words)) for form in forms(other)]
        for number, (form, crawl) in enumerate(made):
            probs = expit(crawl.terms @ sets[form.web_like])
            place = options.data if number < len(forms(data)) else options.judge
            print(
                f"{place.name}, {form.name}: trust {crawl.trust:.2f}, "
                + ranked_by_confidence(probs, crawl.shown, crawl.web_labels),
                flush=True,
            )


if __name__ == "__main__":
    main()
