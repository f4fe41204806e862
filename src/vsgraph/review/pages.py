"""The pages: what each one shows."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from vsgraph.errors import InputError
from vsgraph.report.pages import templates
from vsgraph.report.tallies import Rows
from vsgraph.result.parts import UNANSWERED, Decision, Rule
from vsgraph.review.boards import board, group_rows
from vsgraph.review.finding import ANSWERED, ORDERS, PICTURES, Filters, count_pictures, find
from vsgraph.review.maps import Maps
from vsgraph.review.pictures import Thumbnails
from vsgraph.review.senses import senses_of
from vsgraph.review.session import Session
from vsgraph.review.tiles import Tile, make_tiles
from vsgraph.review.upcoming import Upcoming, reasons
from vsgraph.review.view import View
from vsgraph.review.work import Worker
from vsgraph.runs import Run
from vsgraph.runs.audit import Audit

FILES = Path(__file__).parent / "files"
MOST_CLASSES = 200  # listed at once
IN_GROUP = 24  # pictures of a group on a board
ON_PAGE = 96
IN_QUEUE = 48
MOST_SOURCES = 200
AUDITED, MOST_AUDITED = 200, 5000  # images of an audit


class Review:
    """Everything that the requests share."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.worker = Worker(session)
        self.thumbnails = Thumbnails(session.path)
        self.maps = Maps(session.path)
        self.upcoming = Upcoming(session)

    def warm(self, after: float = 1.5) -> None:
        """Prepare in the background what the first pages need, after the very first one."""

        def prepare() -> None:
            time.sleep(after)
            view = self.session.view
            for number in view.by_noise[:2].tolist():
                board(view, number)
            self.upcoming.take(view, IN_QUEUE)

        threading.Thread(target=prepare, name="warm", daemon=True).start()

    def page(self, template: str, view: View, here: str, **values: Any) -> Response:  # noqa: ANN401
        """Fill the template of a page."""
        text = templates(FILES).get_template(template).render(
            view=view, here=here, session=self.session, names=view.names,
            n_answered=int((self.session.labels != UNANSWERED).sum()), work=self.worker.work,
            crawl_name=view.run.record["asked"]["crawl"]["name"], **values,
        )  # fmt: skip
        return HTMLResponse(text.encode("utf-8", "replace"))

    def tiles(self, view: View, rows: Rows, notes: list[str] | None = None) -> list[Tile]:
        """Return the tiles of some images."""
        return make_tiles(self.session, view, rows, notes)

    def classes(self, request: Request) -> Response:
        """Show all classes, the noisiest first."""
        view = self.session.refresh(fully=True)
        wanted = request.query_params.get("find", "").strip().casefold()
        order = [n for n in view.by_noise.tolist() if wanted in view.names[n].casefold()]
        shown = order[:MOST_CLASSES]
        answered = self.session.labels != UNANSWERED
        n_answered = {n: int(answered[view.web.rows(n)].sum()) for n in shown}
        return self.page(
            "classes.html", view, "classes", shown=shown, n_found=len(order), find=wanted,
            n_answered_by=n_answered, counts=view.correction.counts,
            answers=self.session.answers,
            pictures=view.keep("pictures", lambda: count_pictures(view)),
        )  # fmt: skip

    def class_board(self, request: Request) -> Response:
        """Show the groups of a class."""
        view = self.session.refresh()
        number = _class_of(request, view)
        groups = board(view, number)
        place = view.by_noise.tolist().index(number) if number in view.by_noise else 0
        before, after = (
            int(view.by_noise[i]) if 0 <= i < len(view.by_noise) else None
            for i in (place - 1, place + 1)
        )
        return self.page(
            "board.html", view, "classes", number=number, name=view.names[number],
            place=place + 1, before=before, after=after,
            meaning=view.meanings.get(view.names[number]),
            groups=[(g, self.tiles(view, g.rows[:IN_GROUP]), self._n_open(g.rows)) for g in groups],
        )  # fmt: skip

    def _n_open(self, rows: Rows) -> int:
        """Return how many of some images have no answer yet."""
        return int((self.session.labels[rows] == UNANSWERED).sum())

    def group(self, request: Request) -> Response:
        """Show all images of a group, page by page."""
        view = self.session.refresh()
        number, name = _class_of(request, view), request.path_params["group"]
        rows = group_rows(view, number, name)
        title = next(g.title for g in board(view, number) if g.name == name)
        shown, page, n_pages = _page_of(request, rows)
        return self.page(
            "group.html", view, "classes", number=number, name=view.names[number], group=name,
            title=title, tiles=self.tiles(view, shown), n_found=len(rows), page=page,
            n_pages=n_pages, n_open=self._n_open(rows),
            address=f"/class/{number}/{name}?page=", set=f"group:{number}:{name}",
        )  # fmt: skip

    def senses(self, request: Request) -> Response:
        """Show what a class may mean."""
        view = self.session.refresh()
        number = _class_of(request, view)
        return self.page(
            "meaning.html", view, "classes", number=number, name=view.names[number],
            senses=senses_of(view, number),
        )  # fmt: skip

    def queue(self, request: Request) -> Response:  # noqa: ARG002
        """Show what is worth most next."""
        view, answered = self.session.refresh(), self.session.answered_labels()
        rows = self.upcoming.take(view, IN_QUEUE)
        told = reasons(view.correction, answered, rows)
        return self.page("queue.html", view, "queue", tiles=self.tiles(view, rows, told))

    def find(self, request: Request) -> Response:
        """Show the images that fit some filters."""
        view = self.session.refresh()
        filters = Filters.of(dict(request.query_params))
        rows = self.found(view, filters)
        shown, page, n_pages = _page_of(request, rows)
        sources = view.sources[0][:MOST_SOURCES] if view.sources else []
        return self.page(
            "find.html", view, "find", filters=filters, tiles=self.tiles(view, shown),
            n_found=len(rows), page=page, n_pages=n_pages, n_open=self._n_open(rows),
            address=f"/find?{filters.query()}&page=", set=f"find:{filters.query()}",
            decisions=[d.name.lower() for d in Decision], rules=[r.name.lower() for r in Rule],
            orders=ORDERS, answered=ANSWERED, sources=sources, pictures=PICTURES,
        )  # fmt: skip

    def found(self, view: View, filters: Filters) -> Rows:
        """Return the images that fit some filters."""
        return find(view, filters, self.session.labels, self.session.conflicts)

    def map(self, request: Request) -> Response:  # noqa: ARG002
        """Show the map, and start drawing it."""
        view = self.session.refresh()
        self.maps.get(view)
        return self.page("map.html", view, "map")

    def audit(self, request: Request) -> Response:
        """Ask whether labels of a random sample are right."""
        view = self.session.refresh(fully=True)
        n_images = n_audited(request)
        audit = self.sample(view, n_images)
        labels = {row: list(audit.labels(row)) for row in audit.missing()}
        to_ask = [{"row": row, "labels": names} for row, names in labels.items()]
        asked = {name for names in labels.values() for name in names}
        meant = {name: m.description for name, m in view.meanings.items() if name in asked}
        return self.page(
            "audit.html", view, "audit", n_images=n_images, n_sample=len(audit.rows),
            to_ask=to_ask, meant=meant, statement=str(audit.statement()),
        )  # fmt: skip

    def sample(self, view: View, n_images: int) -> Audit:
        """Return the sample of labels as they would be exported now; it is kept for a while."""
        key = ("audit", n_images, self.session.n_written)
        made: Audit = view.keep(key, lambda: Audit.open(Run.open(self.session.path), n_images))
        return made

    def changes(self, request: Request) -> Response:  # noqa: ARG002
        """Show what the last work changed."""
        view, work = self.session.refresh(), self.worker.work
        if work is None or work.changes is None:
            raise InputError("nothing was solved again since this review was started")
        rows = np.array([row for move in work.changes.moves for row in move.rows], np.intp)
        tiles = {tile.row: tile for tile in self.tiles(view, rows)}
        return self.page("changes.html", view, "classes", done=work, tiles=tiles)


def n_audited(request: Request) -> int:
    """Return how many images an address asks to check."""
    text = request.query_params.get("images", str(AUDITED))
    if not text.isdecimal() or not 0 < int(text[:9]) <= MOST_AUDITED:
        raise InputError(f"images must be a number from 1 to {MOST_AUDITED:,}, got {text!r:.20}")
    return int(text)


def _class_of(request: Request, view: View) -> int:
    """Return the class that an address names."""
    number = int(request.path_params["number"])
    if not 0 <= number < len(view.names):
        raise InputError(f"there is no class {number}; there are {len(view.names)}")
    return number


def _page_of(request: Request, rows: Rows) -> tuple[Rows, int, int]:
    """Return the rows of the page that an address names, its number, and how many there are."""
    text = request.query_params.get("page", "1")
    n_pages = max(1, -(-len(rows) // ON_PAGE))
    page = min(max(1, int(text) if text.isdecimal() and len(text) < 9 else 1), n_pages)
    return rows[(page - 1) * ON_PAGE : page * ON_PAGE], page, n_pages
