"""The server of the review: who may talk to it, what it shows, and that answers last."""

import json
import re
import time

import numpy as np
import pytest
from clients import HOST, TOKEN, open_client

from vsgraph.answers import read_answers
from vsgraph.report.tallies import Labels
from vsgraph.result.parts import Decision
from vsgraph.runs import Run

PAGES = (
    "/",
    "/find?pictures=copies",
    "/class/0",
    "/class/0/g0",
    "/class/0/meaning",
    "/queue",
    "/find",
    "/map",
    "/audit",
)
DATA = ("/names", "/why/3", "/picture/3", "/picture/3/large", "/map/data", "/work", "/audit/state")


def said(client, **body):
    """Send an answer as the page does."""
    view = client.review.session.view
    return client.post("/answer", json={"version": view.version, "batch": "b-0001", **body})


def rows_on(page):
    return [int(row) for row in re.findall(r'data-row="(\d+)"', page)]


# ---------------------------------------------------------------- who may talk to it


def test_everything_is_given_to_the_reviewer_and_bound(client):
    for path in (*PAGES, *DATA):
        reply = client.get(path)
        assert reply.status_code in {200, 202}, reply.text
        policy = reply.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
        if path in PAGES:
            assert not re.search(r"<script>|\son\w+=|style=|https?://", reply.text)
            assert reply.headers["cache-control"] == "no-store"


def test_nothing_is_given_without_the_token(client):
    for cookie in (None, TOKEN[:-1] + "x", ""):
        client.cookies.clear()
        if cookie is not None:
            client.cookies.set("vsgraph-8350", cookie)
        for path in (*PAGES, *DATA, "/files/review.js"):
            assert client.get(path).status_code == 403


@pytest.mark.parametrize("other", ["a/b=1", 'c="', "=", 'd="x; y"', "", "e=\\400"])
def test_cookies_of_other_programs_on_this_machine_do_no_harm(client, other):
    client.cookies.clear()
    cookie = f"{other}; vsgraph-8350={TOKEN}"
    assert client.get("/", headers={"cookie": cookie}).status_code == 200
    assert client.get("/", headers={"cookie": other}).status_code == 403


def test_addresses_without_end_are_refused(client):
    for path in (f"/picture/{'9' * 5000}", f"/class/{'9' * 5000}", f"/find?words={'x' * 9000}"):
        assert client.get(path).status_code == 414


def test_the_token_in_the_address_gives_a_cookie_that_only_our_pages_send(client):
    client.cookies.clear()
    assert client.get("/?token=wrong").status_code == 403
    reply = client.get(f"/?token={TOKEN}")
    assert reply.status_code == 200
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client.get("/").status_code == 200


def test_a_rebound_name_is_refused(client):
    for host in ("evil.example", "evil.example:8350", "10.0.0.5:8350", ""):
        assert client.get("/", headers={"host": host}).status_code == 421
        reply = client.post("/undo", json={"batch": "b-0001"}, headers={"host": host})
        assert reply.status_code == 421


def test_a_write_from_another_site_is_refused(client, run_folder):
    body = {"version": client.review.session.view.version, "what": "reject", "rows": [0]}
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999"):
        reply = client.post("/answer", json=body, headers={"origin": origin})
        assert reply.status_code == 403
        assert client.get("/", headers={"origin": origin}).status_code == 403
    del client.headers["origin"]
    assert client.post("/answer", json=body).status_code == 403
    for site in ("cross-site", "same-site"):
        assert client.get("/picture/3", headers={"sec-fetch-site": site}).status_code == 403
    assert not read_answers(run_folder / "answers").given


def test_names_that_are_own():
    from vsgraph.review.guard import is_own_name

    for header in ("localhost:8350", "127.0.0.1", "[::1]:8350", "[::1]", "127.5.5.5:1", HOST):
        assert is_own_name(header, "127.0.0.1"), header
    for header in ("", "localhost.evil.example", "127.0.0.1.evil.example:8350", "[::2]:1", "a:b"):
        assert not is_own_name(header, "127.0.0.1"), header
    assert is_own_name("review.lan:8350", "review.lan")
    assert is_own_name("192.168.0.7:8350", "0.0.0.0")
    assert not is_own_name("evil.example:8350", "0.0.0.0")


def test_only_what_the_run_knows_is_given(client):
    for path in (
        "/picture/99999", "/why/168", "/class/7", "/files/../app.py", "/files/app.py",
        "/picture/-1", "/files/%2e%2e%2fapp.py", "/class/0/nothing", "/find?decision=no",
        "/find?pictures=ugly", "/find?least=x", "/find?least=nan",
        "/picture/0/../../../etc/passwd", "/changes",
    ):  # fmt: skip
        assert client.get(path).status_code in {400, 404}, path


