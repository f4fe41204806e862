"""Beyond the paper: what answers of people teach about images that nobody has looked at.

The doubt (:mod:`.doubt`) gives the log odds that an image shows a class. Answers move them::

    log odds  +=  terms . (shared + own[class])  +  looks . seen[class]

`shared` moves the weights of the doubt in all classes, `own` in one class (its first entry is how
often labels of the class are right), and `seen` is what its right and wrong images look like and
how they are spoken of. All have a Gaussian prior around zero, so that one answer changes little and
two hundred change a lot. It holds whether images are drawn at random or chosen: the odds that an
answer is compared with are those of the image itself.

After that each web label is looked at once more: what is thought by now of the other images with
that label, as far as they look alike and are spoken of alike. So answers also reach images that are
like those that are like the answered ones.

An answer says that an image shows a class, and not its web label if that is another. It does not
say that nothing else is in the picture. "None of the classes" speaks against all of them; the
likeliest ones are learned from.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from vsgraph.common.blocks import do_in_threads, row_blocks
from vsgraph.common.checks import Floats
from vsgraph.method.inputs import Inputs
from vsgraph.method.linear_fit import Doubles, fit_weights
from vsgraph.method.looks import Indices, Looks, left_out
from vsgraph.result.parts import NONE, UNANSWERED, Anchors
from vsgraph.result.scores import log_odds

SHARED = 0.15  # deviations of the prior: of the weights of all classes,
OWN, OWN_BIAS = 0.2, 0.7  # of one class,
SEEN, SPOKEN = 4.0, 3.0  # and of what its pictures and texts are like
TEMPER = 0.5  # how far an answer is believed to follow from the log odds
MOVED = 0.3  # what a class besides the web label counts: those it is wrong for are not known
N_AGAINST = 3  # classes that "none" speaks against, beside the web label
STEPS = 60
LEAST = 0.01  # what the others of a class can say at most: 1 to 99 %
N_FOLDS = 3  # of the answers, to see how sure to be of images that nobody has answered
CALM = 0.65  # factor of log odds once the others are heard: what adds up to them is related
SURER = 0.2  # deviation of the prior of a factor for the crawl that the answers themselves show
FACTORS = 0.2, 1.5
FEW = 1  # answers on a class after which half of what the others say counts

Judge = Callable[[slice], tuple[list[Floats], Floats]]


def exclude_from_anchors(match: csr_array, inputs: Inputs) -> csr_array:
    """Return the text match, NaN at labels that an answer contradicts: they are no anchors.

    An image of none of the classes may still be an anchor of a sense that is not meant.
    """
    answers = inputs.answers
    if answers is None:
        return match
    pairs = match.tocoo()
    said = answers[pairs.row]
    unwanted = (said == NONE) & (pairs.col >= inputs.n_wanted)
    against = (said != UNANSWERED) & (said != pairs.col) & ~unwanted
    allowed = np.where(against, np.nan, match.data)
    return csr_array((allowed, match.indices, match.indptr), match.shape)


def pin_anchors(anchors: Anchors, answers: NDArray[np.intp] | None) -> Anchors:
    """Return the anchors, and beside them the images that show a class by an answer."""
    if answers is None:
        return anchors
    rows = np.setdiff1d(np.flatnonzero(answers >= 0), anchors.rows)
    every = np.concatenate([anchors.rows, rows]), np.concatenate([anchors.classes, answers[rows]])
    match = np.concatenate([anchors.match, np.ones(len(rows), anchors.match.dtype)])
    order = np.argsort(every[1], kind="stable")
    return Anchors(every[0][order], every[1][order], match[order])


@dataclasses.dataclass(frozen=True)
class Change:
    """How answers change the log odds of images and classes."""

    terms: Floats  # (n_classes, n_terms)
    looks: Floats  # (n_classes, n_looks)

    def of_all(self, terms: list[Floats], looks: Floats) -> Floats:
        """Return the change for a block of images and all classes, (n_rows, n_classes)."""
        total = looks @ self.looks.T
        for weights, term in zip(self.terms.T, terms, strict=True):
            total = total + weights * term
        return total

    def of_pairs(self, terms: Floats, looks: Floats, classes: Indices) -> Floats:
        """Return the change for pairs of an image and a class, (n_pairs,)."""
        return np.einsum("ij,ij->i", looks, self.looks[classes]) + np.einsum(
            "ij,ij->i", terms, self.terms[classes]
        )


@dataclasses.dataclass(frozen=True)
class Lesson:
    """What was learned from all answers."""

    inputs: Inputs
    looks: Looks
    change: Change
    others: Floats  # (n_images,), log odds of the web label by what is thought of the others
    known: Floats  # (n_classes,), from 0, nobody has answered on the class, to 1
    factor: float  # of log odds, below one if they are too sure

    def teach(self, rows: slice, terms: list[Floats], believed: Floats) -> Floats:
        """Return the probability that each image of a block shows each class."""
        odds = log_odds(believed) + self.change.of_all(terms, self.looks[rows])
        own = np.arange(len(odds)), self.inputs.web_labels[rows]
        odds[own] += self.known[own[1]] * self.others[rows]
        return expit(self.factor * _calm(self.known) * odds).astype(np.float32)

    def for_others(self, inputs: Inputs) -> "Lesson":
        """Return what was learned for other images, whose web labels others say nothing of."""
        looks = self.looks.of_others((inputs.features, inputs.text_embeddings))
        others = np.zeros(len(inputs.features))
        return dataclasses.replace(self, inputs=inputs, looks=looks, others=others)


@dataclasses.dataclass(frozen=True)
class _Reading:
    """What is known before the answers: of all web labels, and of the pairs that answers judge."""

    terms: Floats  # (n_images, n_terms), of the web labels
    odds: Floats  # (n_images,)
    rows: Indices  # (n_pairs,)
    classes: Indices
    right: NDArray[np.bool_]
    is_web: NDArray[np.bool_]  # whether the class is the web label
    pair_terms: Floats  # (n_pairs, n_terms)
    pair_odds: Floats

    def some(self, pairs: NDArray[np.bool_]) -> "_Reading":
        """Return the same with some of the pairs only."""
        names = ("rows", "classes", "right", "is_web", "pair_terms", "pair_odds")
        return dataclasses.replace(self, **{name: getattr(self, name)[pairs] for name in names})


def learn_lesson(inputs: Inputs, judge: Judge, blocks: Iterable[slice]) -> Lesson:
    """Learn from the answers; ``judge(rows)`` returns terms and probabilities without them."""
    looks = Looks.of((inputs.features, inputs.text_embeddings), (SEEN, SPOKEN))
    reading = _read(inputs, judge, list(blocks))
    change = _fit(reading, looks, len(inputs.class_names))
    thought = _think(inputs, reading, looks, change)
    counts = np.bincount(reading.classes, minlength=len(inputs.class_names))
    others = _hear_others(inputs, looks, thought)
    known = counts / (counts + FEW)
    factor = _how_sure(inputs, reading, looks, known, others)
    return Lesson(inputs, looks, change, others, known, factor)


def _read(inputs: Inputs, judge: Judge, blocks: list[slice]) -> _Reading:
    """Collect the terms and log odds of the web labels, and of the pairs that answers judge."""
    parts: list[Any] = [None] * len(blocks)

    def read(number: int) -> None:
        block = blocks[number]
        terms, believed = judge(block)
        odds, web = log_odds(believed), inputs.web_labels[block]
        rows, classes, right = _pairs(inputs, block, odds)

        def at(rows: Indices, classes: Indices) -> Floats:
            every = [np.broadcast_to(term, odds.shape)[rows, classes] for term in terms]
            return np.stack(every, axis=1).astype(np.float32)

        every = np.arange(len(odds))
        parts[number] = (
            at(every, web), odds[every, web], rows + block.start, classes, right,
            classes == web[rows], at(rows, classes), odds[rows, classes],
        )  # fmt: skip

    do_in_threads(read, range(len(blocks)), title="answers", progress=False)
    return _Reading(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _pairs(
    inputs: Inputs, block: slice, odds: Floats
) -> tuple[Indices, Indices, NDArray[np.bool_]]:
    """Return rows of a block, classes, and whether the rows show them by an answer."""
    answers, web = np.asarray(inputs.answers)[block], inputs.web_labels[block]
    given = np.flatnonzero(answers != UNANSWERED)
    moved = given[(answers[given] >= 0) & (answers[given] != web[given])]
    none = given[answers[given] == NONE]
    likeliest = odds[none, : inputs.n_wanted].copy()
    likeliest[np.arange(len(none)), web[none]] = -np.inf
    n_against = min(N_AGAINST, inputs.n_wanted - 1)
    against = np.argsort(-likeliest, axis=1, kind="stable")[:, :n_against]
    return (
        np.concatenate([given, moved, np.repeat(none, n_against)]),
        np.concatenate([web[given], answers[moved], against.ravel()]),
        np.concatenate([answers[given] == web[given], np.ones(len(moved), bool),
                        np.zeros(against.size, bool)]),
    )  # fmt: skip


def _fit(reading: _Reading, looks: Looks, n_classes: int) -> Change:
    """Find the likeliest change under the prior, by L-BFGS, from pairs of images and classes."""
    rows, place = np.unique(reading.rows, return_inverse=True)
    n_terms = reading.pair_terms.shape[1]
    own = np.full(n_terms, OWN, np.float32)
    own[0] = OWN_BIAS
    scale = np.concatenate([own, looks.deviations]).astype(np.float32)
    inputs = np.hstack([reading.pair_terms, looks[rows][place]]) * scale
    shared = SHARED * reading.pair_terms
    of_class = csr_array(
        (np.ones(len(place)), (reading.classes, np.arange(len(place)))), (n_classes, len(place))
    )
    counts = np.where(reading.right & ~reading.is_web, MOVED, 1)

    def loss(flat: Doubles) -> tuple[float, Doubles]:
        table, common = flat[n_terms:].reshape(n_classes, -1), flat[:n_terms]
        moved = np.einsum("ij,ij->i", inputs, table[reading.classes]) + shared @ common
        odds = TEMPER * (reading.pair_odds + moved)
        value = counts @ (np.logaddexp(0, odds) - reading.right * odds) + flat @ flat / 2
        slope = TEMPER * counts * (expit(odds) - reading.right)
        each = of_class @ (slope[:, None] * inputs)
        return float(value), np.concatenate([slope @ shared, each.ravel()]) + flat

    fitted = fit_weights(
        loss, np.zeros(n_terms + n_classes * len(scale)), max_steps=STEPS, ftol=1e-6
    )
    table = fitted[n_terms:].reshape(n_classes, -1) * scale
    terms = table[:, :n_terms] + SHARED * fitted[:n_terms]
    return Change(terms.astype(np.float32), table[:, n_terms:].astype(np.float32))


def _calm(known: Floats) -> Floats:
    """Return the factor of log odds of classes that are `known` from 0 to 1."""
    return 1 - (1 - CALM) * known


def _how_sure(
    inputs: Inputs, reading: _Reading, looks: Looks, known: Floats, others: Floats
) -> float:
    """Return the factor of log odds under which answers are likeliest that were not learned from.

    `known` is of each class, (n_classes,), `others` of each image, (n_images,).
    """
    fold = np.unique(reading.rows, return_inverse=True)[1] % N_FOLDS
    odds, right = [], []
    for part in range(N_FOLDS):
        out, rest = reading.is_web & (fold == part), fold != part
        if out.any() and rest.any():
            change = _fit(reading.some(rest), looks, len(inputs.class_names))
            kept = reading.some(out)
            moved = change.of_pairs(kept.pair_terms, looks[kept.rows], kept.classes)
            heard = known[kept.classes]
            total = kept.pair_odds + moved + heard * others[kept.rows]
            odds.append(_calm(heard) * total)
            right.append(kept.right)
    if not odds:
        return 1.0
    all_odds, all_right = np.concatenate(odds), np.concatenate(right)

    def loss(factor: Doubles) -> tuple[float, Doubles]:
        scaled, off = factor * all_odds, (factor[0] - 1) / SURER**2
        value = (np.logaddexp(0, scaled) - all_right * scaled).sum() + off * (factor[0] - 1) / 2
        return float(value), np.array([(expit(scaled) - all_right) @ all_odds + off])

    return float(np.clip(fit_weights(loss, np.ones(1), max_steps=STEPS)[0], *FACTORS))


def _think(inputs: Inputs, reading: _Reading, looks: Looks, change: Change) -> Floats:
    """Return how probable each web label is after the answers, (n_images,); answered: 0 or 1."""
    web, answers = inputs.web_labels, np.asarray(inputs.answers)
    moved = np.empty(len(web))
    for rows in row_blocks(len(web), row_bytes=8 * change.looks.shape[1]):
        moved[rows] = change.of_pairs(reading.terms[rows], looks[rows], web[rows])
    right = (answers == web).astype(float)
    return np.where(answers == UNANSWERED, expit(reading.odds + moved), right)


def _hear_others(inputs: Inputs, looks: Looks, thought: Floats) -> Floats:
    """Return the log odds of each web label by what is thought of the others with that label."""
    said = np.zeros(len(thought))
    members = np.argsort(inputs.web_labels, kind="stable")
    ends = np.cumsum(np.bincount(inputs.web_labels, minlength=inputs.n_wanted))

    def hear(number: int) -> None:
        rows = members[ends[number - 1] if number else 0 : ends[number]]
        if len(rows) > 1:
            told = left_out(looks, rows, thought[rows])
            said[rows] = log_odds(np.clip(told, LEAST, 1 - LEAST))

    do_in_threads(hear, range(inputs.n_wanted), title="answers", progress=False)
    return said
