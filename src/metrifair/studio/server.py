"""The server of the page: on this machine only, and for requests of the page itself, which have
its key.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metrifair.errors import DataError
from metrifair.studio.access import Access, Ticket, write_redirect
from metrifair.studio.commands import Choices, TableFile
from metrifair.studio.folders import private_folder, remove_dead_folders
from metrifair.studio.page_texts import STUDIO_TEXTS, criterion_options
from metrifair.studio.session import RESULT_FILES, Refused, Session

_HOST = "127.0.0.1"
_MOST_TEXT = 2**18  # bytes of choices
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src "
    "data:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors "
    "'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# A report is a separate page inside the studio: its scripts run without access to the studio.
_REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_ASSETS = {"page.html": "text/html", "studio.css": "text/css", "studio.js": "text/javascript"}
_TICKETS = "/ticket/"
_PUBLIC = ("/", "/studio.css", "/studio.js", "/key")


class Guard:
    """Accept requests that come from the page, under a name of this machine, with the key of the
    studio.

    The host of a request protects against foreign names that resolve to this machine (DNS
    rebinding). Its origin protects against foreign pages. The page itself contains nothing private;
    everything else needs the key, or a ticket for one result.
    """

    def __init__(self, app: ASGIApp, port: int, access: Access) -> None:
        self.app = app
        self.access = access
        self.hosts = {f"{name}:{port}" for name in (_HOST, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        host = request.headers.get("host", "")
        origin = request.headers.get("origin")
        if host not in self.hosts or (origin or f"http://{host}") != f"http://{host}":
            await _refusal("metrifair studio accepts requests from its own page only.")(
                scope, receive, send
            )
        elif request.method not in ("GET", "HEAD") and origin is None:
            await _refusal("Only the page of metrifair studio can change its state.")(
                scope, receive, send
            )
        elif not (self._is_public(request) or self._has_key(request)):
            text = (
                "Open the address that metrifair studio printed last. Each address opens one tab."
            )
            await _refusal(text)(scope, receive, send)
        else:
            await self.app(scope, receive, _with_headers(send))

    def _is_public(self, request: Request) -> bool:
        """Whether a request is for the page itself, or shows a token or a ticket, which its
        handler checks.
        """
        return request.url.path in _PUBLIC or request.url.path.startswith(_TICKETS)

    def _has_key(self, request: Request) -> bool:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        return scheme == "Bearer" and self.access.is_key(key)


def _refusal(text: str) -> Response:
    return Response(text, 403, _HEADERS, "text/plain")


def _with_headers(send: Send) -> Send:
    """Add the common headers to each response, except for those that it has."""

    async def sender(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *(
                    (name.lower().encode(), text.encode())
                    for name, text in _HEADERS.items()
                    if name.lower().encode() not in present
                ),
            ]
        await send(message)

    return sender


class Answers:
    """The responses to requests of the page."""

    def __init__(self, session: Session, access: Access) -> None:
        self.session = session
        self.access = access

    async def key(self, request: Request) -> Response:
        """The key of the studio, for a token that was not used yet."""
        key = self.access.exchange((await _read_body(request)).decode(errors="replace"))
        # null for a token that was used: the page says how to get another one
        return JSONResponse({"key": key})

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
        await self.session.receive(
            request.stream(), name, second=request.path_params["which"] == "second"
        )
        return JSONResponse({})

    async def run(self, request: Request) -> Response:
        """Start a step, or stop it."""
        session = self.session
        step = request.path_params["step"]
        choices = await _choices(request)
        actions: dict[str, Callable[[], None]] = {
            "inspect": lambda: session.inspect(session.table, choices),
            "roles": lambda: session.confirm(choices),
            "cancel": session.cancel,
            "forget": session.forget_models,
            "close": session.close_file,
        }
        if step not in actions and step not in RESULT_FILES:
            return Response(status_code=404)
        actions.get(step, lambda: session.start(step, choices))()
        return JSONResponse({})

    async def ticket(self, request: Request) -> Response:
        """An address that opens a result once: frames, links and downloads send no key."""
        step = request.path_params["step"]
        name = request.path_params["name"]
        if step not in RESULT_FILES or self.session.file(step, name) is None:
            return Response(status_code=404)
        ticket = self.access.new_ticket(Ticket(step, self.session.done[step].number, name))
        return JSONResponse({"address": f"{_TICKETS[1:]}{ticket}/{quote(name)}"})

    async def result(self, request: Request) -> Response:
        """The result that a ticket opens."""
        ticket = self.access.use_ticket(request.path_params["ticket"])
        done = None if ticket is None else self.session.done.get(ticket.step)
        if ticket is None or done is None or done.number != ticket.number:
            return Response(_USED_TICKET, 410, media_type="text/plain")
        return self._file(ticket.step, ticket.name, as_page="download" not in request.query_params)

    async def download(self, request: Request) -> Response:
        """A result, for a request with the key."""
        step = request.path_params["step"]
        name = request.path_params["name"]
        return self._file(step, name, as_page="download" not in request.query_params)

    def _file(self, step: str, name: str, *, as_page: bool) -> Response:
        """A result, as a page to show or as a file to save."""
        path = self.session.file(step, name) if step in RESULT_FILES else None
        if path is None:
            return Response(status_code=404)
        # Opened now: another step may remove the file before its first part is sent.
        content = path.open("rb")
        headers = {"Content-Length": str(path.stat().st_size)}
        if path.suffix == ".html" and as_page:
            headers["Content-Security-Policy"] = _REPORT_POLICY
            return StreamingResponse(_parts(content), headers=headers, media_type="text/html")
        headers["Content-Disposition"] = f'attachment; filename="{name}"'
        return StreamingResponse(
            _parts(content), headers=headers, media_type="application/octet-stream"
        )


_PART = 2**20


def _parts(content: BinaryIO) -> Iterator[bytes]:
    """An open file, part by part; then it is closed."""
    with content:
        while part := content.read(_PART):
            yield part


_USED_TICKET = "This address works once. Open the result again on the page of metrifair studio."


def studio_app(session: Session, port: int, access: Access) -> ASGIApp:
    """The whole application for one session."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        if session.table is not None:
            session.inspect(session.table, {})
        yield
        await session.close()

    answers = Answers(session, access)
    routes = [
        Route(
            "/", _asset("page.html", TEXTS=json.dumps(STUDIO_TEXTS), CRITERIA=criterion_options())
        ),
        Route("/studio.css", _asset("studio.css")),
        Route("/studio.js", _asset("studio.js")),
        Route("/key", answers.key, methods=["POST"]),
        Route("/state", answers.state),
        Route("/events", answers.events),
        Route("/upload/{which}", answers.upload, methods=["PUT"]),
        Route("/run/{step}", answers.run, methods=["POST"]),
        Route("/tickets/{step}/{name}", answers.ticket, methods=["POST"]),
        Route("/ticket/{ticket}/{name}", answers.result),
        Route("/download/{step}/{name}", answers.download),
    ]
    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={Refused: _refused, Exception: _fault}
    )
    return Guard(app, port, access)


