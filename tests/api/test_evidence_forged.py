"""Evidence from strangers: damaged and forged archives are refused with one kind of error, in
bounded memory.
"""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest

from metrifair import AuditOptions, audit_file, compare
from metrifair.errors import DataError
from metrifair.evidence import Verification, verify
from tests.expected_errors import Refusals
from tests.seams.auditing import file_hashes, read_files, write_files
from tests.seams.support import read_score_origin, source_files

OPTIONS = AuditOptions(resamples=0, permutations=0)
MOST_MEMORY = 600 * 2**10  # KiB of a process that verifies; importing what it needs takes about 200


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, rng = tmp_path_factory.mktemp("data") / "scores.csv", np.random.default_rng(0)
    sex, rows = np.repeat(["f", "m", "x"], [60, 60, 4]), 124
    pl.DataFrame({"p": rng.random(rows).round(2), "sex": sex}).write_csv(path)
    return path


@pytest.fixture(scope="module")
def honest(data: Path) -> Path:
    path = data.parent / "honest.zip"
    made = audit_file(
        data, score="p", group="sex", metrics=["kolmogorov"], options=OPTIONS, random_state=0
    )
    made.to_evidence(path, min_cell=10, pdf=False)
    assert verify(path, data=data).agrees is True
    return path


def outcome(path: Path, **options: Any) -> Verification | DataError:
    """The verification, or the refusal: the only two outcomes."""
    found: Verification | DataError
    try:
        found = verify(path, **options)
    except DataError as error:
        found = error
    lines = [str(found)] if isinstance(found, DataError) else found.summary.splitlines()
    assert all(line.isprintable() and len(line) < 5000 for line in lines)
    return found


