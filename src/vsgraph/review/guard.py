"""Who may talk to the server: the address with the token, by a known name, from our own pages."""

import hmac
import ipaddress
import secrets
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
LONGEST_ADDRESS = 4096
SAFE = {"GET", "HEAD"}
OWN_SITES = {"", "same-origin", "none"}  # of sec-fetch-site; '' from programs that do not say it
WELCOME = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Review</title>'
    '<link rel="icon" href="/files/icon.svg">'
    '<meta http-equiv="refresh" content="0; url=/"><p><a href="/">Open the review</a></p></html>'
)


class Guard:
    """Lets only the reviewer's own browser pass, and adds the headers that bind the pages."""

    def __init__(self, app: ASGIApp, *, token: str, host: str, port: int) -> None:
        self.app, self.token, self.host = app, token, host
        self.cookie = f"vsgraph-{port}"  # cookies are shared by all ports of a host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refused = self._refused(scope, headers) or self._welcome(scope, headers)

        async def send_bound(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message["headers"]}
                extra = [(n.encode(), v.encode()) for n, v in HEADERS.items()]
                if b"cache-control" not in own:
                    extra.append((b"cache-control", b"no-store"))
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        await (refused or self.app)(scope, receive, send_bound)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        """Return why a request is refused whatever it asks for, None if it is not."""
        if len(scope["path"]) + len(scope["query_string"]) > LONGEST_ADDRESS:
            return PlainTextResponse("refused: the address is too long\n", 414)
        name = headers.get("host", "")
        if not is_own_name(name, self.host):
            return PlainTextResponse("refused: this server is not known by that name\n", 421)
        origin = headers.get("origin")
        own_origin = origin == f"{scope['scheme']}://{name}"
        if origin is not None and not own_origin:
            return PlainTextResponse("refused: the request comes from another site\n", 403)
        if scope["method"] not in SAFE and not own_origin:
            return PlainTextResponse("refused: the request does not come from our pages\n", 403)
        return None

    def _welcome(self, scope: Scope, headers: Headers) -> Response | None:
        """Give the cookie for the token in the address; refuse a browser that has none."""
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and asked and self._is_token(asked):
            response = HTMLResponse(WELCOME)
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
            return response
        cookies = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        has_cookie = any(n == self.cookie and self._is_token(v) for n, _, v in cookies)
        if has_cookie and headers.get("sec-fetch-site", "") in OWN_SITES:
            return None
        return PlainTextResponse(
            "refused: open the address, with its token, that vsgraph review printed\n", 403
        )

    def _is_token(self, value: str) -> bool:
        return hmac.compare_digest(value.encode(), self.token.encode())


def is_own_name(header: str, host: str) -> bool:
    """Return whether a Host header names this server; a rebound name of another site does not.

    >>> is_own_name("127.0.0.1:8350", "127.0.0.1"), is_own_name("evil.example:8350", "127.0.0.1")
    (True, False)
    >>> is_own_name("10.0.0.5:8350", "0.0.0.0"), is_own_name("10.0.0.5:8350", "127.0.0.1")
    (True, False)
    """
    name, _, port = header.rpartition(":") if not header.endswith("]") else (header, "", "")
    name = (name if port.isdigit() else header).strip("[]").lower()
    if name in {"localhost", host.strip("[]").lower()}:
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or not is_loopback(host)


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only.

    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def new_token() -> str:
    """Return a token that cannot be guessed."""
    return secrets.token_urlsafe(24)
