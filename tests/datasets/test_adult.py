"""The census has the published figures (datasets.md, section 4)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from metrifair import datasets

FEATURES = [
    *(
        "age",
        "workclass",
        "education-num",
        "marital-status",
        "occupation",
        "relationship",
        "race",
        "sex",
    ),
    *("capital-gain", "capital-loss", "hours-per-week", "native-country"),
]


@pytest.fixture(scope="module")
def census(raw_data: Path) -> datasets.Dataset:
    return datasets.load("adult", data_home=raw_data)


def parts(
    data: datasets.Dataset, values: pd.Series | pd.DataFrame
) -> list[pd.Series | pd.DataFrame]:
    return [values.iloc[rows] for rows in data.split(0)]


def test_the_prescribed_split_comes_back_whatever_the_seed(census: datasets.Dataset) -> None:
    for seed in (0, 1, 9):
        train, test = census.split(seed)
        assert train.tolist() == list(range(32561))
        assert test.tolist() == list(range(32561, 48842))


def test_the_features_are_twelve_codes(census: datasets.Dataset) -> None:
    assert list(census.X.columns) == FEATURES
    assert [part.shape for part in parts(census, census.X)] == [(32561, 12), (16281, 12)]
    levels = {
        "workclass": 9,
        "marital-status": 7,
        "occupation": 15,
        "race": 5,
        "native-country": 42,
        "relationship": 6,
    }
    for name, count in levels.items():
        assert sorted(census.X[name].unique()) == list(range(count))
    assert census.names == ("women", "men")


def test_missing_values_are_level_0(census: datasets.Dataset) -> None:
    columns = ["workclass", "occupation", "native-country"]
    train, test = parts(census, census.X[columns] == 0)
    assert train.sum().tolist() == [1836, 1843, 583]
    assert test.sum().tolist() == [963, 966, 274]


def test_the_codes_have_the_published_means(census: datasets.Dataset) -> None:
    train, test = parts(census, census.X)
    means = {
        "age": 38.581647,
        "workclass": 3.868892,
        "education-num": 10.080679,
        "occupation": 6.572740,
        "relationship": 2.494518,
        "capital-gain": 1077.648844,
        "hours-per-week": 40.437456,
        "native-country": 36.718866,
    }
    assert train[list(means)].mean().to_dict() == pytest.approx(means, abs=5e-7)
    means = {"age": 38.767459, "occupation": 6.587617, "native-country": 36.810331}
    assert test[list(means)].mean().to_dict() == pytest.approx(means, abs=5e-7)


def test_a_country_has_the_same_code_in_both_parts(census: datasets.Dataset) -> None:
    train, test = parts(census, census.X["native-country"])
    assert train.mode().tolist() == test.mode().tolist() == [39]  # United-States


@pytest.mark.parametrize(
    ("drop_missing", "part", "groups", "positives", "rate", "by_group"),
    [
        (False, 0, {0: 10771, 1: 21790}, 7841, 0.240810, [0.109461, 0.305737]),
        (False, 1, {0: 5421, 1: 10860}, 3846, 0.236226, [0.108836, 0.299816]),
        (True, 0, {0: 9782, 1: 20380}, 7508, 0.248922, [0.113678, 0.313837]),
        (True, 1, {0: 4913, 1: 10147}, 3700, 0.245684, [0.113373, 0.309747]),
    ],
)
def test_groups_and_rates_are_the_published_ones(
    raw_data: Path,
    drop_missing: bool,
    part: int,
    groups: dict[int, int],
    positives: int,
    rate: float,
    by_group: list[float],
) -> None:
    data = datasets.load("adult", data_home=raw_data, drop_missing=drop_missing)
    y, group = parts(data, data.y)[part], parts(data, data.group_codes)[part]
    assert group.value_counts().to_dict() == groups
    assert y.sum() == positives
    assert y.mean() == pytest.approx(rate, abs=5e-7)
    assert y.groupby(group).mean().tolist() == pytest.approx(by_group, abs=5e-7)


@pytest.mark.parametrize(("drop_missing", "n_columns"), [(False, 90), (True, 86)])
def test_one_hot_columns_hold_one_one_for_each_category(
    raw_data: Path, drop_missing: bool, n_columns: int
) -> None:
    X = datasets.load("adult", data_home=raw_data, encoding="onehot", drop_missing=drop_missing).X
    assert X.shape[1] == n_columns
    for name in (
        "workclass",
        "marital-status",
        "occupation",
        "relationship",
        "race",
        "native-country",
    ):
        block = X[[column for column in X.columns if column.startswith(f"{name}_")]]
        assert (block.sum(axis="columns") == 1).all()
        assert (block.sum() > 0).all()
    assert ("workclass_?" in X.columns) is not drop_missing


def test_one_hot_columns_and_codes_tell_the_same(raw_data: Path, census: datasets.Dataset) -> None:
    X = datasets.load("adult", data_home=raw_data, encoding="onehot").X
    assert (X["relationship_Wife"] == (census.X["relationship"] == 5)).all()
    assert (X["native-country_United-States"] == (census.X["native-country"] == 39)).all()
    assert (X["sex"] == census.group_codes).all()


@pytest.mark.parametrize(("encoding", "n_columns"), [("codes", 11), ("onehot", 89)])
def test_sex_can_be_left_out_of_the_features(raw_data: Path, encoding: str, n_columns: int) -> None:
    X = datasets.load("adult", data_home=raw_data, encoding=encoding, include_protected=False).X
    assert X.shape[1] == n_columns
    assert "sex" not in X.columns
