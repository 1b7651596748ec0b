"""What codes of classes, groups and strata stand for <-> records. Cells are compiled from a scheme, never stored."""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError, ModelFileError
from metrifair.problem.attributes import strata_by_values
from metrifair.problem.cells import Attribute
from metrifair.problem.criteria import Criterion, Strata, overlapping_strata
from metrifair.problem.problem import Scheme
from metrifair.saving.modelfile import Json
from metrifair.saving.records import (
    AttributeRecord,
    Classes,
    Scalar,
    SchemeRecord,
    StrataRecord,
    plain,
    scalar_of,
    value_of,
)

_MOST_CHARACTERS = 2**22  # of all class labels together
_MOST_COMPARISONS = 20_000
_MOST_WORK = 10**7  # table entries x comparisons: what compiling takes time for


def classes_record(classes: NDArray[Any]) -> Classes:
    """Class labels, with their type.

    >>> classes_record(np.array(["no", "yes"]))
    Classes(dtype='U3', values=['no', 'yes'])
    """
    dtype = f"U{classes.dtype.itemsize // 4}" if classes.dtype.kind == "U" else classes.dtype.name
    if classes.dtype.kind not in "UbiufO" or classes.dtype.itemsize > 4 * 9999 or dtype == "float128":
        raise DataError(f"class labels of type {classes.dtype} cannot be saved; use numbers, strings or booleans")
    return Classes(dtype=dtype, values=[plain("y", value) for value in classes.tolist()])


def classes_of(record: Classes | None) -> NDArray[Any]:
    """The labels, ascending, in the very type they had."""
    if record is None:
        raise ModelFileError("the file does not describe a model: classes are missing")
    values, dtype = [scalar_of("classes", value) for value in record.values], record.dtype
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
        if scheme.strata.values is None:
            strata = StrataRecord(columns=list(scheme.strata.names))
        else:
            strata = StrataRecord(
                columns=[name for name, _ in conditions[0]],
                values=[[plain(name, value) for name, value in one] for one in conditions],
            )
    return SchemeRecord(
        criterion=plain("criterion", scheme.criterion),
        attributes=[
            AttributeRecord(
                name=one.name,
                groups=[plain(one.name, group) for group in one.groups],
                is_number=one.is_number,
                columns=list(one.columns),
                parts=[[plain(one.name, value) for value in part] for part in one.parts],
            )
            for one in scheme.attributes
        ],
        intersectional=bool(scheme.intersectional),
        strata=strata,
        compared=scheme.cells is not None,
        contrast=scheme.contrast,
        positive=scheme.positive,
        outcome=scheme.outcome,
    )


def scheme_of(record: SchemeRecord, classes: NDArray[Any] | None) -> Scheme:
    """The scheme, compiled anew."""
    criterion = value_of("scheme.criterion", record.criterion)
    if not isinstance(criterion, Criterion):
        raise ModelFileError(f"scheme.criterion must be a criterion, got {reprlib.repr(criterion)}")
    attributes = tuple(map(_attribute, record.attributes))
    strata = None if record.strata is None else _strata(record.strata)
    labels = () if classes is None else tuple(classes.tolist())
    if record.positive not in (range(len(labels)) if labels else (-1,)):
        raise ModelFileError(f"scheme.positive must be the place of a class, got {record.positive}")
    if record.compared:
        _check_size(criterion, attributes, len(labels), strata)
    elif attributes:
        raise ModelFileError("the scheme has attributes that are not compared")
    meaning = criterion, labels, record.positive, attributes, record.intersectional, strata, record.contrast
    found = Scheme(*meaning, outcome=record.outcome)
    _ = found.cells  # compiled now, so that what cannot be is refused
    return found


def _attribute(record: AttributeRecord) -> Attribute:
    groups, name = _scalars("a group", record.groups), reprlib.repr(record.name)
    parts = tuple(_scalars("a group", part) for part in record.parts)
    if record.is_number and groups:
        raise ModelFileError(f"{name} is a number and has groups: {reprlib.repr(groups)}")
    if len(set(groups)) < len(groups):
        raise ModelFileError(f"{name} names a group twice: {reprlib.repr(groups)}")
    if len(parts) not in (0, len(groups)) or any(len(part) != len(record.columns) for part in parts):
        raise ModelFileError(f"{name} does not have a value of each column for each group")
    return Attribute(record.name, groups, record.is_number, columns=tuple(record.columns), parts=parts)


def _strata(record: StrataRecord) -> Strata:
    columns, most = record.columns, math.isqrt(_MOST_WORK)
    count = len(columns) if record.values is None else len(record.values)
    if not 1 <= count <= most or not columns:
        raise ModelFileError(f"there must be between 1 and {most} strata, got {count}")
    if record.values is None:
        return overlapping_strata(columns)
    if any(len(row) != len(columns) for row in record.values):
        raise ModelFileError(f"each stratum must have a value for each of the columns {reprlib.repr(columns)}")
    return strata_by_values(columns, [_scalars("a stratum", row) for row in record.values])


def _scalars(where: str, values: list[Json]) -> tuple[Scalar, ...]:
    return tuple(scalar_of(where, value) for value in values)


def _check_size(criterion: Criterion, attributes: tuple[Attribute, ...], classes: int, strata: Strata | None) -> None:
    """Refuse what would take the compiler long, before it begins."""
    patterns = 1
    if criterion.labels is not None:
        patterns = classes if criterion.bins is None else len(criterion.bins) + 1
    rows, columns = (1, 1) if strata is None else strata.member.shape
    sets = columns * (patterns if criterion.labels == "every" else 1)
    table = patterns * (rows + 1) * math.prod(attribute.codes + 1 for attribute in attributes)
    comparisons = sets * sum(
        1 if attribute.is_number else math.comb(len(attribute.groups), 2) for attribute in attributes
    )
    work = max(table * max(comparisons, sets), patterns**2 * rows * columns)
    if not attributes or comparisons > _MOST_COMPARISONS or work > _MOST_WORK:
        raise ModelFileError(
            f"the scheme compares {len(attributes)} attributes in {comparisons} ways; a model file has at least one, "
            f"and at most {_MOST_COMPARISONS} ways"
        )
