"""Sensitive and control features -> codes of groups and strata, and numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from metrifair.errors import DataError, MetrifairWarning, Remedy
from metrifair.problem.cells import Attribute
from metrifair.problem.criteria import Strata, separate_strata
from metrifair.problem.tables import (
    MOST_CLASSES,
    UNKNOWN,
    CodedColumn,
    CodedColumns,
    ColumnArray,
    Table,
    as_array,
    can_be_number,
    check_lengths,
    coded_columns,
    columns,
    distinct,
    is_missing,
)
from metrifair.problem.values import band_names
from metrifair.support.arrays import Booleans, Floats, Integers

Continuous: TypeAlias = "Literal['auto'] | bool | Sequence[str]"
"""Which sensitive features are numeric: columns, all or none; or "auto" to decide by their
values.
"""

Cuts: TypeAlias = "Mapping[str, Sequence[float]] | Sequence[float] | None"
"""The cuts of numbers into groups (≤ and >): by column, or those of the only column."""

_LARGEST = 1e150  # number whose square is finite


class Groups(NamedTuple):
    """Group codes of each sample, one column per attribute, -1 where the group is not known."""

    codes: Integers  # (n, attributes); of a number 0
    attributes: tuple[Attribute, ...]
    # (n, attributes), 0 if not known or not a number; None: no numbers
    numbers: Floats | None = None


def group_codes(
    sensitive_features: Table | CodedColumns,
    *,
    intersectional: bool = False,
    attributes: Sequence[Attribute] | None = None,
    continuous: Continuous = False,
) -> Groups:
    """Groups by attribute; ``intersectional`` crosses all attributes into one; ``attributes`` fixes
    the codes.

    >>> groups = group_codes(["m", "f", None, "m"])
    >>> groups.codes.ravel()
    array([ 1,  0, -1,  1])
    >>> groups.attributes
    (Attribute(name='sensitive_features', groups=('f', 'm'), is_number=False, cuts=(), columns=(),
    parts=()),)
    """
    features = coded_columns("sensitive_features", sensitive_features)
    crossed = tuple(features) if intersectional and len(features) > 1 else ()
    numbers = numbers_among(features, continuous) if attributes is None else []
    if crossed and numbers:
        raise DataError(
            f"crosses groups, and {numbers[0]!r} is a number",
            argument="intersectional",
            remedy=["cut it into groups", Remedy("intersectional", leave_out=True)],
        )
    parts: dict[object, tuple[object, ...]] = {}
    if crossed:
        column, parts = _cross(" x ".join(crossed), features)
        features = {column.name: column}
    if attributes is None:
        attributes = [
            Attribute(name, (), is_number=True)
            if name in numbers
            else Attribute(name, column.levels())
            for name, column in features.items()
        ]
        if crossed:
            values = tuple(parts[group] for group in attributes[0].groups)
            attributes = [attributes[0]._replace(columns=crossed, parts=values)]
    elif len(attributes) != len(features):
        raise DataError(
            f"sensitive_features has {len(features)} column(s), {len(attributes)} were declared "
            "before"
        )
    return _encode_groups(attributes, list(features.values()))


def _encode_groups(attributes: Sequence[Attribute], features: Sequence[CodedColumn]) -> Groups:
    rows = len(features[0].column)
    codes = np.empty((rows, len(features)), dtype=np.int64)
    numbers = None
    if any(attribute.is_number for attribute in attributes):
        numbers = np.zeros((rows, len(features)))
    for place, (attribute, column) in enumerate(zip(attributes, features, strict=True)):
        if numbers is not None and attribute.is_number:
            codes[:, place] = np.where(column.missing, UNKNOWN, 0)
            numbers[~column.missing, place] = _numbers(attribute.name, column.present)
        else:
            codes[:, place] = _group_places(attribute, column)
    return Groups(codes, tuple(attributes), numbers)


def numbers_among(
    features: CodedColumns, continuous: Continuous, *, rows: int | None = None
) -> list[str]:
    """The names of the numeric columns: those passed, or by default those with many distinct
    numbers.

    ``rows`` is the number of rows behind the values, if they are counts.

    >>> people = {"age": np.arange(60) // 2, "sex": np.arange(60) % 2, "id": np.arange(60)}
    >>> numbers_among(coded_columns("people", people), "auto")
    ['age']
    """
    if isinstance(continuous, bool | np.bool_):
        if continuous:
            return list(features)
        return []
    if continuous == "auto":
        return [
            name
            for name, column in features.items()
            if _is_numeric(column) and _is_measurement(column, rows)
        ]
    if isinstance(continuous, str) or not isinstance(continuous, Iterable):
        raise DataError(
            "must be 'auto', True, False or a list of columns",
            argument="continuous",
            received=continuous,
            remedy=Remedy("continuous", [continuous]) if continuous in features else None,
        )
    names = [str(name) for name in continuous]
    strange = [name for name in names if name not in features]
    if strange:
        raise DataError(
            f"names {strange[0]!r}, which is none of the sensitive features {list(features)}",
            argument="continuous",
        )
    return names


def cuts_by_column(cuts: Cuts, names: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """The cuts of each column that is cut, ascending.

    >>> cuts_by_column([60, 25], ["age"]), cuts_by_column({"age": [40]}, ["sex", "age"])
    ({'age': (25.0, 60.0)}, {'age': (40.0,)})
    """
    if cuts is None:
        return {}
    if not names:
        raise DataError(
            "cannot be used: groups with probabilities have no column of numbers", argument="cuts"
        )
    if not isinstance(cuts, Mapping):
        if len(names) != 1:
            raise DataError(
                "must name the column that is cut, where there are several",
                argument="cuts",
                received=cuts,
                remedy=Remedy(
                    "cuts", detail=f", with one of the columns {', '.join(map(repr, names))}"
                ),
            )
        cuts = {names[0]: cuts}
    for name in cuts:
        if name not in names:
            raise DataError(
                f"names {name!r}, which is none of the sensitive features {list(names)}",
                argument="cuts",
            )
    return {name: _ascending_cuts(name, values) for name, values in cuts.items()}


def _ascending_cuts(name: str, values: Iterable[float]) -> tuple[float, ...]:
    try:
        numbers = sorted({float(cut) for cut in values})
    except (TypeError, ValueError):
        numbers = []
    if not numbers or not np.isfinite(numbers).all():
        raise DataError(
            f"the cuts of {name!r} must be finite numbers, at least one, got {values!r}"
        )
    return tuple(numbers)


def in_groups(sensitive_features: Table, cuts: Cuts) -> dict[str, ColumnArray]:
    """The columns; those that are cut become names of groups.

    >>> in_groups({"age": np.array([20, 40, 25, 70])}, [25, 60])["age"].tolist()
    ['≤25', '(25,60]', '≤25', '>60']
    """
    features = columns("sensitive_features", sensitive_features)
    groups = dict(features)
    for name, edges in cuts_by_column(cuts, list(features)).items():
        present = ~is_missing(features[name])
        numbers = as_array(name, features[name][present]).astype(np.float64)
        names = np.array(band_names(edges), dtype=object)
        groups[name] = np.full(len(present), None, dtype=object)
        groups[name][present] = names[np.searchsorted(edges, numbers)]
    return groups


class NumberFacts(NamedTuple):
    """The columns of groups that are taken as numbers, and what else they may be."""

    columns: Mapping[str, int]  # their different values
    integers: Sequence[str]  # of these columns, which may be codes of groups
    shares: Sequence[str]  # from 0 to 1, which may be scores


def number_facts(features: CodedColumns, numbers: Sequence[str]) -> NumberFacts:
    """What is to be known of columns that are taken as numbers."""
    columns = {name: features[name] for name in numbers}
    return NumberFacts(
        {name: len(column.values) for name, column in columns.items()},
        [name for name, column in columns.items() if (column.present % 1 == 0).all()],
        [name for name, column in columns.items() if _are_shares(column.present)],
    )


def numbers_warning(facts: NumberFacts) -> MetrifairWarning:
    """The warning that names the columns taken as numbers, with remedies.

    >>> print(numbers_warning(NumberFacts({"age": 70}, ["age"], [])).problem)
    'age' (70 different values) is taken as a number: unfairness is how much scores depend on it,
    not a gap between groups; integers in 'age' may be codes of groups
    """
    listed = " and ".join(
        f"{name!r} ({count:,} different values)" for name, count in facts.columns.items()
    )
    taken = "is taken as a number"
    them = "it"
    if len(facts.columns) > 1:
        taken = "are taken as numbers"
        them = "them"
    perhaps = ""
    if facts.integers:
        named = " and ".join(map(repr, facts.integers))
        perhaps += f"; integers in {named} may be codes of groups"
    if facts.shares:
        named = " and ".join(map(repr, facts.shares))
        perhaps += f"; {named} from 0 to 1 may be scores, not groups"
    meaning = f"unfairness is how much scores depend on {them}, not a gap between groups"
    return MetrifairWarning(
        f"{listed} {taken}: {meaning}{perhaps}",
        remedy=[*remedies_for_numbers(list(facts.columns)), f"cut {them} into groups"],
    )


def remedies_for_numbers(numbers: Sequence[str]) -> list[Remedy]:
    """How to state what numbers in columns of groups are."""
    # a column without a name
    value = True if list(numbers) == ["sensitive_features"] else list(numbers)
    return [
        Remedy("continuous", value, " if the values are numbers"),
        Remedy("continuous", False, " if every value is a group"),
    ]


def _are_shares(numbers: ColumnArray) -> bool:
    return bool((numbers >= 0).all() and (numbers <= 1).all())


def _is_numeric(column: CodedColumn) -> bool:
    kind = column.column.dtype.kind
    if kind != "O":
        return kind in "iuf"
    if not column.values or not all(map(_is_number, column.values)):
        return False
    return all(map(_is_number, column.present.tolist()))  # where a boolean equals a number


def _is_number(value: object) -> bool:
    return isinstance(value, Real | Decimal) and not isinstance(value, bool)


def _is_measurement(column: CodedColumn, rows: int | None) -> bool:
    """Whether there are many different numbers, which are not row numbers: consecutive
    integers, each once.
    """
    values = column.values
    if len(values) <= MOST_CLASSES:
        return False
    once = len(values) == (len(column.present) if rows is None else rows)
    if not once or len(values) != float(max(values)) - float(min(values)) + 1:
        return True
    return any(value % 1 != 0 for value in values)


def _numbers(name: str, column: ColumnArray) -> Floats:
    try:
        values = as_array(name, column).astype(np.float64)
    except DataError:
        strange = [value for value in column.tolist() if not can_be_number(value)]
        if not strange:  # integers that floats would round
            raise
        raise DataError(
            f"{name} must contain numbers, as the columns that are continuous or as the first rows "
            "did",
            received=strange[0],
            remedy=Remedy("continuous", detail=", the columns of numbers, if others hold groups"),
        ) from None
    if not (np.abs(values) < _LARGEST).all():
        raise DataError(
            f"{name} contains infinite values, or numbers beyond {_LARGEST:g}; leave those rows "
            "out, or rescale it"
        )
    return values


def _group_places(attribute: Attribute, column: CodedColumn) -> Integers:
    """Places among the groups; new numbers raise an error that suggests a numeric attribute."""
    try:
        return column.places(attribute.groups, name=attribute.name)
    except DataError as error:
        if not _is_numeric(column):
            raise
        raise DataError(
            f"{error}, the groups that the first rows had or that were declared; declare all of "
            "them (groups=), or "
            "say from the first rows on that it is a number (continuous)"
        ) from None


def _cross(
    name: str, features: CodedColumns
) -> tuple[CodedColumn, dict[object, tuple[object, ...]]]:
    """One column of joint names, missing where any part is; and the joined values by name."""
    parts = list(features.values())
    for part in parts:
        check_lengths(part.name, part.values)
    combination, last_rows = _combinations(parts)
    joined = [tuple(part.column[row] for part in parts) for row in last_rows.tolist()]
    names = list(map(_joint_name, joined))
    by_name: dict[object, tuple[object, ...]] = dict(zip(names, joined, strict=True))
    place = {joint: code for code, joint in enumerate(by_name)}
    # the last place is that of code -1
    codes = np.array([*(place[joint] for joint in names), UNKNOWN], dtype=np.int64)[combination]
    column = np.array([*by_name, None], dtype=object)[codes]
    return CodedColumn(name, column, (list(by_name), codes)), by_name


def _combinations(parts: Sequence[CodedColumn]) -> tuple[Integers, Integers]:
    """The combination of each row, -1 where a part is missing, and the last row of each one."""
    present: slice | Booleans = slice(None)
    missing = np.logical_or.reduce([part.missing for part in parts])
    if missing.any():
        present = ~missing
    combination = parts[0].codes[present]
    for part in parts[1:]:
        # numbered again each time, or many columns would have more combinations than integers
        combination = distinct(combination * len(part.values) + part.codes[present])[1]
    last_rows = np.zeros(combination.max(initial=-1) + 1, dtype=np.int64)
    last_rows[combination] = np.arange(len(missing))[present]
    if not missing.any():
        return combination, last_rows
    of_row = np.full(len(missing), UNKNOWN, dtype=np.int64)
    of_row[present] = combination
    return of_row, last_rows


def _joint_name(row: Sequence[object]) -> str:
    return " x ".join(map(_part, row))


def _part(value: object) -> str:
    """The name of a value within a joint one: the same for 1 and 1.0; in quotes if it contains the
    separator.

    >>> _joint_name(["a x b", 1]), _joint_name(["a", "b x c", 1.0])
    ('"a x b" x 1', 'a x "b x c" x 1')
    """
    is_integer = isinstance(value, float | np.floating) and float(value).is_integer()
    text = str(int(value)) if is_integer else str(value)  # type: ignore[call-overload]
    ambiguous = text.startswith('"') or (text != "x" and " x " in f" {text} ")
    if ambiguous:
        return json.dumps(text, ensure_ascii=False)
    return text


def stratum_codes(
    control_features: Table | CodedColumns, strata: Strata | None = None
) -> tuple[Integers, Strata]:
    """Strata of each sample: every value of a column is one, whatever its type, and each
    combination of several.

    ``strata`` are those of earlier samples: values are matched as those of groups are.

    >>> first, strata = stratum_codes([1, 2, 1])
    >>> strata.names, stratum_codes([2.0, None], strata)[0]
    (('control_features=1', 'control_features=2'), array([ 1, -1]))
    >>> stratum_codes([True, False])[1].names
    ('control_features=False', 'control_features=True')
    """
    features = coded_columns("control_features", control_features)
    name = " and ".join(features)
    parts = None
    column = next(iter(features.values()))
    if len(features) > 1:
        column, parts = _cross(name, features)
    if strata is None:
        values = column.levels()
        if not values:
            if len(features) > 1:
                raise DataError(
                    f"no row has a value in each of {name}", remedy="leave one of them out"
                )
            raise DataError(f"{name} contains missing values only", remedy="leave it out")
        strata = strata_by_values(
            list(features), [(level,) if parts is None else parts[level] for level in values]
        )
    return column.places(strata.values or ()), strata


def strata_by_values(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Strata:
    """One stratum for each combination of values of these columns.

    >>> strata_by_values(["region", "level"], [("north", 1), ("south", 2)]).names
    ('region=north,level=1', 'region=south,level=2')
    """
    conditions = [tuple(zip(columns, row, strict=True)) for row in rows]
    names = [",".join(f"{column}={value}" for column, value in pairs) for pairs in conditions]
    return separate_strata(
        names, [row[0] if len(row) == 1 else _joint_name(row) for row in rows], conditions
    )
