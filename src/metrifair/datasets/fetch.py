"""Content of a published file: found in a folder or downloaded by pooch, and the right one by
its sha256.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tomllib
import zipfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from metrifair.errors import DataError
from metrifair.support.archives import ARCHIVE_ERRORS, read_member
from metrifair.support.checks import require
from metrifair.support.files import error_reason
from metrifair.support.progress import Progress, megabytes

ATTEMPTS = 3
TIMEOUT = 30.0  # seconds without a byte
ARCHIVE_LIMIT = 64 << 20  # bytes; the largest published archive has less than one tenth of it

Folder = str | os.PathLike[str]


@dataclass(frozen=True)
class RawFile:
    """A file exactly as its source publishes it.

    Parameters
    ----------
    name
        Name of the file in the folders that are searched (``name + ".gz"`` is searched too).
    size
        Bytes of the uncompressed content.
    sha256
        Hexadecimal digest of the uncompressed content.
    url
        Published address, of the file itself or of a zip archive that contains it.
    member
        Way into that archive: names of the archives inside it, outermost first, then of the file.

    Examples
    --------
    >>> grades = RawFile("a.csv", 3, "ab12", "https://example.org/all.zip", member=("inner.zip",
    ...     "a.csv"))
    >>> grades.address
    'https://example.org/all.zip (in it: inner.zip, a.csv)'
    """

    name: str
    size: int
    sha256: str
    url: str
    member: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """The address as a person needs it to fetch the file by hand."""
        if self.member:
            return f"{self.url} (in it: {', '.join(self.member)})"
        return self.url


_SOURCES = tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8"))
DESCRIPTIONS: dict[str, str] = {name: source["description"] for name, source in _SOURCES.items()}
RAW_FILES = {
    file["name"]: RawFile(**{**file, "member": tuple(file.get("member", ()))})
    for source in _SOURCES.values()
    for file in source.get("files", ())
}

Read = Callable[[str], bytes]
"""Returns the content of a file by its name; the folders are already chosen."""


class _NotPublishedError(Exception):
    """The download is not the published file; another attempt would not help."""


def read(raw: RawFile, *, data_home: Folder | None = None) -> bytes:
    """Uncompressed content of the file, with the published sha256.

    Searches ``NAME`` and ``NAME.gz`` in ``data_home``, in the folder that ``METRIFAIR_DATA`` names
    and in the user's cache. Where none has it, it is downloaded, into ``data_home`` or else into
    the cache.

    Raises
    ------
    DataError
        If the file found is not the published one, or if none was found and it cannot be downloaded
        or saved.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = Path(folder.name, "three.txt").write_bytes(b"abc")
    >>> digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    >>> read(RawFile("three.txt", 3, digest, "https://example.org/three.txt"),
    ...     data_home=folder.name)
    b'abc'
    >>> folder.cleanup()
    """
    if data_home is not None and not isinstance(data_home, str | os.PathLike):
        raise DataError(
            f"data_home must be the path of a folder, got {data_home!r}; leave it out to use the "
            "cache"
        )
    folders = [
        Path(name).expanduser() for name in (data_home, os.environ.get("METRIFAIR_DATA")) if name
    ]
    for folder in folders:
        if (path := _find(raw, folder)) is not None:
            return _read_verified(path, raw)
    cache = Path(_pooch().os_cache("metrifair"))
    target = cache
    if data_home is not None:
        target = folders[0]
    return _read_verified(_find(raw, cache) or _download(raw, target), raw)


def _pooch() -> Any:
    return require("pooch", extra="datasets", purpose="searching a raw file, or downloading it,")


def _find(raw: RawFile, folder: Path) -> Path | None:
    # Path.is_file raises in a folder that may not be entered, before Python 3.14
    paths = (folder / raw.name, folder / f"{raw.name}.gz")
    return next((path for path in paths if os.path.isfile(path)), None)  # noqa: PTH113


def _read_verified(path: Path, raw: RawFile) -> bytes:
    """Content of the file at this path, if it is the published one."""
    remedy = f"replace it with the one from {raw.address}, or remove it to have it downloaded"
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            content = stream.read(raw.size + 1)  # no more, however long the file is
            cut = len(content) > raw.size
            while path.suffix == ".gz" and not cut and stream.read(1 << 20):
                pass  # to the end, where a packed file has its own checksum
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is damaged or cut short ({error}); {remedy}") from error
    except OSError as error:
        raise DataError(
            f"cannot read {path}: {error_reason(error)}; make it readable, or {remedy}"
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != raw.sha256:
        content_text = "more bytes"
        if not cut:
            content_text = f"{len(content)} bytes with sha256 {digest}"
        raise DataError(
            f"{path} is not the published {raw.name}: expected {raw.size} bytes with sha256 "
            f"{raw.sha256}, "
            f"got {content_text}; {remedy}"
        )
    return content


def _download(raw: RawFile, folder: Path) -> Path:
    """Download the file from its published address, in one step and only if its sha256 is
    right; return its path.
    """
    pooch = _pooch()
    errors = require("requests.exceptions", extra="datasets", purpose="downloading a raw file")
    files = pooch.Pooch(
        folder,
        "",
        registry={raw.name: f"sha256:{raw.sha256}"},
        urls={raw.name: raw.url},
        retry_if_failed=ATTEMPTS - 1,
    )
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")  # a progress bar is enough
    try:
        return Path(
            files.fetch(raw.name, downloader=lambda url, path, _: _receive(pooch, raw, url, path))
        )
    except (errors.RequestException, _NotPublishedError, ValueError) as error:
        raise DataError(
            f"{raw.name} was not found and could not be downloaded from {raw.address}: {error}; "
            "fetch it by hand and "
            f"put {raw.name} into {folder}, or name the folder that has it by data_home= or "
            "METRIFAIR_DATA"
        ) from error
    except OSError as error:
        raise DataError(
            f"cannot save {raw.name} from {raw.address} in {folder}: "
            f"{error.strerror or str(error).split(' | ')[0]}; "
            "name a folder that can be written by data_home=, or one that has the file by "
            "METRIFAIR_DATA"
        ) from error
    finally:
        logger.setLevel(level)


def _receive(pooch: Any, raw: RawFile, url: str, path: str) -> None:
    """Download the file, or the archive that contains it, and write the file to the path."""
    limit, total = (ARCHIVE_LIMIT, None) if raw.member else (raw.size, raw.size)
    with (
        Progress(raw.name, total, text=megabytes) as progress,
        Path(path).open("w+b") as file,
        ExitStack() as answers,
    ):
        # also one that is not read to its own end
        def close_at_the_end(answer: Any, **_: object) -> None:
            answers.callback(answer.close)

        client = pooch.HTTPDownloader(
            timeout=TIMEOUT,
            chunk_size=1 << 16,
            headers={"User-Agent": "metrifair"},
            hooks={"response": close_at_the_end},
        )
        client(url, _Bounded(file, limit, progress), None)
        if raw.member:
            content = _unpack(raw, file)
            file.seek(0)
            file.truncate()
            file.write(content)


class _Bounded:
    """A file with a maximum size, which shows its progress."""

    def __init__(self, file: BinaryIO, limit: int, progress: Progress) -> None:
        self.file = file
        self.limit = limit
        self.progress = progress

    def write(self, block: bytes) -> None:
        if self.file.tell() + len(block) > self.limit:
            raise _NotPublishedError(
                f"it sends more than {self.limit} bytes, so it is not the published file"
            )
        self.file.write(block)
        self.progress.show(self.file.tell())

    def flush(self) -> None:
        self.file.flush()


def _unpack(raw: RawFile, archive: BinaryIO) -> bytes:
    """The file out of an archive, perhaps nested, in any folder; never more than its size."""
    content = b""
    for depth, name in enumerate(raw.member, start=1):
        limit = ARCHIVE_LIMIT
        if depth == len(raw.member):
            limit = raw.size
        try:
            content = _member(archive, name, limit)
        except _NotPublishedError:
            raise
        except ARCHIVE_ERRORS as error:
            raise _NotPublishedError(f"what came is not a whole zip archive ({error})") from error
        archive = io.BytesIO(content)
    return content


def _member(archive: BinaryIO, name: str, limit: int) -> bytes:
    """The file of this name in an archive, in any folder."""
    with zipfile.ZipFile(archive) as opened:
        members = [info for info in opened.infolist() if info.filename.rsplit("/", 1)[-1] == name]
        if not members:
            names = ", ".join(sorted(opened.namelist())[:10]) or "nothing"
            raise _NotPublishedError(f"the archive has no {name}, it contains {names}")
        content = read_member(opened, members[0], limit)
    if len(content) > limit:
        raise _NotPublishedError(
            f"{name} in the archive has more than {limit} bytes, not as published"
        )
    return content
