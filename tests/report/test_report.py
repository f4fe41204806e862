"""The report: what its pages hold, that hostile crawls cannot harm, how large it becomes."""

import dataclasses
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from scipy.sparse import csr_array

import vsgraph
from made_pictures import jpeg
from vsgraph.crawls.crawl import Crawl
from vsgraph.errors import InputError
from vsgraph.meanings.senses import Meaning
from vsgraph.meanings.wordnet import WordNet
from vsgraph.report import thumbnails, write_report
from vsgraph.report.cards import make_cards
from vsgraph.report.content import Amounts
from vsgraph.report.groups import MOST_IMAGES, find_groups
from vsgraph.report.map import draw_map
from vsgraph.report.map_layout import embed
from vsgraph.report.pages import as_data, page_name
from vsgraph.report.tallies import Labels
from vsgraph.report.thumbnails import write_pictures
from vsgraph.report.typical import SenseFinder, typical_words
from vsgraph.result.correction import Correction
from vsgraph.result.parts import Anchors, Decision, Rule
from vsgraph.result.scores import TopScores

NAMES = ("ant", "bee", "cat", "dog")
MB = 10**6


def make_crawl(folder, correction, *, names=NAMES, titles=None):
    """Put a picture a row on disk, and a title."""
    (folder / "images").mkdir(parents=True)
    for row in range(len(correction)):
        color = (40 * row % 255, 90, 9 * row % 255)
        (folder / "images" / f"{row}.jpg").write_bytes(jpeg(color, (40, 30)))
    web = correction.web_labels
    several = web.ndim == 2
    labels = [np.flatnonzero(row).tolist() for row in web] if several else web
    kind = pa.list_(pa.int32()) if several else pa.int32()
    titles = titles or [f"{NAMES[row % 4]} number {row}" for row in range(len(correction))]
    table = pa.table({
        "image": [f"images/{row}.jpg" for row in range(len(correction))],
        "web_labels": pa.array(labels, kind),
        "title": titles,
    })  # fmt: skip
    return Crawl("a test", folder, table, tuple(names), text_fields=("title",))


