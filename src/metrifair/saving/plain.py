"""Python values <-> plain JSON, and checked access to what a model file holds: nothing in it is taken on trust."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NoReturn, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.errors import DataError, ModelFileError
from metrifair.problem.criteria import Criterion
from metrifair.saving.modelfile import Json

Scalar: TypeAlias = bool | int | float | str

LARGEST_WHOLE = 2**53  # beyond, floats skip whole numbers

_SCORES = ("prediction", "output", "loss", "log_prediction")
_LABELS = (None, "positive", "negative", "every")


def plain(name: str, value: object) -> Json:
    """JSON from which ``value_of`` makes an equal value; ``name`` is for the message where there is none.

    >>> plain("hidden", (16, np.int64(8)))
    {'tuple': [16, 8]}
    >>> plain("metric", len)
    Traceback (most recent call last):
    metrifair.errors.DataError: metric is a function (len); a model file holds no code; fit with a named one to save
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, (list, tuple, dict)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return _several(name, value)
    if isinstance(value, Criterion):
        parts = [part.name for part in fields(Criterion)]
        return {"criterion": {part: plain(f"{name}.{part}", getattr(value, part)) for part in parts}}
    if callable(value):
        called = getattr(value, "__qualname__", type(value).__name__)
        raise DataError(f"{name} is a function ({called}); a model file holds no code; fit with a named one to save")
    raise DataError(
        f"{name} holds a {type(value).__name__}, which no model file can; use numbers, strings or truth values"
    )


def _several(name: str, value: list[Any] | tuple[Any, ...] | dict[Any, Any] | NDArray[Any]) -> Json:
    if isinstance(value, dict):
        return {"dict": [[plain(name, key), plain(name, item)] for key, item in value.items()]}
    items = [plain(name, item) for item in value]
    return items if isinstance(value, list) else {"tuple": items}


def value_of(where: str, json: Json) -> object:
    """The value that ``plain`` wrote.

    >>> value_of("hidden", {"tuple": [16, 8]})
    (16, 8)
    """
    if isinstance(json, list):
        return [value_of(where, item) for item in json]
    if isinstance(json, int) and not -(2**63) <= json < 2**64:
        raise ModelFileError(f"{where} holds a whole number of more than 64 bits")
    if not isinstance(json, dict):
        return json
    tag, content = next(iter(json.items()), ("", None))
    if len(json) == 1 and tag == "tuple" and isinstance(content, list):
        return tuple(value_of(where, item) for item in content)
    if len(json) == 1 and tag == "float" and content in ("nan", "inf", "-inf"):
        return float(str(content))
    if len(json) == 1 and tag == "dict" and isinstance(content, list):
        return _dict(where, content)
    if len(json) == 1 and tag == "criterion":
        return _criterion(Fields.of(where, content))
    raise ModelFileError(f"{where} holds {reprlib.repr(json)}, which stands for no value")


def _dict(where: str, pairs: list[Json]) -> dict[Scalar, object]:
    found: dict[Scalar, object] = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ModelFileError(f"{where} holds {reprlib.repr(pair)}, which is no key with its value")
        found[scalar_of(where, pair[0])] = value_of(where, pair[1])
    return found


def scalar_of(where: str, json: Json) -> Scalar:
    """A number, a string or a truth value."""
    value = value_of(where, json)
    if not isinstance(value, (bool, int, float, str)):
        raise ModelFileError(f"{where} must be a number, a string or a truth value, got {reprlib.repr(value)}")
    return value


def _criterion(values: Fields) -> Criterion:
    values.only(*(part.name for part in fields(Criterion)))
    score, labels = values.get("score"), values.get("labels")
    if score not in _SCORES or labels not in _LABELS or values.get("sets") is not None:
        raise ModelFileError(f"{values.where} is no criterion: {reprlib.repr(dict(values.values))}")
    bins = value_of(f"{values.where}.bins", values.get("bins"))
    names = value_of(f"{values.where}.set_names", values.get("set_names"))
    if bins is not None and not (isinstance(bins, (tuple, list)) and bins and all(map(_is_cut, bins))):
        raise ModelFileError(f"{values.where}.bins must be numbers, at least one, got {reprlib.repr(bins)}")
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise ModelFileError(f"{values.where}.set_names must be names, got {reprlib.repr(names)}")
    return Criterion(values.text("name"), score, labels, bins, None, names, values.flag("strata"))  # type: ignore[arg-type]


