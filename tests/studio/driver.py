"""A messy file, and a real studio in a process of its own, asked over HTTP as its page asks."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

PATIENCE = 240.0  # seconds; machines that run tests are busy


class Studio:
    """A running studio."""

    def __init__(self, *arguments: str, cwd: Path, kept: Path, browser: str | None = None) -> None:
        """Start a studio.

        ``browser`` is the command of one, if the studio opens its page itself.
        """
        threads = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        places = {"XDG_CACHE_HOME": str(kept), "TMPDIR": str(cwd)}
        options = ["--no-browser"] if browser is None else []
        # Signals as a terminal sends them, also where these tests run under nohup.
        usual = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); "
        start = [sys.executable, "-c", f"{usual}os.execv(sys.executable, sys.argv[1:])"]
        program = [sys.executable, "-m", "metrifair", "studio", *options, *arguments]
        self.process = subprocess.Popen(
            program if sys.platform == "win32" else [*start, *program],
            cwd=cwd,
            env=os.environ | threads | places | {"BROWSER": browser or ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.port = 0
        self.key = self.exchange(self.new_address().partition("token=")[2])

    @property
    def address(self) -> str:
        """An address that was not used yet; the studio prints another one after its use."""
        return self.new_address()

    def new_address(self) -> str:
        """Read the next address that the studio prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        title = "To open another tab" if self.port else "metrifair studio"
        found = re.fullmatch(rf"{title}: (http://127\.0\.0\.1:(\d+)/#token=[\w-]{{40,}})\n", line)
        assert found, (line, self.process.poll())
        self.port = int(found[2])
        return found[1]

    def exchange(self, token: str) -> str:
        """The key for a token, as the page asks for it; "None" for a token that gives none."""
        return str(json.loads(self.ask("POST", "/key", token, Authorization=None)[2])["key"])

    def ask(
        self, method: str, path: str, body: bytes | str | None = None, **headers: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and content of an answer; headers of the page unless others are
        given, None for none.
        """
        own = {"Host": f"127.0.0.1:{self.port}"}
        own |= {} if "Authorization" in headers else {"Authorization": f"Bearer {self.key}"}
        own |= {} if method == "GET" else {"Origin": f"http://127.0.0.1:{self.port}"}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        content = body.encode() if isinstance(body, str) else body or b""
        for name, value in ({**own, "Content-Length": str(len(content))} | headers).items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(content)
        answer = connection.getresponse()
        found = (
            answer.status,
            {name.lower(): text for name, text in answer.getheaders()},
            answer.read(),
        )
        connection.close()
        return found

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ask("GET", "/state")[2])
        return found

    def idle(self) -> dict[str, Any]:
        """The state when nothing runs."""
        return self.wait(lambda state: state["running"] is None)

    def wait(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while not condition(state := self.state()):
            assert time.monotonic() < end, state
            time.sleep(0.1)
        return state

    def run(self, step: str, **choices: Any) -> dict[str, Any]:
        """The state after a step."""
        status, _, content = self.ask("POST", f"/run/{step}", json.dumps(choices))
        assert status == 200, content
        return self.idle()

    def upload(self, content: bytes, name: str, which: str = "file") -> dict[str, Any]:
        status, _, said = self.ask("PUT", f"/upload/{which}?name={quote(name)}", content)
        assert status == 200, said
        return self.idle()

    def stop(self, number: int = signal.SIGINT) -> str:
        """End the studio; what it wrote to standard error."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=PATIENCE)[1]


ROLES = {
    "score": "score",
    "label": "repaid",
    "positive": "yes",
    "group": ["sex"],
    "weight": "",
    "id": "number",
}
"""What a person confirms for the loans."""


def write_loans(path: Path) -> Path:
    """Write loans as they come: gaps, ids, markup and formulas as text, scores and decisions of
    a model.
    """
    rng = np.random.default_rng(0)
    n = 1_600
    sex, town = rng.integers(2, size=n), rng.integers(4, size=n)
    income = rng.normal(30 + 6 * sex, 8, n).round(1)
    score = 1 / (1 + np.exp((32 - income) / 8))
    repaid = income + rng.normal(0, 8, n) > 32
    lines = ["number,income,town,sex,score,decision,repaid"]
    for row in range(n):
        told = [
            f"P{row:04}",
            "" if row % 13 == 0 else str(income[row]),
            ["north", "south", "=east", "<b>west</b>"][town[row]],
            "N/A" if row % 97 == 0 else ["women", "men"][sex[row]],
            f"{score[row]:.4f}",
            "Approved" if score[row] > 0.5 else "Declined",
            "yes" if repaid[row] else "no",
        ]
        lines.append(",".join(told))
    path.write_text("\n".join(lines) + "\n")
    return path
