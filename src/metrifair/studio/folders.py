"""The private folder of a running studio, and the removal of folders that dead studios left.

The file NAME.lock beside the folder NAME is locked before the folder exists. The system releases
the lock when the process ends, however it ends. A folder whose lock is free is therefore that of a
dead studio.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISLNK
from typing import IO

_PREFIX = "metrifair-studio-"
_LOCK = ".lock"


@contextmanager
def private_folder() -> Iterator[Path]:
    """A locked folder that only this user can read, and that is removed at the end."""
    descriptor, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_LOCK)
    folder = Path(name.removesuffix(_LOCK))
    try:
        with os.fdopen(descriptor, "wb") as lock:
            _is_locked_by_us(lock)
            folder.mkdir(mode=0o700)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        Path(name).unlink(missing_ok=True)


def remove_dead_folders(place: Path) -> None:
    """Remove the folders of this user's studios that ended without removing them, such as by a
    kill.
    """
    for lock in place.glob(f"{_PREFIX}*{_LOCK}"):
        folder = lock.with_suffix("")
        # A lock without a folder is that of a studio that starts.
        if _is_ours(folder) and _is_ours(lock):
            _remove_if_dead(folder, lock)


def _is_ours(path: Path) -> bool:
    """Whether it is of this user, and no link."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return not S_ISLNK(status.st_mode) and (sys.platform == "win32" or status.st_uid == os.getuid())


def _remove_if_dead(folder: Path, lock: Path) -> None:
    """Remove a folder and its lock, unless a studio holds the lock."""
    try:
        with lock.open("r+b") as file:
            is_dead = _is_locked_by_us(file)
            if is_dead:
                shutil.rmtree(folder, ignore_errors=True)
        if is_dead:
            lock.unlink(missing_ok=True)
    except OSError:
        return  # whatever cannot be read stays


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
