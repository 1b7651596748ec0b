"""Matching of values in any spelling of data frames, files and JSON documents, and names of
numbers and bands.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import pairwise
from math import inf, isfinite
from typing import Any, TypeAlias

import numpy as np

from metrifair.problem.spelling import COMMA, MISSING_WORDS, NUMBER

Value: TypeAlias = bool | int | float | str | tuple[Any, ...] | None
"""A canonical value: equal to another one if and only if both are the same group, label or
stratum.
"""

_NUMBER = re.compile(NUMBER, re.ASCII)
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)
_BOOLEANS = {"true": True, "false": False}
_COMMA = re.compile(COMMA, re.ASCII)
_WHOLE = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_NO_THOUSANDS = re.compile(r"\s*[+-]?(0?,|\d*,(\d{1,2}|\d{4,})\D*$)", re.ASCII)
_BAND = re.compile(r"≤[^,]+|\((?P<low>[^,]+),[^,]+\]|>(?P<above>[^,]+)")


def canonical(value: object) -> Value:
    """The value by which a group, label or stratum is compared, independent of type and file
    format.

    - Missing values (None, NaN, NaT, pandas' NA) are None.
    - Booleans, and the text "true" or "false" in any case, are booleans. They equal 1 and 0, as in
      Python.
    - Numbers of any type, and text that writes one, are integers or floats: 1, 1.0, Decimal(1),
      "1" and "1.0" match. Text with leading zeros, a plus, underscores, or "nan" and "inf" stays
      text.
    - Dates, and text in ISO format, are ISO text. A datetime at midnight matches its date. A time
      zone is kept, as UTC.
    - A tuple, such as a combination of groups, is the tuple of its canonical parts.
    - Anything else is its text without surrounding spaces. Case counts.

    >>> [canonical(value) == 1 for value in (True, 1, 1.0, "1.0", np.bool_(True))]
    [True, True, True, True, True]
    >>> (canonical("True"), canonical("1"), canonical(np.float32(0.1)), canonical(" North "),
    ...  canonical("007"))
    (True, 1, 0.1, 'North', '007')
    >>> (canonical(date(2024, 5, 1)), canonical(np.datetime64("2024-05-01T00:00")),
    ...  canonical("2024-05-01 00:00:00"))
    ('2024-05-01', '2024-05-01', '2024-05-01')
    >>> canonical(float("nan")), canonical(("f", 2.0))
    (None, ('f', 2))
    """
    if is_missing_value(value):
        return None
    if isinstance(value, tuple):
        return tuple(map(canonical, value))
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | float | Decimal | np.number):
        return _number(value)
    if isinstance(value, date | np.datetime64):
        return _date(value)
    return _from_text(str(value).strip())


def canonical_values(values: Sequence[object]) -> tuple[Value, ...]:
    """The canonical value of each of several distinct values; those that would coincide are their
    own text instead.

    A column may contain "1" and "1.0", or "true" and "True", as different groups. They stay
    different.

    >>> canonical_values([0, 1.0]), canonical_values(["true", "True", "3"])
    ((0, 1), ('true', 'True', 3))
    """
    keys = [canonical(value) for value in values]
    times = Counter(keys)
    return tuple(
        key if times[key] == 1 else str(value) for key, value in zip(keys, values, strict=True)
    )


def place_among(value: object, candidates: Sequence[object]) -> int | None:
    """The place of a value among distinct candidates: the equal one, else the only one with its
    canonical value.

    >>> place_among("1", (0, 1)), place_among(True, ("false", "true")), place_among("yes", (0, 1))
    (1, 1, None)
    >>> place_among("1.0", ("1", "1.0")), place_among(1, ("1", "1.0"))
    (1, None)
    """
    if value in candidates:
        return list(candidates).index(value)
    matches = [
        place
        for place, candidate in enumerate(canonical_values(candidates))
        if candidate == canonical(value)
    ]
    if matches:
        return matches[0]
    return None


def is_number_text(text: str) -> bool:
    """Whether text writes a number, which no file and no column reads as a name.

    >>> [is_number_text(text) for text in ("0.5", "-.5", "1e3", " 7 ")]
    [True, True, True, True]
    >>> [is_number_text(text) for text in ("007", "1_000", "+1", "nan", "1,5", "")]
    [False, False, False, False, False, False]
    """
    return _NUMBER.fullmatch(text.strip()) is not None


def is_missing_value(value: object) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA.

    >>> [is_missing_value(value) for value in (None, float("nan"), np.datetime64("NaT"), "", 0)]
    [True, True, True, False, False]
    """
    if value is None:
        return True
    equal = value == value  # noqa: PLR0124  (missing values do not equal themselves; pandas' NA gives no boolean)
    return not (isinstance(equal, bool | np.bool_) and bool(equal))


def decimal_comma_in(values: Iterable[object]) -> str | None:
    """The first number with a decimal comma, if more than half of the texts are such numbers and
    the others are whole.

    None otherwise, and where every number has three digits after the comma: 1,234 may be a
    thousand.

    >>> decimal_comma_in(["7", "3,5", "0,25", "NA"])
    '3,5'
    >>> decimal_comma_in(["1,234", "7,000"]), decimal_comma_in(["3,5", "north"])
    (None, None)
    """
    commas = []
    known = 0
    for value in values:
        if is_missing_value(value) or (
            isinstance(value, str) and value.strip().lower() in MISSING_WORDS
        ):
            continue
        known += 1
        if isinstance(value, str) and _COMMA.match(value):
            commas.append(value)
        elif not isinstance(value, str) or not _WHOLE.fullmatch(value):
            return None
    if len(commas) > known / 2 and any(map(_NO_THOUSANDS.match, commas)):
        return commas[0]
    return None


def number_name(number: float) -> str:
    """A number as people write it.

    >>> number_name(25.0), number_name(1234567.0), number_name(0.1 + 0.2)
    ('25', '1234567', '0.3')
    """
    if float(number).is_integer() and abs(number) < 1e15:
        return f"{number:.0f}"
    return f"{number:.6g}"


def band_names(cuts: Iterable[float]) -> tuple[str, ...]:
    """The names of the bands between cuts, each of which includes its upper cut.

    >>> band_names([25.0, 40.5])
    ('≤25', '(25,40.5]', '>40.5')
    """
    names = [number_name(cut) for cut in cuts]
    return f"≤{names[0]}", *(f"({low},{high}]" for low, high in pairwise(names)), f">{names[-1]}"


def band_start(name: object) -> float | None:
    """The lower end of a band by its name; None if the value does not name a band.

    >>> band_start("≤25"), band_start("(25,40.5]"), band_start(">40.5"), band_start("(a,b]")
    (-inf, 25.0, 40.5, None)
    """
    band = None
    if isinstance(name, str):
        band = _BAND.fullmatch(name)
    if band is None:
        return None
    try:
        return float(band["low"] or band["above"] or -inf)
    except ValueError:
        return None


def _number(value: Any) -> int | float | str:
    """An integer where the value is one.

    A float32 has the digits that it prints, as it would have in a file.
    """
    if not isinstance(value, float | Decimal | np.floating):
        return int(value)
    if not isfinite(value):
        return str(value)
    if value == int(value):
        return int(value)
    return float(str(value))


def _from_text(text: str) -> Value:
    if is_number_text(text):
        return _number(Decimal(text))
    if _DATE.fullmatch(text):
        try:
            return _date(datetime.fromisoformat(text))
        except ValueError:  # as of February 30
            return text
    return _BOOLEANS.get(text.lower(), text)


def _date(value: date | np.datetime64) -> str:
    if isinstance(value, np.datetime64):
        return _date(value.astype("datetime64[us]").item())
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is not None:
        return value.astimezone(UTC).isoformat()
    if value.time() == time():
        return value.date().isoformat()
    return value.isoformat()


def letters(name: str) -> str:
    """A name without spaces and case.

    >>> letters(" Not White")
    'notwhite'
    """
    return "".join(name.split()).casefold()
