"""Parts of a data set: apart, complete, and alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair.criteria import criterion_named
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.tradeoff import data_set


def made(
    n: int = 240,
    *,
    regression: bool = False,
    criterion: str = "statistical_parity",
    seed: int = 0,
    **more: Any,
) -> Any:
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], size=n, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(n, 2))
    y = X[:, 0] if regression else (X[:, 0] > 0.8).astype(int)
    given = {"X": X, "y": y, "sensitive_features": group, "control_features": None} | more
    return data_set(
        given.pop("X"),
        given.pop("y"),
        given.pop("sensitive_features"),
        given.pop("control_features"),
        regression=regression,
        criterion=criterion_named(criterion),
        contrast="pairs",
        **given,
    )


def divided(data: Any, share: float, seed: int = 0) -> tuple[Any, Any]:
    """The rows to train on, and a share to test on."""
    return data.divide(np.arange(len(data.problem)), share, seed)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(40, 200), share=st.floats(0.1, 0.9), seed=st.integers(0, 99))
def test_parts_are_apart_and_cover_every_row(n: int, share: float, seed: int) -> None:
    parts = divided(made(n, seed=seed), share, seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))
    assert all((np.diff(part) > 0).all() for part in parts)
    assert abs(len(parts[1]) - share * n) <= 1


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_parts_have_the_same_mix_of_groups_and_labels(regression: bool, seed: int) -> None:
    data = made(600, regression=regression, seed=seed)
    kind = pd.Series(
        list(
            zip(
                data.problem.groups[:, 0],
                data.problem.labels if not regression else [0] * 600,
                strict=True,
            )
        )
    )
    for rows, share in zip(divided(data, 0.3, seed), (0.7, 0.3), strict=True):
        counts = kind[rows].value_counts().reindex(kind.unique(), fill_value=0)
        assert (counts - share * kind.value_counts()).abs().max() <= 2


def test_cells_of_the_criterion_are_spread_evenly() -> None:
    stratum = np.random.default_rng(1).integers(2, size=600)
    data = made(600, criterion="conditional_statistical_parity", control_features=stratum)
    for rows in divided(data, 0.25):
        assert stratum[rows].mean() == pytest.approx(stratum.mean(), abs=0.02)


def test_the_seed_alone_decides_the_parts() -> None:
    data = made()
    first, again, other = (divided(data, 0.25, seed) for seed in (5, 5, 6))
    assert all(map(np.array_equal, first, again))
    assert not any(map(np.array_equal, first, other))


def test_a_group_too_small_to_spread_does_not_stop_the_split() -> None:
    groups = np.array(["a"] * 59 + ["b"])
    data = made(60, sensitive_features=groups)
    assert sorted(np.concatenate(divided(data, 0.25)).tolist()) == list(range(60))


@pytest.mark.parametrize("seed", range(20))
def test_one_crossing_with_a_single_row_does_not_spoil_the_mix_of_all_others(seed: int) -> None:
    """Two attributes, of whose crossing one cell has one row: each group of either is still in
    every part.
    """
    place = np.arange(400)
    sex, tribe = (
        np.where(place % 2, "f", "m"),
        np.where((place % 2 == 1) & (place < 16), "few", "many"),
    )
    tribe[0] = "few"
    data = made(400, sensitive_features={"sex": sex, "tribe": tribe}, y=place // 2 % 2)
    for rows in divided(data, 0.25, seed):
        assert min(count for side in data.held_out(rows).sides for count in side.counts) > 0


def test_halves_have_equal_sizes() -> None:
    assert [len(part) for part in divided(made(), 0.5)] == [120, 120]


def test_held_out_rows_stay_together() -> None:
    frame = pd.DataFrame(
        {"x": np.arange(40.0), "z": np.arange(40.0) * 2}, index=np.arange(100, 140)
    )
    groups = pd.DataFrame({"sex": ["f", "m"] * 20, "age": [1, 1, 2, 2] * 10})
    y = pd.Series(np.arange(40) % 3 % 2).map({0: "no", 1: "yes"})
    rows = np.array([3, 5, 6, 30, 36])
    part = made(X=frame, y=y, sensitive_features=groups).held_out(rows)
    assert part.X["x"].tolist() == rows.tolist()
    assert part.problem.values.tolist() == y[rows].tolist()
    assert [part.problem.scheme.classes[code] for code in part.labels] == y[rows].tolist()
    for name, member in part.members["sex"].items():
        assert (member == (groups["sex"][rows] == name.removeprefix("sex: "))).all()
    assert part.sensitive_features.equals(groups.iloc[rows])
    assert not part.regression


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": np.zeros((240, 2))}, "y must be one column, got 2"),
        (
            {"sensitive_features": np.arange(100) % 2},
            "arguments must have the same length, got X 240, y 240, sensitive_features 100",
        ),
        (
            {"criterion": "conditional_statistical_parity", "control_features": np.arange(90) % 2},
            (
                "arguments must have the same length, got X 240, y 240, sensitive_features 240, "
                "control_features 90"
            ),
        ),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as refusal:
        made(**changed)
    assert str(refusal.value) == message


@pytest.mark.parametrize("rows", [100, 300])
def test_a_table_of_another_length_is_refused(rows: int) -> None:
    with pytest.raises(DataError, match=f"the same length.*{rows}"):
        made(X=np.zeros((rows, 2)))


def test_a_positive_label_that_is_no_class_is_refused(refused: Refusals) -> None:
    with refused(DataError):
        made(pos_label="yes")


def test_a_missing_label_is_refused() -> None:
    y = np.arange(240) % 2 * 1.0
    y[7] = np.nan
    with pytest.raises(DataError, match="y"):
        made(y=y)


@pytest.mark.parametrize(
    ("n", "share", "criterion", "bands"),
    [
        (2000, 0.25, "statistical_parity", 5),
        (400, 0.25, "statistical_parity", 3),
        (2000, 0.25, "equal_opportunity", 3),
        (4000, 0.1, "equal_opportunity", 2),
    ],
)
def test_bands_of_a_number_have_enough_of_the_rows_that_are_held_out(
    n: int, share: float, criterion: str, bands: int
) -> None:
    age = np.random.default_rng(1).uniform(18, 90, n)
    data = made(
        n, criterion=criterion, sensitive_features=age, continuous=True, held_out=(0.5, share)
    )
    (attribute,) = data.problem.scheme.attributes
    assert len(attribute.groups) == bands
    compared = np.isin(
        data.problem.cell,
        [cell for one in data.problem.comparisons for cell in one.left + one.right],
    )
    assert share * np.bincount(data.problem.groups[compared, 0]).min() >= 30
