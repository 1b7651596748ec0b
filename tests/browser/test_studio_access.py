"""Who else could use the studio: another user who reads the arguments of processes, and a
server on another port.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import FLAGS
from tests.programs import require_chromium
from tests.studio.driver import PATIENCE, Studio, write_loans

pytest.importorskip("uvicorn", reason="uvicorn is in the extra studio")


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    folder = tmp_path_factory.mktemp("studio")
    running = Studio(str(write_loans(folder / "loans.csv")), cwd=folder, kept=folder / "kept")
    running.idle()
    yield running
    assert "Traceback" not in running.stop()


@pytest.fixture
def context(browser: Any) -> Iterator[Any]:
    """A fresh profile of the browser."""
    made = browser.new_context()
    made.set_default_timeout(1000 * PATIENCE)
    yield made
    made.close()


def is_open(page: Any) -> bool:
    """Whether a page shows the file of the studio, or says how to open it."""
    page.wait_for_function(
        "() => document.querySelector('#found').hidden === false || "
        "document.querySelector('#locked').hidden === false"
    )
    return bool(page.is_visible("#main"))


def open_page(context: Any, address: str) -> Any:
    page = context.new_page()
    page.goto(address)
    return page


def test_an_address_opens_one_tab_which_survives_a_reload(context: Any, studio: Studio) -> None:
    address = studio.address
    page = open_page(context, address)
    assert is_open(page)
    assert "token" not in page.url
    page.reload()
    assert is_open(page)
    assert context.cookies() == []
    again = open_page(context, address)  # a second tab of the same profile, with the same address
    assert not is_open(again)
    assert "This address was used before" in again.inner_text("#locked")
    assert (
        "Open the last address that metrifair studio printed in its terminal"
        in again.inner_text("#locked")
    )
    assert not again.is_visible("nav")
    bare = open_page(context, address.partition("#")[0])
    assert not is_open(bare)
    bare.goto(studio.address)  # typed into the tab: only the part behind the number sign changes
    bare.wait_for_selector("#found:not([hidden])")
    assert is_open(page)


def test_a_tab_of_a_studio_that_ended_says_so(context: Any, tmp_path: Path) -> None:
    running = Studio(str(write_loans(tmp_path / "loans.csv")), cwd=tmp_path, kept=tmp_path / "kept")
    running.idle()
    page = open_page(context, running.address)
    assert is_open(page)
    running.stop()
    page.wait_for_selector("text=The studio does not respond")


# A person without rights on this machine looks for a way into the studio at a port, for a while.
OTHER_USER = """
import encodings.idna, http.client, json, os, re, sys, time  # all before the change of the user
port, user = int(sys.argv[1]), int(sys.argv[2])
os.setgroups([]); os.setgid(user); os.setuid(user)
keys, words, readable = [], set(), []
for _ in range(30):
    for process in filter(str.isdigit, os.listdir("/proc")):
        for part in ("cmdline", "environ"):
            try:
                content = open(f"/proc/{process}/{part}", "rb").read()
            except OSError:
                continue
            words |= {word.decode(errors="replace") for word in content.split(bytes(1))}
    time.sleep(0.1)
for place in {path for word in words for path in re.findall("/[^ =:#]*metrifair-studio-[^ ]*", word)}:
    for path in (place, os.path.dirname(place)):
        try:
            readable.append(open(path).read() if os.path.isfile(path) else repr(os.listdir(path)))
        except OSError:
            pass
for token in {token for text in [*words, *readable] for token in re.findall("[A-Za-z0-9_-]{40,}", text)}:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/key", token, {"Origin": f"http://127.0.0.1:{port}"})
    keys += [json.loads(connection.getresponse().read())["key"]]
print(json.dumps([sorted(filter(None, keys)), readable, sorted(words)]))
"""


def attack(port: int) -> tuple[list[str], list[str], list[str]]:
    """The keys that another user found, files of the studio that it could read, and words of
    all processes.
    """
    command = [sys.executable, "-c", OTHER_USER, str(port), "65534"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    keys, readable, words = json.loads(done.stdout)
    return keys, readable, words


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder for temporary files that all users can enter, as /tmp."""
    folder = Path(tempfile.mkdtemp(prefix="for-all-", dir="/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def write_browser(folder: Path, command: str) -> str:
    """Write a program that the studio starts as the browser; it becomes ``command``, with the
    address as $1.
    """
    program = folder / "browser"
    program.write_text(
        f"#!/bin/sh\necho $$ > {folder}/browser.pid\nexec {command} > /dev/null 2>&1\n"
    )
    program.chmod(0o755)
    return f"{program} %s"


def end_browser(folder: Path) -> None:
    """End the browser that the studio of a test started."""
    os.kill(int((folder / "browser.pid").read_text()), signal.SIGTERM)


needs_users = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(os, "getuid") or os.getuid() != 0,
    reason="only root can become another user",
)


@needs_users
def test_another_user_finds_no_way_in_while_the_browser_opens(public_folder: Path) -> None:
    """The browser has the address as an argument and does nothing, so the token stays unused
    all the time.
    """
    browser = write_browser(
        public_folder, f'{sys.executable} -c "import time; time.sleep(60)" "$1"'
    )
    running = Studio(cwd=public_folder, kept=public_folder / "kept", browser=browser)
    (redirect,) = public_folder.glob("metrifair-studio-*/open.html")
    end = time.monotonic() + PATIENCE
    while not any(redirect.name in word for word in attack(running.port)[2]):
        assert time.monotonic() < end
    assert redirect.parent.stat().st_mode & 0o777 == 0o700
    assert redirect.stat().st_mode & 0o777 == 0o600
    keys, readable, words = attack(running.port)
    # the attacker saw the arguments of the browser
    assert any(str(redirect) in word for word in words)
    assert (keys, readable) == ([], [])
    assert not any(running.key in word for word in words)
    # The same attacker succeeds if a process has the token among its arguments.
    careless = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", running.address]
    )
    assert attack(running.port)[0] == [running.key]
    careless.kill()
    careless.wait()
    end_browser(public_folder)
    running.stop()
    assert list(public_folder.glob("metrifair-studio-*")) == []


