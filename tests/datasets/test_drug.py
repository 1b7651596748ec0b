"""The drug survey has the published figures (datasets.md, section 1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

from metrifair import datasets


def test_the_survey_has_the_published_shape_groups_and_means(raw_data: Path) -> None:
    data = datasets.load("drug", data_home=raw_data)
    assert data.X.shape == (1885, 12)
    assert list(data.X.columns) == [
        *(
            "Age",
            "Gender",
            "Education",
            "Country",
            "Nscore",
            "Escore",
            "Oscore",
            "Ascore",
            "Cscore",
            "Impulsive",
            "SS",
        ),
        "ethnicity",
    ]
    assert data.group_codes.value_counts().to_dict() == {0: 165, 1: 1720}
    assert_array_equal(data.X["ethnicity"], data.group_codes)
    means = {"Age": 0.034610, "Country": 0.355542, "Impulsive": 0.007216, "SS": -0.003292}
    assert data.X[list(means)].mean().to_dict() == pytest.approx(means, abs=5e-7)
    assert data.names == ("other ethnicities", "White")
    assert data.task == "classification"


def test_every_feature_is_the_column_of_its_name_in_the_raw_file(raw_data: Path) -> None:
    order = (
        "ID Age Gender Education Country Ethnicity Nscore Escore Oscore Ascore Cscore Impulsive SS"
    )
    first = (raw_data / "drug_consumption.data").read_text().split("\n")[0].split(",")
    row = datasets.load("drug", data_home=raw_data, include_protected=False).X.iloc[0]
    published = dict(zip(order.split(), map(float, first), strict=False))
    assert row.to_dict() == {name: published[name] for name in row.index}


@pytest.mark.parametrize(
    ("target", "positives", "rate", "by_group", "counts"),
    [
        ("heroin", 1605, 0.851459, [0.848485, 0.851744], [140, 1465]),
        ("cannabis", 413, 0.219098, [0.351515, 0.206395], [58, 355]),
    ],
)
def test_as_many_as_published_have_never_used_the_drug(
    raw_data: Path,
    target: str,
    positives: int,
    rate: float,
    by_group: list[float],
    counts: list[int],
) -> None:
    data = datasets.load("drug", data_home=raw_data, target=target)
    groups = data.y.groupby(data.group_codes)
    assert data.y.sum() == positives
    assert data.y.mean() == pytest.approx(rate, abs=5e-7)
    assert groups.mean().tolist() == pytest.approx(by_group, abs=5e-7)
    assert groups.sum().tolist() == counts
    assert data.y.name == f"never_used_{target}"


def test_heroin_is_the_default_target(raw_data: Path) -> None:
    assert datasets.load("drug", data_home=raw_data).y.name == "never_used_heroin"


@pytest.mark.parametrize(
    ("target", "means"), [("heroin", (0.851380, 0.851695)), ("cannabis", (0.215145, 0.230932))]
)
def test_the_split_of_seed_0_is_the_published_one(
    raw_data: Path, target: str, means: tuple[float, float]
) -> None:
    data = datasets.load("drug", data_home=raw_data, target=target)
    train, test = data.split(0)
    assert (len(train), len(test)) == (1413, 472)
    assert test[:5].tolist() == [220, 506, 1758, 1678, 76]
    assert [data.group_codes.iloc[rows].sum() for rows in (train, test)] == [1289, 431]
    assert [data.y.iloc[rows].mean() for rows in (train, test)] == pytest.approx(means, abs=5e-7)


def test_the_group_can_be_left_out_of_the_features(raw_data: Path) -> None:
    data = datasets.load("drug", data_home=raw_data, include_protected=False)
    assert data.X.shape == (1885, 11)
    assert data.X.columns[-1] == "SS"
