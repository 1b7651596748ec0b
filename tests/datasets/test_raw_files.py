"""A raw file is found in the right folder, and refused unless it is the published one."""

from __future__ import annotations

import dataclasses
import errno
import gzip
import hashlib
import importlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metrifair.errors import DataError, MissingExtra
from tests.seams.datasets import RawFile, read

CONTENT = b"id;grade\r\n1;10\r\n2;20\r\n"
RAW = RawFile(
    "made-up.csv",
    len(CONTENT),
    hashlib.sha256(CONTENT).hexdigest(),
    "http://127.0.0.1:9/made-up.csv",
)
REMEDY = "replace it with the one from http://127.0.0.1:9/made-up.csv, or remove it to have it downloaded"
needs_permissions = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")


def put(folder: Path, content: bytes = CONTENT, name: str = RAW.name) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def test_a_file_is_found_in_data_home(cache: Path, tmp_path: Path) -> None:
    put(tmp_path / "home")
    assert read(RAW, data_home=tmp_path / "home") == CONTENT
    assert read(RAW, data_home=str(tmp_path / "home")) == CONTENT


def test_a_file_is_found_in_the_folder_of_the_environment(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "named")
    monkeypatch.setenv("METRIFAIR_DATA", str(tmp_path / "named"))
    assert read(RAW) == CONTENT
    assert read(RAW, data_home=tmp_path / "without") == CONTENT


def test_a_file_is_found_in_the_user_cache(cache: Path) -> None:
    put(cache)
    assert read(RAW) == CONTENT


def test_an_empty_variable_does_not_name_the_current_folder(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(cache)
    put(tmp_path, b"wrong")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("METRIFAIR_DATA", "")
    assert read(RAW) == CONTENT


def test_data_home_comes_before_the_environment_and_that_before_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [put(folder, b"wrong") for folder in (tmp_path / "home", tmp_path / "named", cache)]
    monkeypatch.setenv("METRIFAIR_DATA", str(tmp_path / "named"))
    for path in wrong:
        with pytest.raises(DataError) as caught:
            read(RAW, data_home=tmp_path / "home")
        assert str(caught.value).startswith(f"{path} is not the published made-up.csv")
        path.unlink()


def test_a_gzipped_file_is_read_and_the_plain_one_comes_first(cache: Path) -> None:
    packed = put(cache, gzip.compress(CONTENT), "made-up.csv.gz")
    assert read(RAW) == CONTENT
    packed.write_bytes(b"not looked at")
    put(cache)
    assert read(RAW) == CONTENT


def test_a_file_of_wrong_checksum_is_refused_with_both_checksums(cache: Path) -> None:
    changed = CONTENT.replace(b"20", b"21")
    path = put(cache, changed)
    with pytest.raises(DataError) as caught:
        read(RAW)
    assert str(caught.value) == (
        f"{path} is not the published made-up.csv: expected 22 bytes with sha256 {RAW.sha256}, "
        f"got 22 bytes with sha256 {hashlib.sha256(changed).hexdigest()}; {REMEDY}"
    )
    assert path.read_bytes() == changed, "a user's file is never overwritten"


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"\n", CONTENT * 100_000])
@pytest.mark.parametrize("packed", [False, True])
def test_a_truncated_or_longer_file_is_refused_by_name_and_size(
    cache: Path, content: bytes, packed: bool
) -> None:
    name = "made-up.csv.gz" if packed else "made-up.csv"
    path = put(cache, gzip.compress(content) if packed else content, name)
    with pytest.raises(DataError) as caught:
        read(RAW)
    longer = len(content) > len(CONTENT)
    got = (
        "more bytes"
        if longer
        else f"{len(content)} bytes with sha256 {hashlib.sha256(content).hexdigest()}"
    )
    assert str(caught.value) == (
        f"{path} is not the published made-up.csv: expected 22 bytes with sha256 {RAW.sha256}, got "
        f"{got}; {REMEDY}"
    )


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda packed: packed[:-12], id="truncated"),
        pytest.param(
            lambda packed: packed[:15] + bytes([packed[15] ^ 255]) + packed[16:], id="flipped"
        ),
        pytest.param(lambda packed: b"no gzip at all", id="not gzip"),
    ],
)
def test_a_damaged_gzip_file_is_refused_by_name(cache: Path, damage) -> None:
    path = put(cache, damage(gzip.compress(CONTENT)), "made-up.csv.gz")
    with pytest.raises(DataError) as caught:
        read(RAW)
    assert str(caught.value).startswith(f"{path} is damaged or cut short (")
    assert str(caught.value).endswith(f"); {REMEDY}")


