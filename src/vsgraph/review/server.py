"""Starts the server of a review."""

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn

from vsgraph.common.files import file_errors, lock
from vsgraph.errors import InputError
from vsgraph.pictures.opener import quiet_pillow
from vsgraph.review.app import make_app
from vsgraph.review.guard import is_loopback, new_token
from vsgraph.review.pages import Review
from vsgraph.review.session import Session
from vsgraph.runs import Run
from vsgraph.runs.names import LOCK

TOKEN = "review-token"  # noqa: S105  the name of the file that holds it


@file_errors()
def serve(path: Path, *, reviewer: str, host: str, port: int, tell: Callable[[str], None]) -> None:
    """Serve the review of a run until the process is ended."""
    path = Run.open(path).path  # or says what is wrong with the run; for an address, a copy here
    refuse_busy(path)
    with bound(host, port) as listening:
        address = listening.getsockname()
        token = own_token()
        review = Review(Session(path, reviewer))
        app = make_app(review, token=token, host=host, port=address[1])
        shown = f"[{address[0]}]" if ":" in address[0] else address[0]
        tell(f"reviewer: {review.session.reviewer}; answers go to {review.session.journal.path}")
        if not is_loopback(host):
            tell("others on the network can open this address; they need its token")
        tell(f"open http://{shown}:{address[1]}/?token={token}")
        tell("Ctrl-C ends the review; every answer is saved when it is given")
        settings = uvicorn.Config(
            app, log_level="warning", access_log=False, http="h11", ws="none", lifespan="off",
            server_header=False, date_header=False, timeout_graceful_shutdown=2,
        )  # fmt: skip
        review.warm()
        with quiet_pillow():
            uvicorn.Server(settings).run(sockets=[listening])


def refuse_busy(path: Path) -> None:
    """Refuse a run that another process is correcting."""
    try:
        lock(path / LOCK).close()
    except InputError as error:
        raise InputError(
            f"{path} is being corrected by another process; start the review when it has finished"
        ) from error


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """Give a socket that listens at an address."""
    try:
        kind = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(kind[4][:2], family=kind[0])
    except OSError as error:
        raise InputError(
            f"cannot listen at {host}, port {port}: {_reason(error)}; choose another one "
            "(--port, --host)"
        ) from error
    with listening:
        yield listening


def _reason(error: OSError) -> str:
    """Return in a few words why an address cannot be had."""
    is_name = isinstance(error, socket.gaierror) or not error.errno
    return str(error.strerror or error) if is_name else os.strerror(error.errno or 0)


def own_token() -> str:
    """Return the token of this user; it stays the same, so that open pages survive a restart."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    path = Path(home) / "vsgraph" / TOKEN
    with contextlib.suppress(OSError):
        token = path.read_text(encoding="ascii").strip()
        if len(token) >= 32 and path.stat().st_mode & 0o077 == 0:
            return token
    token = new_token()
    with contextlib.suppress(OSError):  # then it is new at each start
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(token)
    return token
