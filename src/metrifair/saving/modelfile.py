"""Bytes <-> arrays + JSON, nothing else: a safetensors file whose header carries the JSON and a
hash of all bytes.

Any safetensors reader opens such a file. Its metadata has one entry, ``metrifair``: a JSON object
that begins with ``sha256``, the hash of the file with these 64 digits set to 0. Every later format
keeps this much.
"""

from __future__ import annotations

import json
import math
import os
import reprlib
import stat
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias, Union

import msgspec
import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError, MissingModelFile, ModelFileError
from metrifair.support.files import error_reason, write_file

Json: TypeAlias = Union[bool, int, float, str, "list[Json]", "dict[str, Json]", None]
PathLike: TypeAlias = str | os.PathLike[str]

FORMAT = 1
LARGEST_FILE = 2**30
LARGEST_HEADER = 2**24
MOST_ARRAYS = 2**16
MOST_HEADER_VALUES = 2**20  # commas and brackets in the JSON: bounds what parsing it takes
DEEPEST_HEADER = 32  # levels of lists and objects in the JSON
DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "int64": "I64",
    "uint8": "U8",
    "bool": "BOOL",
}  # as safetensors names them

_ENTRY = "metrifair"
_MARK = rb"{\"sha256\":\""  # as in the header, a JSON text inside a JSON string
_BLANK = b"0" * 64
_VERSIONS_OF = ("metrifair", "numpy", "scikit-learn", "torch")


class Content(NamedTuple):
    """The content of a file; ``kind`` is the type of object to make from it."""

    kind: str
    meta: dict[str, Json]
    arrays: dict[str, NDArray[Any]]


class NotAModelFile(ModelFileError):
    """A file that metrifair did not write, or the beginning of one."""


def to_bytes(content: Content) -> bytes:
    """The file as bytes; the same content gives the same bytes.

    >>> data = to_bytes(Content("example", {"name": "three"}, {"values": np.arange(3.0)}))
    >>> from_bytes(data)
    Content(kind='example', meta={'name': 'three'}, arrays={'values': array([0., 1., 2.])})
    >>> from_bytes(data[:-1] + b"!")
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: the file is damaged: its content does not match its hash; save the model again
    """
    for name, array in content.arrays.items():
        if array.dtype.name not in DTYPES:
            raise DataError(f"array {name!r} must be one of {', '.join(DTYPES)}, got {array.dtype}")
    envelope = {
        "sha256": _BLANK.decode(),
        "format": FORMAT,
        "kind": content.kind,
        "versions": {name: installed_version(name) for name in _VERSIONS_OF},
        "meta": content.meta,
    }
    text = json.dumps(envelope, separators=(",", ":"), allow_nan=False)
    data = _safetensors(content.arrays, {_ENTRY: text})
    at = data.index(_MARK) + len(_MARK)
    return b"".join((data[:at], _digest(data, at), data[at + len(_BLANK) :]))


def fingerprint(content: Content) -> str:
    """The hash of a file's content. It does not depend on the versions of libraries that write the
    file.

    >>> fingerprint(Content("example", {"name": "three"}, {"values": np.arange(3.0)}))[:8]
    'a6f37c82'
    """
    described = {"kind": content.kind, "meta": json.dumps(content.meta, sort_keys=True)}
    return sha256(_safetensors(content.arrays, described)).hexdigest()


def from_bytes(data: bytes) -> Content:
    """The content of bytes that ``to_bytes`` made; anything else is a ModelFileError."""
    header = _header(data)
    at = data.find(_MARK, 8, 8 + len(header)) + len(_MARK)
    if at < len(_MARK):
        raise NotAModelFile(
            "this is not a model file of metrifair; pass a file written by .save(path)"
        )
    if data[at : at + len(_BLANK)] != _digest(data, at):
        raise ModelFileError(
            "the file is damaged: its content does not match its hash; save the model again"
        )
    entries = _parse_json(header)
    kind, meta = _envelope(entries)
    return Content(kind, meta, _arrays(entries, memoryview(data)[8 + len(header) :]))


