"""Who may ask: only the page itself, on this machine, with the token; and what may leave."""

from __future__ import annotations

import socket

import pytest

from tests.studio.driver import Studio

PATHS = ("/", "/state", "/events", "/studio.js", "/download/audit/report.html")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": None},
        {"Cookie": "metrifair-1=x"},
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": None},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_a_request_of_another_is_refused(studio: Studio, path: str, headers: dict[str, str | None]) -> None:
    status, found, content = studio.ask("GET", path, **headers)
    assert status in (400, 403)
    assert b"sex" not in content
    assert "set-cookie" not in found


@pytest.mark.parametrize("headers", [{"Origin": None}, {"Origin": "http://127.0.0.1:1"}, {"Cookie": None}], ids=str)
def test_only_the_page_changes_something(studio: Studio, headers: dict[str, str | None]) -> None:
    before = studio.idle()
    for method, path in (("POST", "/run/inspect"), ("PUT", "/upload/file?name=a.csv")):
        assert studio.ask(method, path, "{}", **headers)[0] == 403
    assert studio.idle()["version"] == before["version"]


def test_the_address_gives_a_cookie_that_no_script_and_no_other_page_can_use(studio: Studio) -> None:
    assert studio.ask("GET", "/?token=wrong", Cookie=None)[0] == 403
    status, headers, content = studio.ask("GET", f"/?token={studio.token}", Cookie=None)
    assert status == 200
    assert content.startswith(b"<!doctype html>")
    assert headers["set-cookie"] == f"metrifair-{studio.port}={studio.token}; HttpOnly; SameSite=Strict; Path=/"
    assert studio.ask("GET", f"/state?token={studio.token}", Cookie=None)[0] == 403


def test_the_policy_allows_the_page_alone(studio: Studio) -> None:
    headers = studio.ask("GET", "/")[1]
    rules = dict(rule.strip().partition(" ")[::2] for rule in headers["content-security-policy"].split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


def test_no_other_machine_reaches_the_studio(studio: Studio) -> None:
    """It listens on the loopback address alone: not on any other address of this machine."""
    with socket.socket() as other:
        assert other.connect_ex(("127.0.0.2", studio.port)) != 0


@pytest.mark.parametrize(
    "path",
    [
        "/download/audit/../../etc/passwd",
        "/download/audit/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/download/audit/log.txt",
        "/download/inspect/columns.json",
        "/download/upload/loans.csv",
        "/session.py",
        "/../server.py",
    ],
)
def test_no_file_but_results_can_be_read(studio: Studio, path: str) -> None:
    assert studio.ask("GET", path)[0] == 404


@pytest.mark.parametrize("body", ["[]", "{", '{"group": [1]}', '{"score": null}', '{"a": {}}', "\x00", "x" * 300_000])
def test_choices_that_cannot_be_read_are_refused_in_a_sentence(studio: Studio, body: str) -> None:
    status, _, content = studio.ask("POST", "/run/audit", body)
    assert status == 409
    assert b"Traceback" not in content
    assert content.endswith(b'."}')
