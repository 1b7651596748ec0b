"""The records in model files: one type for each, which both reads and writes it.

Constraints beyond types (unique names, consistent numbers) are checked where the record becomes
an object.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from metrifair.errors import DataError, ModelFileError
from metrifair.metrics.penalty_options import PenaltyOptions
from metrifair.problem.attributes import strata_by_values
from metrifair.problem.cells import Attribute, Contrast, needs_combinations
from metrifair.problem.criteria import Criterion, Strata
from metrifair.problem.problem import Scheme
from metrifair.saving.modelfile import Json
from metrifair.support.checks import check_known

Scalar: TypeAlias = bool | int | float | str
Count: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]  # beyond, floats skip integers
Positive: TypeAlias = Annotated[int, Meta(ge=1, le=2**53)]
Amount: TypeAlias = Annotated[float, Meta(ge=0, lt=1e300)]


class Record(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An object of a model file: exactly these fields, of exactly these types."""

    def as_json(self) -> dict[str, Json]:
        """The record as JSON values."""
        # NumPy's numbers are not floats
        json: dict[str, Json] = msgspec.to_builtins(self, enc_hook=np.generic.item)
        return json


R = TypeVar("R")


def read_record(kind: type[R], json: object, described: str = "a model") -> R:
    """The record in this JSON, or a ModelFileError at the place of the mismatch; ``described`` is
    its subject.

    >>> read_record(Features, {"count": -1, "names": None})
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: the file does not describe a model: Expected `int` >= 0 - at `$.count`
    """
    with file_errors(
        f"the file does not describe {in_one_line(described)}", msgspec.ValidationError
    ):
        return msgspec.convert(json, kind)


