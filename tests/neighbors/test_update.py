"""Neighbors of a crawl that changed: the same as from nothing, found among what is new."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsgraph.method.graph import connect
from vsgraph.neighbors import search
from vsgraph.neighbors.among import neighbors_among
from vsgraph.neighbors.known import known_neighbors, match_rows, row_digests

K = 4


def make_features(n_rows, seed=0):
    random = np.random.default_rng(seed)
    centers = random.normal(size=(20, 24))
    rows = centers[random.integers(20, size=n_rows)] + 0.8 * random.normal(size=(n_rows, 24))
    features = np.maximum(rows, 0).astype(np.float16)
    features[7] = 0  # an unreadable picture
    features[50:60] = features[50]  # the same picture ten times
    return features


def few(monkeypatch):
    """Let few rows be searched as many are."""
    monkeypatch.setattr(search, "FEW_ROWS", 64)
    monkeypatch.setattr(search, "FEW_TO_UPDATE", 64)


def find(features, kind="exact"):
    return search.find_neighbors(features, n_neighbors=K, search=kind, recall=0.9, progress=False)


def known_of(before, now, kind="exact"):
    found = find(before, kind)
    places = match_rows(row_digests(before), row_digests(now))
    return known_neighbors(
        connect(found), places, n_images=len(now), n_neighbors=K, recall=found.recall
    )


def update(now, known, kind="exact"):
    return search.update_neighbors(now, known, search=kind, recall=0.9, progress=False)


@given(st.lists(st.integers(0, 5), max_size=12), st.lists(st.integers(0, 5), max_size=12))
def test_rows_are_matched_once_each_with_an_equal_row(before, now):
    before, now = np.array(before, np.uint64), np.array(now, np.uint64)

    places = match_rows(before, now)

    there = places >= 0
    assert (now[places[there]] == before[there]).all()
    assert len(set(places[there])) == there.sum()
    for value in range(6):
        assert there[before == value].sum() == min((before == value).sum(), (now == value).sum())


@pytest.mark.parametrize("change", ["added", "removed", "both"])
def test_an_update_gives_what_an_exact_search_gives(monkeypatch, change):
    few(monkeypatch)
    every = make_features(900)
    random = np.random.default_rng(1)
    some = np.sort(random.choice(900, 870, replace=False))
    others = np.sort(random.choice(900, 880, replace=False))
    pairs = {"added": (every[some], every), "removed": (every, every[some]),
             "both": (every[some], every[others])}  # fmt: skip
    before, now = pairs[change]
    known = known_of(before, now)

    updated, whole = update(now, known), find(now)

    assert updated is not None
    assert known.to_search.sum() < len(now) / 5
    assert updated.recall == 1
    difference = abs(connect(updated) - connect(whole))
    assert difference.max() < 1e-6


def test_an_approximate_search_does_not_depend_on_what_came_before(monkeypatch):
    few(monkeypatch)
    every = make_features(900)
    assert update(every, known_of(every[:890], every, "approximate"), "approximate") is None
    assert update(every, known_of(every[:890], every), "approximate") is None


def test_a_great_change_an_inexact_past_and_few_rows_are_searched_whole(monkeypatch):
    every = make_features(900)
    known = known_of(every[:890], every)
    assert update(every, known) is None  # few rows
    few(monkeypatch)
    assert update(every, known) is not None
    assert update(every, known_of(every[:600], every)) is None
    inexact = type(known)(*(getattr(known, n) for n in ("rows", "similarities", "is_new",
                                                        "has_lost")), 0.99)  # fmt: skip
    assert update(every, inexact) is None


def test_newcomers_get_the_edges_that_the_whole_graph_has():
    every = make_features(300)
    old, new = every[:280], every[280:]
    graph = connect(find(old))
    known = known_neighbors(
        graph, np.arange(280, dtype=np.int32), n_images=280, n_neighbors=K, recall=1.0
    )

    edges = neighbors_among(
        old, new, n_neighbors=K, needed=np.maximum(known.similarities[:, -1], 0)
    )

    same = neighbors_among(old, old, n_neighbors=K, needed=np.maximum(known.similarities[:, -1], 0))
    for row in range(0, 280, 40):  # copies of known images, asked about alone and together
        one = neighbors_among(
            old, old[row : row + 1], n_neighbors=K, needed=np.maximum(known.similarities[:, -1], 0)
        )
        assert one.indices.tolist() == same[[row]].indices.tolist()
    for row in range(20):  # each alone with the others
        alone = connect(find(np.vstack([old, new[row : row + 1]])))[[280], :280]
        assert abs(edges[[row]] - alone).max() < 1e-3