def test_something_else_than_a_folder_is_refused_as_data_home(cache: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(RAW, data_home=3)  # type: ignore[arg-type]
    assert (
        str(caught.value)
        == "data_home must be the path of a folder, got 3; leave it out to use the cache"
    )


def test_a_folder_that_has_the_file_needs_no_pooch(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    put(tmp_path / "home")
    assert read(RAW, data_home=tmp_path / "home") == CONTENT
    with pytest.raises(
        MissingExtra, match=re.escape('needs pooch: pip install "metrifair[datasets]"')
    ):
        read(RAW)


@contextmanager
def ordinary_user() -> Iterator[None]:
    """The rights of someone who is not root, for whom nothing is read-only."""
    am_root = os.geteuid() == 0
    importlib.import_module("pooch")  # root's Python may not be readable for that user
    importlib.import_module("requests")
    if am_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if am_root:
            os.seteuid(0)


@pytest.fixture
def read_only(cache: Path) -> Iterator[Path]:
    """A folder that anyone may read and nobody write."""
    folder = Path(tempfile.mkdtemp())  # pytest's own folders cannot be entered by another user
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@needs_permissions
def test_a_read_only_folder_is_named_with_file_and_address(read_only: Path) -> None:
    with ordinary_user(), pytest.raises(DataError) as caught:
        read(RAW, data_home=read_only)
    assert re.fullmatch(
        re.escape(f"cannot save made-up.csv from http://127.0.0.1:9/made-up.csv in {read_only}: ")
        + ".*Permission denied.*"
        + re.escape(
            "; name a folder that can be written by data_home=, or one that has the file by "
            "METRIFAIR_DATA"
        ),
        str(caught.value),
    )


@needs_permissions
def test_a_read_only_user_cache_is_named_with_file_and_address(
    read_only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(read_only))
    message = (
        re.escape(f"cannot save made-up.csv from {RAW.url} in {read_only}/metrifair: ")
        + ".*Permission denied"
    )
    with ordinary_user(), pytest.raises(DataError, match=message):
        read(RAW)


@needs_permissions
def test_a_read_only_folder_that_has_the_file_is_good_enough(read_only: Path) -> None:
    read_only.chmod(0o755)
    put(read_only)
    read_only.chmod(0o555)
    with ordinary_user():
        assert read(RAW, data_home=read_only) == CONTENT


@needs_permissions
def test_a_file_that_may_not_be_read_is_named(read_only: Path) -> None:
    read_only.chmod(0o755)
    path = put(read_only)
    path.chmod(0o000)
    with ordinary_user(), pytest.raises(DataError) as caught:
        read(RAW, data_home=read_only)
    assert (
        str(caught.value) == f"cannot read {path}: Permission denied; make it readable, or {REMEDY}"
    )


def test_a_folder_below_a_file_cannot_be_a_cache(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=re.escape(f"in {tmp_path}/file/below: Not a directory")):
        read(RAW, data_home=tmp_path / "file" / "below")


def test_an_absent_file_without_a_connection_names_file_address_and_folder(
    cache: Path, unreachable: str
) -> None:
    raw = dataclasses.replace(
        RAW, url=f"{unreachable}/all.zip", member=("inner.zip", "made-up.csv")
    )
    with pytest.raises(DataError) as caught:
        read(raw)
    message = str(caught.value)
    assert message.startswith(
        f"made-up.csv was not found and could not be downloaded from {unreachable}/all.zip (in it: "
        "inner.zip, "
        "made-up.csv): "
    )
    assert os.strerror(errno.ECONNREFUSED) in message
    assert message.endswith(
        f"; fetch it by hand and put made-up.csv into {cache}, or name the folder that has it by "
        "data_home= or "
        "METRIFAIR_DATA"
    )
    assert list(cache.iterdir()) == []