def _asset(name: str, **values: str) -> Callable[[Request], Any]:
    """A handler that returns a file of the package, with values in their places."""
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    for place, value in values.items():
        text = text.replace(place, value)

    async def answer(_: Request) -> Response:
        return Response(text, media_type=_ASSETS[name])

    return answer


async def _refused(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 409)


async def _fault(_: Request, __: Exception) -> Response:
    return JSONResponse({"error": "The studio could not answer this request."}, 500, _HEADERS)


async def _read_body(request: Request) -> bytes:
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > _MOST_TEXT:
            raise Refused("The choices are too long.")
    return content


async def _choices(request: Request) -> Choices:
    """The choices that the page sends: text, flags and lists of text by name."""
    content = await _read_body(request)
    try:
        choices = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        choices = None
    if not isinstance(choices, dict) or not all(map(_is_choice, choices.values())):
        raise Refused("The page sent choices that the studio cannot read. Reload the page.")
    return choices


def _is_choice(value: object) -> bool:
    return isinstance(value, str | bool) or (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    )


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

    The page can be used on this machine only, with an address that works once.
    """
    table = None if file is None else TableFile(Path(file).absolute(), file)
    if table is not None and not table.path.is_file():
        raise DataError(
            f"there is no file {file}; name a file, or start metrifair studio without one"
        )
    # The folder is removed too if another program stops this one, or the terminal is closed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # as nohup sets it
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    remove_dead_folders(Path(tempfile.gettempdir()))
    with private_folder() as folder, socket.socket() as listening:
        listening.bind((_HOST, 0))
        port = listening.getsockname()[1]
        access = Access()
        addresses = Addresses(f"http://{_HOST}:{port}/", access, say)
        app = studio_app(Session(folder, _ledger(), table), port, access)

        def ready() -> None:
            addresses.show("metrifair studio")
            if browser:
                opened = addresses.redirect(folder / _REDIRECT).as_uri()
                # Some browsers return only when they are closed, and the page needs the server
                # before.
                threading.Thread(target=webbrowser.open, args=[opened], daemon=True).start()

        config = uvicorn.Config(
            app, log_level="critical", server_header=False, timeout_graceful_shutdown=1
        )
        asyncio.run(_Server(config, ready).serve([listening]))


_REDIRECT = "open.html"


class Addresses:
    """The addresses of the page: each opens one tab, and the terminal always shows one that was
    not used yet.
    """

    def __init__(self, page: str, access: Access, say: Callable[[str], None]) -> None:
        self.page = page
        self.access = access
        self.say = say

    def show(self, title: str) -> None:
        """Print an address; after its use, print another one."""
        token = self.access.new_token(lambda: self.show("To open another tab"))
        self.say(f"{title}: {self._address(token)}")

    def redirect(self, path: Path) -> Path:
        """The path of a private file that opens an address, and that is deleted when the
        address is used.
        """
        token = self.access.new_token(lambda: path.unlink(missing_ok=True))
        write_redirect(path, self._address(token))
        return path

    def _address(self, token: str) -> str:
        """The page with a token behind the number sign, which browsers send to no server."""
        return f"{self.page}#token={token}"


def _ledger() -> Path:
    """The file of finished models, in the user's cache folder."""
    home = Path.home()
    places = {"win32": os.environ.get("LOCALAPPDATA"), "darwin": str(home / "Library" / "Caches")}
    place = places.get(sys.platform) or os.environ.get("XDG_CACHE_HOME") or home / ".cache"
    return Path(place) / "metrifair" / "studio" / "models.ledger"
