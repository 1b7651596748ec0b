"""What probabilities of groups must be, and who takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from metrifair import DataError, GroupProbabilities, unfairness
from tests.seams.problem import (
    Inputs,
    problem_by_membership,
    problem_with_probabilities,
    problem_with_scheme_and_probabilities,
    row_probabilities,
)

HALF = [0.5, 0.25, 1.0]
TABLE = {"a": HALF, "b": [1 - one for one in HALF]}
SCORES = [0.1, 0.5, 0.9]

REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "beyond 1": (
        lambda: GroupProbabilities({"a": [1.5, 0.5], "b": [-0.5, 0.5]}, attribute="race"),
        r"the probabilities of race must lie in \[0, 1\] with a sum of 1 in each row.*'a': 1.5",
    ),
    "another sum": (
        lambda: GroupProbabilities({"a": [0.5, 0.5], "b": [0.5, 0.52]}, attribute="race"),
        "got {'a': 0.5, 'b': 0.52}",
    ),
    "partly missing": (
        lambda: GroupProbabilities({"a": [0.5, np.nan], "b": [0.5, 1.0]}, attribute="race"),
        "or be missing in the whole row",
    ),
    "text": (
        lambda: GroupProbabilities({"a": ["x"], "b": ["y"]}, attribute="race"),
        "must contain numbers",
    ),
    "a name twice": (
        lambda: GroupProbabilities(["p", "p"], attribute="race"),
        "table must name each column once, got 'p'",
    ),
    "two spellings of a name": (
        lambda: GroupProbabilities({1: HALF, "1": HALF}, attribute="race"),
        "table must name each column once, got '1'",
    ),
    "one group": (
        lambda: GroupProbabilities({"a": [1.0]}, attribute="race"),
        "a column for each of two groups",
    ),
    "no attribute": (lambda: GroupProbabilities(TABLE, attribute=""), "attribute must be the name"),
    "other labels": (
        lambda: GroupProbabilities(TABLE, attribute="race", with_labels="yes"),  # type: ignore[arg-type]
        "with_labels must be one of 'included', 'independent'",
    ),
    "two corrections": (
        lambda: GroupProbabilities(
            TABLE, attribute="race", known_groups=["a"] * 3, confusion=np.eye(2)
        ),
        "known_groups and confusion correct the same figures",
    ),
    "unknown group": (
        lambda: GroupProbabilities(TABLE, attribute="race", known_groups=["a", None, "c"]),
        r"known_groups must be missing or one of the groups \['a', 'b'\], got 'c'",
    ),
    "other rows": (
        lambda: GroupProbabilities(TABLE, attribute="race", cells=[1, 2]),
        "the same length",
    ),
    "soft confusion": (
        lambda: GroupProbabilities(TABLE, attribute="race", confusion=np.eye(2)),
        "confusion needs a table of observed groups",
    ),
    "confusion of another shape": (
        lambda: GroupProbabilities(np.eye(2), attribute="race", confusion=[[1.0]]),
        r"2 rows of 2 probabilities",
    ),
    "confusion with another sum": (
        lambda: GroupProbabilities(np.eye(2), attribute="race", confusion=[[0.9, 0.2], [0.1, 0.9]]),
        "with a sum of 1",
    ),
    "confusion that says nothing": (
        lambda: GroupProbabilities(
            np.eye(2), attribute="race", confusion=[[0.52, 0.48], [0.48, 0.52]]
        ),
        "has condition number 25, above 20",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_table_of_probabilities_is_refused(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(DataError, match=message):
        make()


def test_names_of_columns_are_checked_when_the_file_is_read() -> None:
    assert GroupProbabilities(["p_a", "p_b"], attribute="race").table == ["p_a", "p_b"]


def test_sums_may_miss_1_by_rounding_and_are_1_then() -> None:
    found = row_probabilities(
        GroupProbabilities(np.array([[0.2, 0.3, 0.4999995]]), attribute="race")
    )
    assert found.values.sum() == pytest.approx(1, abs=1e-15)


def test_later_rows_have_the_groups_of_the_first_ones_in_any_order() -> None:
    first = problem_with_probabilities(
        Inputs(sensitive_features=GroupProbabilities(TABLE, attribute="race"))
    )
    table = {"b": [0.5, np.nan, 1.0], "a": [0.5, np.nan, 0.0]}
    given = Inputs(
        sensitive_features=GroupProbabilities(table, attribute="race"),
        sample_weight=[2.0, 1.0, 1.0],
    )
    later = problem_with_scheme_and_probabilities(given, first.scheme)
    assert later.scheme is first.scheme
    assert later.groups.ravel().tolist() == [0, -1, 1]
    entries = later.entries
    assert later.row_of_entry.tolist() == [0, 0, 1, 2]
    assert entries.groups.ravel().tolist() == [0, 1, -1, 1]
    assert entries.weight is not None
    assert entries.weight.tolist() == [1.0, 1.0, 1.0, 1.0]
    assert later.cell_sizes.tolist() == [0.5, 1.5, 1.0]


def test_a_row_counts_for_each_group_that_it_may_belong_to() -> None:
    given = GroupProbabilities(
        {"a": [0.25, np.nan, 0.0, 1.0], "b": [0.75, np.nan, 1.0, 0.0]}, attribute="race"
    )
    problem = problem_by_membership(
        Inputs(sensitive_features=given, sample_weight=[2.0, 3.0, 0.0, 5.0])
    )
    entries = zip(
        problem.kept_rows(np.arange(4)), problem.groups[:, 0], problem.weight, strict=True
    )
    assert sorted(map(tuple, entries)) == [(0, 0, 0.5), (0, 1, 1.5), (1, -1, 3.0), (3, 0, 5.0)]
    assert problem.members is not None
    assert problem.members.share.tolist() == [0.25, 0.75, 1.0, 1.0]


@pytest.mark.parametrize(
    "criterion", ["equal_opportunity", "predictive_equality", "equalized_odds", "risk_parity"]
)
def test_criteria_that_look_at_labels_need_a_reason(criterion: str) -> None:
    race = GroupProbabilities({"a": [0.5, 0.25, 1.0], "b": [0.5, 0.75, 0.0]}, attribute="race")
    loss = {"loss": "squared_error"} if criterion == "risk_parity" else {}
    with pytest.raises(
        DataError, match=rf"{criterion} uses labels, .* assumption about P\(race\); pass Group"
    ):
        unfairness([0, 1, 1], SCORES, sensitive_features=race, criterion=criterion, **loss)
