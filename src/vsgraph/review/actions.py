"""What the pages' scripts ask for and send."""

import dataclasses
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from vsgraph.answers import TEACH
from vsgraph.common.formatting import plain
from vsgraph.errors import InputError
from vsgraph.report.tallies import Rows
from vsgraph.review.boards import group_rows
from vsgraph.review.finding import Filters
from vsgraph.review.maps import map_columns
from vsgraph.review.pages import FILES, Review, n_audited
from vsgraph.review.senses import picked
from vsgraph.review.tiles import describe
from vsgraph.review.view import View

MOST_ROWS = 20_000  # given one by one
BATCH = re.compile(r"[A-Za-z0-9-]{4,40}")
NO_PICTURE = (FILES.parent.parent / "report" / "files" / "no-picture.svg").read_bytes()
CACHED = {"cache-control": "private, max-age=86400"}

Body = dict[str, Any]


class StaleError(InputError):
    """The rows that a page shows are others by now."""


def picture(review: Review, request: Request) -> Response:
    """Give the picture of a row, small or large, decoded and encoded again."""
    view = review.session.view
    row = check_row(request.path_params["row"], view)
    if request.path_params.get("size") == "large":
        data = review.thumbnails.large(view, row)
    else:
        key = review.session.index.of_rows(np.array([row]))[0]
        data = review.thumbnails.small(view, row, key)
    if not data:
        return Response(NO_PICTURE, media_type="image/svg+xml")
    return Response(data, media_type="image/jpeg", headers=CACHED)


def check_row(value: object, view: View) -> int:
    """Return the number of a row; InputError if the run has no such row."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(view):
        raise InputError(f"there is no image {value!r:.20}; there are {len(view)}")
    return value


def why(review: Review, request: Request) -> Response:
    """Tell everything about an image."""
    view = review.session.view
    return JSONResponse(describe(review.session, view, check_row(request.path_params["row"], view)))


def names(review: Review, request: Request) -> Response:  # noqa: ARG001
    """List the names of the classes, to type ahead."""
    return JSONResponse(list(review.session.view.names))


def map_data(review: Review, request: Request) -> Response:  # noqa: ARG001
    """Give the map, once it is drawn."""
    view = review.session.refresh()
    drawn = review.maps.get(view)
    if drawn is None:
        return JSONResponse({"waiting": True}, 202)
    return JSONResponse(plain(map_columns(view, drawn)))


def audit_state(review: Review, request: Request) -> Response:
    """Tell what the answers of the audit say so far."""
    view = review.session.refresh(fully=True)
    return JSONResponse({"statement": str(review.sample(view, n_audited(request)).statement())})


def work(review: Review, request: Request) -> Response:  # noqa: ARG001
    """Tell how far the work in the background is."""
    now = review.worker.work
    if now is None:
        return JSONResponse(None)
    return JSONResponse({
        "number": now.number, "kind": now.kind, "title": now.title, "lines": list(now.lines),
        "done": now.is_done, "error": now.error,
        "changed": None if now.changes is None else now.changes.n_changed,
    })  # fmt: skip


def answer(review: Review, body: Body) -> Body:
    """Write what some images show, given as rows or as a set of the page."""
    session = review.session
    view = session.refresh()
    if body.get("version") != view.version:
        raise StaleError("the crawl was read again since this page was opened; open it again")
    rows = _rows_of(review, view, body)
    said = _said(view, rows, body)
    batch, purpose = _batch(body), body.get("for", TEACH)
    n = session.answer(rows, said, batch=batch, purpose=str(purpose))
    return {"batch": batch, "count": n}


def _batch(body: Body) -> str:
    batch = body.get("batch")
    if not isinstance(batch, str) or not BATCH.fullmatch(batch):
        raise InputError("a batch needs a name of 4 to 40 letters and digits")
    return batch


def _rows_of(review: Review, view: View, body: Body) -> Rows:
    """Return the rows that an answer is about."""
    if isinstance(body.get("set"), str):
        return review.session.unanswered(_set_of(review, view, body["set"]))
    rows = body.get("rows")
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_ROWS:
        raise InputError(f"give 1 to {MOST_ROWS:,} rows")
    return np.array([check_row(row, view) for row in rows], np.intp)


def _set_of(review: Review, view: View, name: str) -> Rows:
    """Return the rows of a set: a group of a class, or what some filters find."""
    kind, _, rest = name.partition(":")
    if kind == "find":
        return review.found(view, Filters.of(dict(parse_qsl(rest))))
    number, _, group = rest.partition(":")
    known = {str(place) for place in range(len(view.names))}
    if kind != "group" or number not in known:
        raise InputError(f"{name!r:.60} is no set of images")
    return group_rows(view, int(number), group)


def _said(view: View, rows: Rows, body: Body) -> list[tuple[str, ...]]:
    """Return what each image shows, by what was decided."""
    what = body.get("what")
    if what == "keep":
        return [view.web_names(row) for row in rows.tolist()]
    if what == "agree":
        return [view.final_names(row) for row in rows.tolist()]
    if what == "reject":
        return [()] * len(rows)
    classes = body.get("classes")
    if what != "relabel" or not isinstance(classes, list) or not classes:
        raise InputError("what must be keep, reject, agree, or relabel with classes")
    for name in classes:
        if name not in view.names:
            raise InputError(f"there is no class {name!r:.60}")
    if len(classes) > 1 and not view.several:
        raise InputError("images of this crawl have one label; choose one class")
    return [tuple(classes)] * len(rows)


def undo(review: Review, body: Body) -> Body:
    """Take back a batch of answers."""
    review.session.undo(_batch(body))
    return {}


def redo(review: Review, body: Body) -> Body:
    """Give a batch of answers again."""
    review.session.undo(_batch(body), again=True)
    return {}


def said(review: Review, body: Body) -> Body:
    """Tell the answers to some images."""
    view = review.session.refresh()
    rows = _rows_of(review, view, {"rows": body.get("rows")})
    answers = review.session.said(rows)
    pairs = zip(rows.tolist(), answers, strict=True)
    return {"said": {str(row): a and {"new": a.new, "who": a.who} for row, a in pairs}}


def learn(review: Review, body: Body) -> Body:  # noqa: ARG001
    """Solve the run again with all answers."""
    return {"number": review.worker.learn().number}


def meaning(review: Review, body: Body) -> Body:
    """Try out or apply another meaning of a class."""
    view = review.session.refresh()
    number = body.get("class")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(view.names):
        raise InputError("give the number of a class")
    chosen = picked(
        view, number, wnid=str(body.get("wnid") or ""), words=str(body.get("words") or "")
    )
    act = review.worker.apply_meaning if body.get("apply") is True else review.worker.try_meaning
    return {"number": act(dataclasses.replace(chosen, class_name=view.names[number])).number}


POSTS: dict[str, Callable[[Review, Body], Body]] = {
    "/answer": answer, "/undo": undo, "/redo": redo, "/said": said, "/learn": learn,
    "/meaning": meaning,
}  # fmt: skip
GETS: dict[str, Callable[[Review, Request], Response]] = {
    "/picture/{row:int}": picture, "/picture/{row:int}/{size}": picture, "/why/{row:int}": why,
    "/names": names, "/map/data": map_data, "/work": work,
    "/audit/state": audit_state,
}  # fmt: skip
