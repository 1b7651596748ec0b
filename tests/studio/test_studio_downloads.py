"""A download that has begun is finished, also if another step removes the result meanwhile."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="starlette is in the extra studio")
from tests.seams.studio import Access, Done, Session, studio_app

CONTENT = b"<!doctype html>" + bytes(3_000_000)


def response(session: Session, path: str, *, meanwhile: Any) -> tuple[int, bytes]:
    """Status and content of a request, with an event between both."""
    access = Access()
    key = access.exchange(access.new_token(lambda: None))
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:80"), (b"authorization", f"Bearer {key}".encode())],
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            meanwhile()
        sent.append(message)

    asyncio.run(studio_app(session, 80, access)(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


@pytest.mark.parametrize("name", ["report.html", "audit.json"])
def test_a_result_that_is_removed_meanwhile_is_sent_whole(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "audit-1"
    folder.mkdir()
    (folder / name).write_bytes(CONTENT)
    session = Session(tmp_path, tmp_path / "models.ledger")
    session.done["audit"] = Done(1, folder, [], "", [])
    path = f"/download/audit/{name}"
    assert response(session, path, meanwhile=lambda: shutil.rmtree(folder)) == (200, CONTENT)
    assert response(session, path, meanwhile=lambda: None)[0] == 404
