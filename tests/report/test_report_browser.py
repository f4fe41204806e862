"""The report in a real browser: Debian's chromium, at two widths, light and dark."""

import shutil

import pytest
from test_report import EVIL, make_crawl, make_hostile_report

from browsing import is_wider_than_the_screen, launched, needs_chromium, wait_until
from vsgraph.report import write_report

pytestmark = needs_chromium
SCREENS = [(width, scheme) for width in (390, 1440) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def browser():
    with launched() as started:
        yield started


@pytest.fixture(scope="module")
def site(two_senses, corrected, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    crawl = make_crawl(folder / "crawl", corrected)
    page = write_report(
        folder / "out", crawl, corrected, features=two_senses.features, heading="A site"
    )
    return page.parent


@pytest.fixture(scope="module")
def hostile(two_senses, corrected, tmp_path_factory):
    return make_hostile_report(tmp_path_factory.mktemp("hostile"), two_senses, corrected)


@pytest.fixture
def open_page(browser):
    """Open a page; at the end, nothing may have been said, asked for elsewhere, or run."""
    said, asked, contexts = [], [], []

    def open_page(path, *, width=1440, scheme="light", **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            reduced_motion="reduce",
            **options,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append("dialog"))
        page.on("requestfailed", lambda request: said.append(request.url))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith("file:")] == []


def colors_drawn(page, canvas):
    return page.evaluate(
        """(id) => { const c = document.getElementById(id);
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        const seen = new Set(); let ink = 0;
        for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 40) {
            ink++; seen.add([d[i] >> 5, d[i + 1] >> 5, d[i + 2] >> 5].join()); }
        return [ink, seen.size]; }""",
        canvas,
    )


def wait_for_map(page):
    page.wait_for_selector("#atlas[data-points]")
    page.wait_for_timeout(200)


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_first_page_fits_and_draws_its_map(site, open_page, width, scheme):
    page = open_page(site / "index.html", width=width, scheme=scheme)
    wait_for_map(page)
    assert not is_wider_than_the_screen(page)
    for canvas in ("map-web", "map-final"):
        ink, n_colors = colors_drawn(page, canvas)
        assert ink > 500
        assert n_colors > 4
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, ground.removeprefix("rgb(").removesuffix(")").split(",")))
    assert (brightness > 384) == (scheme == "light")


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_page_of_a_class_fits_and_tells_why(site, open_page, width, scheme):
    page = open_page(site / "classes" / "0000-ant.html", width=width, scheme=scheme)
    assert not is_wider_than_the_screen(page)
    page.locator("summary", has_text="Why").first.click()
    assert "Found as ant" in page.locator(".card details[open]").first.inner_text()
    assert not is_wider_than_the_screen(page)
    assert page.evaluate("[...document.images].every((image) => image.alt)")


def first_names(page):
    return page.locator("tbody tr:visible th").all_inner_texts()


def test_the_table_is_sorted_and_searched_by_keyboard(site, open_page):
    page = open_page(site / "index.html")
    page.locator("thead button", has_text="Class").focus()
    page.keyboard.press("Enter")
    assert first_names(page) == ["ant", "bee", "cat", "dog"]
    page.keyboard.press("Enter")
    assert first_names(page) == ["dog", "cat", "bee", "ant"]
    header = page.locator("thead th", has_text="Class")
    assert header.get_attribute("aria-sort") == "descending"
    page.locator("thead button", has_text="Rejected").click()
    column = page.locator("thead tr > *").all_inner_texts().index("Rejected")
    counts = [
        int(text) for text in page.locator(f"tbody td:nth-child({column + 1})").all_inner_texts()
    ]
    assert counts == sorted(counts, reverse=True)
    page.get_by_label("Find a class").fill("BE")
    assert first_names(page) == ["bee"]
    assert page.locator("#found").inner_text() == "1 found"


def test_the_keyboard_reaches_the_content_and_sees_where_it_is(site, open_page):
    page = open_page(site / "index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator("#find").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_map_zooms_moves_and_tells_images(site, open_page):
    page = open_page(site / "index.html")
    wait_for_map(page)
    before = page.evaluate("document.getElementById('map-web').toDataURL()")
    page.locator("#map-web").focus()
    for key in ("+", "+", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    drawn = "document.getElementById('map-web').toDataURL()"
    wait_until(page, f"before => {drawn} != before", before)
    page.keyboard.press("0")
    wait_until(page, f"before => {drawn} == before", before)
    page.keyboard.press("n")
    assert "number" in page.locator("#tip .tip-title").inner_text()
    wait_until(page, "() => document.querySelector('#tip img').complete")
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    page.select_option("#only", label="bee")
    page.locator("input[value=final]").check()
    assert page.locator("#map-web").is_hidden()
    page.locator("#legend summary").click()
    page.locator("#legend li").last.wait_for()
    assert page.locator("#legend li").all_inner_texts() == ["ant", "bee", "cat", "dog"]


def test_an_image_is_told_by_a_tap_and_by_the_mouse(site, open_page):
    page = open_page(site / "index.html", width=390, has_touch=True)
    wait_for_map(page)
    page.locator("#map-web").scroll_into_view_if_needed()
    box = page.locator("#map-web").bounding_box()
    across, down = (range(10, int(box[side]), 12) for side in ("width", "height"))
    tip = page.locator("#tip")
    for x, y in ((box["x"] + x, box["y"] + y) for x in across for y in down):
        page.mouse.move(x, y)
        if tip.is_visible():
            break
    assert tip.is_visible()
    page.mouse.move(box["x"] + 1, box["y"] - 40)
    assert tip.is_hidden()
    page.touchscreen.tap(x, y)
    assert tip.is_visible()
    assert not is_wider_than_the_screen(page)


def test_without_scripts_everything_but_the_map_is_there(site, open_page):
    page = open_page(site / "index.html", java_script_enabled=False)
    assert len(page.locator("tbody tr").all()) == 4
    assert page.get_by_text("The map needs JavaScript").is_visible()
    assert page.locator("#find").is_hidden()
    page.locator("tbody a").first.click()
    assert page.locator(".card img").first.is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_in_a_hostile_crawl_runs(hostile, open_page, width):
    pages = [hostile / "index.html", *sorted((hostile / "classes").iterdir())]
    for path in pages:
        page = open_page(path, width=width)
        for summary in page.locator("summary").all()[:6]:
            summary.click()
        if path.name == "index.html":
            wait_for_map(page)
            page.locator("#map-web").focus()
            for _ in EVIL:
                page.keyboard.press("n")
        page.wait_for_timeout(100)
        assert page.evaluate("window.hacked") is None
        assert not is_wider_than_the_screen(page)


def test_a_script_that_got_into_the_page_would_not_run(site, tmp_path, browser):
    """The second line of defense: the page's own policy."""
    shutil.copytree(site, tmp_path / "copy")
    index = tmp_path / "copy" / "index.html"
    added = "<script>window.hacked = 1</script><img src=x onerror='window.hacked=1'></main>"
    index.write_text(index.read_text().replace("</main>", added))
    page = browser.new_page()
    page.goto(index.as_uri())
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    page.close()
