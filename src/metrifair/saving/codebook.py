"""What the codes of classes, groups and strata stand for <-> JSON; cells are compiled from it, never stored."""

from __future__ import annotations

import math
import re
import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.checks import check_known
from metrifair.errors import DataError, ModelFileError
from metrifair.problem.cells import Attribute, Contrast, Strata, overlapping_strata, separate_strata
from metrifair.problem.criteria import Criterion
from metrifair.problem.problem import Scheme
from metrifair.saving.modelfile import Json
from metrifair.saving.plain import Fields, plain, scalar_of, value_of

_LABEL_TYPES = re.compile(r"bool|object|u?int(8|16|32|64)|float(16|32|64)|U[1-9][0-9]{0,3}")
_MOST_LETTERS = 2**22  # of all class labels together
_MOST_COMPARISONS = 20_000
_MOST_WORK = 10**8  # table entries x comparisons: what compiling takes time for


def classes_meta(classes: NDArray[Any]) -> Json:
    """Class labels, with their type.

    >>> classes_meta(np.array(["no", "yes"]))
    {'dtype': 'U3', 'values': ['no', 'yes']}
    """
    dtype = f"U{classes.dtype.itemsize // 4}" if classes.dtype.kind == "U" else classes.dtype.name
    if not _LABEL_TYPES.fullmatch(dtype):
        raise DataError(f"class labels of type {classes.dtype} cannot be saved; use numbers, strings or truth values")
    return {"dtype": dtype, "values": [plain("y", value) for value in classes.tolist()]}


def classes_of(meta: Fields) -> NDArray[Any]:
    """The labels, ascending, in the very type they had."""
    meta.only("dtype", "values")
    dtype, values = meta.text("dtype"), [scalar_of(meta.where, value) for value in meta.items("values")]
    if not _LABEL_TYPES.fullmatch(dtype):
        raise ModelFileError(f"{meta.where}.dtype must be a type of labels, got {reprlib.repr(dtype)}")
    if dtype.startswith("U") and int(dtype[1:]) * len(values) > _MOST_LETTERS:
        raise ModelFileError(f"{meta.where} takes more than {_MOST_LETTERS} letters")
    try:
        with np.errstate(all="ignore"):
            classes = np.array(values, dtype=dtype)
        again = np.unique(classes).tolist()
    except (TypeError, ValueError, OverflowError):
        again = []
    if len(values) < 2 or [(type(a), a) for a in again] != [(type(a), a) for a in values]:
        raise ModelFileError(
            f"{meta.where} must be two or more different labels of type {dtype} in ascending order, got "
            f"{reprlib.repr(values)}"
        )
    return classes


def scheme_meta(scheme: Scheme) -> Json:
    """A scheme, as the facts that it is compiled from."""
    attributes: list[Json] = [
        {"name": attribute.name, "groups": [plain(attribute.name, group) for group in attribute.groups]}
        for attribute in scheme.attributes
    ]
    strata: Json = None
    if scheme.strata is not None:
        names = list(scheme.strata.names)
        values = scheme.strata.values
        strata = {
            "names": [*names],
            "overlapping": values is None,
            "values": None if values is None else [plain("control_features", value) for value in values],
        }
    return {
        "criterion": plain("criterion", scheme.criterion),
        "attributes": attributes,
        "intersectional": bool(scheme.intersectional),
        "strata": strata,
        "compared": scheme.cells is not None,
        "contrast": scheme.contrast,
        "positive": scheme.positive,
    }


def scheme_of(meta: Fields, classes: NDArray[Any] | None) -> Scheme:
    """The scheme, compiled anew."""
    meta.only("criterion", "attributes", "intersectional", "strata", "compared", "contrast", "positive")
    criterion = value_of(f"{meta.where}.criterion", meta.get("criterion"))
    if not isinstance(criterion, Criterion):
        raise ModelFileError(f"{meta.where}.criterion must be a criterion, got {reprlib.repr(criterion)}")
    attributes = tuple(_attribute(Fields.of(f"{meta.where}.attributes", one)) for one in meta.items("attributes"))
    strata = None if meta.get("strata") is None else _strata(meta.inner("strata"))
    crossed, contrast = meta.flag("intersectional"), meta.text("contrast")
    check_known("contrast", contrast, ("pairs", "rest"))
    labels = () if classes is None else tuple(classes.tolist())
    positive = meta.whole("positive", least=-1, most=len(labels) - 1)
    if labels and positive < 0:
        raise ModelFileError(f"{meta.where}.positive must be the place of a class, got {positive}")
    if meta.flag("compared"):
        _check_size(meta.where, criterion, attributes, len(labels), strata)
    elif attributes:
        raise ModelFileError(f"{meta.where} has attributes that are not compared")
    found = Scheme(criterion, labels, positive, attributes, crossed, strata, _contrast(contrast))
    _ = found.cells
    return found


def _contrast(name: str) -> Contrast:
    return "rest" if name == "rest" else "pairs"


def _attribute(meta: Fields) -> Attribute:
    meta.only("name", "groups")
    groups = tuple(scalar_of(meta.where, group) for group in meta.items("groups"))
    if len(set(groups)) < len(groups):
        raise ModelFileError(f"{meta.where} names a group twice: {reprlib.repr(groups)}")
    return Attribute(meta.text("name"), groups)


def _strata(meta: Fields) -> Strata:
    meta.only("names", "overlapping", "values")
    names, overlapping = meta.texts("names"), meta.flag("overlapping")
    if not names or len(names) ** 2 > _MOST_WORK:
        raise ModelFileError(f"{meta.where} must be between 1 and {math.isqrt(_MOST_WORK)} strata, got {len(names)}")
    values = None if overlapping else [scalar_of(meta.where, value) for value in meta.items("values")]
    if values is not None and len(values) != len(names):
        raise ModelFileError(f"{meta.where} must have a value for each name, got {len(values)} for {len(names)}")
    return overlapping_strata(names) if overlapping else separate_strata(names, values)


def _patterns(criterion: Criterion, classes: int) -> int:
    """How many labels the criterion tells apart."""
    if criterion.labels is None:
        return 1
    return classes if criterion.bins is None else len(criterion.bins) + 1


def _check_size(
    where: str,
    criterion: Criterion,
    attributes: tuple[Attribute, ...],
    classes: int,
    strata: Strata | None,
) -> None:
    """Refuse what would take the compiler long, before it begins."""
    patterns = _patterns(criterion, classes)
    rows, columns = (1, 1) if strata is None else strata.member.shape
    sets = columns * (patterns if criterion.labels == "every" else 1)
    table = patterns * (rows + 1) * math.prod(len(attribute.groups) + 1 for attribute in attributes)
    comparisons = sets * sum(math.comb(len(attribute.groups), 2) for attribute in attributes)
    work = max(table * max(comparisons, sets), patterns**2 * rows * columns)
    if not attributes or comparisons > _MOST_COMPARISONS or work > _MOST_WORK:
        raise ModelFileError(
            f"{where} compares {len(attributes)} attributes in {comparisons} ways; a model file has at least one, and "
            f"at most {_MOST_COMPARISONS} ways"
        )