@contextmanager
def file_errors(problem: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of these kinds into a ModelFileError that begins with ``problem``; a
    ModelFileError stays itself.

    >>> with file_errors("the file does not describe a model", TypeError):
    ...     len(5)
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: the file does not describe a model: object of type 'int' has no len()
    """
    try:
        yield
    except ModelFileError:
        raise
    except kinds as error:
        raise ModelFileError(f"{problem}: {in_one_line(error)}") from error


def in_one_line(error: object) -> str:
    """The message of an error that may quote a stranger's file: bounded, and without control
    characters.
    """
    return "".join(character if character.isprintable() else "?" for character in str(error)[:400])


class Arrays:
    """The arrays of a model file, each taken once, as a copy.

    >>> Arrays({"mean": np.zeros(3)}).take("mean", (1, 3))
    Traceback (most recent call last):
    metrifair.errors.ModelFileError: array 'mean' must be float64 of shape (1, 3), got float64 of shape (3,)
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._left = dict(arrays)

    def take(
        self, name: str, shape: Sequence[int | None], dtype: str = "float64", *, finite: bool = True
    ) -> NDArray[Any]:
        """The array of this name, of this shape; None: any length."""
        array = self._left.pop(name, None)
        if array is None:
            raise ModelFileError(f"array {name!r} is missing")
        expected = tuple(shape)
        fits = array.ndim == len(expected) and all(
            b in (None, a) for a, b in zip(array.shape, expected, strict=True)
        )
        if array.dtype.name != dtype or not fits:
            raise ModelFileError(
                f"array {name!r} must be {dtype} of shape {expected}, got {array.dtype} of shape "
                f"{array.shape}"
            )
        if finite and not np.isfinite(array).all():
            raise ModelFileError(f"array {name!r} contains numbers that are not finite")
        return np.array(array, order="C")

    def number(self, name: str, *, finite: bool = True) -> float:
        """The only number of the array of this name."""
        number: float = self.take(name, (1,), finite=finite).item()
        return number

    def check_all_taken(self) -> None:
        """Raise a ModelFileError if the file contains more than the model."""
        if self._left:
            raise ModelFileError(
                f"the model has no use for the arrays {reprlib.repr(sorted(self._left))}"
            )


class Features(Record):
    """The columns that a model was fitted with."""

    count: Count
    names: list[str] | None

    def __post_init__(self) -> None:
        if self.names is not None and len(self.names) != self.count:
            raise ValueError(
                f"there are {self.count} features, and {len(self.names)} names for them"
            )


class Classes(Record):
    """Labels, ascending, and the NumPy type that they had."""

    dtype: Annotated[
        str, Meta(pattern=r"^(bool|object|u?int(8|16|32|64)|float(16|32|64)|U[1-9][0-9]{0,3})\Z")
    ]
    values: list[Any]


class AttributeRecord(Record):
    """A protected attribute and its groups; a number has none."""

    name: str
    groups: list[Any]
    is_number: bool = False
    columns: list[str] = []  # of an intersection
    parts: list[list[Any]] = []  # of an intersection, their values for each group


class StrataRecord(Record):
    """Strata: combinations of the values of columns."""

    columns: list[str]
    values: list[list[Any]]  # of the columns in each stratum


class SchemeRecord(Record):
    """The source of cells, which are compiled from it and never stored."""

    criterion: Any
    attributes: list[AttributeRecord]
    intersectional: bool
    strata: StrataRecord | None
    compared: bool
    contrast: Contrast
    positive: Annotated[int, Meta(ge=-1, le=2**53)]  # -1 where there are no classes
    outcome: str = "label"  # the name of the label column


class NetworkRecord(Record):
    """A network of our own: units of the hidden layers. Its numbers are arrays."""

    hidden: list[Positive]


class ModuleRecord(Record):
    """A module of the user's own, of which the file contains weights, never code."""

    module: str
    names: list[str]
    buffers: list[str]


class ModelRecord(Record, kw_only=True):
    """The common fields of the records of all fitted models."""

    kind: str
    parameters: dict[str, Any]
    features: Features
    classes: Classes | None


class EstimatorRecord(ModelRecord):
    """A fair classifier or regressor."""

    target_scaling: tuple[float, Annotated[float, Meta(gt=0)]] | None
    iterations: Positive | None
    scheme: SchemeRecord
    model: dict[str, Any]  # NetworkRecord or ModuleRecord
    updates: Count | None  # steps of a stream; None: the model has learned from no stream
    moments: bool = False  # whether the features' are among the arrays
    left_out: list[str] = []  # groups that were too small to train on


class BoosterRecord(ModelRecord):
    """A fair booster; its trees are an array of bytes, the booster's own text or JSON."""

    objective: Annotated[str, Meta(pattern=r"^[\w:.-]{1,60}\Z")]
    best_iteration: Count | None
    left_out: list[str] = []


class InnerRecord(Record):
    """A model within another file, as in its own file."""

    kind: Literal["estimator", "booster", "stack", "postprocessor", "pipeline"]
    meta: dict[str, Any]


class PostprocessorRecord(ModelRecord):
    """A post-processor, and the models that it wraps: its base, and the guess of the group
    where it needs none.
    """

    # those that were passed, not left at their default
    wraps: list[Literal["estimator", "group_model"]]
    scheme: SchemeRecord
    inner: dict[str, InnerRecord]


class StackRecord(ModelRecord):
    """A stack: its last model as in its own file, and the models whose predictions are its
    input.
    """

    last: InnerRecord
    outcome: Annotated[list[InnerRecord], Meta(min_length=1)]
    group: list[InnerRecord]  # none where it was trained without a penalty
    # which of these were given, not left to their default
    given: list[Literal["outcome_models", "group_models"]]


class EncoderParameters(Record):
    """Parameters of a TableEncoder."""

    min_frequency: Positive
    max_levels: Positive


class EncoderRecord(Record):
    """A fitted TableEncoder."""

    parameters: EncoderParameters
    count: Positive
    names: list[str] | None
    coders: dict[str, dict[str, Any]]  # Numbers or Levels
    dropped: dict[str, str]
    output: Literal["default", "pandas", "polars"] | None = None  # the argument of set_output


class PipelineRecord(Record):
    """A pipeline of scikit-learn: encoders (None: a step without effect), and a model."""

    steps: list[str]  # names
    encoders: list[EncoderRecord | None]
    model: InnerRecord
    verbose: bool = False
    transform_input: list[str] | None = None


class TableModelRecord(Record):
    """An encoder and its estimator."""

    encoder: EncoderRecord
    estimator: InnerRecord
    target: str
    sensitive: list[str]
    ids: list[str]
    threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    training_files: list[str] = []


class CriterionRecord(Record):
    """A criterion without functions."""

    name: str
    score: Literal["prediction", "output", "loss", "log_prediction"]
    labels: Literal["positive", "negative", "every"] | None
    bins: Annotated[tuple[int | float, ...], Meta(min_length=1)] | None
    sets: None
    set_names: tuple[str, ...]
    strata: bool


def plain(name: str, value: object) -> Json:
    """JSON from which ``read_value`` makes an equal value; ``name`` is for the message if there is
    none.

    >>> plain("hidden", (16, np.int64(8)))
    {'tuple': [16, 8]}
    >>> plain("metric", len)
    Traceback (most recent call last):
    metrifair.errors.DataError: metric is a function (len); a model file contains no code; fit with a named one to save
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, dict):
        return {"dict": [[plain(name, key), plain(name, item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1):
        items = [plain(name, item) for item in value]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, (Criterion, PenaltyOptions)):
        return _named_parts(name, value)
    if callable(value):
        target = getattr(value, "__qualname__", type(value).__name__)
        raise DataError(
            f"{name} is a function ({target}); a model file contains no code; fit with a named one "
            "to save"
        )
    raise DataError(
        f"{name} contains a {type(value).__name__}, which no model file can; use numbers, text or "
        "booleans"
    )


def read_value(where: str, json: Json) -> object:
    """The value that ``plain`` wrote.

    >>> read_value("hidden", {"tuple": [16, 8]})
    (16, 8)
    """
    if isinstance(json, list):
        return [read_value(where, item) for item in json]
    if not isinstance(json, dict):
        return json
    ((tag, content),) = json.items() if len(json) == 1 else [("", None)]
    if tag == "tuple" and isinstance(content, list):
        return tuple(read_value(where, item) for item in content)
    if tag == "float" and content in ("nan", "inf", "-inf"):
        return float(str(content))
    if (
        tag == "dict"
        and isinstance(content, list)
        and all(isinstance(pair, list) and len(pair) == 2 for pair in content)
    ):
        return {
            read_scalar(where, pair[0]): read_value(where, pair[1])
            for pair in content
            if isinstance(pair, list)
        }
    if tag in _NAMED and isinstance(content, dict):
        parts = {part: read_value(where, json_of_part) for part, json_of_part in content.items()}
        return _NAMED[tag](where, parts)
    raise ModelFileError(
        f"{where} contains {reprlib.repr(json)}, which is no value of a model file"
    )


def _named_parts(name: str, value: Criterion | PenaltyOptions) -> Json:
    """The fields of a record, below the word by which ``read_value`` knows it."""
    tag = "criterion"
    parts = CriterionRecord.__struct_fields__
    if isinstance(value, PenaltyOptions):
        tag = "penalty"
        parts = tuple(vars(value))
    return {tag: {part: plain(f"{name}.{part}", getattr(value, part)) for part in parts}}


def _penalty(_: str, parts: Mapping[str, Any]) -> PenaltyOptions:
    for name in parts:
        check_known("a field of penalty", name, list(vars(PenaltyOptions())))
    options = PenaltyOptions(**parts)
    options.check()
    return options


def read_scalar(where: str, json: Json) -> Scalar:
    """A number, a string or a boolean."""
    value = read_value(where, json)
    if not isinstance(value, (bool, int, float, str)):
        raise ModelFileError(
            f"{where} must be a number, a string or a boolean, got {reprlib.repr(value)}"
        )
    return value


def _criterion(where: str, values: dict[str, object]) -> Criterion:
    with file_errors(f"{where} is not a criterion", msgspec.ValidationError):
        record = msgspec.convert(values, CriterionRecord)
    if record.bins is not None and any(math.isnan(cut) for cut in record.bins):
        raise ModelFileError(f"{where} is not a criterion: a bin is not a number")
    return Criterion(**{name: getattr(record, name) for name in record.__struct_fields__})


_NAMED = {"criterion": _criterion, "penalty": _penalty}
_MOST_CHARACTERS = 2**22  # of all class labels together
_MOST_COMPARISONS = 20_000
_MOST_WORK = 10**7  # table entries x comparisons: what compiling takes time for


def classes_record(classes: NDArray[Any]) -> Classes:
    """Class labels, with their type.

    >>> classes_record(np.array(["no", "yes"]))
    Classes(dtype='U3', values=['no', 'yes'])
    """
    dtype = f"U{classes.dtype.itemsize // 4}" if classes.dtype.kind == "U" else classes.dtype.name
    if (
        classes.dtype.kind not in "UbiufO"
        or classes.dtype.itemsize > 4 * 9999
        or dtype == "float128"
    ):
        raise DataError(
            f"class labels of type {classes.dtype} cannot be saved; use numbers, strings or "
            "booleans"
        )
    return Classes(dtype=dtype, values=[plain("y", value) for value in classes.tolist()])


def read_classes(record: Classes | None) -> NDArray[Any]:
    """The labels, ascending, in the very type they had."""
    if record is None:
        raise ModelFileError("the file does not describe a model: classes are missing")
    values = [read_scalar("classes", value) for value in record.values]
    dtype = record.dtype
    if dtype.startswith("U") and int(dtype[1:]) * len(values) > _MOST_CHARACTERS:
        raise ModelFileError(f"the classes take more than {_MOST_CHARACTERS} characters")
    try:
        with np.errstate(all="ignore"):
            classes = np.array(values, dtype=dtype)
        again = np.unique(classes).tolist()
    except (TypeError, ValueError, OverflowError):
        again = []
    if len(values) < 2 or [(type(a), a) for a in again] != [(type(a), a) for a in values]:
        raise ModelFileError(
            f"classes must be two or more different labels of type {dtype} in ascending order, got "
            f"{reprlib.repr(values)}"
        )
    return classes


def scheme_record(scheme: Scheme) -> SchemeRecord:
    """A scheme, as the facts that it is compiled from."""
    strata = None
    if scheme.strata is not None:
        conditions = scheme.strata.conditions
        strata = StrataRecord(
            columns=[name for name, _ in conditions[0]],
            values=[[plain(name, value) for name, value in pairs] for pairs in conditions],
        )
    return SchemeRecord(
        criterion=plain("criterion", scheme.criterion),
        attributes=[
            AttributeRecord(
                name=attribute.name,
                groups=[plain(attribute.name, group) for group in attribute.groups],
                is_number=attribute.is_number,
                columns=list(attribute.columns),
                parts=[
                    [plain(attribute.name, value) for value in part] for part in attribute.parts
                ],
            )
            for attribute in scheme.attributes
        ],
        intersectional=bool(scheme.intersectional),
        strata=strata,
        compared=bool(scheme.attributes),
        contrast=scheme.contrast,
        positive=scheme.positive,
        outcome=scheme.outcome,
    )


def read_scheme(record: SchemeRecord, classes: NDArray[Any] | None) -> Scheme:
    """The scheme, compiled anew."""
    criterion = read_value("scheme.criterion", record.criterion)
    if not isinstance(criterion, Criterion):
        raise ModelFileError(f"scheme.criterion must be a criterion, got {reprlib.repr(criterion)}")
    attributes = tuple(map(_attribute, record.attributes))
    strata = None if record.strata is None else _strata(record.strata)
    labels = () if classes is None else tuple(classes.tolist())
    places = range(len(labels)) if labels else (-1,)
    if record.positive not in places:
        raise ModelFileError(f"scheme.positive must be the place of a class, got {record.positive}")
    if record.compared:
        _check_size(criterion, attributes, len(labels), strata)
    elif attributes:
        raise ModelFileError("the scheme has attributes that are not compared")
    meaning = (
        criterion,
        labels,
        record.positive,
        attributes,
        record.intersectional,
        strata,
        record.contrast,
    )
    scheme = Scheme(*meaning, outcome=record.outcome)
    if not needs_combinations(attributes):  # cells of combinations that occur are those of rows
        _ = scheme.cells  # compiled now, so that what cannot be is refused
    return scheme


def _attribute(record: AttributeRecord) -> Attribute:
    groups = _scalars("a group", record.groups)
    name = reprlib.repr(record.name)
    parts = tuple(_scalars("a group", part) for part in record.parts)
    if record.is_number and groups:
        raise ModelFileError(f"{name} is a number and has groups: {reprlib.repr(groups)}")
    if len(set(groups)) < len(groups):
        raise ModelFileError(f"{name} names a group twice: {reprlib.repr(groups)}")
    if len(parts) not in (0, len(groups)) or any(
        len(part) != len(record.columns) for part in parts
    ):
        raise ModelFileError(f"{name} does not have a value of each column for each group")
    return Attribute(
        record.name, groups, record.is_number, columns=tuple(record.columns), parts=parts
    )


def _strata(record: StrataRecord) -> Strata:
    columns = record.columns
    count = len(record.values)
    most = math.isqrt(_MOST_WORK)
    if not 1 <= count <= most or not columns:
        raise ModelFileError(f"there must be between 1 and {most} strata, got {count}")
    if any(len(row) != len(columns) for row in record.values):
        raise ModelFileError(
            f"each stratum must have a value for each of the columns {reprlib.repr(columns)}"
        )
    return strata_by_values(columns, [_scalars("a stratum", row) for row in record.values])


def _scalars(where: str, values: list[Json]) -> tuple[Scalar, ...]:
    return tuple(read_scalar(where, value) for value in values)


def _check_size(
    criterion: Criterion, attributes: tuple[Attribute, ...], classes: int, strata: Strata | None
) -> None:
    """Refuse what would take the compiler long, before it begins."""
    patterns = 1
    if criterion.labels is not None:
        patterns = classes if criterion.bins is None else len(criterion.bins) + 1
    rows, columns = (1, 1) if strata is None else strata.member.shape
    sets = columns * (patterns if criterion.labels == "every" else 1)
    table = patterns * (rows + 1)
    if not needs_combinations(attributes):
        table *= math.prod(attribute.codes + 1 for attribute in attributes)
    comparisons = sets * sum(
        1 if attribute.is_number else math.comb(len(attribute.groups), 2)
        for attribute in attributes
    )
    work = max(table * max(comparisons, sets), patterns**2 * rows * columns)
    if not attributes or comparisons > _MOST_COMPARISONS or work > _MOST_WORK:
        raise ModelFileError(
            f"the scheme compares {len(attributes)} attributes in {comparisons} ways; a model file "
            "has at least one, "
            f"and at most {_MOST_COMPARISONS} ways"
        )
