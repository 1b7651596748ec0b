"""The defendants have the published figures (datasets.md, section 3), and no names."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from metrifair import datasets

AGES = ["age_cat_25 - 45", "age_cat_Greater than 45", "age_cat_Less than 25"]


def test_the_features_have_the_published_shape_and_means(raw_data: Path) -> None:
    data = datasets.load("compas", data_home=raw_data)
    assert data.X.shape == (5278, 7)
    assert list(data.X.columns) == [*AGES, "sex", "priors_count", "c_charge_degree", "race"]
    means = dict(
        zip(
            data.X.columns[:6], [0.573323, 0.207654, 0.219022, 0.804661, 0.0, 0.348238], strict=True
        )
    )
    assert data.X.iloc[:, :6].mean().to_dict() == pytest.approx(means, abs=5e-7)
    assert data.X["priors_count"].std(ddof=0) == pytest.approx(1, abs=1e-12)
    assert_array_equal(data.X["race"], data.group_codes)
    assert data.names == ("African-American", "Caucasian")


def test_priors_can_stay_counts(raw_data: Path) -> None:
    priors = datasets.load("compas", data_home=raw_data, standardize=False).X["priors_count"]
    assert (priors.mean(), priors.std(ddof=0)) == pytest.approx((3.461538, 4.875442), abs=5e-7)


@pytest.mark.parametrize(
    ("options", "groups", "rate", "by_group"),
    [
        ({}, {0: 3175, 1: 2103}, 0.470443, [0.523150, 0.390870]),
        ({"races": "all"}, {0: 3175, 1: 2997}, 0.455120, [0.523150, 0.383050]),
        ({"violent": True}, {0: 1918, 1: 1455}, 0.171361, [0.210636, 0.119588]),
    ],
)
def test_groups_and_rates_are_the_published_ones(
    raw_data: Path,
    options: dict[str, str | bool],
    groups: dict[int, int],
    rate: float,
    by_group: list[float],
) -> None:
    data = datasets.load("compas", data_home=raw_data, **options)
    assert data.group_codes.value_counts().to_dict() == groups
    assert data.y.mean() == pytest.approx(rate, abs=5e-7)
    assert data.y.groupby(data.group_codes).mean().tolist() == pytest.approx(by_group, abs=5e-7)


def test_as_many_reoffend_as_published(raw_data: Path) -> None:
    data = datasets.load("compas", data_home=raw_data)
    assert data.y.sum() == 2483
    assert data.y.groupby(data.group_codes).sum().tolist() == [1661, 822]


def test_all_races_are_6172_rows(raw_data: Path) -> None:
    data = datasets.load("compas", data_home=raw_data, races="all", standardize=False)
    assert len(data.X) == 6172
    assert data.X["priors_count"].mean() == pytest.approx(3.246436, abs=5e-7)
    assert [len(rows) for rows in data.split(0)] == [4629, 1543]
    assert data.names == ("African-American", "all others")


def test_the_violent_file_with_all_races_lacks_the_five_rows_without_a_score(
    raw_data: Path,
) -> None:
    assert len(datasets.load("compas", data_home=raw_data, races="all", violent=True).X) == 4015


def test_the_split_of_seed_0_is_the_published_one(raw_data: Path) -> None:
    data = datasets.load("compas", data_home=raw_data)
    train, test = data.split(0)
    assert (len(train), len(test)) == (3958, 1320)
    assert test[:5].tolist() == [4647, 29, 4462, 3523, 1872]
    assert [data.group_codes.iloc[rows].sum() for rows in (train, test)] == [1576, 527]
    assert [data.y.iloc[rows].mean() for rows in (train, test)] == pytest.approx(
        [0.476756, 0.451515], abs=5e-7
    )


def test_the_group_can_be_left_out_of_the_features(raw_data: Path) -> None:
    assert (
        "race" not in datasets.load("compas", data_home=raw_data, include_protected=False).X.columns
    )


@pytest.mark.parametrize("violent", [False, True])
def test_names_and_dates_of_birth_are_never_parsed(
    raw_data: Path, violent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed, parse = [], pd.read_csv

    def watched(*arguments, **options) -> pd.DataFrame:
        parsed.append(parse(*arguments, **options))
        return parsed[-1]

    monkeypatch.setattr(pd, "read_csv", watched)
    datasets.load("compas", data_home=raw_data, violent=violent)
    (table,) = parsed
    assert sorted(table.columns) == [
        *(
            "age_cat",
            "c_charge_degree",
            "days_b_screening_arrest",
            "is_recid",
            "priors_count",
            "race",
        ),
        *("score_text", "sex", "two_year_recid"),
    ]
