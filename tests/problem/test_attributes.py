"""Which sensitive features are numbers, and what becomes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair.errors import DataError, MetrifairWarning
from tests.seams.problem import (
    Inputs,
    candidate_cuts,
    coded_columns,
    in_bands,
    make_problem,
    numbers_among,
    problem_with_scheme,
    quantile_cuts,
)

AGES = np.append(np.arange(20, 79), 20)
TABLE = {"age": AGES, "sex": np.where(AGES % 2, "f", "m"), "region": AGES % 21}


@pytest.mark.parametrize(
    ("table", "continuous", "names"),
    [
        (TABLE, "auto", ["age", "region"]),
        (TABLE, ["age"], ["age"]),
        (TABLE, False, []),
        ({"age": AGES}, True, ["age"]),
        ({"flag": AGES % 2 == 0, "text": AGES.astype(str), "few": AGES % 20}, "auto", []),
        ({"id": np.arange(1, 101), "income": np.arange(100) * 10}, "auto", ["income"]),
        ({"age": np.array([*AGES.tolist(), None], dtype=object)}, "auto", ["age"]),
        ({"age": np.array([*AGES.tolist(), 1, True], dtype=object)}, "auto", []),
    ],
)
def test_numbers_with_more_than_twenty_values_are_numbers_unless_told(
    table: dict[str, Any], continuous: Any, names: list[str]
) -> None:
    assert numbers_among(coded_columns("people", table), continuous) == names


def test_what_was_decided_is_said_once_with_what_may_be_codes() -> None:
    with pytest.warns(MetrifairWarning) as told:
        make_problem(
            Inputs(sensitive_features={"age": AGES + 0.5, "region": AGES}), continuous="auto"
        )
    (one,) = told
    assert str(one.message) == (
        "'age' (59 different values) and 'region' (59 different values) are taken as numbers: "
        "unfairness is how much "
        "scores depend on them, not a gap between groups; integers in 'region' may be codes of "
        "groups; pass "
        "continuous=['age', 'region'] if the values are numbers, or pass continuous=False if every "
        "value is a group, "
        "or cut them into groups"
    )


def test_a_number_makes_one_dependence_in_every_set_and_no_groups() -> None:
    y = AGES % 3 == 0
    problem = make_problem(
        Inputs(y, TABLE), criterion="equalized_odds", continuous=["age", "region"]
    )
    assert [str(one) for one in problem.comparisons] == [
        "age, label=False",
        "age, label=True",
        "sex 'f' against 'm', label=False",
        "sex 'f' against 'm', label=True",
        "region, label=False",
        "region, label=True",
    ]
    assert len(np.unique(problem.cell)) == 4  # by label and sex
    assert problem.attribute_values[:3].tolist() == [[20, 1, 20], [21, 0, 0], [22, 1, 1]]


def test_whose_number_is_not_known_counts_for_nothing_and_later_rows_are_read_alike() -> None:
    problem = make_problem(
        Inputs(sensitive_features={"age": [20.0, None, 41.5, 30.0]}), continuous=True
    )
    (side,) = problem.sides()
    assert side.rows.tolist() == [0, 2, 3]
    later = problem_with_scheme(
        Inputs(sensitive_features={"age": [1000.0, np.nan]}), problem.scheme
    )
    assert later.cell.tolist() == [0, 1]
    assert later.numbers.ravel().tolist() == [1000.0, 0.0]
    assert problem.take(np.array([3])).numbers.tolist() == [[30.0]]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (
            TABLE,
            {"continuous": ["income"]},
            "continuous names 'income', which is none of the sensitive features",
        ),
        (
            TABLE,
            {"continuous": True},
            "sex must contain numbers, as the columns that are continuous",
        ),
        (
            TABLE,
            {"continuous": "all"},
            "continuous must be 'auto', True, False or a list of columns, got 'all'",
        ),
        (TABLE, {"continuous": "age"}, "or a list of columns, got 'age'; pass continuous=['age']"),
        (
            TABLE,
            {"continuous": 3},
            "continuous must be 'auto', True, False or a list of columns, got 3",
        ),
        (
            TABLE,
            {"continuous": ["age"], "intersectional": True},
            "intersectional crosses groups, and 'age' is a number",
        ),
        (
            {"age": [1.0, np.inf]},
            {"continuous": True},
            "age contains infinite values, or numbers beyond 1e",
        ),
        (
            {"age": [2**60 + 1, 3]},
            {"continuous": True},
            "age contains integers that floating-point numbers do not dist",
        ),
    ],
)
def test_what_cannot_be_a_number_is_said(table, options, message: str) -> None:
    with pytest.raises(DataError) as error:
        make_problem(Inputs(sensitive_features=table), **options)
    assert message in str(error.value)


def test_cuts_leave_five_percent_on_either_side() -> None:
    values = np.arange(1000.0)
    for cuts in (candidate_cuts(values), candidate_cuts(values, most=7)):
        share = np.searchsorted(values, cuts, side="right") / 1000
        assert share.min() >= 0.05
        assert share.max() <= 0.95
    assert len(candidate_cuts(values)) == 100
    assert candidate_cuts(np.array([0.0] * 99 + [1.0])).tolist() == [0.0]
    assert len(candidate_cuts(np.zeros(5))) == 0
    assert candidate_cuts(np.array([0.0, 1.0, 2.0]), np.array([0.01, 0.98, 0.01])).tolist() == [0.0]


def test_bands_hold_as_many_rows_each_and_are_compared_below_and_above() -> None:
    generator = np.random.default_rng(0)
    age = generator.normal(size=1000)
    problem = in_bands(make_problem(Inputs(sensitive_features={"age": age}), continuous=True), 5)
    assert np.bincount(problem.groups[:, 0]).tolist() == [200] * 5
    for one, cut in zip(problem.comparisons, quantile_cuts(age, None, 5), strict=True):
        below = np.isin(problem.cell, one.left)
        assert (below == (age <= cut)).all()
        assert (np.isin(problem.cell, one.right) == ~below).all()


def test_numbers_that_few_first_rows_made_groups_of_are_told_apart_from_names() -> None:
    scheme = make_problem(
        Inputs(sensitive_features={"age": [20, 30, 40], "sex": list("fmf")}), continuous="auto"
    ).scheme
    for later, advised in (
        ({"age": [20, 31], "sex": list("fm")}, True),
        ({"age": [20, 30], "sex": list("fx")}, False),
    ):
        with pytest.raises(DataError, match="which is none of") as error:
            problem_with_scheme(Inputs(sensitive_features=later), scheme)
        assert (
            "say from the first rows on that it is a number (continuous)" in str(error.value)
        ) == advised


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 8), min_size=2, max_size=60), st.integers(1, 12), st.integers(2, 6))
def test_bands_have_enough_rows_wherever_two_can(values: list[int], least: int, bands: int) -> None:
    number = np.array(values, dtype=np.float64)
    cuts = quantile_cuts(number, np.where(number > 4, 9.0, 1.0), bands, least=least)
    sizes = np.bincount(np.searchsorted(cuts, number))
    smaller = [min((number <= one).sum(), (number > one).sum()) for one in np.unique(number)[:-1]]
    assert (len(cuts) > 0) == (len(smaller) > 0)
    assert len(cuts) < bands
    if smaller and max(smaller) >= least:
        assert sizes.min() >= least
    elif smaller:
        assert sizes.min() == max(smaller)


@pytest.mark.filterwarnings("ignore:.*is taken as a number")
def test_a_column_of_categories_is_no_number() -> None:
    codes = pd.Series(np.arange(600) % 50, name="region")

    def are_numbers(table: Any) -> list[bool]:
        scheme = make_problem(Inputs(None, table), compared=False, continuous="auto").scheme
        return [one.is_number for one in scheme.attributes]

    assert are_numbers(codes) == [True]
    assert are_numbers(codes.astype("category")) == [False]
    assert are_numbers(codes.astype("category").rename(None)) == [False]
    assert are_numbers(pd.DataFrame({"region": codes.astype("category"), "age": codes + 0.5})) == [
        False,
        True,
    ]
