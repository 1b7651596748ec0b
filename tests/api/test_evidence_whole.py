"""An evidence folder appears whole or not at all, whenever its writer is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from metrifair import AuditOptions, audit
from metrifair.errors import DataError
from metrifair.evidence import verify
from tests.expected_errors import Refusals
from tests.seams.auditing import read_files

CODE = """
import os, signal, sys
from pathlib import Path
folder, name, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.chdir(folder)
from metrifair import AuditOptions, audit
options = AuditOptions(resamples=0, permutations=0)
made = audit(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=list("aabb"), options=options, random_state=0)
calls = 0
def counted(function):
    def call(*arguments, **options):
        global calls
        calls += 1
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return call
os.fsync = counted(os.fsync)
os.rename = counted(os.rename)
os.replace = counted(os.replace)
made.to_evidence(name, pdf=False)
print(calls)
"""


def write(folder: Path, name: str, number: int) -> subprocess.CompletedProcess[str]:
    """Write evidence in another process, which is killed before its call of this number that
    reaches the disk.
    """
    command = [sys.executable, "-c", CODE, str(folder), name, str(number)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def make_half(folder: Path) -> None:
    """What earlier versions left when they were killed: files without the manifest, which they
    wrote last.
    """
    (folder / "tables").mkdir(parents=True)
    for name in (
        "counts.state",
        "audit.json",
        "report.html",
        "tables/findings.csv",
        ".metrifair-ab12-cd34.tmp",
    ):
        (folder / name).write_text("half")


@pytest.mark.extended
@pytest.mark.parametrize("half", [False, True])
def test_a_killed_writer_leaves_the_whole_or_nothing(half: bool, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    if half:
        make_half(tmp_path / "first" / "evidence")
    done = write(tmp_path / "first", "evidence", 0)
    assert done.returncode == 0, done.stderr
    calls = int(done.stdout)
    assert calls >= 12
    steps = (calls // 2, calls - 1, calls)
    whole = 0
    for number in steps:
        folder = tmp_path / str(number)
        target = folder / "evidence"
        folder.mkdir()
        if half:
            make_half(target)
        killed = write(folder, "evidence", number)
        assert killed.returncode == -signal.SIGKILL
        if target.exists() and (target / "MANIFEST.json").exists():
            whole += 1
            assert verify(target).agrees is True
        elif target.exists():
            assert half
            assert (target / "audit.json").read_text() == "half"
        # half again, whatever happened
        (folder / "evidence" / "MANIFEST.json").unlink(missing_ok=True)
        made_of(folder, "evidence")
        assert verify(target).agrees is True
        assert sorted(path.name for path in folder.iterdir()) == [
            "evidence",
            "metrifair-releases.json",
        ]
    assert whole >= 1


def made_of(tmp_path: Path, name: str) -> None:
    options = AuditOptions(resamples=0, permutations=0)
    made = audit(
        None, [0.2, 0.8, 0.4, 0.9], sensitive_features=list("aabb"), options=options, random_state=0
    )
    made.to_evidence(tmp_path / name, pdf=False)


def test_a_half_folder_of_an_earlier_version_is_overwritten(tmp_path: Path) -> None:
    make_half(tmp_path / "evidence")
    made_of(tmp_path, "evidence")
    assert verify(tmp_path / "evidence").agrees is True
    assert "half" not in {
        content.decode(errors="replace") for content in read_files(tmp_path / "evidence").values()
    }


@pytest.mark.parametrize(
    "name", ["notes.txt", "tables/notes.txt", "MANIFEST.json", "more/audit.json"]
)
def test_a_folder_with_other_files_is_left_as_it_is(
    name: str, tmp_path: Path, refused: Refusals
) -> None:
    make_half(tmp_path / "evidence")
    (tmp_path / "evidence" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "evidence" / name).write_text("mine")
    before = read_files(tmp_path / "evidence")
    with refused(DataError):
        made_of(tmp_path, "evidence")
    assert read_files(tmp_path / "evidence") == before
    assert [path.name for path in tmp_path.iterdir()] == ["evidence"]


def test_an_empty_folder_and_new_parents_are_used(tmp_path: Path, refused: Refusals) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "new/folder/evidence"):
        made_of(tmp_path, name)
        assert verify(tmp_path / name).agrees is True
    (tmp_path / "file").write_text("mine")
    with refused(DataError):
        made_of(tmp_path, "file")
    assert (tmp_path / "file").read_text() == "mine"