def test_evidence_with_a_suppressed_group_is_verified(honest: Path, data: Path) -> None:
    """The text of the check needed facts that it did not have: KeyError: 'places'."""
    found = verify(honest, data=data)
    assert "withheld: Cannot be recomputed: figures of sex x." in str(found)
    command = [sys.executable, "-m", "metrifair", "verify", str(honest), "--data", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "withheld: " in done.stdout


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """The bytes after one to three changes: flips of a bit, cuts, insertions and repetitions."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(changed)))
        kind = int(rng.integers(5))
        if kind <= 1:
            changed[at] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            changed[at : at + int(rng.integers(1, 40))] = rng.bytes(int(rng.integers(0, 40)))
        elif kind == 3:
            changed = changed[: max(at, 1)]
        else:
            changed[at:at] = changed[int(rng.integers(len(changed))) :][:64]
    return bytes(changed)


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
def test_damaged_archives_are_refused(method: int, honest: Path, tmp_path: Path) -> None:
    files, packed, rng = read_files(honest), io.BytesIO(), np.random.default_rng(method)
    with zipfile.ZipFile(packed, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    refused = 0
    for number in range(120):
        path = tmp_path / f"{number}.zip"
        path.write_bytes(damaged(packed.getvalue(), rng))
        found = outcome(path)
        refused += isinstance(found, DataError) or found.agrees is False
    assert refused > 40


@pytest.mark.extended
def test_damaged_headers_are_refused(honest: Path, tmp_path: Path) -> None:
    """Every third byte of the directory of the archive, one after the other."""
    content, path = honest.read_bytes(), tmp_path / "a.zip"
    start = content.index(b"PK\x01\x02")
    for at in range(start, len(content), 3):
        changed = bytearray(content)
        changed[at] ^= 0xFF
        path.write_bytes(changed)
        outcome(path)


WRONG: list[Any] = [
    None,
    True,
    -1,
    0,
    2**70,
    1e308,
    "",
    "x" * 300,
    [],
    [[]],
    {},
    {"a": [None]},
    [1, "a"],
]


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inside = (
        node.items()
        if isinstance(node, dict)
        else list(enumerate(node))[:2]
        if isinstance(node, list)
        else ()
    )
    for key, value in inside:
        yield (*path, key)
        yield from places(value, (*path, key))


@pytest.mark.extended
@pytest.mark.parametrize("name", ["MANIFEST.json", "audit.json"])
def test_values_of_other_types_are_refused_or_differ(
    name: str, honest: Path, data: Path, tmp_path: Path
) -> None:
    files, rng = read_files(honest), np.random.default_rng(0)
    content = json.loads(files[name])
    chosen = [place for place in places(content) if place[:2] != ("files",)]
    if len(chosen) > 90:
        chosen = [chosen[at] for at in np.sort(rng.choice(len(chosen), 90, replace=False))]
    for number, place in enumerate(chosen):
        forged = json.loads(files[name])
        node = forged
        for step in place[:-1]:
            node = node[step]
        node[place[-1]] = WRONG[(number + int(rng.integers(2))) % len(WRONG)]
        forgery = files | {name: json.dumps(forged).encode()}
        manifest = json.loads(forgery["MANIFEST.json"])
        if isinstance(manifest.get("files"), dict):
            manifest["files"] = file_hashes(forgery)
        forgery["MANIFEST.json"] = json.dumps(manifest).encode()
        path = tmp_path / f"{number}.zip"
        write_files(path, forgery)
        outcome(path, data=data)


@pytest.mark.parametrize("depth", [65, 500, 100_000])
@pytest.mark.parametrize("name", ["MANIFEST.json", "audit.json"])
@pytest.mark.parametrize("brackets", [b"[]", b'{"a":}'])
def test_deeply_nested_json_is_refused(
    name: str, depth: int, brackets: bytes, honest: Path, tmp_path: Path
) -> None:
    """It ended in a RecursionError."""
    half = len(brackets) - 1
    nested = brackets[:half] * depth + b"1" + brackets[half:] * depth
    inside = read_files(honest)[name].rstrip()[:-1] + b', "more": ' + nested + b"}"
    for number, content in enumerate((nested, inside, nested[: len(nested) // 2])):
        path = tmp_path / f"{number}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for other, old in read_files(honest).items():
                archive.writestr(other, content if other == name else old)
        found = outcome(path)
        assert isinstance(found, DataError) or found.agrees is False


def test_other_readers_refuse_nested_json(tmp_path: Path) -> None:
    """The same cause: audits that are compared, and the origin of scores."""
    path, nested = tmp_path / "a.json", b"[" * 100_000
    for content in (nested, b'{"kind": "metrifair audit", "version": 1, "findings": ' + nested):
        path.write_bytes(content)
        with pytest.raises(DataError, match="nests its values"):
            compare(path, path)
    scores = tmp_path / "scores.csv"
    scores.write_text("p\n1\n")
    (tmp_path / "scores.csv.origin.json").write_bytes(b'{"file": "a", "more": ' + nested)
    assert read_score_origin(scores, source_files([scores])) is None


def bomb(path: Path, size: int, method: int, members: int = 1) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for number in range(members):
            name = "MANIFEST.json" if number == 0 else f"tables/{number}.csv"
            with archive.open(name, "w", force_zip64=True) as stream:
                for _ in range(size // members // 2**20):
                    stream.write(b" " * 2**20)


def with_small_sizes(path: Path) -> None:
    """Let the directory of the archive declare 100 bytes for each file."""
    content = bytearray(path.read_bytes())
    at = content.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<L", content, at + 24, 100)
        at = content.find(b"PK\x01\x02", at + 4)
    path.write_bytes(content)


CODE = """
import sys
from metrifair.evidence import verify
from metrifair.errors import DataError
try:
    verify(sys.argv[1])
    print("verified")
except DataError as error:
    print("refused:", error)
# ru_maxrss would include the process that started this one
with open("/proc/self/status") as status:
    print(next(line for line in status if line.startswith("VmHWM")).split()[1])
"""

BOMBS: dict[str, tuple[int, int, int, bool]] = {
    "one file": (320 * 2**20, zipfile.ZIP_DEFLATED, 1, False),
    "many files": (320 * 2**20, zipfile.ZIP_DEFLATED, 100, False),
    "declared as small": (320 * 2**20, zipfile.ZIP_DEFLATED, 1, True),
    "lzma": (64 * 2**20, zipfile.ZIP_LZMA, 1, False),
    "bzip2": (64 * 2**20, zipfile.ZIP_BZIP2, 1, False),
    "within the bounds": (64 * 2**20, zipfile.ZIP_DEFLATED, 1, False),
}


@pytest.mark.extended
@pytest.mark.parametrize("name", BOMBS)
def test_an_archive_that_unpacks_to_gigabytes_is_refused_in_little_memory(
    name: str, tmp_path: Path
) -> None:
    """1.6 MB took 2.4 GB: all bytes were unpacked, and some were copied."""
    size, method, members, is_small = BOMBS[name]
    path = tmp_path / "bomb.zip"
    bomb(path, size, method, members)
    assert path.stat().st_size < 2 * 2**20
    if is_small:
        with_small_sizes(path)
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(path)], capture_output=True, text=True, check=True
    )
    said, memory = done.stdout.rsplit("\n", 2)[:2]
    assert said.startswith("refused: cannot read"), said
    assert int(memory) < MOST_MEMORY


def test_archives_of_very_many_files_are_refused(tmp_path: Path, refused: Refusals) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(1001):
            archive.writestr(f"tables/{number}.csv", b"")
    with refused(DataError):
        verify(path)


def test_links_in_a_folder_are_not_followed(honest: Path, tmp_path: Path) -> None:
    for name, content in read_files(honest).items():
        (tmp_path / "e" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "e" / name).write_bytes(content)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (tmp_path / "e" / "tables" / "findings.csv").unlink()
    (tmp_path / "e" / "tables" / "findings.csv").symlink_to(secret)
    found = verify(tmp_path / "e")
    assert found.agrees is False
    assert "secret" not in str(found)


def test_parameters_that_would_take_for_ever_are_refused(honest: Path, tmp_path: Path) -> None:
    files = read_files(honest)
    manifest = json.loads(files["MANIFEST.json"])
    manifest["parameters"]["resamples"] = 10**12
    path = tmp_path / "a.zip"
    write_files(path, files | {"MANIFEST.json": msgspec.json.encode(manifest)})
    assert "at most 100,000 are repeated" in str(verify(path))