def _is_cut(value: object) -> bool:
    if isinstance(value, int):
        return abs(value) <= LARGEST_WHOLE
    return isinstance(value, float) and not math.isnan(value)


@dataclass(frozen=True)
class Fields:
    """A JSON object of a model file, read field by field.

    >>> Fields({"units": -1}, "model").whole("units", least=1)
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: model.units must be a whole number from 1 upwards, got -1
    """

    values: Mapping[str, Json]
    where: str

    @classmethod
    def of(cls, where: str, json: Json) -> Fields:
        """The fields of what must be an object."""
        if not isinstance(json, dict):
            raise ModelFileError(f"{where} must be a JSON object, got {reprlib.repr(json)}")
        return cls(json, where)

    def only(self, *names: str) -> Fields:
        """Itself, if it has exactly these fields."""
        odd = set(self.values) ^ set(names)
        if odd:
            raise ModelFileError(f"{self.where} must have the fields {', '.join(names)}; {_listed(odd)} does not fit")
        return self

    def get(self, name: str) -> Json:
        """The field as it is."""
        if name not in self.values:
            raise ModelFileError(f"{self.where} lacks {name}")
        return self.values[name]

    def inner(self, name: str) -> Fields:
        """A field that is an object."""
        return Fields.of(f"{self.where}.{name}", self.get(name))

    def text(self, name: str) -> str:
        """A field that is a string."""
        value = self.get(name)
        if not isinstance(value, str):
            self._refuse(name, "a string")
        return value

    def flag(self, name: str) -> bool:
        """A field that is true or false."""
        value = self.get(name)
        if not isinstance(value, bool):
            self._refuse(name, "true or false")
        return value

    def whole(self, name: str, *, least: int = 0, most: int = LARGEST_WHOLE) -> int:
        """A field that is a whole number."""
        value = self.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self._refuse(name, f"a whole number from {least} upwards")
        return value

    def number(self, name: str) -> float:
        """A field that is a number from 0 upwards."""
        value = self.get(name)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < 1e300:
            self._refuse(name, "a number from 0 upwards")
        return value

    def items(self, name: str) -> list[Json]:
        """A field that is a list."""
        value = self.get(name)
        if not isinstance(value, list):
            self._refuse(name, "a list")
        return value

    def texts(self, name: str) -> list[str]:
        """A field that is a list of strings."""
        found = [value for value in self.items(name) if isinstance(value, str)]
        if len(found) < len(self.items(name)):
            self._refuse(name, "a list of strings")
        return found

    def _refuse(self, name: str, wanted: str) -> NoReturn:
        raise ModelFileError(f"{self.where}.{name} must be {wanted}, got {reprlib.repr(self.get(name))}")


class Arrays:
    """The arrays of a model file, each taken once, as tensors of their own.

    >>> Arrays({"mean": np.zeros(3)}).take("mean", (1, 3))
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: array 'mean' must be float64 of shape (1, 3), got float64 of shape (3,)
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._left = dict(arrays)

    def take(self, name: str, shape: Sequence[int | None], dtype: str = "float64", *, finite: bool = True) -> Tensor:
        """The array of this name, of this shape; None stands for any length."""
        if name not in self._left:
            raise ModelFileError(f"array {name!r} is missing")
        array = self._left.pop(name)
        wanted = tuple(shape)
        fits = array.ndim == len(wanted) and all(b in (None, a) for a, b in zip(array.shape, wanted, strict=True))
        if array.dtype.name != dtype or not fits:
            raise ModelFileError(
                f"array {name!r} must be {dtype} of shape {wanted}, got {array.dtype} of shape {array.shape}"
            )
        if finite and not np.isfinite(array).all():
            raise ModelFileError(f"array {name!r} holds numbers that are not finite")
        return torch.from_numpy(np.array(array, order="C"))

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of an array that has not been taken yet."""
        if name not in self._left:
            raise ModelFileError(f"array {name!r} is missing")
        return self._left[name].shape

    def check_all_taken(self) -> None:
        """Raise a ModelFileError if the file holds more than the model."""
        if self._left:
            raise ModelFileError(f"the model has no use for the arrays {_listed(self._left)}")


def _listed(names: Any) -> str:
    return reprlib.repr(sorted(names))
