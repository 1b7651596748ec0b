"""Model files as an attacker would write them: any JSON, any arrays, any bytes, and a hash that
is right.
"""

from __future__ import annotations

import copy
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from safetensors.numpy import save as safetensors_of

from metrifair import load
from metrifair.errors import ModelFileError
from tests.seams.saving import Content

MARK = rb"{\"sha256\":\""


def sealed(data: bytes) -> bytes:
    """The bytes with the right hash, where there is a place for one."""
    at = data.find(MARK) + len(MARK)
    if at < len(MARK) or len(data) < at + 64:
        return data
    blank = data[:at] + b"0" * 64 + data[at + 64 :]
    return data[:at] + sha256(blank).hexdigest().encode() + data[at + 64 :]


def forged(text: str, arrays: dict[str, np.ndarray] | None = None) -> bytes:
    """A file whose description is this JSON text, from behind the hash on."""
    whole = {name: np.asarray(array, order="C") for name, array in (arrays or {}).items()}
    return sealed(
        safetensors_of(whole, metadata={"metrifair": '{"sha256":"' + "0" * 64 + '",' + text + "}"})
    )


def described(
    meta: object, arrays: dict[str, np.ndarray], kind: object = "estimator", number: object = 1
) -> bytes:
    """A file of this content; types are the attacker's choice."""
    return forged(
        json.dumps({"format": number, "kind": kind, "versions": {}, "meta": meta})[1:-1], arrays
    )


@st.composite
def damages(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes after one to three flips, overwrites, cuts, insertions or repetitions."""
    for _ in range(draw(st.integers(1, 3))):
        at, other = sorted(draw(st.tuples(*[st.integers(0, max(len(data) - 1, 0))] * 2)))
        some = draw(
            st.one_of(
                st.binary(min_size=1, max_size=12),
                st.sampled_from([b'"', b"}", b"[[", b"\0" * 9, b"9" * 30]),
            )
        )
        flip = bytes([data[at] ^ 1 << draw(st.integers(0, 7))]) if data else b""
        data = draw(
            st.sampled_from(
                [
                    data[:at] + flip + data[at + 1 :],
                    data[:at] + some + data[at + len(some) :],
                    data[:at] + data[other:],
                    data[:at] + some + data[at:],
                    data[:other] + data[at:],
                    data[:at],
                ]
            )
        )
    return data


ODD: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 10**6, 2**63, 2**64 - 1, 10**400, -(10**30), 0.5, -0.0, 1e308, -1e-308, "", "a",
    "mlp", "linear", "every", "positive", "rest",
    "\ud800", "a\nb", "x" * 5000, [], [0], [[]], [1, "a"], {}, {"tuple": []},
    {"tuple": [1, {"tuple": [2]}]}, {"float": "nan"}, {"float": "inf"}, {"float": 1}, {"module": "os.system"},
    {"criterion": {}}, {"criterion": None}, {"__class__": "os.system"}, ["__import__('os')"], [None] * 3,
    list(range(300)),
]  # fmt: skip


odd = st.sampled_from(ODD).map(copy.deepcopy)


def _places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node)
        if isinstance(node, list)
        else ()
    )
    return [path, *(place for key, value in inside for place in _places(value, (*path, key)))]


@st.composite
def lies(draw: st.DrawFn, meta: dict[str, Any]) -> dict[str, Any]:
    """The description with one to three values replaced, taken from elsewhere, left out or
    added.
    """
    meta = json.loads(json.dumps(meta))
    for _ in range(draw(st.integers(1, 3))):
        *path, key = draw(st.sampled_from([place for place in _places(meta) if place]))
        node = meta
        for step in path:
            node = node[step]
        how = draw(st.sampled_from(["odd", "odd", "elsewhere", "gone", "more"]))
        if how == "odd":
            node[key] = draw(odd)
        elif how == "elsewhere":
            found: Any = meta
            for step in draw(st.sampled_from(_places(meta))):
                found = found[step]
            node[key] = json.loads(json.dumps(found))
        elif how == "gone":
            del node[key]
        elif isinstance(node, dict):
            node["more"] = draw(odd)
        else:
            node.append(draw(odd))
        if not _places(meta)[1:]:
            break
    return meta


@st.composite
def bent(draw: st.DrawFn, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays with one renamed, left out, added, reshaped, of another type or with other
    values.
    """
    arrays = dict(arrays)
    name = draw(st.sampled_from(sorted(arrays)))
    array = arrays.pop(name)
    how = draw(
        st.sampled_from(
            ["rename", "drop", "flatten", "longer", "empty", "dtype", "value", "add", "bytes"]
        )
    )
    if how == "rename":
        arrays[draw(st.sampled_from(["", "x", "learner/", "../x", *sorted(arrays)]))] = array
    elif how == "flatten":
        arrays[name] = array.reshape(-1)
    elif how == "longer":
        arrays[name] = np.concatenate([array.reshape(-1)] * 2)
    elif how == "empty":
        arrays[name] = np.zeros((0, 5))
    elif how == "dtype":
        arrays[name] = array.astype(
            draw(st.sampled_from(["float32", "int64", "uint8", "bool", "float64", "int8"]))
        )
    elif how == "value":
        odd = draw(st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e300, 255.0, 7.0]))
        with np.errstate(all="ignore"):
            arrays[name] = np.full(array.shape, odd).astype(array.dtype)
    elif how == "bytes":
        raw = np.frombuffer(draw(st.binary(min_size=1, max_size=array.nbytes or 1)), np.uint8)
        arrays[name] = (
            np.resize(raw, max(array.nbytes, 1))[: array.nbytes]
            .copy()
            .view(array.dtype)
            .reshape(array.shape)
        )
    elif how == "add":
        arrays |= {name: array, "more": array}
    return arrays


@st.composite
def hostile(draw: st.DrawFn, honest: Content) -> bytes:
    """An honest file with another description, other arrays or other bytes."""
    how = draw(st.sampled_from(["lies", "bent", "damages"]))
    if how == "damages":
        return sealed(draw(damages(described(honest.meta, honest.arrays, honest.kind))))
    meta = draw(lies(honest.meta)) if how == "lies" else honest.meta
    arrays = draw(bent(honest.arrays)) if how == "bent" else honest.arrays
    return described(meta, arrays, honest.kind)


def load_hostile(path: Path) -> Any:
    """What a file contains; None if it is refused, which must be in few printable words."""
    try:
        return load(path)
    except ModelFileError as error:
        text = str(error)
    assert text.isprintable()
    assert len(text) < 2000
    return None
