"""Checks of numbers that a user typed."""

from __future__ import annotations

import numpy as np
import pytest

from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.support import check_integer, check_number


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, 1.1, True, "1", None, np.array([0.5])])
def test_numbers_out_of_range(value: object, refused: Refusals) -> None:
    with refused(DataError):
        check_number("alpha", value, low=0, high=1)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int64(1)])
def test_numbers_in_range(value: object) -> None:
    check_number("alpha", value, low=0, high=1)


def test_an_open_bound() -> None:
    with pytest.raises(DataError, match="above 0"):
        check_number("epsilon", 0.0, low=0, low_open=True)


@pytest.mark.parametrize("value", [np.nan, 1.5, 2.0, 0, True, "3", None])
def test_integers_out_of_range(value: object, refused: Refusals) -> None:
    with refused(DataError):
        check_integer("rounds", value, least=1)


@pytest.mark.parametrize("value", [1, 7, np.int64(3)])
def test_integers_in_range(value: object) -> None:
    check_integer("rounds", value, least=1)
