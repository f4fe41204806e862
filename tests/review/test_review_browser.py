"""The review in a real browser: by keyboard, by mouse, with two people, with a dead server."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from browsing import is_wider_than_the_screen, launched, needs_chromium, wait_until
from made_pictures import jpeg
from vsgraph.answers import read_answers
from vsgraph.errors import VSGraphWarning
from vsgraph.runs import Choices, run
from vsgraph.settings import Settings

pytest.importorskip("uvicorn", reason="the extra review is not installed")
pytestmark = [needs_chromium, pytest.mark.slow]
AXE = Path(sys.prefix) / "axe" / "package" / "axe.min.js"
PAGES = (
    "/",
    "/class/0",
    "/class/0/meaning",
    "/queue",
    "/find?words=tree",
    "/find?pictures=copies",
    "/map",
    "/audit",
)
EVIL = (
    "<script>window.hacked=1</script>", "<img src=x onerror=window.hacked=1>", "\"'><svg/onload=1>",
    "</li></ul><h1>owned</h1>", "{{ 7*7 }} ${7*7}", "\u202eevil", "javascript:window.hacked=1",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    with launched() as started:
        yield started


class Served:
    """A server in a process of its own."""

    def __init__(self, folder, reviewer="ann", port=0):
        self.folder = folder
        state = {**os.environ, "XDG_STATE_HOME": str(folder.parent / "state")}
        command = [sys.executable, "-u", "-m", "vsgraph", "review", str(folder)]
        command += ["--reviewer", reviewer, "--port", str(port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=state)
        lines = iter(self.process.stdout)
        self.address = next(line.split()[1] for line in lines if line.startswith("open "))
        self.base = self.address.partition("/?")[0]
        self.port = int(self.base.rpartition(":")[2])

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(10)
        self.process.stdout.close()

    @property
    def answers(self):
        return read_answers(self.folder / "answers")


@pytest.fixture
def serve():
    with contextlib.ExitStack() as stack:

        def start(folder, *arguments):
            server = Served(folder, *arguments)
            stack.callback(lambda: server.process.poll() is None and server.end())
            return server

        yield start


@pytest.fixture
def open_page(browser):
    """Open a page; at the end, no script may have failed, asked elsewhere, or opened a dialog."""
    said, asked, contexts = [], [], []

    def open_page(server, path="/", *, width=1300, scheme="light", may_fail=False, **options):
        context = browser.new_context(
            viewport={"width": width, "height": 860}, color_scheme=scheme, **options
        )
        contexts.append(context)
        page = context.new_page()
        if not may_fail:
            page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda _: said.append("dialog"))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(server.address)
        page.wait_for_selector("h1")
        go(page, server, path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if not url.startswith("http://127.0.0.1:")] == []


def go(page, server, path):
    page.goto(server.base + path)
    page.wait_for_selector("[data-ready]")


def saved(page):
    wait_until(page, "() => document.querySelector('#saved').textContent.includes('All saved')")


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def answered(page):
    return page.locator(".tile.answered").count()


def test_the_whole_loop_by_keyboard(run_folder, serve, open_page, tmp_path):
    server = serve(run_folder)
    page = open_page(server)
    crane = page.locator("tbody a", has_text="crane")
    crane.focus()
    press(page, "Enter")
    page.wait_for_selector("[data-ready] .tile")
    first = page.locator(".tile").first
    press(page, "ArrowRight", "ArrowLeft", "x")
    assert "✕ none" in first.inner_text()
    assert page.evaluate("document.activeElement === document.querySelectorAll('.tile')[1]")
    press(page, "r")
    page.keyboard.type("pal")
    press(page, "Enter")
    wait_until(page, "() => document.querySelectorAll('.tile')[1].textContent.includes('→ palm')")
    saved(page)
    assert sorted(a.new for a in server.answers.given.values()) == [(), ("palm",)]

    group = page.locator(".group").first
    n_group = int(re.search(r"of (\d+) not answered", group.inner_text())[1])
    press(page, "Shift+X")
    saved(page)
    assert len(server.answers.given) == n_group  # the two keep what was said of them
    assert ("palm",) in {a.new for a in server.answers.given.values()}
    press(page, "u")
    saved(page)
    assert len(server.answers.given) == 2
    assert answered(page) == 2
    press(page, "Control+y")
    saved(page)
    assert len(server.answers.given) == n_group

    press(page, "Enter")
    assert page.locator("#large").is_visible()
    wait_until(page, "() => document.querySelector('#large img').naturalWidth > 100")
    press(page, "k")
    press(page, "Escape")
    assert page.locator("#large").is_hidden()
    saved(page)
    assert len(server.answers.given) == n_group  # one of those rejected at once is kept now
    assert ("crane",) in {a.new for a in server.answers.given.values()}

    page.get_by_text("Another meaning").focus()
    press(page, "Enter")
    page.wait_for_selector("[data-ready] #meaning")
    page.locator("input[name=sense]:checked").focus()
    while page.evaluate("document.activeElement.dataset.wnid") != "n03126707":
        press(page, "ArrowDown")
    press(page, "Enter")
    page.wait_for_url("**/changes", timeout=60_000)
    assert "What would change" in page.locator("h1").inner_text()
    assert page.locator(".tile").count() > 3
    page.go_back()
    page.wait_for_selector("[data-ready] #meaning")
    page.locator("input[data-wnid=n03126707]").check()
    press(page, "Tab")
    while page.evaluate("document.activeElement.value") != "apply":
        press(page, "Tab")
    press(page, "Enter")
    page.wait_for_url("**/changes", timeout=60_000)
    assert "What changed" in page.locator("h1").inner_text()

    out = tmp_path / "clean.csv"
    command = [sys.executable, "-m", "vsgraph", "export", str(run_folder), "--to", "csv"]
    subprocess.run([*command, "-o", str(out)], check=True, capture_output=True)
    exported = out.read_text()
    rejected = [a.image for a in server.answers.given.values() if not a.new]
    assert len(rejected) == n_group - 2
    kept_rows = [line for line in exported.splitlines() if any(name in line for name in rejected)]
    assert all("reject" in line or not line for line in kept_rows)


def test_answers_survive_kill_and_wait_for_the_server(run_folder, serve, open_page):
    server = serve(run_folder)
    page = open_page(server, "/queue", may_fail=True)
    press(page, "ArrowRight", "x", "k", "x")
    saved(page)
    server.end(signal.SIGKILL)
    assert len(server.answers.given) == 3
    press(page, "x", "x", "u", "x")
    wait_until(page, "() => document.querySelector('#saved').textContent.includes('not saved yet')")
    assert answered(page) == 5
    again = serve(run_folder, "ann", server.port)
    saved(page)
    page.reload()
    page.wait_for_selector("[data-ready]")
    assert len(again.answers.given) == 5
    lines = (run_folder / "answers" / "ann.jsonl").read_text().splitlines()
    assert len([line for line in lines if "picture" in json.loads(line)]) == 6


def test_an_answer_that_is_refused_stays_told_and_a_full_disk_is_waited_for(
    run_folder, serve, open_page
):
    server = serve(run_folder)
    page = open_page(server, "/queue", may_fail=True)
    replies = [(409, "the crawl was read again"), (503, "No space left on device")]

    def answer(route):
        if not replies:
            return route.continue_()
        code, error = replies.pop(0)
        return route.fulfill(status=code, json={"error": error})

    page.route("**/answer", answer)
    press(page, "ArrowRight", "x", "x")
    told = "1 answer was not saved: the crawl was read again"
    wait_until(page, f"() => document.querySelector('#saved').textContent.includes('{told}')")
    wait_until(page, "() => !sessionStorage.getItem('vsgraph-outbox').includes('batch')")
    assert told in page.locator("#saved").inner_text()
    assert len(server.answers.given) == 1


def test_two_people_at_once(run_folder, serve, open_page):
    servers = [serve(run_folder, name) for name in ("ann", "bea")]
    pages = [open_page(server, "/class/0") for server in servers]
    press(pages[0], "ArrowRight", "ArrowLeft", "x", "x")
    press(pages[1], "ArrowRight", "ArrowLeft", "k", "x")
    for page in pages:
        saved(page)
    for page, server in zip(pages, servers, strict=True):
        go(page, server, "/")
        assert "ann 2, bea 2" in page.locator("main").inner_text()
        page.get_by_text("1 conflict").click()
        page.wait_for_selector("[data-ready] .tile")
        assert page.locator(".tile").count() == 1
        press(page, "ArrowRight")
        page.locator("#beside", has_text="bea: ").wait_for()
        assert "ann: none of the classes" in page.locator("#beside").inner_text()


def test_mouse_drag_buttons_and_lasso(run_folder, serve, open_page):
    server = serve(run_folder)
    page = open_page(server, "/find")
    boxes = [page.locator(".tile").nth(i).bounding_box() for i in (0, 3)]
    page.mouse.move(boxes[0]["x"] + 5, boxes[0]["y"] + 5)
    page.mouse.down()
    page.mouse.move(boxes[1]["x"] + 20, boxes[1]["y"] + 40, steps=4)
    page.mouse.up()
    assert page.locator("[aria-selected=true]").count() == 4
    page.get_by_role("button", name="Reject x").click()
    saved(page)
    assert len(server.answers.given) == 4
    page.get_by_role("button", name="Undo").click()
    saved(page)
    assert not server.answers.given

    go(page, server, "/map")
    page.wait_for_selector("#map[data-points='168']", timeout=60_000)
    box = page.locator("#map").bounding_box()
    left, top, right, bottom = 5, 5, box["width"] - 5, box["height"] - 5
    page.mouse.move(box["x"] + left, box["y"] + top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top + 9)):
        page.mouse.move(box["x"] + x, box["y"] + y, steps=3)
    page.mouse.up()
    page.locator("#lassoed h2", has_text="168 selected").wait_for()
    page.locator("#lassoed button", has_text="Agree").click()
    saved(page)
    assert len(server.answers.given) == 168


def test_pages_fit_and_are_accessible(run_folder, serve, open_page):
    server = serve(run_folder)
    page = open_page(server, bypass_csp=True)
    for path in PAGES:
        go(page, server, path)
        if path == "/class/0":
            press(page, "ArrowRight", "x", "Shift+ArrowRight")
        page.set_viewport_size({"width": 1300, "height": 860})
        assert not is_wider_than_the_screen(page), path
        assert problems_of(page) == [], path
        page.set_viewport_size({"width": 400, "height": 860})
        assert not is_wider_than_the_screen(page), path
    page.emulate_media(color_scheme="dark")
    go(page, server, "/class/0")
    assert problems_of(page) == []
    for keys, dialog in (("r", "#relabel"), ("Enter", "#large"), ("?", "#keys")):
        press(page, "ArrowRight", keys)
        page.locator(f"{dialog}[open]").wait_for()
        assert problems_of(page) == [], dialog
        assert not is_wider_than_the_screen(page), dialog
        press(page, "Escape")


def test_an_audit_by_keyboard(run_folder, serve, open_page):
    server = serve(run_folder)
    page = open_page(server, "/audit?images=12")
    page.locator("#question", has_text="Does it show:").wait_for()
    press(page, "y", "n", "y", "s", "y", "u", "u", "y")
    saved(page)
    page.locator("#statement", has_text="4 checks").wait_for()
    assert "75.0 % of the exported labels are right" in page.locator("#statement").inner_text()
    assert len(server.answers.audit) == 4
    assert not server.answers.given


def problems_of(page):
    """Return the serious findings of axe-core."""
    if not AXE.exists():
        return []
    page.wait_for_timeout(150)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")["violations"]
    return [
        (problem["id"], [node["html"][:120] for node in problem["nodes"][:2]])
        for problem in found
        if problem["impact"] in {"serious", "critical"}
    ]


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there (make browser)")
def test_the_check_of_accessibility_finds_something(browser):
    page = browser.new_page()
    page.set_content("<html><body><img src=x><button></button></body></html>")
    assert {name for name, _ in problems_of(page)} >= {"image-alt", "button-name"}
    page.close()


def test_by_touch_on_a_phone(run_folder, serve, open_page):
    server = serve(run_folder)
    page = open_page(server, "/class/0", width=400, has_touch=True)
    page.get_by_role("button", name="Several").tap()
    for i in (0, 1):
        page.locator(".tile").nth(i).tap()
    page.get_by_role("button", name="Keep", exact=True).or_(
        page.locator("[data-do=keep]")
    ).first.tap()
    saved(page)
    assert len(server.answers.given) == 2


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory):
    """A run of a crawl whose names and texts try to break out, with broken pictures."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "crawl").mkdir()
    lines = []
    for row in range(56):
        data = jpeg((9 * row % 255, 90, 200), (40, 30)) if row % 9 else b"<svg onload=alert(1)>"
        (folder / "crawl" / f"{row}.jpg").write_bytes(data)
        evil = EVIL[row % 7]
        line = {"file_name": f"{row}.jpg", "query": EVIL[row % 2 + 1], "title": f"{evil} {row}"}
        lines.append(json.dumps(line | {"source": evil}))
    (folder / "crawl" / "metadata.jsonl").write_text("\n".join(lines))
    random = np.random.default_rng(0)
    own = {
        "features": random.standard_normal((56, 8)), "text_embeddings": np.eye(56, 8),
        "label_embeddings": np.eye(2, 8),
    }  # fmt: skip
    for name, array in own.items():
        np.save(folder / f"{name}.npy", array)
    choices = Choices(**{name: folder / f"{name}.npy" for name in own})
    few = Settings(n_neighbors=4, anchors_per_class=5)
    with pytest.warns(VSGraphWarning, match="unchecked meaning"):
        run(folder / "crawl", folder / "run", settings=few, choices=choices, with_report=False)
    return folder / "run"


def test_nothing_in_a_hostile_crawl_runs(hostile_run, serve, open_page):
    server = serve(hostile_run, EVIL[0])
    page = open_page(server)
    for path in ("/", "/class/0", "/class/1", "/queue", "/find?words=%3Cscript", "/find", "/map"):
        go(page, server, path)
        if page.locator(".tile").count():
            press(page, "ArrowRight", "Enter")
            page.locator("#large[open]").wait_for()
            press(page, "ArrowRight", "Escape", "r")
            page.locator("#relabel[open]").wait_for()
            press(page, "Enter")
        if path == "/map":
            page.wait_for_selector("#map[data-points='56']", timeout=60_000)
            page.locator("#map").focus()
            press(page, "Enter")
            page.locator("#lassoed .tile").first.wait_for()
        page.wait_for_timeout(100)
        assert page.evaluate("window.hacked") is None
        assert page.locator("h1", has_text="owned").count() == 0
        assert not is_wider_than_the_screen(page)
    saved(page)
    journals = (hostile_run / "answers").iterdir()
    assert sum(len(path.read_text().splitlines()) for path in journals) >= 4
