"""What copies are worth as evidence: a crawl of COCO-Web to which copies of photos are added.

    python experiments/copied_labels.py RUN COPIES

RUN is a run of COCO-Web with its truth. Some photos get copies with the same vector; a copy keeps
the label or has one at random, and has the text of the photo, that of a photo of its own label, or
none. One photo stands under every label, as "image not available" would.
"""

import sys

import numpy as np
from scipy.sparse import csr_array

import vsgraph
from vsgraph.method.inputs import Words
from vsgraph.method.probe import linear_probe
from vsgraph.runs import Run


def with_copies(run: Run, n_copies: int, seed: int = 0) -> tuple[dict, np.ndarray]:
    """Return the arrays with copies, and the photo that each row shows."""
    random = np.random.default_rng(seed)
    arrays, n_classes = run.arrays(), len(run.crawl.class_names)
    arrays.pop("copies")
    labels = arrays["web_labels"]
    chosen = random.permutation(len(labels) - 1)[:n_copies] + 1
    wrong = random.random(n_copies) < 0.5
    label = np.where(wrong, random.integers(n_classes, size=n_copies), labels[chosen])
    peers = np.array([random.choice(np.flatnonzero(labels == c)) for c in label])
    kind = random.integers(3, size=n_copies)  # own text, one of its label, none
    text = np.where(kind == 0, chosen, peers)
    shown = np.r_[: len(labels), chosen, np.zeros(n_classes, int)]
    spoken = np.r_[: len(labels), text, np.zeros(n_classes, int)]
    texts = np.asarray(arrays["text_embeddings"])[spoken].astype(np.float32)
    silent = np.zeros(len(shown), bool)
    silent[len(labels) : len(labels) + n_copies] = kind == 2
    silent[len(labels) + n_copies :] = True
    texts[silent] = 0
    words = arrays["words"]
    speaks = csr_array((~silent).astype(float)[:, None])
    taken = {n: csr_array(getattr(words, n)[spoken].multiply(speaks)).astype(bool)
             for n in ("names", "words")}  # fmt: skip
    web = np.r_[labels, label, np.arange(n_classes)].astype(np.intp)
    features = np.asarray(arrays["features"])[shown]
    arrays |= {
        "features": features, "text_embeddings": texts, "web_labels": web, "answers": None,
        "words": Words(words.name_embeddings, taken["names"], taken["words"],
                       words.unwanted_embeddings, words.unwanted_of, words.unwanted_names),
        "cnn_probs": linear_probe(features, web, n_classes=n_classes),
        "graph": None, "sources": None,
    }  # fmt: skip
    return arrays, shown.astype(np.intp)


def main(path: str, n_copies: str) -> None:
    """Print right labels and coverage, without and with the sharing of scores."""
    run = Run.open(path)
    arrays, shown = with_copies(run, int(n_copies))
    web = arrays["web_labels"]
    truth = run.crawl.truth.toarray()[shown]
    copied = (np.bincount(shown)[shown] > 1) & (shown != 0)
    same = np.ones(len(run.crawl), bool)
    np.logical_and.at(same, shown, web == web[shown])
    kinds = {"labels differ": copied & ~same[shown], "labels agree": copied & same[shown],
             "under all labels": shown == 0, "no copies": ~copied & (shown != 0)}  # fmt: skip
    for how, copies in (("alone", None), ("shared", shown)):
        done = vsgraph.correct(**arrays, class_names=run.crawl.class_names, copies=copies)
        likeliest = truth[np.arange(len(web)), done.final_probs.argmax()]
        belief, left = done.final_probs.max(), done.final_labels >= 0
        right = truth[np.arange(len(web)), np.maximum(done.final_labels, 0)]
        for name, rows in kinds.items():
            print(
                f"{how:7s} {name:17s} {rows.sum():6d} right {likeliest[rows].mean():.4f}, "
                f"at 95 % right {coverage(belief[rows], likeliest[rows]):.3f}; exported "
                f"{left[rows].mean():.3f}, of them right {right[rows & left].mean():.4f}"
            )


def coverage(belief: np.ndarray, right: np.ndarray, share: float = 0.95) -> float:
    """Return how many of the surest labels can be had so that a share of them is right."""
    hits = np.cumsum(right[np.argsort(-belief, kind="stable")])
    enough = np.flatnonzero(hits / np.arange(1, len(hits) + 1) >= share)
    return (enough[-1] + 1) / len(hits) if len(enough) else 0.0


if __name__ == "__main__":
    main(*sys.argv[1:])
