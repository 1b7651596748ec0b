"""A download ends as the whole published file, or as a clear error and nothing in the folder."""

from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from metrifair.errors import DataError
from tests.seams.datasets import RawFile, fetch, read
from tests.seams.support import Progress

if TYPE_CHECKING:
    from conftest import Publisher


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits between attempts."""
    monkeypatch.setattr("pooch.core.time.sleep", lambda _: None)


def download(raw: RawFile, folder: Path) -> bytes:
    """The file in a folder of its own, which no other folder has."""
    return fetch._read_verified(fetch._download(raw, folder), raw)


def reason(caught: pytest.ExceptionInfo[DataError]) -> str:
    """The part of the message between the address and what to do."""
    return (
        str(caught.value)
        .split("): " if "(in it" in str(caught.value) else ".csv: ", 1)[1]
        .split("; fetch it", 1)[0]
    )


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_a_file_is_downloaded_once_and_then_found(publisher: Publisher, cache: Path) -> None:
    raw = publisher.raw()
    assert read(raw) == publisher.content
    assert read(raw) == publisher.content
    assert publisher.asked == [None]
    assert [path.name for path in cache.iterdir()] == ["made-up.csv"]
    assert (cache / "made-up.csv").read_bytes() == publisher.content


def test_a_file_is_downloaded_into_data_home_where_one_is_given(
    publisher: Publisher, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METRIFAIR_DATA", str(tmp_path / "named"))
    read(publisher.raw(), data_home=tmp_path / "home")
    assert (tmp_path / "home" / "made-up.csv").read_bytes() == publisher.content
    assert not (tmp_path / "named").exists()
    assert not cache.exists()


def test_a_cut_connection_is_tried_three_times_and_leaves_nothing(
    publisher: Publisher, tmp_path: Path
) -> None:
    publisher.cut_after = 1000
    raw = publisher.raw()
    with pytest.raises(DataError) as caught:
        download(raw, tmp_path)
    message = str(caught.value)
    assert message.startswith(
        f"made-up.csv was not found and could not be downloaded from {raw.url}: "
    )
    assert "Connection broken" in message
    assert message.endswith(
        f"; fetch it by hand and put made-up.csv into {tmp_path}, or name the folder that has it "
        "by data_home= or "
        "METRIFAIR_DATA"
    )
    assert len(publisher.asked) == 3
    assert list(tmp_path.iterdir()) == []
    publisher.cut_after = None
    assert download(raw, tmp_path) == publisher.content


def test_a_connection_that_heals_is_used(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def healed(_: float) -> None:
        publisher.cut_after = None

    publisher.cut_after = 1000
    monkeypatch.setattr("pooch.core.time.sleep", healed)
    assert download(publisher.raw(), tmp_path) == publisher.content
    assert len(publisher.asked) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["made-up.csv"]


def test_a_cut_connection_without_a_length_is_found_by_the_checksum(
    publisher: Publisher, tmp_path: Path
) -> None:
    publisher.cut_after, publisher.tells_length = 1000, False
    with pytest.raises(DataError) as caught:
        download(publisher.raw(), tmp_path)
    assert "does not match the known hash" in reason(caught)
    assert publisher.raw().sha256 in reason(caught)
    assert list(tmp_path.iterdir()) == []


def test_a_silent_server_is_given_up(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "TIMEOUT", 0.05)
    publisher.silent = True
    with pytest.raises(DataError) as caught:
        download(publisher.raw(), tmp_path)
    assert "timed out" in reason(caught)
    assert len(publisher.asked) == 3


def test_a_connection_that_stalls_is_given_up(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "TIMEOUT", 0.05)
    publisher.cut_after, publisher.stalls = len(publisher.content) // 2 + 1, True
    with pytest.raises(DataError, match="timed out"):
        download(publisher.raw(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_is_an_error_is_told(publisher: Publisher, tmp_path: Path) -> None:
    publisher.status = 404
    with pytest.raises(DataError) as caught:
        download(publisher.raw(), tmp_path)
    assert reason(caught).startswith("404 Client Error: Not Found")
    assert list(tmp_path.iterdir()) == []


def test_a_changed_file_is_refused_with_both_checksums(
    publisher: Publisher, tmp_path: Path
) -> None:
    raw = publisher.raw(content=b"x" * len(publisher.content))
    with pytest.raises(DataError) as caught:
        download(raw, tmp_path)
    assert "does not match the known hash" in reason(caught)
    assert raw.sha256 in reason(caught)
    assert publisher.raw().sha256 in reason(caught)
    assert list(tmp_path.iterdir()) == []


def test_a_file_larger_than_published_is_not_read_to_its_end(
    publisher: Publisher, tmp_path: Path
) -> None:
    raw = publisher.raw(content=b"short")
    publisher.content = bytes(10_000_000)
    with pytest.raises(DataError) as caught:
        download(raw, tmp_path)
    assert reason(caught) == "it sends more than 5 bytes, so it is not the published file"


def test_an_archive_has_a_limit_too(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "ARCHIVE_LIMIT", 100)
    publisher.content = bytes(101)
    with pytest.raises(DataError) as caught:
        download(publisher.raw(member=("made-up.csv",)), tmp_path)
    assert reason(caught) == "it sends more than 100 bytes, so it is not the published file"


@pytest.mark.parametrize("folder", ["", "data/2014/"])
def test_a_file_is_taken_out_of_an_archive_in_an_archive(
    publisher: Publisher, tmp_path: Path, folder: str
) -> None:
    inner = zipped(**{f"{folder}made-up.csv": b"a;b\n", "other.csv": b"c\n"})
    publisher.content = zipped(**{"inner.zip": inner, "readme": b"hello"})
    raw = publisher.raw(content=b"a;b\n", member=("inner.zip", "made-up.csv"))
    assert download(raw, tmp_path) == b"a;b\n"
    assert (tmp_path / "made-up.csv").read_bytes() == b"a;b\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_an_archive_without_the_file_says_what_it_holds(
    publisher: Publisher, tmp_path: Path
) -> None:
    publisher.content = zipped(**{"b.csv": b"1", "a.csv": b"2"})
    with pytest.raises(DataError) as caught:
        download(publisher.raw(content=b"a;b\n", member=("made-up.csv",)), tmp_path)
    assert reason(caught) == "the archive has no made-up.csv, it contains a.csv, b.csv"
    assert list(tmp_path.iterdir()) == []


def test_a_member_larger_than_published_is_not_unpacked(
    publisher: Publisher, tmp_path: Path
) -> None:
    publisher.content = zipped(**{"made-up.csv": bytes(1_000_000)})
    with pytest.raises(DataError) as caught:
        download(publisher.raw(content=b"a;b\n", member=("made-up.csv",)), tmp_path)
    assert reason(caught) == "made-up.csv in the archive has more than 4 bytes, not as published"


@pytest.mark.parametrize("keep", [0, 10, -30])
def test_a_damaged_archive_is_refused(publisher: Publisher, tmp_path: Path, keep: int) -> None:
    publisher.content = zipped(**{"made-up.csv": b"a;b\n"})[:keep]
    with pytest.raises(DataError) as caught:
        download(publisher.raw(content=b"a;b\n", member=("made-up.csv",)), tmp_path)
    assert reason(caught) == "what came is not a whole zip archive (File is not a zip file)"
    assert list(tmp_path.iterdir()) == []


def test_a_flipped_bit_inside_an_archive_is_refused(publisher: Publisher, tmp_path: Path) -> None:
    packed = bytearray(zipped(**{"made-up.csv": b"a;b\n"}))
    packed[42] ^= 1  # the first byte of the member's content
    publisher.content = bytes(packed)
    with pytest.raises(DataError, match="what came is not a whole zip archive"):
        download(publisher.raw(content=b"a;b\n", member=("made-up.csv",)), tmp_path)


def test_other_kinds_of_addresses_are_not_understood(publisher: Publisher, tmp_path: Path) -> None:
    for url in ("ftp://127.0.0.1/made-up.csv", (tmp_path / "made-up.csv").as_uri()):
        with pytest.raises(DataError, match="No connection adapters were found"):
            download(dataclasses.replace(publisher.raw(), url=url), tmp_path / "cache")


def test_an_interrupt_leaves_nothing(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Progress, received: int) -> None:
        assert len(list(tmp_path.iterdir())) == 1, "the temporary file is there by now"
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "show", interrupted)
    with pytest.raises(KeyboardInterrupt):
        download(publisher.raw(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_and_leaves_nothing(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object, block: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetch._Bounded, "write", full)
    raw = publisher.raw()
    with pytest.raises(DataError) as caught:
        download(raw, tmp_path)
    assert str(caught.value) == (
        f"cannot save made-up.csv from {raw.url} in {tmp_path}: No space left on device; "
        "name a folder that can be written by data_home=, or one that has the file by "
        "METRIFAIR_DATA"
    )
    assert list(tmp_path.iterdir()) == []


ONE_PROCESS = (
    f"from {RawFile.__module__} import RawFile, read\n"
    """