def write(path: PathLike, content: Content) -> None:
    """Write the file so that a crash leaves the old one, or the new one, whole."""
    data = to_bytes(content)
    try:
        from_bytes(data)  # what could not be read again is not written
    except ModelFileError as error:
        raise DataError(f"this model cannot be saved: {error}") from error
    write_file(path, data)


def read(path: PathLike) -> Content:
    """The content of the file; files over 1 GiB are not read.

    >>> read("no_such_file.model")
    Traceback (most recent call last):
    metrifair.errors.MissingModelFile: cannot read 'no_such_file.model': No such file or directory
    """
    try:
        return from_bytes(_read_bytes(Path(path)))
    except (OSError, ValueError) as error:
        kind = NotAModelFile if isinstance(error, NotAModelFile) else ModelFileError
        kind = MissingModelFile if isinstance(error, FileNotFoundError) else kind
        raise kind(f"cannot read {os.fspath(path)!r}: {error_reason(error)}") from error


def add_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays under longer names, so that one file can contain several models.

    >>> add_prefix("a/", {"x": np.zeros(1)})
    {'a/x': array([0.])}
    """
    return {prefix + name: array for name, array in arrays.items()}


def strip_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin so, under their own names: undoes ``add_prefix``.

    >>> strip_prefix("a/", {"a/x": np.zeros(1), "b/x": np.ones(1)})
    {'x': array([0.])}
    """
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def _digest(data: bytes, at: int) -> bytes:
    """Hash of the file, the digits at this place taken as zeros."""
    digest = sha256(memoryview(data)[:at])
    digest.update(_BLANK)
    digest.update(memoryview(data)[at + len(_BLANK) :])
    return digest.hexdigest().encode()


UNKNOWN_VERSION = "unknown"  # the version of a distribution that is not installed


@cache  # it is read from the disk, and a sweep writes many models
def installed_version(name: str) -> str:
    """The version of a distribution; ``UNKNOWN_VERSION`` if it is not installed."""
    import importlib.metadata  # noqa: PLC0415 (only a file that is written names versions)

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return UNKNOWN_VERSION


