"""Groups of copies: which pairs are copies, and what groups are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageEnhance, ImageOps
from scipy.sparse import csr_array

from made_pictures import as_jpeg, photo
from vsgraph.method.graph import visual_graph
from vsgraph.pictures.measures import MEASURES, SIDE, measure_picture
from vsgraph.screening import copies
from vsgraph.screening.alignment import agreement
from vsgraph.screening.copies import AGREEMENT, find_copies, known_pairs

agree = copies._agree
N = 12
PHOTOS = [photo(seed) for seed in range(N)]


def squares_of(images, quality=90):
    rows = [measure_picture(as_jpeg(image, quality))[len(MEASURES) :] for image in images]
    return np.array(rows, np.float32)


SQUARES = squares_of(PHOTOS)


def watermarked(image):
    copy = image.copy()
    ImageDraw.Draw(copy).text((20, 80), "SAMPLE", fill="white", font_size=40)
    return copy


def crop(share):
    def cut(image):
        side = round(image.width * (1 - share))
        return image.crop((5, 2, 5 + side, 2 + side))

    return cut


CHANGES = {
    "resized": lambda image: image.resize((96, 128)),
    "cropped by 5 %": crop(0.05),
    "cropped by 15 %": crop(0.15),
    "watermarked": watermarked,
    "mirrored": ImageOps.mirror,
    "gray": lambda image: ImageOps.grayscale(image).convert("RGB"),
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.3),
}


def cut_square(squares):
    return squares.reshape(-1, SIDE, SIDE)


@pytest.mark.parametrize("change", CHANGES)
def test_details_of_copies_agree(change):
    copies = squares_of([CHANGES[change](image) for image in PHOTOS], quality=50)
    assert (agreement(cut_square(SQUARES), cut_square(copies)) >= AGREEMENT).all()


def test_details_of_other_pictures_do_not_agree():
    one, other = np.triu_indices(N, 1)
    assert agreement(cut_square(SQUARES[one]), cut_square(SQUARES[other])).max() < 0.6


def test_agreement_does_not_depend_on_the_order_of_a_pair():
    copies = squares_of([CHANGES["cropped by 15 %"](image) for image in PHOTOS])
    forth = agreement(cut_square(SQUARES), cut_square(copies))
    back = agreement(cut_square(copies), cut_square(SQUARES))
    np.testing.assert_allclose(forth, back, atol=1e-3)


def test_blank_pictures_agree_with_nothing():
    blank = np.full((2, SIDE, SIDE), 200, np.float32)
    assert agreement(blank, cut_square(SQUARES[:2])).max() < AGREEMENT
    assert agreement(blank, blank).max() < AGREEMENT  # same bytes are found by their digest


def all_copies(order=None):
    """Photos with copies of all kinds, in an order; what each shows, keys, squares, features."""
    changed = [
        (number, change(image))
        for number, (image, change) in enumerate(zip(PHOTOS, CHANGES.values(), strict=False))
    ]
    shown = [*range(N), *(number for number, _ in changed), 0, 0]
    squares = np.concatenate([SQUARES, squares_of([image for _, image in changed]), SQUARES[:1]])
    squares = np.concatenate([squares, SQUARES[:1]])
    keys = np.random.default_rng(1).integers(1, 255, (len(squares), 16)).astype(np.uint8)
    keys[-1] = keys[0]
    features = np.random.default_rng(0).normal(size=(N, 16))[shown]
    order = np.arange(len(shown)) if order is None else np.asarray(order)
    return np.array(shown)[order], keys[order], squares[order], features[order]


def cosines(features):
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    return csr_array(unit @ unit.T)


def test_copies_are_grouped_with_their_picture():
    shown, keys, squares, features = all_copies()
    groups = find_copies(keys, squares, visual_graph(features, n_neighbors=3)).groups
    assert groups.tolist() == shown.tolist()


def test_without_the_graph_hashes_find_most_copies():
    shown, keys, squares, _ = all_copies()
    empty = csr_array((len(shown), len(shown)))
    groups = find_copies(keys, squares, empty).groups
    assert (shown[groups] == shown).all()  # no other picture is in a group
    assert (groups[N:] == shown[N:]).mean() >= 0.7


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(N + len(CHANGES) + 2)), st.integers(2, 20))
def test_what_was_compared_before_is_not_compared_again(order, n_before):
    """A crawl changes: groups are those that are found from nothing."""
    _, *crawl = all_copies(order)
    keys, squares, features = (array[:n_before] for array in crawl)
    before = find_copies(keys, squares, cosines(features))
    now = np.roll(np.arange(len(order)), 3)  # the last three come first, row 0 is in the middle
    keys, squares, features = (array[now] for array in crawl)
    graph = cosines(features)
    places = np.argsort(now)[:n_before]
    known = known_pairs(before.compared, places)
    looked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copies, "_agree", lambda s, p, **_: looked.append(p) or agree(s, p, **_))
        found = find_copies(keys, squares, graph, known=known)
    fresh = find_copies(keys, squares, graph)
    assert found.groups.tolist() == fresh.groups.tolist()
    assert found.compared.pairs.tolist() == fresh.compared.pairs.tolist()
    assert found.compared.agree.tolist() == fresh.compared.agree.tolist()
    needed, before = (set(map(tuple, some.pairs.tolist())) for some in (fresh.compared, known))
    assert set(map(tuple, looked[0].tolist())) == needed - before


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(N + len(CHANGES) + 2)))
def test_groups_do_not_depend_on_the_order_of_images(order):
    shown, keys, squares, features = all_copies(order)
    groups = find_copies(keys, squares, visual_graph(features, n_neighbors=3)).groups
    same = groups[:, None] == groups
    assert (same == (shown[:, None] == shown)).all()


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=14), st.data())
def test_groups_are_what_pairs_connect(pairs, data):
    """Equal vectors are copies: groups are an equivalence, named by their first row."""
    labels = np.arange(12)
    for one, other in pairs:
        labels[labels == labels[one]] = labels[other]
    features = np.eye(12)[labels]
    order = np.array(data.draw(st.permutations(range(12))))
    groups = find_copies(None, None, cosines(features[order])).groups
    assert ((groups[:, None] == groups) == (labels[order][:, None] == labels[order])).all()
    assert (groups <= np.arange(12)).all()
    assert (groups[groups] == groups).all()


def test_vectors_that_are_only_alike_are_no_copies():
    random = np.random.default_rng(0)
    features = random.normal(size=(60, 32))
    features[59] = features[3] + 0.02 * random.normal(size=32)
    groups = find_copies(None, None, visual_graph(features, n_neighbors=4)).groups
    assert np.flatnonzero(groups != np.arange(60)).tolist() == [59]
    assert groups[59] == 3


def test_many_copies_of_one_picture_are_one_group():
    random = np.random.default_rng(0)
    squares = np.clip(SQUARES[:1] + random.normal(scale=1.5, size=(200, SIDE * SIDE)), 0, 255)
    keys = random.integers(1, 255, (200, 16)).astype(np.uint8)
    features = 1 + 0.01 * random.normal(size=(200, 8))
    groups = find_copies(keys, squares, visual_graph(features, n_neighbors=5)).groups
    assert (groups == 0).all()


@pytest.mark.parametrize("n_images", [0, 1, 2])
def test_few_or_unreadable_pictures(n_images):
    keys, squares = np.zeros((n_images, 16), np.uint8), np.zeros((n_images, SIDE * SIDE))
    graph = csr_array((n_images, n_images))
    groups = find_copies(keys, squares, graph).groups
    assert groups.tolist() == list(range(n_images))  # without a file nothing is a copy


def test_an_enlarged_picture_is_a_copy():
    large = [image.resize((500, 500), Image.Resampling.BICUBIC) for image in PHOTOS[:3]]
    assert (agreement(cut_square(squares_of(large)), cut_square(SQUARES[:3])) > 0.95).all()
