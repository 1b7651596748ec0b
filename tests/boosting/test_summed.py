"""Rows spread over processes: whatever the split, the slopes are those of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from metrifair import FairXGBClassifier, FairXGBRegressor, PenaltyOptions
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.boosting import (
    LocalRows,
    SummedRisk,
    Together,
    boosting_problem,
    check_summable,
)
from tests.seams.problem import Dependence, Inputs
from tests.seams.training import Objective

RNG = np.random.default_rng(0)
N = 900
SEX, RACE = RNG.integers(2, size=N), RNG.integers(3, size=N)
BOTH = np.stack([SEX, RACE], 1)
LABELS = RNG.integers(2, size=N)
NUMBERS = RNG.normal(size=N) + 0.5 * SEX
WEIGHTS = RNG.random(N) + 0.5
STRATA = RNG.integers(2, size=N)
# 128 predictions at equal distances lie on the grid's places, whose number less 1 they divide:
# nothing is moved.
PLACE = np.clip(RNG.integers(128, size=N) + 20 * SEX - 10, 0, 127)
PLACE[:2] = 0, 127
PREDICTIONS = np.linspace(0.05, 0.95, 128)
OUTPUTS = np.log(PREDICTIONS / (1 - PREDICTIONS))[PLACE]

CASES: dict[str, tuple[Any, Inputs]] = {
    "parity": (FairXGBClassifier(), Inputs(LABELS, SEX)),
    "population": (
        FairXGBClassifier(penalty=PenaltyOptions(estimate="population")),
        Inputs(LABELS, RACE),
    ),
    "several attributes": (
        FairXGBClassifier(penalty=PenaltyOptions(combine="sum")),
        Inputs(LABELS, BOTH),
    ),
    "equalized odds": (FairXGBClassifier(criterion="equalized_odds"), Inputs(LABELS, RACE)),
    "each against the rest": (
        FairXGBClassifier(penalty=PenaltyOptions(contrast="rest")),
        Inputs(LABELS, RACE),
    ),
    "weights": (FairXGBClassifier(), Inputs(LABELS, SEX, sample_weight=WEIGHTS)),
    "rows without weight": (
        FairXGBClassifier(),
        Inputs(LABELS, SEX, sample_weight=(WEIGHTS > 0.7).astype(float)),
    ),
    "strata": (FairXGBClassifier(), Inputs(LABELS, SEX, STRATA)),
    "unknown groups": (FairXGBClassifier(), Inputs(LABELS, np.where(STRATA, SEX, np.nan))),
    "kernel": (
        FairXGBClassifier(metric="mmd", penalty=PenaltyOptions(estimate="batch")),
        Inputs(LABELS, SEX),
    ),
    "cramer": (
        FairXGBClassifier(metric="cramer", penalty=PenaltyOptions(estimate="batch")),
        Inputs(LABELS, SEX, sample_weight=WEIGHTS),
    ),
    "outputs": (FairXGBClassifier(penalty=PenaltyOptions(penalize="output")), Inputs(LABELS, SEX)),
    "losses": (FairXGBClassifier(criterion="risk_parity"), Inputs(LABELS, SEX)),
    "numbers": (FairXGBRegressor(), Inputs(NUMBERS, SEX)),
}
ON_THE_GRID = [name for name in CASES if name not in ("outputs", "losses", "numbers")]
ALONE = Together(lambda own: own, lambda own: own)


class Meeting:
    """Threads that put their numbers together, in the order of their ranks."""

    def __init__(self, count: int) -> None:
        self.barrier, self.given = threading.Barrier(count, timeout=20), dict[int, Any]()

    def of(self, rank: int) -> Together:
        def by(reduce: Callable[..., Any]) -> Callable[[Any], Any]:
            def together(own: Any) -> Any:
                self.given[rank] = own
                self.barrier.wait()
                found = reduce(
                    np.stack([self.given[place] for place in sorted(self.given)]), axis=0
                )
                self.barrier.wait()
                return found

            return together

        return Together(by(np.sum), by(np.max))


def problem_of(name: str) -> Any:
    booster, given = CASES[name]
    return boosting_problem(booster, given)


def summed(problem: Any, rows: Any, together: Together) -> SummedRisk:
    own = problem.training
    local = LocalRows(own.targets[rows], own.cell[rows], own.weight[rows], own.weight[rows])
    return SummedRisk(
        problem.objective(), local, together, own.weight.sum(), problem.center, problem.spread
    )


@pytest.mark.parametrize(
    "cuts", [(450,), (1, 300), (300, 300, 880)], ids=["halves", "one row", "an empty part"]
)
@pytest.mark.parametrize("name", CASES)
def test_the_slopes_of_any_split_are_those_of_one_process(name: str, cuts: tuple[int, ...]) -> None:
    problem, order = problem_of(name), np.random.default_rng(1).permutation(N)
    whole = summed(problem, slice(None), ALONE).at(OUTPUTS)
    parts = np.split(order, cuts)
    meeting = Meeting(len(parts))
    with ThreadPoolExecutor(len(parts)) as pool:
        found = list(
            pool.map(
                lambda place: summed(problem, parts[place], meeting.of(place)).at(
                    OUTPUTS[parts[place]]
                ),
                range(len(parts)),
            )
        )
    for own, rows in zip(found, parts, strict=True):
        assert (own.risk, own.unfairness) == pytest.approx(
            (whole.risk, whole.unfairness), abs=1e-12
        )
        assert own.own_slope is None
        assert whole.own_slope is None
        for one, all_rows in zip(own[2:5], whole[2:5], strict=True):
            np.testing.assert_allclose(one, all_rows[rows], rtol=0, atol=1e-12 * N)
    assert np.abs(whole.unfairness_slope).max() > 1e-3


@pytest.mark.parametrize("name", CASES)
def test_they_are_those_of_one_machine(name: str) -> None:
    """Exactly where scores lie on the grid; else as close as its places are to each other."""
    problem = problem_of(name)
    here = problem.make_objective(problem.training)
    exact = name in ON_THE_GRID
    outputs = (
        OUTPUTS if exact else np.random.default_rng(2).normal(size=N) + 0.5 * SEX
    )  # with no ties, and few near ones
    found, expected = summed(problem, slice(None), ALONE).at(outputs), here.at(outputs)
    assert found.risk == pytest.approx(expected.risk, abs=1e-12)
    assert found.unfairness == pytest.approx(expected.unfairness, abs=1e-12 if exact else 1e-3)
    for one, other in zip(found[2:4], expected[2:4], strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-11)
    atol = 1e-9 if exact else 0.06 * np.abs(expected.unfairness_slope).max()
    np.testing.assert_allclose(found.unfairness_slope, expected.unfairness_slope, rtol=0, atol=atol)
    value = summed(problem, slice(None), ALONE).value(outputs, 2.0)
    assert value == pytest.approx(here.value(outputs, 2.0), abs=1e-9 if exact else 1e-3)


def test_what_counts_do_not_tell_is_refused(refused: Refusals) -> None:
    task, comparisons = problem_of("parity").task, problem_of("parity").trainable.comparisons
    for metric, weighted in (("mmd", False), ("energy", True)):
        with refused(DataError):
            check_summable(
                Objective(task, comparisons, metric=metric, estimate="population"),
                weighted=weighted,
            )
    with refused(DataError):
        check_summable(Objective(task, comparisons, metric=lambda u, v: u - v), weighted=False)
    with refused(DataError):
        check_summable(Objective(task, (Dependence((0,), attribute="age"),)), weighted=False)
