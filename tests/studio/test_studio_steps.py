"""The steps: figures are those of the commands and of the Python that the page shows; whatever
fails is a sentence.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metrifair.evidence import verify
from tests.seams.studio import STUDIO_TEXTS, Refused, Session, TableFile, child, choice_commands
from tests.seams.studio import session as studio_session
from tests.studio.driver import ROLES, Studio

CHOICES: dict[str, Any] = {
    "group": ["sex"],
    "threshold": "0.4",
    "criterion": "",
    "standard": "",
    "intersectional": False,
}
TRAINING = {
    "criterion": "statistical_parity",
    "utility": "auto",
    "minutes": "20",
    "max_unfairness": "0.2",
    "families": "auto,linear",
}
# What makes a page of figures: everything but where and when it was computed.
ORIGIN = ("provenance", "origin")


def figures(content: bytes | str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(content)
    return {name: value for name, value in found.items() if name not in ORIGIN}


def run_shown(text: str, folder: Path) -> None:
    """Run commands as they are shown, as if they were pasted into a terminal."""
    for line in text.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "metrifair"
        subprocess.run(
            [sys.executable, "-m", "metrifair", *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
        )


def test_the_shown_command_and_python_compute_the_figures_of_the_page(
    studio: Studio, tmp_path: Path
) -> None:
    studio.idle()
    studio.run("inspect", missing=["N/A"])
    studio.run("roles", **ROLES)
    done = studio.run("audit", **CHOICES)["done"]["audit"]
    assert set(done["files"]) == {"report.html", "audit.json"}
    shown = figures(studio.ask("GET", "/download/audit/audit.json")[2])
    (command,) = done["commands"]
    assert "--missing=N/A" in command
    run_shown(command, tmp_path)
    assert figures((tmp_path / "audit.json").read_text()) == shown
    script = done["python"] + "print(audit.to_json())\n"
    printed = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert figures(printed.stdout) == shown
    status, headers, page = studio.ask("GET", "/download/audit/report.html")
    assert status == 200
    # it reaches nothing of the studio
    assert "sandbox allow-scripts" in headers["content-security-policy"]
    for name in ("log.txt", "..%2f..%2fetc%2fpasswd", "."):  # beside the results, and elsewhere
        assert studio.ask("GET", f"/download/audit/{name}")[0] == 404
    assert b"--missing=N/A" in page or b"--missing N/A" in page  # the report names its command


@pytest.mark.parametrize(
    "changes",
    [
        {"threshold": "0.6"},
        {"score": "decision", "favorable_decision": "Approved", "threshold": ""},
    ],
)
def test_a_search_has_the_same_groups_in_the_page_the_command_and_python(
    studio: Studio, loans: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    studio.idle()
    studio.run("inspect", missing=["N/A"])
    studio.run("roles", **ROLES | changes)
    choices = CHOICES | changes | {"find_groups": "missed-positives", "among": ["town", "income"]}
    state = studio.run("audit", **choices)
    assert state["failed"] == {}
    done = state["done"]["audit"]
    shown = json.loads(studio.ask("GET", "/download/audit/audit.json")[2])["group_search"]
    assert shown["worse"]
    run_shown(done["commands"][0], tmp_path)
    by_command = json.loads((tmp_path / "audit.json").read_text())["group_search"]
    script = done["python"] + "print(audit.to_json())\n"
    printed = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert by_command == json.loads(printed.stdout)["group_search"] == shown
    evidence = studio.run("evidence")
    assert evidence["failed"] == {}
    (tmp_path / "evidence.zip").write_bytes(studio.ask("GET", "/download/evidence/evidence.zip")[2])
    found = verify(tmp_path / "evidence.zip", data=loans)
    assert found.agrees, str(found)
    assert "search_recount" in {check.kind for check in found.checks}


def test_the_standard_of_credit_compares_with_the_chosen_group(
    studio: Studio, tmp_path: Path
) -> None:
    studio.idle()
    studio.run("inspect", missing=["N/A"])
    studio.run("roles", **ROLES)
    lacking = studio.run("audit", **CHOICES | {"standard": "credit"})["failed"]["audit"]
    assert "“Reference group”" in lacking
    state = studio.run("audit", **CHOICES | {"standard": "credit", "reference": ["sex=men"]})
    assert state["failed"] == {}
    done = state["done"]["audit"]
    assert "--reference=sex=men" in done["commands"][0]
    run_shown(done["commands"][0], tmp_path)
    by_command = json.loads((tmp_path / "audit.json").read_text())["decisions"]
    assert {table["reference"] for table in by_command} == {"men"}
    script = done["python"].replace(".to_html('report.html', details=True)", ".audit.to_json()")
    assert script != done["python"]
    script = script.replace("audit.rates(", "print(audit.rates(") + ")"
    printed = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert json.loads(printed.stdout)["decisions"] == by_command
    assert studio.run("evidence")["failed"] == {}
    # of another standard, the reference is not sent on
    state = studio.run("audit", **CHOICES | {"standard": "ll144", "reference": ["sex=men"]})
    assert state["failed"] == {}
    assert "--reference" not in state["done"]["audit"]["commands"][0]


def test_evidence_of_the_audit_agrees_with_the_file(
    studio: Studio, loans: Path, tmp_path: Path
) -> None:
    studio.idle()
    studio.run("roles", **ROLES)
    audited = studio.run("audit", **CHOICES)
    assert audited["failed"] == {}
    state = studio.run("evidence")
    assert state["failed"] == {}
    assert state["choices"]["audit"] == audited["choices"]["audit"]
    (tmp_path / "evidence.zip").write_bytes(studio.ask("GET", "/download/evidence/evidence.zip")[2])
    found = verify(tmp_path / "evidence.zip", data=loans)
    assert found.agrees, str(found)
    assert (
        "“Minimum rows in a cell”" in studio.run("evidence", min_cell="2.5")["failed"]["evidence"]
    )
    studio.run("audit", **CHOICES | {"group": ["town"]})
    (command,) = studio.run("evidence", min_cell="20")["done"]["evidence"]["commands"]
    assert "--min-cell=20" in command
    (tmp_path / "evidence.zip").write_bytes(studio.ask("GET", "/download/evidence/evidence.zip")[2])
    assert "withheld" in {
        check.outcome for check in verify(tmp_path / "evidence.zip", data=loans).checks
    }


@pytest.mark.slow
def test_a_second_file_is_compared_with_the_first(
    studio: Studio, loans: Path, tmp_path: Path
) -> None:
    studio.idle()
    studio.run("roles", **ROLES)
    studio.run("audit", **CHOICES)
    later = loans.read_text().replace(",0.3", ",0.1")
    assert studio.upload(later.encode(), "later.csv", "second")["second"] == "later.csv"
    state = studio.run("compare")
    assert state["failed"] == {}
    shown = figures(studio.ask("GET", "/download/compare/changes.json")[2])
    (tmp_path / "later.csv").write_text(later)
    run_shown("\n".join(state["done"]["compare"]["commands"]), tmp_path)
    assert figures((tmp_path / "changes.json").read_text()) == shown
    script = state["done"]["compare"]["python"].replace(".to_html('changes.html')", ".to_json()")
    call = script.replace("metrifair.compare(", "print(metrifair.compare(", 1).rstrip() + ")"
    printed = subprocess.run(
        [sys.executable, "-c", call], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert [one["difference"] for one in json.loads(printed.stdout)["differences"]] == [
        one["difference"] for one in shown["differences"]
    ]


@pytest.mark.parametrize(
    ("step", "choices", "sentence"),
    [
        ("audit", CHOICES | {"group": ["town", "nobody"]}, "'nobody'"),
        ("audit", CHOICES | {"criterion": "nonsense"}, "nonsense"),
        ("audit", CHOICES | {"threshold": "much"}, "The threshold must be a number"),
        ("audit", CHOICES | {"group": ["--html=/tmp/stolen.html"]}, "--html=/tmp/stolen.html"),
        ("train", TRAINING | {"minutes": "0"}, "The time budget must be a number above 0."),
        (
            "train",
            TRAINING | {"max_unfairness": ""},
            "The unfairness limit must be a number above 0.",
        ),
        ("train", TRAINING | {"families": "auto,nonsense"}, "nonsense"),
        ("choose", {"max_unfairness": "0.1"}, "Train models first."),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_cannot_be_done_is_a_sentence(
    studio: Studio, step: str, choices: dict[str, Any], sentence: str
) -> None:
    studio.idle()
    studio.run("roles", **ROLES)
    failed = studio.run(step, **choices)["failed"][step]
    assert sentence in failed
    assert "Traceback" not in failed
    assert not Path("/tmp/stolen.html").exists()


HOSTILE = {
    "empty.csv": b"",
    "ragged.csv": b'a,b\n1,2\n3\n4,5,6\n"7,8\n',
    "markup.csv": b"<script>alert(1)</script>,'\"\n1,<img src=x onerror=alert(1)>\n",
    "broken.parquet": b"PAR1" + bytes(range(256)) * 8,
    "bomb.xlsx": b"PK\x03\x04" + b"\xff" * 2_000,
    "../../--help": b"a\n1\n",
}
MORE_HOSTILE = {
    "header.csv": b"a,b\n",
    "zeros.csv": b"\x00" * 4_096,
    "utf16.csv": "a,b\n1,2\n".encode("utf-16"),
    "twice.csv": b"a,a\n1,2\n",
    "formula.csv": b"=1+1,@x\n=cmd|' /C calc'!A0,1\n",
    "long.csv": b"a" * 1_000_000 + b"\n" + b"1" * 1_000_000 + b"\n",
    "deep.ndjson": b'{"a":' * 10_000,
    "lists.ndjson": b'{"a":[1,2],"b":{"c":1}}\n' * 3,
}


def check_hostile(studio: Studio, name: str, content: bytes) -> None:
    """A file is read, or refused in a sentence; either way the page is alive."""
    state = studio.upload(content, name)
    said = state["failed"].get("inspect", "")
    assert (state["columns"] is None) == bool(said)
    assert "Traceback" not in said
    assert "\n" not in said
    assert "error in metrifair" not in said
    assert studio.ask("GET", "/")[0] == 200


def test_hostile_files_are_refused_in_a_sentence(loans: Path, tmp_path: Path) -> None:
    studio = Studio(cwd=tmp_path, kept=tmp_path / "kept")
    for name, content in HOSTILE.items():
        check_hostile(studio, name, content)
    assert "Traceback" not in studio.stop()


@pytest.mark.slow
def test_a_hundred_damaged_files_are_refused_in_a_sentence(loans: Path, tmp_path: Path) -> None:
    studio, rng = Studio(cwd=tmp_path, kept=tmp_path / "kept"), np.random.default_rng(0)
    for name, content in MORE_HOSTILE.items():
        check_hostile(studio, name, content)
    whole = np.frombuffer(loans.read_bytes(), np.uint8)
    for number in range(100):
        damaged = whole[: rng.integers(1, len(whole))].copy()
        places = rng.integers(len(damaged), size=rng.integers(1, 200))
        damaged[places] = rng.integers(256, size=len(places))
        ending = ["csv", "tsv", "parquet", "xlsx", "ndjson", "arrow"][number % 6]
        check_hostile(studio, f"damaged-{number}.{ending}", damaged.tobytes())
    assert "Traceback" not in studio.stop()


async def _finished(session: Session) -> None:
    while session.running is not None:
        await asyncio.sleep(0.05)


async def _parts(*parts: bytes) -> Any:
    for part in parts:
        yield part


def inspected(session: Session, table: TableFile) -> str:
    """What the session says after it inspected a file; empty: nothing."""

    async def inspect() -> None:
        session.inspect(table, {})
        await _finished(session)

    asyncio.run(inspect())
    return session.failed.get("inspect", "")


def test_a_step_of_several_commands_shows_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By names that the page has texts for."""
    session = Session(tmp_path, tmp_path / "ledger")
    shown: list[Any] = []

    async def run(*_: Any, **__: Any) -> None:
        shown.append(session.state()["part"])

    monkeypatch.setattr(session, "_run", run)
    choices = {"label": "repaid", "group": ["sex"], "max_unfairness": "0.2"}
    table = TableFile(tmp_path / "a.csv", "a.csv")
    commands = choice_commands(table, choices, tmp_path / "ledger", score="probability")

    async def step() -> None:
        await session._run_step("choose", session._finish("choose", commands, ""))

    asyncio.run(step())
    assert [part["place"] for part in shown] == [1, 2, 3, 4]
    assert {part["total"] for part in shown} == {4}
    assert all(f"part_{part['command']}" in STUDIO_TEXTS for part in shown)
    assert session.state()["part"] is None