@pytest.mark.parametrize(
    "body",
    [
        {"what": "reject", "rows": []}, {"what": "reject", "rows": [-1]},
        {"what": "reject", "rows": [168]}, {"what": "reject", "rows": [True]},
        {"what": "reject", "rows": ["1"]}, {"what": "nothing", "rows": [1]},
        {"what": "relabel", "rows": [1], "classes": ["unicorn"]},
        {"what": "relabel", "rows": [1], "classes": [["bat"]]},
        {"what": "relabel", "rows": [1], "classes": []},
        {"what": "relabel", "rows": [1], "classes": ["bat", "palm"]},
        {"what": "reject", "set": "group:0:none"}, {"what": "reject", "set": "group:99:g0"},
        {"what": "reject", "set": f"group:{'9' * 5000}:g0"},
        {"what": "reject", "set": "find:least=nan"}, {"what": "reject", "set": "what?"},
        {"what": "reject", "rows": [1], "batch": "../x"},
        {"what": "reject", "rows": [1], "for": "fun"},
    ],
)  # fmt: skip
def test_an_answer_that_makes_no_sense_is_refused_in_words(client, body, run_folder):
    reply = said(client, **body)
    assert reply.status_code == 400
    assert len(reply.json()["error"]) > 10
    assert not read_answers(run_folder / "answers").given


def test_what_is_no_json_or_too_much_is_refused(client):
    typed = {"content-type": "application/json"}
    assert client.post("/answer", content=b"{", headers=typed).status_code == 400
    assert client.post("/answer", content=b"[1]", headers=typed).status_code == 400
    assert client.post("/answer", content=b"a=1").status_code == 400
    assert client.post("/answer", content=b" " * 2**21, headers=typed).status_code == 400
    assert client.post("/learn", content=b"[" * 10**5, headers=typed).status_code == 400
    for body in ({}, {"class": 99}, {"class": True}, {"class": 0}, {"class": 0, "wnid": "n0"}):
        assert client.post("/meaning", json=body).status_code == 400


# ---------------------------------------------------------------- what it shows


def test_a_board_holds_every_image_of_its_class_once(client):
    from vsgraph.review.boards import board

    view = client.review.session.view
    tallies = list(Labels(view.correction).tallies())
    for number in range(len(view.names)):
        groups = {group.name: group.rows for group in board(view, number)}
        came = groups.pop("came", np.array([], int))
        assert sorted(np.concatenate(list(groups.values()))) == tallies[number].found.tolist()
        assert sorted(came) == tallies[number].came.tolist()


def test_groups_are_named_by_their_typical_words(client):
    names = client.get("/names").json()
    page = client.get(f"/class/{names.index('crane')}").text
    assert re.search(r"<h2[^>]*>[^<]*(construction|tower|steel|bird|wading|marsh|neck)", page)


def test_classes_are_listed_by_noise_and_found_by_name(client):
    shares = [int(share) for share in re.findall(r"<td>(\d+)%</td>", client.get("/").text)]
    assert len(shares) == 7
    assert shares == sorted(shares, reverse=True)
    assert re.findall(r'href="/class/\d"><bdi>([^<]*)', client.get("/?find=PAL").text) == ["palm"]


def test_images_are_found_by_every_filter(client):
    view = client.review.session.view
    correction, palm = view.correction, view.names.index("palm")
    for query, fits in (
        ("decision=reject", correction.decisions == Decision.REJECT),
        ("label=palm", correction.web_labels == palm),
        ("final=palm", correction.final_labels == palm),
        ("rule=agrees", correction.rules == 2),
        ("least=0.9", view.confidence >= 0.9),
        ("most=0.5&answered=no", view.confidence <= 0.5),
        ("words=TROPICAL", np.array(["tropical" in text for text in view.crawl.texts()])),
        ("answered=yes", np.zeros(len(view), bool)),
        ("pictures=copies", view.screening.sizes > 1),
        ("pictures=broken", np.zeros(len(view), bool)),
        ("label=no+such+class", np.zeros(len(view), bool)),
    ):
        found = rows_on(client.get(f"/find?{query}").text)
        assert set(found) <= set(np.flatnonzero(fits).tolist()), query
        assert len(found) == min(96, int(fits.sum())), query
    sure = [view.confidence[row] for row in rows_on(client.get("/find").text)]
    assert sure == sorted(sure)
    everything = rows_on(client.get("/find?page=1").text) + rows_on(client.get("/find?page=2").text)
    assert sorted(everything) == list(range(168))


