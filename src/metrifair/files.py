"""A finished file takes its name at once: whoever reads the path sees the old content or the new, never half."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from pathlib import Path


def replace_file(target: Path, data: bytes) -> None:
    """Write the file in one step, and let the disk keep it before this returns; an OSError leaves the old file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_file(Path(folder, "some.file"), b"abc")
    ...     [file.name for file in Path(folder).iterdir()]
    ['some.file']
    """
    if target.exists() and not (target.is_file() or target.is_dir()):  # else a file would take a device's place
        raise OSError(errno.EINVAL, "not a regular file", str(target))
    # In the same folder: renaming is then atomic. Not tempfile: its files are for the owner alone.
    draft = target.with_name(f".metrifair-{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
    with contextlib.suppress(OSError):  # some systems cannot open a folder; the file is whole all the same
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
