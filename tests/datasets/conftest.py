"""Where the raw data lie, folders that nobody else uses, and a publisher on this machine that
fails as told.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.raw_data import require_raw_data
from tests.seams.datasets import RawFile


@pytest.fixture(scope="session")
def raw_data() -> Path:
    """The folder of the published files."""
    return require_raw_data()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty user cache that is the only folder searched."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    monkeypatch.delenv("METRIFAIR_DATA", raising=False)
    return tmp_path / "user-cache" / "metrifair"


@pytest.fixture(autouse=True)
def only_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but this machine can be reached, and no proxy stands between."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        assert not isinstance(address, tuple) or address[0] in ("127.0.0.1", "::1"), (
            f"a test wants to reach {address}"
        )
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


class Publisher:
    """A server of one content at every path; what goes wrong is set by its attributes."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = content
        self.cut_after: int | None = None  # bytes of each answer before the connection closes
        self.ranges = True  # whether it can continue a download
        self.tells_length = True
        self.silent = False  # accepts, and never answers
        self.stalls = False  # keeps the connection open after the last byte that it sends
        self.status = 200
        self.asked: list[str | None] = []  # the Range header of each request
        self.over = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self.thread.start()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/{name}"

    def raw(
        self,
        name: str = "made-up.csv",
        *,
        content: bytes | None = None,
        member: tuple[str, ...] = (),
    ) -> RawFile:
        """A record of a file published here; its content is that of the server unless told."""
        content = self.content if content is None else content
        return RawFile(
            name, len(content), hashlib.sha256(content).hexdigest(), self.url(name), member
        )

    def close(self) -> None:
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def _handler(publisher) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                publisher.asked.append(self.headers["Range"])
                if publisher.silent:
                    publisher.over.wait()
                    return
                start = 0
                if publisher.ranges and (
                    asked := re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
                ):
                    start = int(asked[1])
                body = publisher.content[start:]
                self.send_response(206 if start else publisher.status)
                if start:
                    self.send_header(
                        "Content-Range",
                        f"bytes {start}-{start + len(body) - 1}/{start + len(body)}",
                    )
                if publisher.tells_length:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):  # the client may have gone
                    self.wfile.write(body[: publisher.cut_after])
                if publisher.stalls and len(body) > len(body[: publisher.cut_after]):
                    publisher.over.wait()

            def log_message(self, *_: object) -> None:
                """Keep the output of the tests clean."""

        return Handler


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    server = Publisher(
        b"id;grade\n" + b"".join(b"%d;%d\n" % (row, row * row % 21) for row in range(5000))
    )
    yield server
    server.close()


@pytest.fixture
def unreachable() -> str:
    """An address on this machine where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
