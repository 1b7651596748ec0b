"""What stays on the disk: nothing of files that were replaced, broken off or closed, nor of
studios that died.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from metrifair.criteria import CRITERIA
from tests.seams.figures import STANDARDS, UTILITIES
from tests.seams.studio import (
    FIELDS,
    STUDIO_TEXTS,
    Refused,
    Session,
    TableFile,
    criterion_options,
    folders,
    page_text,
    private_folder,
    remove_dead_folders,
    stored_name,
)
from tests.studio.driver import PATIENCE, ROLES, Studio

TINY = b"sex,score\nf,0.5\nm,0.7\n"


@pytest.fixture
def empty(tmp_path: Path) -> Any:
    """A studio without a file."""
    running = Studio(cwd=tmp_path, kept=tmp_path / "kept")
    yield running
    assert "Traceback" not in running.stop()
    assert list(tmp_path.glob("metrifair-studio-*")) == []


def uploads(place: Path) -> list[str]:
    """The files of all folders of studios, but for their locks."""
    return sorted(path.name for path in place.glob("metrifair-studio-*/*/*") if path.is_file())


def until(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_only_the_files_that_are_in_use_stay(empty: Studio, tmp_path: Path) -> None:
    empty.upload(TINY, "first.csv")
    assert uploads(tmp_path) == ["first.csv"]
    empty.upload(TINY, "second.csv")
    assert uploads(tmp_path) == ["second.csv"]
    empty.upload(TINY, "later.csv", "second")
    empty.upload(TINY, "latest.csv", "second")
    assert uploads(tmp_path) == ["latest.csv", "second.csv"]
    empty.upload(b"\x00", "third.csv")  # refused, and still the file of the page
    assert uploads(tmp_path) == ["third.csv"]
    state = empty.run("close")
    assert (state["file"], state["second"], state["columns"], state["done"]) == (
        None,
        None,
        None,
        {},
    )
    assert uploads(tmp_path) == []
    assert list(tmp_path.glob("metrifair-studio-*/*/")) == []


def test_a_closed_file_of_the_user_is_not_deleted(loans: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_bytes(loans.read_bytes())
    studio = Studio(str(own), cwd=tmp_path, kept=tmp_path / "kept")
    studio.idle()
    studio.run("roles", **ROLES)
    assert studio.run("audit", group=["sex"])["failed"] == {}
    assert uploads(tmp_path) == ["audit.json", "log.txt", "report.html"]
    studio.upload(TINY, "first.csv")
    assert uploads(tmp_path) == ["first.csv"]
    studio.run("close")
    studio.stop()
    assert own.read_bytes() == loans.read_bytes()


def test_an_upload_that_breaks_off_leaves_nothing(empty: Studio, tmp_path: Path) -> None:
    empty.upload(TINY, "first.csv")
    lines = [
        "PUT /upload/file?name=broken.csv HTTP/1.1",
        f"Host: 127.0.0.1:{empty.port}",
        f"Origin: http://127.0.0.1:{empty.port}",
        f"Authorization: Bearer {empty.key}",
        "Content-Length: 1000000",
    ]
    with socket.create_connection(("127.0.0.1", empty.port)) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + TINY)
        until(lambda: "broken.csv" in uploads(tmp_path))
    until(lambda: uploads(tmp_path) == ["first.csv"])
    assert empty.idle()["file"] == "first.csv"


async def _stream(*parts: bytes, error: type[Exception] | None = None) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if error is not None:
        raise error


@pytest.mark.parametrize("second", [False, True])
def test_an_upload_that_fails_leaves_nothing(tmp_path: Path, second: bool) -> None:
    session = Session(tmp_path, tmp_path / "ledger")
    with pytest.raises(ConnectionError):
        asyncio.run(session.receive(_stream(b"a\n", error=ConnectionError), "a.csv", second=second))
    assert list(tmp_path.iterdir()) == []
    assert (session.table, session.second) == (None, None)


def test_a_file_is_not_replaced_under_a_step_that_started_during_the_upload(
    loans: Path, tmp_path: Path
) -> None:
    place = tmp_path / "session"
    place.mkdir()

    async def start_meanwhile() -> Session:
        session = Session(place, tmp_path / "ledger")

        async def content() -> AsyncIterator[bytes]:
            yield TINY
            session.inspect(TableFile(loans, "loans.csv"), {})

        with pytest.raises(Refused, match="Another step is running"):
            await session.receive(content(), "late.csv", second=True)
        while session.running is not None:
            await asyncio.sleep(0.05)
        return session

    session = asyncio.run(start_meanwhile())
    assert session.second is None
    assert session.columns is not None
    assert list(place.iterdir()) == []


def test_a_step_that_fails_leaves_nothing(empty: Studio, tmp_path: Path, loans: Path) -> None:
    empty.upload(loans.read_bytes(), "loans.csv")
    empty.run("roles", **ROLES)
    assert "audit" in empty.run("audit", group=["nobody"])["failed"]
    assert uploads(tmp_path) == ["loans.csv"]


NAMES = {
    "Chinese": "数" * 95 + ".csv",
    "emoji": "😀" * 250 + ".csv",
    "long": "a" * 5_000 + ".parquet",
    "long ending": "a." + "b" * 400,
    "combining": "e\u0301" * 200 + ".csv",
    "folders": "../../etc/passwd",
    "dots": "...",
    "nothing": "",
    "control": "a\x00\n\x1b[31m.csv",
    "surrogate": "a\ud800.csv",
    "reserved": 'a<>:"|?*.csv',
}


@pytest.mark.parametrize("name", NAMES)
def test_any_name_can_be_stored(name: str, tmp_path: Path) -> None:
    stored = stored_name(NAMES[name])
    assert 0 < len(stored.encode()) <= 200
    assert stored not in (".", "..")
    assert not set(stored) & set('/\\\0\n\x1b<>:"|?*')
    (tmp_path / f"{stored}.origin.json").write_text("")  # the longest ending that commands add


def test_a_name_of_95_chinese_characters_is_no_error(empty: Studio, tmp_path: Path) -> None:
    state = empty.upload(TINY, NAMES["Chinese"])
    assert state["failed"] == {}
    assert state["file"].endswith("数数.csv")
    assert len(uploads(tmp_path)) == 1
    assert empty.upload(TINY, NAMES["emoji"])["failed"] == {}


@pytest.mark.skipif(sys.platform == "win32", reason="a kill of Unix")
def test_the_next_studio_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    first = Studio(cwd=tmp_path, kept=tmp_path / "kept")
    first.upload(TINY, "private.csv")
    alive = Studio(cwd=tmp_path, kept=tmp_path / "kept")
    alive.upload(TINY, "alive.csv")
    first.stop(signal.SIGKILL)
    assert uploads(tmp_path) == ["alive.csv", "private.csv"]
    later = Studio(cwd=tmp_path, kept=tmp_path / "kept")
    assert uploads(tmp_path) == ["alive.csv"]
    assert alive.state()["file"] == "alive.csv"
    # a closed terminal, and a stop
    for running, number in ((later, signal.SIGHUP), (alive, signal.SIGTERM)):
        assert "Traceback" not in running.stop(number)
    assert list(tmp_path.glob("metrifair-studio-*")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="a kill of Unix")
def test_a_killed_process_that_its_parent_has_not_read_yet_keeps_nothing(tmp_path: Path) -> None:
    """Its number is in use, and its folder is new."""
    killed = Studio(cwd=tmp_path, kept=tmp_path / "kept")
    killed.upload(TINY, "private.csv")
    killed.process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, killed.process.pid, os.WEXITED | os.WNOWAIT)
    assert uploads(tmp_path) == ["private.csv"]
    remove_dead_folders(tmp_path)
    assert list(tmp_path.glob("metrifair-studio-*")) == []
    killed.process.communicate(timeout=PATIENCE)


@pytest.mark.skipif(sys.platform == "win32", reason="users and links of Unix")
def test_only_folders_of_dead_studios_of_this_user_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(name: str, *, lock: bool) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "upload.csv").write_bytes(TINY)
        if lock:
            folder.with_name(f"{name}.lock").write_bytes(b"")
        return folder

    removed = make("metrifair-studio-a", lock=True)
    kept = [
        make("metrifair-studio-notes", lock=False),
        make("metrifair-b", lock=True),
    ]
    target = make("target", lock=True)
    link = tmp_path / "metrifair-studio-c"
    link.symlink_to(target)
    link.with_name("metrifair-studio-c.lock").write_bytes(b"")
    starting = tmp_path / "metrifair-studio-d.lock"
    starting.write_bytes(b"")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(folders.tempfile, "tempdir", None)
    with private_folder() as own:
        assert own.stat().st_mode & 0o777 == 0o700
        remove_dead_folders(tmp_path)
        assert not removed.exists()
        assert not removed.with_name("metrifair-studio-a.lock").exists()
        assert [path for path in (*kept, target, own, starting) if not path.exists()] == []
        assert link.is_symlink()
    assert not own.exists()
    if os.getuid() == 0:
        foreign = make("metrifair-studio-e", lock=True)
        os.chown(foreign, 65_534, 65_534)
        remove_dead_folders(tmp_path)
        assert foreign.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="locks of Unix")
def test_a_folder_is_locked_before_it_can_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another studio starts at the moment at which the folder appears."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(folders.tempfile, "tempdir", None)
    make_folder = Path.mkdir

    def make_and_look(path: Path, mode: int = 0o777) -> None:
        remove_dead_folders(tmp_path)
        make_folder(path, mode)
        remove_dead_folders(tmp_path)

    monkeypatch.setattr(Path, "mkdir", make_and_look)
    with private_folder() as own:
        assert own.is_dir()


def test_the_fields_of_messages_are_those_of_the_page() -> None:
    package = resources.files("metrifair.studio")
    page = package.joinpath("page.html").read_text() + package.joinpath("studio.js").read_text()
    found: dict[str, set[str]] = {}
    in_page = re.findall(r'<span data-option="([a-z-]+)">([^<>]+)</span>', page)
    in_script = re.findall(
        r'textContent: textOf\("(\w+)"\) \}\);\s+name\.dataset\.option = "([a-z-]+)"', page
    )
    named = [(option, STUDIO_TEXTS[name]) for name, option in in_script]
    for option, title in [*in_page, *named]:
        found.setdefault(option, set()).add(title)
    assert not re.search("<code>--", page)  # people on the page need no options
    assert found.keys() == FIELDS.keys()
    assert {option: title for option, title in FIELDS.items() if title not in found[option]} == {}


MESSAGES = {
    "Invalid value for '--min-cell': 2.5 is not a valid integer": (
        "Invalid value for “Minimum rows in a cell”: 2.5 is not a valid integer"
    ),
    "There is no column '--html'; use --label COLUMN": (
        "There is no column '--html'; use “Label (true outcome)” COLUMN"  # a name of the user's
    ),
    "--group 'a' is missing; use --missing=a": "“Groups” 'a' is missing; use “Missing values” a",
    "It is too large. Use --max-rows 5, or --missing X.": "It is too large, or “Missing values” X.",
    "--max-rows is too small": "max rows is too small",
}


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_name_fields_in_place_of_options(message: str) -> None:
    assert page_text(message) == MESSAGES[message]


@pytest.mark.extended  # each message is that of a command
def test_messages_name_no_folder_and_no_option(empty: Studio, tmp_path: Path, loans: Path) -> None:
    """What commands refuse, from reading to training, as the page shows it."""
    said = []
    for name, content in {
        "a.csv": b"",
        "b.parquet": b"PAR1xx",
        "c.xlsx": b"PK\x03\x04",
        "d.csv": b"\x00",
    }.items():
        said += empty.upload(content, name)["failed"].values()
    empty.upload(loans.read_bytes(), "loans.csv")
    readings: list[dict[str, Any]] = [
        {"separator": "x"},
        {"encoding": "utf-77"},
        {"sheet": "2"},
        {"replace": ["a"]},
    ]
    readings += [{"missing": ["nowhere"]}, {"decimal": ","}, {"replace": ["nowhere=b"]}]
    for reading in readings:
        state = empty.run("inspect", **reading)
        said += [*state["failed"].values(), *(state["columns"] or {"notes": []})["notes"]]
    empty.run("inspect")
    empty.run("roles", **ROLES | {"score": "decision"})
    choices = [
        {"group": ["sex"]},
        {"group": ["nobody"]},
        {"group": ["sex"], "criterion": "nonsense"},
    ]
    choices += [{"group": ["number"]}, {"group": ["sex"], "threshold": "7"}, {"group": ["repaid"]}]
    for choice in choices:
        said += empty.run("audit", **choice)["failed"].values()
    empty.run("roles", **ROLES)
    assert empty.run("audit", group=["sex"])["failed"] == {}
    said += empty.run("evidence", min_cell="2.5")["failed"].values()
    assert len(said) > 12
    for text in said:
        assert not re.search(r"(?<![\w'])--?[a-z]", text), text
        assert not re.search(r"(?<!\w)/\w", text), text
        assert str(tmp_path) not in text, text
    assert str(tmp_path) not in json.dumps(empty.state())


def test_the_page_offers_what_the_registries_have() -> None:
    """Of utilities those of decisions and probabilities; of criteria those without other inputs."""
    offered = re.findall(r'<option value="(\w+)">(.*?)</option>', criterion_options())
    assert {"risk_parity", "conditional_statistical_parity"} == set(CRITERIA) - set(dict(offered))
    assert ("equalized_odds", "equalized odds") in offered
    page = Path(folders.__file__).with_name("page.html").read_text()
    assert page.count("CRITERIA") == 2
    fields = dict(re.findall(r'(?s)<select name="(standard|utility)">(.*?)</select>', page))
    values = {name: re.findall(r'value="(.*?)"', text) for name, text in fields.items()}
    assert set(values["standard"]) == set(STANDARDS)
    utilities = {name for name, row in UTILITIES.items() if row.needs in ("decisions", "scores")}
    assert set(values["utility"]) == {"auto", *utilities}