@pytest.fixture(scope="module")
def report(two_senses, corrected, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    crawl = make_crawl(folder / "crawl", corrected)
    crawl.problems.add("missing image", "images/none.jpg")
    (folder / "crawl" / "images" / "0.jpg").write_bytes(b"broken")
    meanings = [
        Meaning("ant", "n02219486", WordNet.open().describe("n02219486"), chosen=True),
        Meaning("ant", None, "another ant", match=0.25),
    ]
    page = write_report(
        folder / "out", crawl, corrected, meanings, features=two_senses.features, heading="A test"
    )
    return page.parent


class Links(HTMLParser):
    """Collects what a page refers to, and what might run."""

    def __init__(self):
        super().__init__()
        self.addresses, self.inline, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        given = dict(attrs)
        self.addresses += [given[name] for name in ("href", "src") if given.get(name)]
        self.inline += [name for name in given if name.startswith("on") or name == "style"]


def read(path):
    links = Links()
    links.feed(path.read_text())
    return links


def test_the_first_page_counts_and_ranks(report, corrected):
    page = (report / "index.html").read_text()
    for count in corrected.counts.values():
        assert f"<b>{count}</b>" in page
    values = [float(share) for share in re.findall(r'data-value="([\d.]+)"', page)]
    shares = values[::2]  # beside each stands the share that changed
    assert len(shares) == 4
    assert "of the labels that are left are right" in page
    assert shares == sorted(shares, reverse=True)
    assert "1 x missing image: images/none.jpg" in page
    assert "anchors_per_class" in page
    assert "1 of the 240 pictures chosen for this report cannot be read" in page


def test_pictures_that_cannot_be_read_are_counted_apart(two_senses, corrected, tmp_path):
    kept = np.flatnonzero(corrected.decisions == Decision.KEEP)[:3]
    features = two_senses.features.copy()
    features[kept] = 0
    crawl = make_crawl(tmp_path / "crawl", corrected)
    page = write_report(
        tmp_path / "out", crawl, corrected, features=features, heading="A test"
    ).read_text()

    assert corrected.counts_with(features) == corrected.counts | {
        "keep": corrected.counts["keep"] - 3,
        "unreadable": 3,
    }
    assert f"<b>{corrected.counts['keep'] - 3}</b>" in page
    assert re.search(r"<b>3</b>.*unreadable, .*<small>label left as it was</small>", page)


def test_every_link_leads_to_a_file_and_nowhere_else(report):
    pages = [report / "index.html", *sorted((report / "classes").iterdir())]
    assert len(pages) == 5
    for page in pages:
        for address in read(page).addresses:
            assert not re.match(r"[a-z]+:|//", address), address
            target = address.partition("#")[0]
            assert not target or (page.parent / target).is_file(), address
        assert not read(page).inline
        assert "Content-Security-Policy" in page.read_text()


def test_the_page_of_a_class_holds_its_parts(report):
    page = (report / "classes" / "0000-ant.html").read_text()
    for part in ("senses", "anchors", "left", "came", "surest", "least"):
        assert f'id="{part}"' in page, part
    assert "ant, emmet, pismire: social insect" in page
    assert "<code>n02219486</code>" in page
    assert "another ant" in page
    assert "nearest to 25% of the texts" in page
    assert Rule.CONFIDENT.sentence.capitalize() in page
    assert 'href="0001-bee.html"' in page
    other = (report / "classes" / "0001-bee.html").read_text()
    assert "No description of this class was given" in other


def test_pictures_are_shared_between_pages_and_none_is_left_over(report):
    used = {
        address.rpartition("/")[2]
        for page in (report / "classes").iterdir()
        for address in read(page).addresses
        if "pictures/" in address
    }
    written = {path.name for path in (report / "pictures").iterdir()}
    assert used <= written
    data = json.loads(re.search(r'id="map-data">(.*?)</script>', index_of(report)).group(1))
    on_map = {
        f"{row}.jpg" for row, there in zip(data["row"], data["picture"], strict=True) if there
    }
    assert written == used | on_map
    assert "0.jpg" not in written
    assert max(path.stat().st_size for path in (report / "pictures").iterdir()) < 8000


def index_of(folder):
    return (folder / "index.html").read_text()


def test_the_same_report_is_written_twice(two_senses, corrected, tmp_path):
    crawl = make_crawl(tmp_path / "crawl", corrected)
    pages = [
        write_report(
            tmp_path / name, crawl, corrected, features=two_senses.features, heading="x"
        ).parent
        for name in ("a", "b")
    ]
    first, second = (
        {path.relative_to(page): path.read_bytes() for path in page.rglob("*") if path.is_file()}
        for page in pages
    )
    assert first == second


def test_a_report_replaces_only_a_report(corrected, tmp_path):
    crawl = make_crawl(tmp_path / "crawl", corrected)
    made = write_report(tmp_path / "out", crawl, corrected, heading="first")
    with pytest.raises(InputError, match="exists already"):
        write_report(tmp_path / "out", crawl, corrected, heading="second")
    write_report(tmp_path / "out", crawl, corrected, heading="second", overwrite=True)
    assert "second" in made.read_text()
    assert "There is no map" in made.read_text()
    corrected.save(tmp_path / "record")
    for other in ("record", "crawl"):
        with pytest.raises(InputError, match="is not a report of vsgraph and is left alone"):
            write_report(tmp_path / other, crawl, corrected, heading="x", overwrite=True)
    with pytest.raises(InputError, match="is not a correction of vsgraph"):
        corrected.save(tmp_path / "out", overwrite=True)


def test_a_crawl_within_the_folder_is_not_replaced(corrected, tmp_path):
    crawl = make_crawl(tmp_path / "crawl", corrected)
    write_report(tmp_path / "out", crawl, corrected, heading="x")
    inside = dataclasses.replace(crawl, root=tmp_path / "out" / "pictures")
    with pytest.raises(InputError, match="holds the crawl itself"):
        write_report(tmp_path / "out", inside, corrected, heading="x", overwrite=True)


def test_nothing_is_left_of_a_report_that_fails(corrected, tmp_path, monkeypatch):
    crawl = make_crawl(tmp_path / "crawl", corrected)

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr("vsgraph.report.write.write_page", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(tmp_path / "out", crawl, corrected, heading="x")
    assert [path.name for path in tmp_path.iterdir()] == ["crawl"]


def test_a_correction_of_something_else_is_refused(corrected, tmp_path):
    crawl = make_crawl(tmp_path / "crawl", corrected)
    with pytest.raises(InputError, match="has 3 images and the correction 240"):
        write_report(tmp_path / "out", crawl.take(slice(3)), corrected, heading="x")
    fewer = dataclasses.replace(crawl, class_names=("ant", "bee"))
    with pytest.raises(InputError, match="has 2 classes and the correction 4"):
        write_report(tmp_path / "out", fewer, corrected, heading="x")
    with pytest.raises(InputError, match=r"features must have shape \(240, d\), got \(3, 2\)"):
        write_report(tmp_path / "out", crawl, corrected, features=np.ones((3, 2)), heading="x")
    assert not (tmp_path / "out").exists()


def test_images_with_several_labels_are_shown_too(two_senses, tmp_path):
    web = np.eye(4, dtype=bool)[two_senses.web_labels]
    made = two_senses.correct(web_labels=web, class_names=NAMES)
    crawl = make_crawl(tmp_path / "crawl", made)
    page = write_report(
        tmp_path / "out", crawl, made, features=two_senses.features, heading="several"
    )
    assert len(list((tmp_path / "out" / "classes").iterdir())) == 4
    labels = Labels(made)
    for tally in labels.tallies():
        assert len(tally.found) == web[:, tally.number].sum()
        assert len(tally.kept) == (web & made.final_labels)[:, tally.number].sum()
        assert len(tally.came) == (~web & made.final_labels)[:, tally.number].sum()
        parts = np.concatenate([tally.kept, tally.left, tally.rejected])
        np.testing.assert_array_equal(np.sort(parts), tally.found)
    assert "several" in page.read_text()


def test_a_class_without_images_anchors_or_words_has_a_page(corrected, tmp_path):
    named = dataclasses.replace(
        corrected,
        class_names=("ant", "bee", "cat", "n99999999"),
        web_labels=np.where(corrected.web_labels == 3, 0, corrected.web_labels),
        final_labels=np.where(corrected.final_labels == 3, 0, corrected.final_labels),
        anchors=Anchors(*(getattr(corrected.anchors, f)[:2] for f in ("rows", "classes", "match"))),
    )
    crawl = make_crawl(tmp_path / "crawl", named, names=named.class_names, titles=[""] * 240)
    made = write_report(tmp_path / "out", crawl, named, heading="x")
    page = (tmp_path / "out" / "classes" / "0003-n99999999.html").read_text()
    assert "Its images form no groups" in page
    assert "It has none: no text near its images" in page
    assert "3 classes have no anchors" in made.read_text()


def test_a_rejected_image_has_no_probability(tmp_path):
    made = make_large(2, 40)
    crawl = make_large_crawl(tmp_path / "crawl", made)
    write_report(tmp_path / "out", crawl, made, heading="x")
    cards = (tmp_path / "out" / "classes").glob("*.html")
    parts = [part for page in cards for part in page.read_text().split('<li class="card ')[1:]]
    assert {part.startswith("rejected") for part in parts} == {True, False}
    for part in parts:
        assert ('class="sure"' in part) != part.startswith("rejected")


# ------------------------------------------------------------------ hostile crawls

EVIL = (
    '"><script>window.hacked=1</script>',
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script>",
    "{{ 7 * 7 }}{% for x in y %}",
    "javascript:window.hacked=1",
    "' onmouseover='window.hacked=1",
    "</title></textarea></svg><svg onload=window.hacked=1>",
    "<!--<script>",
    "\u202eesrever \u2028\u2029 \x00\x1b[31m",
    "x" * 5000,
)
EVIL_NAMES = (EVIL[0], "../../../etc/passwd", "</script><script>window.hacked=1</script>", "\ud800")


def make_hostile_report(folder, two_senses, corrected):
    named = dataclasses.replace(corrected, class_names=EVIL_NAMES)
    titles = [EVIL[row % len(EVIL)] for row in range(len(named))]
    crawl = make_crawl(folder / "crawl", named, names=EVIL_NAMES, titles=titles)
    crawl.problems.add(EVIL[0], EVIL[1], EVIL[2])
    meanings = [Meaning(name, None, EVIL[0], chosen=True) for name in EVIL_NAMES]
    return write_report(
        folder / "out", crawl, named, meanings, features=two_senses.features, heading=EVIL[0]
    ).parent


@pytest.fixture(scope="module")
def hostile(two_senses, corrected, tmp_path_factory):
    return make_hostile_report(tmp_path_factory.mktemp("hostile"), two_senses, corrected)


def test_no_text_of_a_crawl_becomes_a_tag(hostile):
    for page in [hostile / "index.html", *(hostile / "classes").iterdir()]:
        links = read(page)
        assert links.tags.count("script") == (2 if page.name == "index.html" else 0)
        assert not links.inline
        assert not [a for a in links.addresses if re.match(r"[a-z]+:|//|x$", a)]
    assert "{{ 7 * 7 }}" in (hostile / "classes" / "0003.html").read_text()


def test_pages_of_classes_have_safe_names(hostile):
    names = sorted(path.name for path in (hostile / "classes").iterdir())
    assert names[1:] == [
        "0001-etc-passwd.html", "0002-script-script-window-hacked-1-script.html", "0003.html",
    ]  # fmt: skip
    assert all(re.fullmatch(r"\d{4}[a-z0-9-]*\.html", name) for name in names)
    assert page_name(7, "CON.") == "0007-con.html"


def test_data_for_the_script_cannot_end_its_element():
    text = str(as_data({"t": ["</script><!--", "a & b", "\u2028"]}))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"t": ["</script><!--", "a & b", "\u2028"]}


def saved(image, kind, **options):
    raw = io.BytesIO()
    image.save(raw, kind, **options)
    return raw.getvalue()


def test_small_pictures_fit_into_what_they_are_given(corrected, tmp_path):
    crawl = make_crawl(tmp_path / "crawl", corrected)
    noise = np.random.default_rng(0).integers(0, 255, (200, 200, 3), dtype=np.uint8)
    for row in range(40):
        (crawl.root / "images" / f"{row}.jpg").write_bytes(saved(Image.fromarray(noise), "JPEG"))
    rows = np.arange(40)
    sizes = []
    for most in (10**9, 40 * 4000, 10):
        written = write_pictures(tmp_path / str(most), crawl, rows, most_bytes=most)
        assert written == frozenset(range(40))
        sizes.append(sum(path.stat().st_size for path in (tmp_path / str(most)).iterdir()))
    assert sizes[1] <= 40 * 4000 < sizes[0]
    assert sizes[2] < sizes[1]
    with Image.open(tmp_path / "10" / "0.jpg") as smallest:
        assert smallest.size == (thumbnails.STEPS[-1][0],) * 2


# ------------------------------------------------------------------ size


def make_large(n_classes, per_class):
    """A correction made up without a run: each image's neighbors are of its class."""
    random = np.random.default_rng(0)
    n = n_classes * per_class
    web = np.repeat(np.arange(n_classes), per_class)
    decisions = random.choice(3, n, p=[0.6, 0.3, 0.1]).astype(np.uint8)
    final = np.select(
        [decisions == Decision.KEEP, decisions == Decision.RELABEL],
        [web, (web + random.integers(1, 5, n)) % n_classes], -1,
    )  # fmt: skip
    rules = np.array([Rule.AGREES, Rule.CONFIDENT, Rule.OPEN_SET], np.uint8)[decisions]
    near = web[:, None] * per_class + random.integers(per_class, size=(n, 5))
    graph = csr_array(
        (np.full(5 * n, 0.5, np.float32), near.ravel(), np.arange(0, 5 * n + 1, 5)), (n, n)
    )
    graph.sum_duplicates()
    some = np.stack([np.maximum(final, 0), (np.maximum(final, 0) + 7) % n_classes], axis=1)
    scores = TopScores(
        some.astype(np.uint16), np.tile(np.float32([0.7, 0.2]), (n, 1)),
        np.full(n, 0.1, np.float32), n_classes,
    )  # fmt: skip
    anchors = np.arange(n_classes)[:, None] * per_class + np.arange(min(10, per_class))
    match = csr_array((np.ones(n, np.float32), web, np.arange(n + 1)), (n, n_classes))
    return Correction(
        class_names=tuple(f"class number {c} of a large crawl" for c in range(n_classes)),
        web_labels=web, final_labels=final, decisions=decisions, rules=rules, final_probs=scores,
        gnn_probs=scores, cnn_probs=scores, text_factor=scores, confusion=None, evidence_weights={},
        text_match=match,
        anchors=Anchors(anchors.ravel(), web[anchors.ravel()], np.ones(anchors.size)),
        adjacency=graph, graph_recall=1.0, settings=vsgraph.Settings(),
    )  # fmt: skip


def make_large_crawl(folder, made):
    """Every picture is one shared file that compresses badly; every text is long."""
    folder.mkdir()
    noise = np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).resize((256, 256)).save(folder / "one.jpg", quality=95)
    words = [f"word{i % 97} title{i % 31} of picture number{i % 13}" for i in range(1000)]
    titles = np.char.add(np.resize(words, len(made)), " and a long description of it" * 5)
    table = pa.table({
        "image": pa.array(["one.jpg"] * len(made)),
        "web_labels": pa.array(made.web_labels, pa.int32()),
        "title": pa.array(titles),
    })  # fmt: skip
    return Crawl("a test", folder, table, made.class_names, text_fields=("title",))


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
def test_a_thousand_classes_stay_below_fifty_megabytes(tmp_path):
    made = make_large(1000, 12)
    crawl = make_large_crawl(tmp_path / "crawl", made)
    features = np.random.default_rng(0).normal(size=(len(made), 8)).astype(np.float16)
    write_report(tmp_path / "out", crawl, made, features=features, heading="large")
    assert len(list((tmp_path / "out" / "classes").iterdir())) == 1000
    assert size_of(tmp_path / "out") < 50 * MB