import hashlib, sys
name, size, sha256, url, folder = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
print(hashlib.sha256(read(RawFile(name, int(size), sha256, url), data_home=folder)).hexdigest())
"""
)


@pytest.mark.extended
def test_processes_that_load_at_once_all_get_the_whole_file(
    publisher: Publisher, cache: Path, tmp_path: Path
) -> None:
    raw = publisher.raw()
    command = [
        sys.executable,
        "-c",
        ONE_PROCESS,
        raw.name,
        str(raw.size),
        raw.sha256,
        raw.url,
        str(tmp_path / "home"),
    ]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=600)[0] for process in processes] == [f"{raw.sha256}\n"] * 4
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["made-up.csv"]


def test_a_file_saved_meanwhile_by_another_process_is_replaced_whole(
    publisher: Publisher, tmp_path: Path
) -> None:
    (tmp_path / "made-up.csv").write_bytes(b"half of")
    assert download(publisher.raw(), tmp_path) == publisher.content
    assert (tmp_path / "made-up.csv").read_bytes() == publisher.content


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_progress_bar_shows_on_a_terminal_only(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for screen, lines in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", screen)
        download(publisher.raw(), tmp_path)
        assert (
            screen.getvalue().endswith(
                "made-up.csv [##############################] 100% of 0.0 MB\n"
            )
            is lines
        )
        assert bool(screen.getvalue()) is lines
