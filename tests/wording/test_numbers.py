"""Texts of numbers have the same minus sign."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.seams.figures import Interval
from tests.seams.wording import (
    constant_text,
    figure_text,
    interval_text,
    number_text,
    percent_text,
    points_text,
    score_text,
    strength_texts,
)


@pytest.mark.parametrize("value", [-0.25, -3.0, -12345.6, -7.25e12, -4.2e20])
@pytest.mark.parametrize(
    "show",
    [
        constant_text,
        figure_text,
        number_text,
        percent_text,
        points_text,
        score_text,
        lambda value: score_text(value, 0.01, is_place=True),
        lambda value: strength_texts([value])[0],
        lambda value: interval_text(Interval(value, 1.0)),
    ],
)
def test_negative_numbers_have_a_minus_sign_and_no_hyphen(
    show: Callable[[float], str], value: float
) -> None:
    text = show(value)
    assert text.startswith("−")
    assert "-" not in text