@pytest.mark.parametrize("n_pages", [1, 100, 101, 300, 301, 1000])
def test_no_number_of_pages_asks_for_too_many_pictures(n_pages):
    a = Amounts.of(n_pages)
    each = a.anchors + a.senses * a.in_sense + 2 * a.moves * a.in_move + 3 * a.listed
    assert n_pages * each <= 13_500


def test_beyond_a_thousand_classes_the_noisiest_have_pages(tmp_path, monkeypatch):
    monkeypatch.setattr("vsgraph.report.write.MOST_PAGES", 3)
    monkeypatch.setattr("vsgraph.report.write.MOST_LISTED", 4)
    made = make_large(6, 20)
    crawl = make_large_crawl(tmp_path / "crawl", made)
    page = write_report(tmp_path / "out", crawl, made, heading="x").read_text()
    assert len(list((tmp_path / "out" / "classes").iterdir())) == 3
    assert "The 3 noisiest classes have a page of their own, and 4 of 6 are listed." in " ".join(
        page.split()
    )


# ------------------------------------------------------------------ senses, words, map


def test_groups_are_the_parts_of_the_graph():
    sizes = [30, 20, 10, 2]
    blocks = [np.ones((size, size)) - np.eye(size) for size in sizes]
    graph = np.zeros((62, 62))
    start = 0
    for block in blocks:
        graph[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    graph[0, 40] = graph[40, 0] = 0.5
    found = find_groups(csr_array(graph), np.arange(62), most=5)
    assert [len(members) for members in found.members] == [30, 20, 10]
    assert found.others.tolist() == [60, 61]
    assert len(find_groups(csr_array(graph), np.arange(62), most=2).members) == 2


def test_images_that_share_neighbors_of_other_labels_form_a_group():
    graph = np.zeros((12, 12))
    graph[:5, 10] = graph[10, :5] = 1
    graph[5:10, 11] = graph[11, 5:10] = 1
    found = find_groups(csr_array(graph), np.arange(10), most=5)
    assert [sorted(members.tolist()) for members in found.members] == [[*range(5)], [*range(5, 10)]]


def test_images_without_edges_form_no_group():
    found = find_groups(csr_array((2000, 2000)), np.arange(2000), most=5)
    assert not found.members
    assert len(found.others) == MOST_IMAGES


def test_senses_of_a_class_are_found_with_their_words(two_senses, corrected, tmp_path):
    """Images of one query show two things, and their texts tell which."""
    told = ("fruit juice", "paint wall", "cave wings", "cursor wheel")
    titles = [f"{told[label]} photo" for label in two_senses.truth]
    crawl = make_crawl(tmp_path / "crawl", corrected, titles=titles)
    write_report(tmp_path / "out", crawl, corrected, heading="x")
    page = (tmp_path / "out" / "classes" / "0000-ant.html").read_text()
    heads = re.findall(r'<h3 id="sense-\d+">\d+\. (.*?)</h3>', page)
    assert {"fruit, juice", "paint, wall"} <= set(heads)


def test_words_of_the_label_and_common_ones_are_not_typical():
    inside = [{"orange", "fruit", "photo"}] * 10
    others = [{"orange", "wall", "photo"}] * 10
    assert typical_words(inside, others, but={"orange"}) == ["fruit"]
    assert typical_words([], others, but=()) == []


def test_the_nearest_sense_is_told_or_that_there_is_none():
    wordnet = WordNet.open()
    texts = [{"skateboard", "wheel", "ridden"}] * 5 + [{"surf", "wave"}] * 5
    finder = SenseFinder("surfboard", None, texts, wordnet)
    board = finder.nearest(texts[:5], ["skateboard"])
    assert (board.words, board.of_label) == ("skateboard", False)
    assert finder.nearest(texts[5:], ["wave"]).of_label
    assert finder.nearest([{"qwerty"}], []) is None
    assert SenseFinder("blorf", None, texts, wordnet).nearest(texts, []) is None


@pytest.mark.slow
def test_neighbors_stay_together_on_the_map():
    random = np.random.default_rng(0)
    centers = random.normal(size=(8, 20))
    kinds = np.arange(400) % 8
    vectors = centers[kinds] + 0.3 * random.normal(size=(400, 20))
    places = embed(vectors)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1)[:, :5]
    assert (kinds[nearest] == kinds[:, None]).mean() > 0.99
    np.testing.assert_array_equal(embed(vectors), places)


