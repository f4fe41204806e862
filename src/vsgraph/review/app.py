"""The routes of the server, and what becomes of errors."""

import functools
import json
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from vsgraph.errors import InputError, VSGraphError
from vsgraph.review.actions import GETS, POSTS, Body, StaleError
from vsgraph.review.guard import Guard
from vsgraph.review.pages import FILES, Review

MOST_BYTES = 2**20  # of what a page may send
STATIC = {"review.css", "icon.svg"} | {path.name for path in FILES.glob("*.js")}


def make_app(review: Review, *, token: str, host: str, port: int) -> Starlette:
    """Return the server of a review."""
    pages = {
        "/": review.classes, "/class/{number:int}": review.class_board,
        "/class/{number:int}/meaning": review.senses, "/class/{number:int}/{group}": review.group,
        "/queue": review.queue, "/find": review.find, "/map": review.map,
        "/audit": review.audit, "/changes": review.changes,
    }  # fmt: skip
    gets = {path: functools.partial(do, review) for path, do in GETS.items()} | pages
    routes = [Route("/files/{name}", _static), *(Route(p, _get(do)) for p, do in gets.items())]
    routes += [
        Route(path, _post(functools.partial(do, review)), methods=["POST"])
        for path, do in POSTS.items()
    ]
    guard = Middleware(Guard, token=token, host=host, port=port)
    return Starlette(routes=routes, middleware=[guard])


Handler = Callable[[Request], Awaitable[Response]]


def _get(do: Callable[[Request], Response]) -> Handler:
    """Return a handler that gives a page or data; an error is told in one line."""

    async def handle(request: Request) -> Response:
        try:
            return await run_in_threadpool(do, request)
        except (VSGraphError, OSError) as error:
            return PlainTextResponse(f"{error}\n", 400)

    return handle


def _post(do: Callable[[Body], Body]) -> Handler:
    """Return a handler that takes JSON; an error is told as JSON."""

    async def handle(request: Request) -> Response:
        try:
            body = await _body(request)
            return JSONResponse(await run_in_threadpool(do, body))
        except (VSGraphError, OSError) as error:
            kinds = ((StaleError, 409), (InputError, 400))
            code = next((code for kind, code in kinds if isinstance(error, kind)), 503)
            return JSONResponse({"error": str(error)}, code)

    return handle


async def _body(request: Request) -> Body:
    """Return the JSON object that a page sent."""
    if request.headers.get("content-type") != "application/json":
        raise InputError("send JSON")
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > MOST_BYTES:
            raise InputError("too much at once")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise InputError("send a JSON object")
    return body


async def _static(request: Request) -> Response:
    """Give a file of the pages; only files that are known by name."""
    name = request.path_params["name"]
    if name not in STATIC:
        return PlainTextResponse("not found\n", 404)
    return FileResponse(FILES / name, headers={"cache-control": "no-cache"})
