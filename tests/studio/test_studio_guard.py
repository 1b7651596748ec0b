"""Who may ask: only the page itself, on this machine, with the key; and what may leave."""

from __future__ import annotations

import json
import socket

import pytest

from tests.studio.driver import ROLES, Studio

PUBLIC = ("/", "/studio.js", "/studio.css")
PRIVATE = ("/state", "/events", "/download/audit/report.html")


@pytest.mark.parametrize("path", [*PUBLIC, *PRIVATE])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": None},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
    ],
    ids=str,
)
def test_a_request_of_another_page_is_refused(
    studio: Studio, path: str, headers: dict[str, str | None]
) -> None:
    status, found, content = studio.ask("GET", path, **headers)
    assert status in (400, 403)
    assert b"sex" not in content
    assert "set-cookie" not in found


@pytest.mark.parametrize("path", PRIVATE)
@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer ", "Bearer x", "Basic {key}", "{key}"]
)
def test_a_request_without_the_key_is_refused(
    studio: Studio, path: str, authorization: str | None
) -> None:
    text = None if authorization is None else authorization.format(key=studio.key)
    for headers in ({}, {"Cookie": f"metrifair-{studio.port}={studio.key}; key={studio.key}"}):
        assert studio.ask("GET", path, Authorization=text, **headers)[0] == 403
        assert (
            studio.ask("GET", f"{path}?token={studio.key}&key={studio.key}", Authorization=text)[0]
            == 403
        )


@pytest.mark.parametrize("path", PUBLIC)
def test_the_page_itself_has_nothing_private(studio: Studio, path: str) -> None:
    status, headers, content = studio.ask("GET", path, Authorization=None)
    assert status == 200
    assert "set-cookie" not in headers
    assert studio.key.encode() not in content
    assert b"loans" not in content


NO_PAGE = [{"Origin": None}, {"Origin": "http://127.0.0.1:1"}, {"Authorization": None}]


@pytest.mark.parametrize("headers", NO_PAGE, ids=str)
def test_only_the_page_changes_something(studio: Studio, headers: dict[str, str | None]) -> None:
    before = studio.idle()
    asked = [
        ("POST", "/run/inspect"),
        ("PUT", "/upload/file?name=a.csv"),
        ("POST", "/tickets/audit/audit.json"),
    ]
    for method, path in asked:
        assert studio.ask(method, path, "{}", **headers)[0] == 403
    assert studio.idle()["version"] == before["version"]


def test_a_token_works_once_and_the_studio_prints_another(studio: Studio) -> None:
    token = studio.address.partition("token=")[2]
    assert studio.exchange("wrong") == studio.exchange("") == "None"
    # a foreign page uses no token up
    for headers in ({"Origin": None}, {"Origin": "http://127.0.0.1:1"}):
        assert studio.ask("POST", "/key", token, **headers)[0] == 403
    assert studio.exchange(token) == studio.key
    assert studio.exchange(token) == "None"
    assert studio.exchange(studio.key) == "None"  # the key is no token, and a token no key
    later = studio.address.partition("token=")[2]
    assert later != token
    assert studio.ask("GET", "/state", Authorization=f"Bearer {later}")[0] == 403
    assert studio.exchange(later) == studio.key


def test_no_answer_sets_a_cookie(studio: Studio) -> None:
    for method, path in (
        ("GET", "/"),
        ("GET", "/state"),
        ("POST", "/key"),
        ("POST", "/run/cancel"),
    ):
        status, headers, _ = studio.ask(method, path, "{}")
        assert status == 200
        assert "set-cookie" not in headers


def test_a_ticket_opens_one_result_once_and_nothing_else(studio: Studio) -> None:
    studio.idle()
    studio.run("roles", **ROLES)
    assert studio.run("audit", group=["sex"])["failed"] == {}

    def ticket(name: str) -> str:
        return "/" + str(json.loads(studio.ask("POST", f"/tickets/audit/{name}")[2])["address"])

    page, figures, outdated = ticket("report.html"), ticket("audit.json"), ticket("audit.json")
    status, headers, content = studio.ask("GET", page, Authorization=None)
    assert (status, content) == (200, studio.ask("GET", "/download/audit/report.html")[2])
    assert headers["content-security-policy"].startswith("sandbox allow-scripts allow-downloads;")
    assert studio.ask("GET", page, Authorization=None)[0] == 410
    text = page.split("/")[2]
    for path in (
        f"/ticket/{text}x/report.html",
        f"/state?ticket={text}",
        f"/ticket/{studio.key}/report.html",
    ):
        assert studio.ask("GET", path, Authorization=None)[0] in (403, 410)
    status, headers, content = studio.ask("GET", f"{figures}?download", Authorization=None)
    assert status == 200
    assert headers["content-disposition"] == 'attachment; filename="audit.json"'
    for name in ("log.txt", "..%2fopen.html", "columns.json"):
        assert studio.ask("POST", f"/tickets/audit/{name}")[0] == 404
    studio.run("audit", group=["town"])
    # of a result that was replaced
    assert studio.ask("GET", outdated, Authorization=None)[0] == 410


def test_the_policy_allows_the_page_alone(studio: Studio) -> None:
    headers = studio.ask("GET", "/")[1]
    rules = dict(
        rule.strip().partition(" ")[::2] for rule in headers["content-security-policy"].split(";")
    )
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


@pytest.mark.parametrize(
    "body", ["[]", "{", '{"group": [1]}', '{"score": null}', '{"a": {}}', "\x00", "x" * 300_000]
)
def test_choices_that_cannot_be_read_are_refused_in_a_sentence(studio: Studio, body: str) -> None:
    status, _, content = studio.ask("POST", "/run/audit", body)
    assert status == 409
    assert b"Traceback" not in content
    assert content.endswith(b'."}')
