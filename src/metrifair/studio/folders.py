"""The private folder of a running studio, and the removal of folders that dead studios left.

A studio locks a file in its folder. The system releases the lock when the process ends, however it
ends. A lock can therefore not be mistaken for that of a later process with the same number.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR
from typing import IO

_PREFIX = "metrifair-studio-"
_NAME = re.compile(rf"{_PREFIX}(\d+)-\w+\Z")  # with the number of the process
_LOCK = "lock"
_SECONDS_UNTIL_LOCK = 60.0


@contextmanager
def private_folder() -> Iterator[Path]:
    """A locked folder that only this user can read, and that is removed at the end."""
    prefix = f"{_PREFIX}{os.getpid()}-"
    made = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    with made as name, (Path(name) / _LOCK).open("wb") as lock:
        _is_locked_by_us(lock)
        yield Path(name)


def remove_dead_folders(place: Path) -> None:
    """Remove the folders of this user's studios that ended without removing them, such as by a
    kill.
    """
    for folder in place.glob(f"{_PREFIX}*"):
        name = _NAME.match(folder.name)
        if name is not None and _is_own_folder(folder) and not _is_alive(folder, int(name[1])):
            shutil.rmtree(folder, ignore_errors=True)


def _is_own_folder(folder: Path) -> bool:
    """Whether it is a folder of this user, and no link to one."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return S_ISDIR(status.st_mode) and (sys.platform == "win32" or status.st_uid == os.getuid())


def _is_alive(folder: Path, process: int) -> bool:
    """Whether a studio uses a folder: it holds the lock, or it runs and has just made the
    folder.
    """
    try:
        with (folder / _LOCK).open("r+b") as lock:
            is_held = not _is_locked_by_us(lock)
    except FileNotFoundError:
        is_held = False
    except OSError:
        return True  # whatever cannot be read stays
    return is_held or (_runs(process) and _is_new(folder))


def _is_new(folder: Path) -> bool:
    """Whether a folder may still wait for its lock."""
    try:
        return time.time() - folder.stat().st_mtime < _SECONDS_UNTIL_LOCK
    except OSError:
        return True


def _runs(process: int) -> bool:
    """Whether a process with this number runs."""
    if sys.platform == "win32":
        return True  # a signal would end it there
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _is_locked_by_us(file: IO[bytes]) -> bool:
    """Lock a file until it is closed; False if another process has locked it."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 (only Windows has it)

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415 (only Unix has it)

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