def test_copies_are_shown_together_and_told(client):
    """The first page leads to them; they lie group by group, and the panel names them."""
    screening = client.review.session.view.screening
    n_copies = int((screening.sizes > 1).sum())
    assert n_copies > 4
    assert f'<a href="/find?pictures=copies">{n_copies} copies</a>' in client.get("/").text
    rows = rows_on(client.get("/find?pictures=copies").text)
    groups = screening.groups[rows].tolist()
    assert groups == sorted(groups)
    about = client.get(f"/why/{rows[0]}").json()
    assert f"{screening.sizes[rows[0]]} copies, found as" in about["reason"]
    labels = screening.differing(client.review.session.view.crawl.labels_matrix())
    found = rows_on(client.get("/find?pictures=copies+under+several+labels").text)
    assert sorted(found) == np.flatnonzero(labels).tolist()


def test_the_queue_goes_on_with_what_is_not_answered(client):
    first = rows_on(client.get("/queue").text)
    assert len(first) == 48
    assert re.search(r"label \d+% probable, \d unsure looks? alike", client.get("/queue").text)
    said(client, what="agree", rows=first[:30])
    second = rows_on(client.get("/queue").text)
    assert len(second) == 48
    assert not set(first[:30]) & set(second)
    said(client, what="agree", set="find:", batch="b-0002")
    assert "There is nothing left to ask" in client.get("/queue").text


def test_the_panel_tells_text_and_reason(client):
    told = client.get("/why/5").json()
    correction = client.review.session.view.correction
    assert told["reason"] == correction.reason(5)
    assert told["final"] == list(correction.explain(5).final_labels)
    assert len(told["near"]) >= 3
    assert told["said"] is None


def test_pictures_are_made_once(client, run_folder, monkeypatch):
    first = client.get("/picture/4")
    assert first.headers["content-type"] == "image/jpeg"
    kept = list((run_folder / "review").rglob("*.jpg"))
    assert len(kept) == 1
    with monkeypatch.context() as patch:
        patch.setattr("vsgraph.review.pictures.small_jpeg", None)  # is not called again
        assert client.get("/picture/4").content == first.content
    kept[0].write_bytes(b"")  # after a power cut
    assert client.get("/picture/4").content == first.content


def test_a_deleted_picture_shows_a_sign(client, run_folder):
    name = client.get("/why/6").json()["image"]
    (run_folder.parent / "crawl" / name).unlink()
    for path in ("/picture/6", "/picture/6/large"):
        reply = client.get(path)
        assert reply.status_code == 200
        assert reply.headers["content-type"] == "image/svg+xml"


# ---------------------------------------------------------------- answers


def test_answers_are_on_disk_and_on_the_next_page(client, run_folder):
    web, final = client.get("/why/0").json()["web"], client.get("/why/4").json()["final"]
    assert said(client, what="keep", rows=[0]).json() == {"batch": "b-0001", "count": 1}
    said(client, what="reject", rows=[1, 2], batch="b-0002")
    said(client, what="relabel", rows=[3], classes=["palm"], batch="b-0003")
    said(client, what="agree", rows=[4], batch="b-0004")

    lines = (run_folder / "answers" / "ann.jsonl").read_text().splitlines()
    assert [json.loads(line)["new"] for line in lines] == [web, [], [], ["palm"], final]
    assert sorted(rows_on(client.get("/find?answered=yes").text)) == [0, 1, 2, 3, 4]
    assert client.get("/why/3").json()["said"] == {"new": ["palm"], "who": "ann"}
    page = client.get("/").text
    assert "<bdi>ann</bdi></b> 5" in page
    assert 'data-count="5"' in page


def test_a_batch_that_is_sent_twice_is_written_once(client, run_folder):
    for _ in range(2):
        said(client, what="reject", rows=[1])
    again = open_client(run_folder, "ann")
    assert said(again, what="reject", rows=[1]).json()["count"] == 0
    assert len((run_folder / "answers" / "ann.jsonl").read_text().splitlines()) == 1


def test_a_whole_group_is_rejected_but_for_what_was_answered(client):
    from vsgraph.review.boards import board

    session = client.review.session
    group = board(session.view, 0)[0]
    kept = int(group.rows[0])
    said(client, what="keep", rows=[kept])
    done = said(client, what="reject", set=f"group:0:{group.name}", batch="b-0002").json()
    assert done["count"] == len(group.rows) - 1
    assert session.labels[kept] == 0
    assert (session.labels[group.rows[1:]] == -1).all()

    client.post("/undo", json={"batch": "b-0002"})
    assert (session.labels[group.rows[1:]] == -2).all()
    assert session.labels[kept] == 0
    client.post("/redo", json={"batch": "b-0002"})
    assert (session.labels[group.rows[1:]] == -1).all()


