"""The communities have the published figures (datasets.md, section 2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from numpy.testing import assert_array_equal
from scipy.stats import ks_2samp

from metrifair import datasets


def test_the_features_are_the_98_complete_columns(raw_data: Path) -> None:
    data = datasets.load("communities", data_home=raw_data, task="regression")
    assert data.X.shape == (1994, 98)
    assert (data.X.columns[0], data.X.columns[-1]) == ("population", "LemasPctOfficDrugUn")
    dropped = {
        "state",
        "county",
        "community",
        "communityname",
        "fold",
        "OtherPerCap",
        "racepctblack",
    }
    assert not dropped & set(data.X.columns)
    assert "racePctWhite" in data.X.columns
    assert data.X.to_numpy().sum() == pytest.approx(71650.5, abs=0.05)
    assert (data.X.to_numpy().min(), data.X.to_numpy().max()) == (0, 1)
    means = {
        "population": 0.057593,
        "medIncome": 0.361123,
        "PctKids2Par": 0.620657,
        "PctIlleg": 0.249995,
    }
    assert data.X[list(means)].mean().to_dict() == pytest.approx(means, abs=5e-7)


def test_the_crime_rate_has_the_published_distribution(raw_data: Path) -> None:
    data = datasets.load("communities", data_home=raw_data, task="regression")
    y, group = data.y, data.group_codes
    assert data.task == "regression"
    assert group.value_counts().to_dict() == {0: 1024, 1: 970}
    assert (y.mean(), y.std(ddof=0), y.min(), y.max()) == pytest.approx(
        (0.237979, 0.232926, 0, 1), abs=5e-7
    )
    assert y.groupby(group).mean().tolist() == pytest.approx([0.131729, 0.350144], abs=5e-7)
    assert ks_2samp(y[group == 0], y[group == 1]).statistic == pytest.approx(0.449569, abs=5e-7)


def test_classification_is_the_default_and_shows_the_group(raw_data: Path) -> None:
    data = datasets.load("communities", data_home=raw_data)
    assert data.task == "classification"
    assert data.X.shape == (1994, 99)
    assert_array_equal(data.X.iloc[:, -1], data.group_codes)
    assert data.y.sum() == 708
    assert data.y.mean() == pytest.approx(0.355065, abs=5e-7)
    assert data.y.groupby(data.group_codes).mean().tolist() == pytest.approx(
        [0.154297, 0.567010], abs=5e-7
    )


@pytest.mark.parametrize(
    ("task", "means"),
    [("regression", (0.239559, 0.233246)), ("classification", (0.353177, 0.360721))],
)
def test_the_split_of_seed_0_is_the_published_one(
    raw_data: Path, task: str, means: tuple[float, float]
) -> None:
    data = datasets.load("communities", data_home=raw_data, task=task)
    train, test = data.split(0)
    assert (len(train), len(test)) == (1495, 499)
    assert test[:5].tolist() == [1805, 1311, 960, 107, 1557]
    assert [data.group_codes.iloc[rows].sum() for rows in (train, test)] == [730, 240]
    assert [data.y.iloc[rows].mean() for rows in (train, test)] == pytest.approx(means, abs=5e-7)


@pytest.mark.parametrize(
    ("task", "include", "n_columns"), [("regression", True, 99), ("classification", False, 98)]
)
def test_the_group_can_be_shown_or_hidden_in_either_task(
    raw_data: Path, task: str, include: bool, n_columns: int
) -> None:
    data = datasets.load("communities", data_home=raw_data, task=task, include_protected=include)
    assert data.X.shape[1] == n_columns