def test_uploads_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studio_session, "MOST_BYTES", 1_000)
    session = Session(tmp_path, tmp_path / "ledger")
    with pytest.raises(Refused, match="larger than"):
        asyncio.run(session.receive(_parts(b"x" * 600, b"x" * 600), "a.csv", second=False))
    assert list(tmp_path.iterdir()) == []
    assert session.table is None


def test_the_number_of_columns_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studio_session, "MOST_COLUMNS", 2)
    (tmp_path / "wide.csv").write_text("a,b,c\n1,2,3\n")
    said = inspected(
        Session(tmp_path, tmp_path / "ledger"), TableFile(tmp_path / "wide.csv", "wide.csv")
    )
    assert said == "The file has 3 columns; the studio accepts up to 2."


def test_a_step_ends_at_its_time_limit(
    loans: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studio_session, "_SECONDS", 0.01)
    said = inspected(Session(tmp_path, tmp_path / "ledger"), TableFile(loans, "loans.csv"))
    assert said.startswith("The step took longer than its limit")


def test_a_step_can_be_canceled_and_only_one_runs(loans: Path, tmp_path: Path) -> None:
    session = Session(tmp_path, tmp_path / "ledger")

    async def cancel() -> None:
        session.inspect(TableFile(loans, "loans.csv"), {})
        with pytest.raises(Refused, match="Another step is running"):
            session.inspect(TableFile(loans, "loans.csv"), {})
        await asyncio.sleep(0.2)
        session.cancel()
        await _finished(session)

    asyncio.run(cancel())
    assert session.failed == {"inspect": "Canceled."}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce the limit")
def test_a_command_has_a_memory_limit() -> None:
    """Memory above the limit is refused to the child, in the way that the session recognizes."""
    script = f"import {child.__name__} as child; child._limit_memory(2**28); bytearray(2**29)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    limit = 4 * 2**30
    assert (
        studio_session._sentence(1, done.stderr, limit)
        == "This step needs more memory than its limit of 4 GB."
    )


def test_a_child_ends_when_its_studio_does() -> None:
    """Its standard input is closed, as the end of any process closes it."""
    script = (
        f"import threading, time\nimport {child.__name__} as child\n"
        "threading.Thread(target=child._end_with_studio, daemon=True).start()\ntime.sleep(30)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 1


def test_without_the_extra_the_command_names_it(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['uvicorn'] = None; sys.argv = ['metrifair', 'studio']\n"
        "from metrifair.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 2
    assert 'pip install "metrifair[studio]"' in done.stderr
