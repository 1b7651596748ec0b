"""The server of the page: on this machine only, with a token, and for requests of the page itself."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import secrets
import signal
import socket
import sys
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Callable
from importlib import resources
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metrifair.errors import DataError
from metrifair.studio.commands import Choices, Table
from metrifair.studio.session import FILES, Refused, Session

_HOST = "127.0.0.1"
_MOST_TEXT = 2**18  # bytes of choices
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# A report is a separate page inside the studio: its scripts run without access to the studio.
_REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_ASSETS = {"page.html": "text/html", "studio.css": "text/css", "studio.js": "text/javascript"}


class Guard:
    """Accept requests that come from the page, under a name of this machine, with the session's token.

    The host of a request protects against foreign names that resolve to this machine (DNS rebinding). Its origin
    protects against foreign pages. The token in the first address becomes a cookie that no script can read.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in (_HOST, "localhost")}
        self.cookie = f"metrifair-{port}"  # cookies of all ports are sent to all ports

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        opened = request.url.path == "/" and self._is_token(request.query_params.get("token"))
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host not in self.hosts or (origin or f"http://{host}") != f"http://{host}":
            await _refusal("metrifair studio accepts requests from its own page only.")(scope, receive, send)
        elif request.method not in ("GET", "HEAD") and origin is None:
            await _refusal("Only the page of metrifair studio can change its state.")(scope, receive, send)
        elif not opened and not self._is_token(request.cookies.get(self.cookie)):
            text = "Open the complete address that metrifair studio printed. It ends with a token."
            await _refusal(text)(scope, receive, send)
        else:
            cookie = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/" if opened else None
            await self.app(scope, receive, _with_headers(send, cookie))

    def _is_token(self, token: str | None) -> bool:
        return hmac.compare_digest((token or "").encode(), self.token.encode())


def _refusal(text: str) -> Response:
    return Response(text, 403, _HEADERS, "text/plain")


def _with_headers(send: Send, cookie: str | None) -> Send:
    """Add the common headers to each response, except for those that it has."""

    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            added = _HEADERS if cookie is None else _HEADERS | {"Set-Cookie": cookie}
            message["headers"] = [
                *message["headers"],
                *(
                    (name.lower().encode(), text.encode())
                    for name, text in added.items()
                    if name.lower().encode() not in present
                ),
            ]
        await send(message)

    return sender


class Answers:
    """The responses to requests of the page."""

    def __init__(self, session: Session) -> None:
        self.session = session

    async def state(self, _: Request) -> Response:
        """The state that the page shows."""
        return JSONResponse(self.session.state())

    async def events(self, _: Request) -> Response:
        """An event for each change of the state."""
        events = (f"data: {version}\n\n" async for version in self.session.versions())
        return StreamingResponse(events, media_type="text/event-stream")

    async def upload(self, request: Request) -> Response:
        """Receive the file to audit, or the second one."""
        name = request.query_params.get("name", "")
        await self.session.receive(request.stream(), name, second=request.path_params["which"] == "second")
        return JSONResponse({})

    async def run(self, request: Request) -> Response:
        """Start a step, or stop it."""
        session, step, choices = self.session, request.path_params["step"], await _choices(request)
        actions: dict[str, Callable[[], None]] = {
            "inspect": lambda: session.inspect(session.table, choices),
            "roles": lambda: session.confirm(choices),
            "cancel": session.cancel,
            "forget": session.forget_models,
        }
        if step not in actions and step not in FILES:
            return Response(status_code=404)
        actions.get(step, lambda: session.start(step, choices))()
        return JSONResponse({})

    async def download(self, request: Request) -> Response:
        """A result, as a page to show or as a file to save."""
        step, name = request.path_params["step"], request.path_params["name"]
        path = self.session.file(step, name) if step in FILES else None
        if path is None:
            return Response(status_code=404)
        if path.suffix == ".html" and "download" not in request.query_params:
            return FileResponse(path, headers={"Content-Security-Policy": _REPORT_POLICY})
        return FileResponse(path, filename=name, media_type="application/octet-stream")


def studio_app(session: Session, port: int, token: str) -> ASGIApp:
    """The whole application for one session."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if session.table is not None:
            session.inspect(session.table, {})
        yield
        await session.close()

    answers = Answers(session)
    routes = [
        Route("/", _asset("page.html")),
        Route("/studio.css", _asset("studio.css")),
        Route("/studio.js", _asset("studio.js")),
        Route("/state", answers.state),
        Route("/events", answers.events),
        Route("/upload/{which}", answers.upload, methods=["PUT"]),
        Route("/run/{step}", answers.run, methods=["POST"]),
        Route("/download/{step}/{name}", answers.download),
    ]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={Refused: _refused, Exception: _fault})
    return Guard(app, port, token)


def _asset(name: str) -> Callable[[Request], Any]:
    """A handler that returns a file of the package."""
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")

    async def answer(_: Request) -> Response:
        return Response(text, media_type=_ASSETS[name])

    return answer


async def _refused(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 409)


async def _fault(_: Request, __: Exception) -> Response:
    return JSONResponse({"error": "The studio could not answer this request."}, 500, _HEADERS)


async def _choices(request: Request) -> Choices:
    """The choices that the page sends: text, flags and lists of text by name."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > _MOST_TEXT:
            raise Refused("The choices are too long.")
    try:
        choices = json.loads(content or b"{}")
    except ValueError:
        choices = None
    if not isinstance(choices, dict) or not all(map(_is_choice, choices.values())):
        raise Refused("The page sent choices that the studio cannot read. Reload the page.")
    return choices


def _is_choice(value: object) -> bool:
    return isinstance(value, str | bool) or (isinstance(value, list) and all(isinstance(item, str) for item in value))


class _Server(uvicorn.Server):
    """A server that calls ``ready`` as soon as the page can be opened."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then call ``ready``."""
        await super().startup(sockets)
        self.ready()


def serve(file: str | None, say: Callable[[str], None], *, browser: bool) -> None:
    """Serve the page until the process is stopped; then remove all files but the ledger.

    The page can be opened on this machine only, with the token in its address.
    """
    table = None if file is None else Table(Path(file).absolute(), file)
    if table is not None and not table.path.is_file():
        raise DataError(f"there is no file {file}; name a file, or start metrifair studio without one")
    token = secrets.token_urlsafe(32)
    # The folder is removed too if another program stops this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="metrifair-studio-") as folder, socket.socket() as listening:
        listening.bind((_HOST, 0))
        port = listening.getsockname()[1]
        address = f"http://{_HOST}:{port}/?token={token}"
        app = studio_app(Session(Path(folder), _ledger(), table), port, token)

        def ready() -> None:
            say(f"metrifair studio: {address}")
            if browser:
                webbrowser.open(address)

        config = uvicorn.Config(app, log_level="critical", server_header=False, timeout_graceful_shutdown=1)
        asyncio.run(_Server(config, ready).serve([listening]))


def _ledger() -> Path:
    """The file of finished models, in the user's cache folder."""
    home = Path.home()
    places = {"win32": os.environ.get("LOCALAPPDATA"), "darwin": str(home / "Library" / "Caches")}
    place = places.get(sys.platform) or os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(place) / "metrifair" / "studio" / "models.ledger"