def _safetensors(arrays: Mapping[str, NDArray[Any]], metadata: dict[str, str]) -> bytes:
    """The arrays, those of long numbers first, behind a header with their positions."""
    header: dict[str, Any] = {"__metadata__": metadata}
    parts = []
    end = 0
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        parts.append(array.astype(array.dtype.newbyteorder("<")).tobytes())
        start = end
        end = end + len(parts[-1])
        header[name] = {
            "dtype": DTYPES[array.dtype.name],
            "shape": array.shape,
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that numbers begin at multiples of their length
    return b"".join((len(text).to_bytes(8, "little"), text, *parts))


def _header(data: bytes) -> bytes:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise NotAModelFile(
            f"this is not a model file of metrifair, or it was cut short ({len(data)} bytes); name "
            "one that was "
            "saved, or save it again"
        )
    if length > LARGEST_HEADER:
        raise ModelFileError(
            f"the header takes {length} bytes, more than the {LARGEST_HEADER} that are read"
        )
    return data[8 : 8 + length]


def _envelope(entries: Json) -> tuple[str, dict[str, Json]]:
    metadata = entries.get("__metadata__") if isinstance(entries, dict) else None
    text = metadata.get(_ENTRY) if isinstance(metadata, dict) else None
    envelope = _parse_json(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else None
    if not isinstance(envelope, dict):
        raise ModelFileError(
            "the header of the file contains no description of a model; save the model again"
        )
    _check_format(envelope)
    kind = envelope.get("kind")
    meta = envelope.get("meta")
    if not isinstance(kind, str) or not isinstance(meta, dict):
        raise ModelFileError(
            "the description of the model lacks its kind or its content; save the model again"
        )
    return kind, meta


def _check_format(envelope: dict[str, Json]) -> None:
    number = envelope.get("format")
    versions = envelope.get("versions")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ModelFileError(
            f"the format version must be an integer from 1 upwards, got {reprlib.repr(number)}"
        )
    if number > FORMAT:
        writer = versions.get("metrifair") if isinstance(versions, dict) else None
        raise ModelFileError(
            f"the file has format {number}, written by metrifair {reprlib.repr(writer)}; this "
            "metrifair reads up to "
            f"format {FORMAT}: upgrade metrifair"
        )


def _parse_json(text: bytes) -> Json:
    """JSON of bounded size, without repeated keys, and without numbers or text that other
    programs cannot read.
    """
    if sum(text.count(sign) for sign in (b",", b"[", b"{")) > MOST_HEADER_VALUES:
        raise ModelFileError(f"the header contains more than {MOST_HEADER_VALUES} values")
    try:
        parsed: Json = json.loads(
            text,
            parse_int=_in_64_bits,
            parse_float=_finite,
            parse_constant=_finite,
            object_pairs_hook=without_repeats,
        )
        if b"\\ud" in text.lower():
            # half of a character is a UnicodeEncodeError
            json.dumps(parsed, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ModelFileError(
            f"the header is not JSON as metrifair writes it ({str(error)[:120]!r})"
        ) from error
    level = [parsed]
    for _ in range(DEEPEST_HEADER):
        inside = [
            node.values() if isinstance(node, dict) else node
            for node in level
            if isinstance(node, (dict, list))
        ]
        level = [node for nodes in inside for node in nodes]
    if level:
        raise ModelFileError(f"the header nests its values more than {DEEPEST_HEADER} levels deep")
    return parsed


def _in_64_bits(text: str) -> int:
    value = int(text) if len(text) < 25 else 2**64
    if not -(2**63) <= value < 2**64:
        raise ValueError(f"number {text[:30]}, which takes more than 64 bits")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"number {text}")
    return value


def without_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """A JSON object; a ValueError for a repeated key: a reader would see the first, and
    programs the last.
    """
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise ValueError("a key occurs twice")
    return unique


class _ArrayPlace(msgspec.Struct, forbid_unknown_fields=True):
    """Where an array is among the bytes behind the header."""

    dtype: str
    shape: list[Annotated[int, msgspec.Meta(ge=0)]]
    data_offsets: tuple[Annotated[int, msgspec.Meta(ge=0)], int]


def _arrays(entries: Json, body: memoryview) -> dict[str, NDArray[Any]]:
    """The arrays of the file, which lie one after the other and fill it."""
    if isinstance(entries, dict):
        places = {name: entry for name, entry in entries.items() if name != "__metadata__"}
    else:
        places = {}
    if len(places) > MOST_ARRAYS:
        raise ModelFileError(
            f"the file contains {len(places)} arrays, more than the {MOST_ARRAYS} that are read"
        )
    try:
        arrays = dict(_read_arrays(msgspec.convert(places, dict[str, _ArrayPlace]), body))
    except (msgspec.ValidationError, ValueError, OverflowError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(
            f"the arrays of the file cannot be read ({str(error)[:120]!r})"
        ) from error
    for name, array in arrays.items():
        if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
            raise ModelFileError(f"array {reprlib.repr(name)} of booleans contains other values")
    return arrays


def _read_arrays(
    entries: Mapping[str, _ArrayPlace], body: memoryview
) -> Iterator[tuple[str, NDArray[Any]]]:
    types = {code: np.dtype(name) for name, code in DTYPES.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        if entry.dtype not in types:
            raise ModelFileError(
                f"array {reprlib.repr(name)} has type {reprlib.repr(entry.dtype)}, which no model "
                "file contains"
            )
        dtype = types[entry.dtype].newbyteorder("<")
        count = math.prod(entry.shape)
        start = end
        end += count * dtype.itemsize
        if entry.data_offsets != (start, end) or end > len(body):
            raise ValueError(f"array {name!r} is not where its shape puts it")
        array = np.frombuffer(body, dtype, count, start) if count else np.zeros(0, dtype)
        yield name, array.reshape(entry.shape).astype(types[entry.dtype])
    if end != len(body):
        raise ValueError(f"{len(body) - end} bytes belong to no array")


def _read_bytes(path: Path) -> bytes:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError("it is not a file")
    if status.st_size > LARGEST_FILE:
        raise ModelFileError(
            f"it has {status.st_size} bytes, more than the {LARGEST_FILE} that are read"
        )
    with path.open("rb") as file:
        return file.read(status.st_size)  # a larger number would take as much memory at once