@needs_users
def test_chromium_opens_the_page_by_the_private_file_which_is_then_deleted(
    public_folder: Path,
) -> None:
    profile = f"--user-data-dir={public_folder / 'profile'}"
    browser = write_browser(
        public_folder,
        f'{require_chromium()} {" ".join(FLAGS)} {profile} --remote-debugging-port=0 "$1"',
    )
    running = Studio(cwd=public_folder, kept=public_folder / "kept", browser=browser)
    (redirect,) = public_folder.glob("metrifair-studio-*/open.html")
    end = time.monotonic() + PATIENCE
    while redirect.exists():  # it is deleted when its token is used
        assert time.monotonic() < end
        time.sleep(0.2)
    keys, readable, words = attack(running.port)
    assert any(str(redirect) in word for word in words)
    assert (keys, readable) == ([], [])
    assert not any(running.key in word for word in words)
    end_browser(public_folder)
    running.stop()


class Recorder(BaseHTTPRequestHandler):
    """A server of somebody else: it records what browsers send, sets a cookie, and shows an
    empty page.
    """

    def do_GET(self) -> None:
        """Record the request."""
        self.server.requests.append((self.path, dict(self.headers)))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Set-Cookie", "probe=1; Path=/")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>another</title>")

    do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Print nothing."""


@contextmanager
def other_server() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.requests = []  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


# Everything that a page of another port could try; each attempt returns what it got.
ATTEMPTS = """async (studio) => {
  const found = { stored: JSON.stringify(sessionStorage) + JSON.stringify(localStorage), cookie: document.cookie };
  const tries = { state: "state", key: "key", run: "run/forget", page: "", ticket: "tickets/audit/audit.json" };
  for (const [name, path] of Object.entries(tries)) {
    for (const mode of ["cors", "no-cors"]) {
      for (const method of ["GET", "POST"]) {
        try {
          const body = method === "POST" ? "{}" : undefined;
          const answer = await fetch(studio + path, { mode, method, body, credentials: "include" });
          found[`${name} ${mode} ${method}`] = `${answer.type} ${answer.status} ${await answer.text()}`;
        } catch (error) { found[`${name} ${mode} ${method}`] = "refused"; }
      }
    }
  }
  const headers = { Authorization: "Bearer x" };
  found.preflight = await fetch(studio + "state", { headers }).then((answer) => answer.text(), () => "refused");
  const frame = document.createElement("iframe");
  frame.src = studio;
  document.body.append(frame);
  await new Promise((resolve) => { frame.onload = resolve; setTimeout(resolve, 3000); });
  try { found.frame = frame.contentWindow.sessionStorage.length; } catch { found.frame = "refused"; }
  const opened = window.open(studio);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  try { found.opened = JSON.stringify(opened.sessionStorage); } catch { found.opened = "refused"; }
  found.closed = opened === null || opened.closed;
  found.events = await new Promise((resolve) => {
    const source = new EventSource(studio + "events", { withCredentials: true });
    source.onmessage = ({ data }) => resolve(data);
    source.onerror = () => resolve("refused");
  });
  return found;
}"""


def test_a_server_on_another_port_gets_nothing(context: Any, studio: Studio) -> None:
    page = open_page(context, studio.address)
    assert is_open(page)
    before = studio.idle()
    with other_server() as server, other_server() as second:
        home = f"http://127.0.0.1:{server.server_port}"
        foreign = open_page(context, f"{home}/")
        found = foreign.evaluate(ATTEMPTS, f"http://127.0.0.1:{studio.port}/")
        page.goto(f"{home}/same-tab")  # the tab that has the key
        in_same_tab = page.evaluate("() => JSON.stringify(sessionStorage) + document.cookie")
        page.goto(f"http://127.0.0.1:{second.server_port}/")
        page.go_back()
        page.go_back()
        assert is_open(page)  # the tab still has the key, for the origin of the studio alone
        requests = [*server.requests, *second.requests]  # type: ignore[attr-defined]
    sent = json.dumps(requests)
    assert "probe=1" in json.dumps(second.requests)  # type: ignore[attr-defined]  # cookies do reach every port
    for secret in (studio.key, "loans", "metrifair-key"):
        assert secret not in sent
        assert secret not in json.dumps(found)
        assert secret not in in_same_tab
    assert found.pop("stored") == "{}{}"
    assert found.pop("cookie") == "probe=1"
    found.pop("closed")
    unreadable = re.compile(r"refused|opaque 0 $")
    assert {name: text for name, text in found.items() if not unreadable.match(str(text))} == {}
    assert studio.idle()["version"] == before["version"]
    assert studio.state()["has_ledger"] == before["has_ledger"]