def test_few_points_lie_on_their_axes_and_images_without_features_are_left_out():
    few = draw_map(np.eye(5), n_images=5)
    assert few.note == "So few images are placed on their two principal axes."
    some = np.random.default_rng(0).normal(size=(40, 3))
    some[7] = 0
    some[8] = np.nan
    drawn = draw_map(some, n_images=40)
    assert set(range(40)) - set(drawn.rows.tolist()) == {7, 8}
    assert drawn.places.min() == 0
    assert drawn.places.max() <= 9999
    assert draw_map(np.zeros((4, 2)), n_images=4).note == "There is no map: no image has features."
    assert len(draw_map(some[:, :1], n_images=40, most=20).rows) <= 20


def test_forms_of_verbs_are_no_senses():
    texts = [{"holding", "retaining", "act", "man"}] * 4
    finder = SenseFinder("apple", None, texts, WordNet.open())
    nearest = finder.nearest(texts, ["holding"])
    assert nearest is None or "act of retaining" not in nearest.definition
    surf = [{"surfing", "sport", "riding", "surfboard", "shore"}] * 4
    assert "surfboard" in finder.nearest(surf, ["surfing"]).definition


def test_ones_own_description_stands_without_the_old_id(corrected, tmp_path):
    crawl = make_crawl(tmp_path / "crawl", corrected)
    wordnet = WordNet.open()
    dog = "n02084071"
    meanings = [
        Meaning("ant", dog, "a very small insect of mine", chosen=True),
        Meaning("dog", dog, wordnet.describe(dog), chosen=True),
        *(Meaning(name, None, f"a {name}", chosen=True) for name in ("bee", "cat")),
    ]
    write_report(tmp_path / "report", crawl, corrected, meanings, heading="x")
    pages = [page.read_text() for page in (tmp_path / "report" / "classes").glob("*.html")]
    own = next(page for page in pages if "small insect of mine" in page)
    assert dog not in own
    assert sum(dog in page for page in pages) == 1


def test_a_text_that_says_nothing_is_no_evidence(corrected, tmp_path):
    silent = TopScores.of(np.ones((len(corrected), 4)), n_kept=4)
    crawl = make_crawl(tmp_path / "crawl", corrected)
    told = []
    for factor in (1.0, 2.0):
        text = silent.scaled(np.full(len(corrected), factor))
        one = dataclasses.replace(corrected, text_factor=text)
        cards = make_cards(np.arange(3), crawl, one, pictures=frozenset())
        told.append(dict(cards[0].evidence))
    assert "text" not in told[0]
    assert "times 2" in told[1]["text"]
