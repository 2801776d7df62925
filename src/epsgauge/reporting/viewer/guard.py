"""Who may see a page: one token, one cookie, one Host, and headers that let a browser load nothing from elsewhere."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from epsgauge.reporting.viewer.render import page

PAGES = ("/", "/run", "/overlay", "/calculator")
STATIC = "/static/"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
WRONG_HOST = "This page answers to 127.0.0.1 and localhost at its own port alone. Use the address in the terminal."
WRONG_TOKEN = "The token in this address is not the one of this viewer. Use the address that the terminal shows last."
SPENT = (
    "This address has been used already, and an address works once. All pages of this viewer are closed to be safe; "
    "the terminal shows a new address."
)
NO_COOKIE = "This browser has no key to this viewer. Use the address that the terminal shows."
FROM_ELSEWHERE = "Another page asked for this one. Open it yourself if that is what you want."


@dataclass
class Keys:
    """The token of the address, which is good once, and the sessions that it opened."""

    port: int
    announce: Callable[[str], None] = lambda address: None  # is told of a new address
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    spent: set[str] = field(default_factory=set, repr=False)
    sessions: set[str] = field(default_factory=set, repr=False)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    @property
    def cookie(self) -> str:
        """Its name; cookies do not know ports, so that two viewers need two names."""
        return f"epsgauge-{self.port}"

    def exchange(self, offered: str) -> str | None:
        """A session for the token; None for any other, and a spent one ends every session: somebody else has it."""
        if _same(offered, self.token):
            self._renew()
            session = secrets.token_urlsafe(32)
            self.sessions.add(session)
            return session
        if self.was_spent(offered):
            self.sessions.clear()
            self.announce(self.address)
        return None

    def was_spent(self, offered: str) -> bool:
        return any(_same(offered, old) for old in self.spent)

    def session_of(self, cookies: str) -> str | None:
        """The session that a Cookie header carries; another page of this machine can have set more of that name."""
        pairs = [part.strip().partition("=") for part in cookies.split(";")]
        offered = [value for name, _, value in pairs if name == self.cookie]
        return next((known for known in self.sessions for value in offered if _same(value, known)), None)

    def _renew(self) -> None:
        self.spent.add(self.token)
        self.token = secrets.token_urlsafe(32)


@dataclass
class Guard:
    """Stands before the application: nothing passes without the right Host and, but for style and script, a session."""

    app: ASGIApp
    keys: Keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                theirs = [pair for pair in message["headers"] if pair[0].decode().lower() not in HEADERS]
                message = {**message, "headers": [*theirs, *ours]}
            await send(message)

        answer = self._refusal(scope)
        await (self.app if answer is None else answer)(scope, receive, sealed)

    def _refusal(self, scope: Scope) -> Response | None:
        """What to say instead of the page; None lets the request through, with its session."""
        headers = Headers(scope=scope)
        if headers.getlist("host") not in self._hosts:
            return PlainTextResponse(WRONG_HOST, 403)
        path, query = scope["path"], parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if path.startswith(STATIC) and scope["method"] in ("GET", "HEAD"):
            return None
        session = self.keys.session_of("; ".join(headers.getlist("cookie")))
        offered = [value for name, value in query if name == "token"]
        elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if offered:
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            target = (path if path in PAGES else "/") + (f"?{rest}" if rest else "")
            return self._exchanged(scope, offered[-1], session, target, elsewhere=elsewhere)
        if session is None or elsewhere:
            return self._closed(scope, NO_COOKIE if session is None and not elsewhere else FROM_ELSEWHERE)
        if scope["method"] not in ("GET", "HEAD") and not self._own(headers):
            return PlainTextResponse(FROM_ELSEWHERE, 403)
        scope.setdefault("state", {})["session"] = session
        return None

    @property
    def _hosts(self) -> list[list[str]]:
        names = ("127.0.0.1", "localhost")
        return [[f"{name}:{self.keys.port}"] for name in names] + ([[n] for n in names] if self.keys.port == 80 else [])

    def _own(self, headers: Headers) -> bool:
        """Whether a page of ours sends it: browsers say so in one of two ways."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        return site == "same-origin" if site is not None else origin == f"http://{headers['host']}"

    def _exchanged(
        self, scope: Scope, offered: str, session: str | None, target: str, *, elsewhere: bool
    ) -> Response | None:
        if scope["method"] != "GET":
            return PlainTextResponse(WRONG_TOKEN, 403)
        if session is None:
            spent = self.keys.was_spent(offered)
            session = self.keys.exchange(offered)
            if session is None:
                return _page(SPENT if spent else WRONG_TOKEN)
        # A strict cookie does not follow a redirect that began on another page: that one is sent on by a page of ours.
        answer: Response = RedirectResponse(target, 303)
        if elsewhere:
            answer = HTMLResponse(page("opening.html.j2", target=target))
        answer.set_cookie(self.keys.cookie, session, path="/", httponly=True, samesite="strict")
        return answer

    def _closed(self, scope: Scope, sentence: str) -> Response:
        path = scope["path"]
        if path not in PAGES or scope["method"] != "GET":
            return PlainTextResponse(sentence, 403)
        query = scope["query_string"].decode("latin-1")
        again = (path + (f"?{query}" if query else "")) if sentence == FROM_ELSEWHERE else None
        return _page(sentence, again)


def _page(sentence: str, again: str | None = None) -> Response:
    return HTMLResponse(page("closed.html.j2", sentence=sentence, again=again), 403)


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
