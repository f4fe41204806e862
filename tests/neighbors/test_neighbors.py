"""The search among many rows, against plain comparison and against a library."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

import vsgraph
from vsgraph.common.blocks import in_threads, row_blocks
from vsgraph.errors import InputError
from vsgraph.neighbors import exact, kernels, lists
from vsgraph.neighbors import search as neighbors
from vsgraph.neighbors.sketch import principal_axes, rows_to_search, sketch


def clustered(n, d=48, n_clusters=40, seed=0):
    random = np.random.default_rng(seed)
    centers = random.normal(size=(n_clusters, d))
    return (centers[random.integers(n_clusters, size=n)] + 0.8 * random.normal(size=(n, d))).astype(
        np.float32
    )


@pytest.fixture
def few_is_none(monkeypatch):
    """Search by sketches however few the rows."""
    monkeypatch.setattr(neighbors, "FEW_ROWS", 2)


@pytest.fixture(scope="module")
def many():
    return clustered(9000)


@pytest.mark.slow
def test_the_exact_search_among_many_rows_agrees_with_a_library(many):
    found = vsgraph.nearest_neighbors(many, n_neighbors=7, search="exact")
    index = NearestNeighbors(n_neighbors=7, metric="cosine", algorithm="brute").fit(many)
    distances, rows = index.kneighbors()
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_allclose(found.similarities, 1 - distances, atol=1e-5)
    assert found.recall == 1


@pytest.mark.slow
def test_the_approximate_search_reaches_the_recall_it_says(many):
    found = vsgraph.nearest_neighbors(many, n_neighbors=10, search="approximate", recall=0.99)
    truth = vsgraph.nearest_neighbors(many, n_neighbors=10, search="exact").rows
    hits = (found.rows[:, :, None] == truth[:, None, :]).any(axis=2).mean()
    assert found.recall >= 0.99
    assert hits == pytest.approx(found.recall, abs=0.01)


def test_a_search_that_misses_is_widened_until_it_does_not(many, monkeypatch):
    monkeypatch.setattr(lists, "_plan", lambda *_: lists.Plan(1, 12))
    monkeypatch.setattr(lists, "N_FRIENDS", 1)
    wide = vsgraph.nearest_neighbors(many, n_neighbors=10, search="approximate", recall=0.95)
    assert wide.recall >= 0.95


def test_the_search_chosen_by_itself_is_exact_for_few_and_measured_for_many(many, monkeypatch):
    assert vsgraph.nearest_neighbors(many, n_neighbors=3).recall == 1
    monkeypatch.setattr(neighbors, "EXACT_UP_TO", 8500)
    some = vsgraph.nearest_neighbors(many, n_neighbors=3, recall=0.9)
    assert 0.9 <= some.recall <= 1


@pytest.mark.slow
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(12, 60),
    k=st.integers(1, 8),
    half=st.booleans(),
    n_zero=st.integers(0, 12),
)
@settings(deadline=None, max_examples=60)
def test_zeros_duplicates_ties_and_negative_cosines_behave(seed, n, k, half, n_zero):
    """Small whole numbers: many exact ties and duplicates; cosines of both signs."""
    random = np.random.default_rng(seed)
    features = random.integers(-2, 3, size=(n, 4)).astype(np.float16 if half else np.float32)
    features[random.integers(n, size=n // 3)] = features[0]
    features[random.choice(n, n_zero, replace=False)] = 0
    plain = vsgraph.nearest_neighbors(features, n_neighbors=k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbors, "FEW_ROWS", 2)
        found = vsgraph.nearest_neighbors(features, n_neighbors=k, search="exact")
    np.testing.assert_allclose(found.similarities, plain.similarities, atol=1e-5)
    unit = features.astype(np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-9)
    np.testing.assert_allclose(
        (unit @ unit.T)[np.arange(n)[:, None], found.rows], found.similarities, atol=1e-5
    )
    assert (found.rows != np.arange(n)[:, None]).all()
    assert all(len(set(row)) == k for row in found.rows.tolist())


def test_thousands_of_copies_of_a_picture_do_not_upset_the_search(many):
    """Crawls hold the same placeholder over and over; which copy is found does not matter."""
    features = many.copy()
    features[::2] = features[0]
    found = vsgraph.nearest_neighbors(features, n_neighbors=5, search="approximate")
    assert found.recall >= 0.99
    np.testing.assert_allclose(found.similarities[::2], 1, atol=1e-5)
    assert all(len(set(row)) == 5 for row in found.rows.tolist())
    exact = vsgraph.nearest_neighbors(features, n_neighbors=5, search="exact")
    assert exact.rows[0].tolist() == [2, 4, 6, 8, 10]
    assert exact.rows[4].tolist() == [0, 2, 6, 8, 10]


def test_equal_pictures_are_listed_by_row(few_is_none):
    features = np.repeat(np.eye(3, dtype=np.float32) + 1, 6, axis=0)
    found = vsgraph.nearest_neighbors(features, n_neighbors=3, search="exact")
    assert found.rows[0].tolist() == [1, 2, 3]
    assert found.rows[5].tolist() == [0, 1, 2]


def test_nothing_but_zeros_is_no_trouble(few_is_none):
    found = vsgraph.nearest_neighbors(np.zeros((9, 3)), n_neighbors=2, search="approximate")
    assert found.rows[0].tolist() == [1, 2]
    assert found.rows[8].tolist() == [0, 1]
    assert (found.similarities == 0).all()


def test_huge_and_tiny_features_are_searched_all_the_same(few_is_none):
    features = clustered(300).astype(np.float64)
    plain = vsgraph.nearest_neighbors(features, n_neighbors=4, search="exact")
    grown = features * np.where(np.arange(300) % 2, 1e30, 1e-30)[:, None]
    scaled = vsgraph.nearest_neighbors(grown, n_neighbors=4, search="exact")
    np.testing.assert_array_equal(plain.rows, scaled.rows)


@pytest.mark.slow
@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_features_mapped_from_disk_in_half_precision_are_searched_in_place(many, tmp_path, search):
    np.save(tmp_path / "half.npy", many.astype(np.float16))
    mapped = np.load(tmp_path / "half.npy", mmap_mode="r")
    found = vsgraph.nearest_neighbors(mapped, n_neighbors=5, search=search)
    whole = vsgraph.nearest_neighbors(mapped.astype(np.float32), n_neighbors=5, search=search)
    assert (found.rows == whole.rows).mean() > 0.999


def test_the_search_gives_the_same_every_time(many):
    first, again = (
        vsgraph.nearest_neighbors(many, n_neighbors=5, search="approximate") for _ in range(2)
    )
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.similarities, again.similarities)


def test_half_precision_is_read_to_the_bit():
    every = np.arange(2**16, dtype=np.uint16)
    every = every[np.isfinite(every.view(np.float16))]
    vector = np.empty(len(every), np.float32)
    kernels.load(every[None], 0, vector)
    np.testing.assert_array_equal(vector, every.view(np.float16).astype(np.float32))


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), n_axes=st.integers(1, 5))
@settings(deadline=None, max_examples=300)
def test_the_product_of_sketches_bounds_the_cosine(seed, n_axes):
    random = np.random.default_rng(seed)
    flat = random.normal(size=(30, 6)) * 10.0 ** -random.integers(0, 5, size=(30, 6))
    rows = rows_to_search(flat.astype(np.float32))
    bounds = sketch(rows, principal_axes(rows, n_axes), share=1)
    unit = rows.unit(rows.alive)
    assert (bounds @ bounds.T >= unit @ unit.T - exact.ROUNDING).all()


def test_without_the_extra_few_rows_work_and_many_are_compared_the_slow_way():
    code = """
