"""Content of a published file: found in a folder or downloaded, and the right one by its sha256."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable
from pathlib import Path

from metrifair.datasets.download import download
from metrifair.datasets.rawfile import RawFile
from metrifair.errors import DataError

Read = Callable[[RawFile], bytes]
"""How a loader asks for the content of a file; the folders are already decided."""

Folder = str | os.PathLike[str]

_BLOCK = 1 << 20


def read(raw: RawFile, *, data_home: Folder | None = None) -> bytes:
    """Uncompressed content of the file, with the published sha256.

    Looks for ``NAME`` and ``NAME.gz`` in ``data_home``, in the folder that ``METRIFAIR_DATA`` names and in the
    user's cache. Where none has it, it is downloaded, into ``data_home`` or else into the cache.

    Raises
    ------
    DataError
        If the file found is not the published one, or if none was found and it cannot be downloaded or saved.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = Path(folder.name, "three.txt").write_bytes(b"abc")
    >>> digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    >>> read(RawFile("three.txt", 3, digest, "https://example.org/three.txt"), data_home=folder.name)
    b'abc'
    >>> folder.cleanup()
    """
    folders = _folders(data_home)
    for folder in folders:
        for path in (folder / raw.name, folder / f"{raw.name}.gz"):
            # Path.is_file raises in a folder that may not be entered, before Python 3.14
            if os.path.isfile(path):  # noqa: PTH113
                return _verified(path, raw)
    return download(raw, folders[-1] if data_home is None else folders[0])


def cache_folder() -> Path:
    """Folder of downloaded files: ``metrifair`` in ``XDG_CACHE_HOME`` or else in ``~/.cache``.

    >>> cache_folder().name
    'metrifair'
    """
    home = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # the XDG standard asks to ignore relative paths
    return (home if home.is_absolute() else Path.home() / ".cache") / "metrifair"


def _folders(data_home: Folder | None) -> list[Path]:
    """Folders to search, first one first; the cache is the last."""
    if data_home is not None and not isinstance(data_home, str | os.PathLike):
        raise DataError(f"data_home must be the path of a folder, got {data_home!r}; leave it out to use the cache")
    named = [data_home, os.environ.get("METRIFAIR_DATA") or None]
    return [Path(folder).expanduser() for folder in named if folder is not None] + [cache_folder()]


def _verified(path: Path, raw: RawFile) -> bytes:
    """Content of the file at this path, if it is the published one."""
    remedy = f"replace it with the one from {raw.address}, or remove it to have it downloaded"
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            content, size, digest = _digested(stream.read, keep=raw.size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is damaged or cut short ({error}); {remedy}") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}; make it readable, or {remedy}") from error
    if digest != raw.sha256:
        raise DataError(
            f"{path} is not the published {raw.name}: expected {raw.size} bytes with sha256 {raw.sha256}, "
            f"got {size} bytes with sha256 {digest}; {remedy}"
        )
    return content


def _digested(read_block: Callable[[int], bytes], *, keep: int) -> tuple[bytes, int, str]:
    """First ``keep`` bytes, number of all bytes and their sha256; memory stays bounded however long the file is."""
    content, size, digest = bytearray(), 0, hashlib.sha256()
    while block := read_block(_BLOCK):
        content += block[: max(0, keep - size)]
        size += len(block)
        digest.update(block)
    return bytes(content), size, digest.hexdigest()