def test_everything_found_is_answered_at_once(client):
    assert said(client, what="reject", set="find:words=tower").json()["count"] > 3
    rows = np.flatnonzero(client.review.session.labels == -1)
    assert all("tower" in text for text in client.review.session.view.crawl.texts(rows))


def test_two_reviewers_see_each_other_and_where_they_differ(client, run_folder):
    other = open_client(run_folder, "bea")
    said(client, what="reject", rows=[0, 1])
    said(other, what="reject", rows=[0], batch="b-0009")
    said(other, what="relabel", rows=[1], classes=["palm"], batch="b-0010")
    page = client.get("/").text
    assert "<bdi>ann</bdi></b> 2" in page
    assert "<bdi>bea</bdi></b> 2" in page
    assert "agree on 50%" in page
    assert rows_on(client.get("/find?answered=conflict").text) == [1]
    assert client.get("/why/1").json()["others"] == {"ann": [], "bea": ["palm"]}
    assert client.get("/why/1").json()["said"]["who"] == "bea"


def test_a_page_of_another_crawl_cannot_write(client, run_folder):
    body = {"version": "other", "batch": "b-0001", "what": "reject", "rows": [1]}
    reply = client.post("/answer", json=body)
    assert reply.status_code == 409
    assert "open it again" in reply.json()["error"]
    assert not read_answers(run_folder / "answers").given


def test_an_audit_changes_no_label_and_says_what_it_found(client, run_folder):
    assert "no label was checked yet" in client.get("/audit").text
    asked = json.loads(re.search(r'id="to-ask">(.*?)</script>', client.get("/audit").text)[1])
    exported = Run.open(run_folder).correction.decisions != Decision.REJECT
    assert len(asked) == min(200, exported.sum())
    for place, one in enumerate(asked[:10]):
        shows = {"what": "relabel", "classes": one["labels"]} if place else {"what": "reject"}
        said(client, rows=[one["row"]], batch=f"a-{place:04d}", **{"for": "audit"}, **shows)
    told = client.get("/audit/state?images=200").json()["statement"]
    assert told.startswith("90.0 % of the exported labels are right (")
    assert "10 checks" in told
    assert (client.review.session.labels == -2).all()
    assert not read_answers(run_folder / "answers").given
    assert client.get("/audit?images=0").status_code == 400
    assert client.get("/audit?images=x").status_code == 400


# ---------------------------------------------------------------- solving again


def wait_for_work(client):
    for _ in range(600):
        work = client.get("/work").json()
        if work["done"]:
            return work
        time.sleep(0.1)
    raise AssertionError(work)


@pytest.mark.slow
def test_another_meaning_is_tried_out_applied_and_what_fails_says_why(client, run_folder):
    crane = client.get("/names").json().index("crane")
    assert "n03126707" in client.get(f"/class/{crane}/meaning").text  # the machine
    before = (run_folder / "run.json").read_text()
    client.post("/meaning", json={"class": crane, "wnid": "n03126707"})
    busy = client.post("/learn", json={})
    assert busy.status_code == 400
    assert "wait until this is done" in busy.json()["error"]
    tried = wait_for_work(client)
    assert tried["error"] == ""
    assert tried["changed"] > 5
    assert (run_folder / "run.json").read_text() == before
    assert "What would change" in client.get("/changes").text

    words = "crane: a <b>machine</b> that lifts steel at a construction site"
    client.post("/meaning", json={"class": crane, "words": words, "apply": True})
    applied = wait_for_work(client)
    assert applied["error"] == ""
    assert applied["changed"] > 5
    plain = "crane: a machine that lifts steel at a construction site"
    assert plain in client.get(f"/class/{crane}").text
    assert Run.open(run_folder).meanings[crane].description == plain

    assert said(client, what="reject", set=f"group:{crane}:g0").json()["count"] > 3
    client.post("/learn", json={})
    learned = wait_for_work(client)
    assert learned["error"] == ""
    assert "besides the answers" in client.get("/changes").text
    assert any("answers changed" in line for line in learned["lines"])

    (run_folder.parent / "crawl" / "metadata.jsonl").unlink()
    client.post("/learn", json={})
    assert "metadata.jsonl" in wait_for_work(client)["error"]
    assert client.get("/").status_code == 200