import sys, warnings
sys.modules["numba"] = None
import numpy as np, vsgraph
from vsgraph.neighbors import search as neighbors
features = np.random.default_rng(0).normal(size=(50, 4))
plain = vsgraph.nearest_neighbors(features, n_neighbors=3)
neighbors.FEW_ROWS = 10
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    slow = vsgraph.nearest_neighbors(features, n_neighbors=3)
assert (slow.rows == plain.rows).all()
print(said[0].message)
try:
    vsgraph.nearest_neighbors(features, n_neighbors=3, search="approximate")
except vsgraph.MissingExtraError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == [
        "all pairs are compared, slowly; a search among many rows needs the extra 'scale': "
        "pip install 'vsgraph[scale]'",
        "a search among many rows needs the extra 'scale': pip install 'vsgraph[scale]'",
    ]


def test_a_search_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="search must be one of auto, exact, approximate"):
        vsgraph.nearest_neighbors(np.eye(4), n_neighbors=1, search="fast")
    with pytest.raises(InputError, match="recall must lie between 0 and 1, got 2"):
        vsgraph.nearest_neighbors(np.eye(4), n_neighbors=1, recall=2)


def test_threads_keep_the_order_and_pass_errors_on():
    assert list(in_threads(lambda n: n * n, range(50))) == [n * n for n in range(50)]
    with pytest.raises(ZeroDivisionError, match="division"):
        list(in_threads(lambda n: 1 // n, [1, 0, 2]))
    assert row_blocks(0) == []
