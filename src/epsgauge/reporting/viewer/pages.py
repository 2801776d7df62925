"""The pages of the viewer and what their scripts ask for; every number is computed here, by the library."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from epsgauge.errors import EpsgaugeError
from epsgauge.figures import css
from epsgauge.plain import block, spelled
from epsgauge.reporting.viewer import calculator, upload
from epsgauge.reporting.viewer.audits import Judge
from epsgauge.reporting.viewer.explore import Moved
from epsgauge.reporting.viewer.listing import RULINGS, Wanted
from epsgauge.reporting.viewer.render import page, prepare
from epsgauge.reporting.viewer.render import sentence as said
from epsgauge.reporting.viewer.runs import Folder
from epsgauge.reporting.viewer.show import Show
from epsgauge.scores.files import Unstated

TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
NOT_FOUND = "There is no such page here. All runs are on the first page."


class Json(JSONResponse):
    """With escapes for what the name of a folder may hold and UTF-8 has not."""

    def render(self, content: Any) -> bytes:
        return spelled(json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))).encode()


class Pages:
    """Answers requests that the guard let through."""

    def __init__(self, folder: Folder, judge: Judge | None = None) -> None:
        self.folder = folder
        self.show = Show(folder, judge)
        prepare()

    def app(self) -> Starlette:
        routes: dict[str, Callable[[Request], Response]] = {
            "/": self.list,
            "/run": self.run,
            "/overlay": self.overlay,
            "/calculator": self.calculator,
            "/download": self.download,
            "/api/list": self.list_now,
            "/api/progress": self.progress,
            "/api/results": self.results,
            "/api/explore": self.explore,
            "/api/calculator": self.calculate,
        }
        return Starlette(
            routes=[
                *(Route(path, _answered(endpoint), methods=["GET"]) for path, endpoint in routes.items()),
                Route("/api/open", _answered(self.open), methods=["POST"]),
                Route("/api/scores", self.scores, methods=["POST"]),
                *(Route(f"/static/{name}", _file(body, kind)) for name, (body, kind) in _static().items()),
            ],
            exception_handlers={HTTPException: _not_found, Exception: _failed},
        )

    # pages

    def list(self, request: Request) -> Response:
        wanted = _wanted(request)
        found = self.show.board.parts(_session(request), wanted)
        return HTMLResponse(page("list.html.j2", folder=str(self.folder.root), wanted=wanted, rulings=RULINGS, **found))

    def run(self, request: Request) -> Response:
        first = self.show.first(_session(request), request.query_params.get("id", ""))
        return HTMLResponse(page("run.html.j2", **first), 404 if first["s"].trouble else 200)

    def download(self, request: Request) -> Response:
        query = request.query_params
        file = self.show.download(_session(request), query.get("id", ""), query.get("as", ""))
        return Response(file.content, media_type=file.kind, headers=file.headers)

    def overlay(self, request: Request) -> Response:
        query = request.query_params
        values = self.show.overlay(_session(request), query.getlist("id"), query)
        return HTMLResponse(page("overlay.html.j2", **values))

    def calculator(self, request: Request) -> Response:
        typed = calculator.typed(request.query_params)
        return HTMLResponse(page("calculator.html.j2", typed=typed, charts=calculator.SHOWN, limit=upload.MOST_BYTES))

    # what scripts ask for

    def list_now(self, request: Request) -> Response:
        return Json(self.show.board.parts(_session(request), _wanted(request)))

    def progress(self, request: Request) -> Response:
        return Json(self.show.progress(_session(request), request.query_params.get("id", "")))

    def results(self, request: Request) -> Response:
        query = request.query_params
        return Json(self.show.results(_session(request), query.get("id", ""), _caller(request)))

    def explore(self, request: Request) -> Response:
        query = request.query_params
        moved, late, turn = Moved.parse(query), query.get("late") == "1", query.get("turn", "0")
        asked: dict[str, Any] = {"late": late, "turn": turn, "caller": _caller(request)}
        return Json(self.show.explored(_session(request), query.get("id", ""), moved, **asked))

    def calculate(self, request: Request) -> Response:
        query = request.query_params
        question, late, turn = calculator.Question.parse(query), query.get("late") == "1", query.get("turn", "0")
        asked: dict[str, Any] = {"late": late, "turn": turn, "caller": _caller(request)}
        return Json(self.show.calculated(_session(request), question, **asked))

    def open(self, request: Request) -> Response:
        """The one thing that a page can change: from here on it shows results of a run that is not finished."""
        ids = request.query_params.getlist("id")
        for run_id in ids:
            self.folder.path(run_id)
        self.show.seen.open(_session(request), ids)
        return Json({"opened": len(ids)})

    async def scores(self, request: Request) -> Response:
        """A file, or more about one that was sent before: it is not sent twice."""
        query, session = request.query_params, _session(request)
        try:
            if "held" not in query:
                raw = await upload.taken(request.stream(), request.headers.get("content-length"))
                held = self.show.held.keep(session, query.get("name", ""), raw)
            else:
                held = self.show.held.of(session, query["held"])
        except EpsgaugeError as error:
            return _sentence(request, str(error), 400)
        except ClientDisconnect:  # in the middle of its file: nobody reads the answer
            return Response(status_code=400)
        try:
            found = await run_in_threadpool(self.show.scores, held.raw, held.name, query)
            return Json({**found, "held": held.key})
        except EpsgaugeError as error:
            asks = error.asks if isinstance(error, Unstated) else None
            return Json({"error": said(str(error)), "held": held.key, "asks": asks}, 400)


def _wanted(request: Request) -> Wanted:
    return Wanted.parse(request.query_params, request.query_params.getlist("tag"))


def _session(request: Request) -> str:
    return str(request.state.session)


def _caller(request: Request) -> str:
    """Which page of the session asks: two of one run have sliders of their own."""
    return request.query_params.get("page", "")[:64]


def _answered(endpoint: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    """In a thread of its own; whatever is wrong with a run or an input is one sentence, on a page or for a script."""

    async def answer(request: Request) -> Response:
        try:
            return await run_in_threadpool(endpoint, request)
        except EpsgaugeError as error:
            return _sentence(request, str(error), 400)

    return answer


def _sentence(request: Request, sentence: str, status: int) -> Response:
    if request.url.path.startswith("/api/"):
        return Json({"error": said(sentence)}, status)
    return HTMLResponse(page("closed.html.j2", sentence=said(sentence), again="/"), status)


async def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    return _sentence(request, NOT_FOUND, status)


async def _failed(request: Request, error: Exception) -> Response:
    # a mistake of ours: shown whole, in the terminal alone
    sys.stderr.write(block("".join(traceback.format_exception(error))) + "\n")
    return _sentence(request, f"The viewer failed ({type(error).__name__}). The terminal says more.", 500)


def _static() -> dict[str, tuple[bytes, str]]:
    """Style and scripts, read once: no path of a request ever reaches the disk."""
    folder = files("epsgauge.reporting.viewer").joinpath("static")
    found = {f.name: (f.read_bytes(), TYPES[f".{f.name.rpartition('.')[2]}"]) for f in folder.iterdir()}
    return {**found, "figures.css": (css.STYLE.encode(), TYPES[".css"])}


def _file(body: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def send(request: Request) -> Response:
        return Response(body, media_type=kind)

    return send
