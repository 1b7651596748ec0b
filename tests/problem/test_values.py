"""Values match by what they stand for, however a file or a library spells them."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from tests.seams.problem import canonical, canonical_values, is_missing_value, place_among

SAME = {
    "one": [
        1,
        1.0,
        True,
        Decimal(1),
        Decimal("1.00"),
        np.int8(1),
        np.float16(1),
        np.bool_(True),
        "1",
        "1.0",
        " 1 ",
    ],
    "true": [True, "true", "True", "TRUE", np.bool_(True), 1],
    "a fraction": [0.1, np.float32(0.1), np.float64(0.1), Decimal("0.1"), "0.1", "1e-1", "0.10"],
    "a half": [0.5, ".5", "0.50", "5e-1"],
    "a long integer": [2**70, str(2**70), Decimal(2**70)],
    "a date": [
        date(2024, 5, 1),
        datetime(2024, 5, 1),
        np.datetime64("2024-05-01"),
        np.datetime64("2024-05-01T00:00:00", "ns"),
        pd.Timestamp("2024-05-01"),
        "2024-05-01",
        "2024-05-01 00:00:00",
        "2024-05-01T00:00:00.000000",
    ],
    "a moment": [
        datetime(2024, 5, 1, 12, 30),
        pd.Timestamp("2024-05-01 12:30"),
        np.datetime64("2024-05-01T12:30"),
        "2024-05-01T12:30:00",
        "2024-05-01 12:30",
    ],
    "a moment in a time zone": [
        datetime(2024, 5, 1, 12, tzinfo=UTC),
        "2024-05-01T12:00:00Z",
        "2024-05-01 14:00:00+02:00",
    ],
    "text": ["north", " north", np.str_("north ")],
    "missing": [
        None,
        float("nan"),
        np.float32("nan"),
        np.datetime64("NaT"),
        pd.NaT,
        pd.NA,
        Decimal("NaN"),
    ],
    "an intersection": [("f", 1), ("f", "1.0"), ("f ", True)],
}
DIFFERENT = [
    "007",
    "7",
    "1_000",
    "1000",
    "nan",
    "inf",
    "",
    "North",
    "north",
    "2024-02-30",
    "+1",
    "1",
    0,
    2,
    None,
]


@pytest.mark.parametrize("values", SAME.values(), ids=SAME)
def test_spellings_of_a_value_match(values: list[object]) -> None:
    assert len({canonical(value) for value in values}) == 1


def test_different_values_stay_different() -> None:
    assert len({canonical(value) for value in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.parametrize("values", SAME.values(), ids=SAME)
def test_a_canonical_value_is_its_own_and_survives_json(values: list[object]) -> None:
    found = canonical(values[0])
    assert canonical(found) == found
    if not isinstance(found, tuple):
        assert canonical(json.loads(json.dumps(found))) == found


def test_values_that_would_coincide_within_a_column_keep_their_text() -> None:
    assert canonical_values(["1", "1.0", "2"]) == ("1", "1.0", 2)
    assert canonical_values([False, True]) == canonical_values(["false", "true"]) == (0, 1)


def test_a_value_is_looked_up_by_equality_before_its_canonical_value() -> None:
    assert place_among("True", ("true", "True")) == 1
    assert place_among(True, ("true", "True")) is None  # which of the two is not known
    assert place_among(np.int64(3), ("1", "3")) == 1
    assert place_among("4", (1, 3)) is None


def test_only_missing_values_are_missing() -> None:
    assert all(map(is_missing_value, SAME["missing"]))
    assert not any(map(is_missing_value, ["", "nan", "None", 0, False, np.array([1, 2]).sum()]))
