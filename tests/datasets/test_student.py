"""The grades have the published figures (datasets.md, section 5)."""

from __future__ import annotations

from pathlib import Path

import pytest
from numpy.testing import assert_array_equal
from scipy.stats import ks_2samp

from metrifair import datasets

BOTH = ("student-math", "student-portuguese")
JOBS = ("at_home", "health", "other", "services")
FEATURES = [
    *(
        "age",
        "Medu",
        "Fedu",
        "traveltime",
        "studytime",
        "failures",
        "famrel",
        "freetime",
        "goout",
        "Dalc",
        "Walc",
    ),
    *("health", "absences", "G1", "G2", "school_GP", "address_R", "famsize_GT3", "Pstatus_A"),
    *(f"Mjob_{job}" for job in JOBS),
    *(f"Fjob_{job}" for job in JOBS),
    *(
        "reason_course",
        "reason_home",
        "reason_other",
        "guardian_father",
        "guardian_mother",
        "schoolsup_no",
    ),
    *(
        "famsup_no",
        "paid_no",
        "activities_no",
        "nursery_no",
        "higher_no",
        "internet_no",
        "romantic_no",
    ),
]


@pytest.mark.parametrize("name", BOTH)
def test_the_features_are_the_forty_of_the_published_runs(raw_data: Path, name: str) -> None:
    data = datasets.load(name, data_home=raw_data)
    assert list(data.X.columns) == FEATURES
    assert len(FEATURES) == 40
    assert set(data.X.iloc[:, 15:].to_numpy().ravel()) == {0.0, 1.0}
    assert data.task == "regression"
    assert data.names == ("men", "women")


@pytest.mark.parametrize(
    ("name", "groups", "moments", "zeros", "by_group", "kolmogorov", "means"),
    [
        (
            *(
                "student-math",
                {0: 187, 1: 208},
                (10.415190, 4.575640),
                38,
                [10.914439, 9.966346],
                0.114819,
            ),
            [16.696203, 5.708861, 10.908861, 10.713924],
        ),
        (
            *(
                "student-portuguese",
                {0: 266, 1: 383},
                (11.906009, 3.228166),
                15,
                [11.406015, 12.253264],
                0.137802,
            ),
            [16.744222, 3.659476, 11.399076, 11.570108],
        ),
    ],
)
def test_the_grades_have_the_published_distribution(
    raw_data: Path,
    name: str,
    groups: dict[int, int],
    moments: tuple[float, float],
    zeros: int,
    by_group: list[float],
    kolmogorov: float,
    means: list[float],
) -> None:
    data = datasets.load(name, data_home=raw_data)
    y, group = data.y, data.group_codes
    assert group.value_counts().to_dict() == groups
    assert (y.mean(), y.std(ddof=0)) == pytest.approx(moments, abs=5e-7)
    assert (y == 0).sum() == zeros
    assert y.groupby(group).mean().tolist() == pytest.approx(by_group, abs=5e-7)
    assert ks_2samp(y[group == 0], y[group == 1]).statistic == pytest.approx(kolmogorov, abs=5e-7)
    assert data.X[["age", "absences", "G1", "G2"]].mean().tolist() == pytest.approx(means, abs=5e-7)


@pytest.mark.parametrize(
    ("name", "sizes", "women", "means", "first"),
    [
        ("student-math", [296, 99], [151, 57], [10.530405, 10.070707], [329, 318, 317, 65, 59]),
        (
            "student-portuguese",
            [486, 163],
            [280, 103],
            [11.839506, 12.104294],
            [532, 375, 306, 625, 480],
        ),
    ],
)
def test_the_split_of_seed_0_is_the_published_one(
    raw_data: Path,
    name: str,
    sizes: list[int],
    women: list[int],
    means: list[float],
    first: list[int],
) -> None:
    data = datasets.load(name, data_home=raw_data)
    parts = train, test = data.split(0)
    assert [len(train), len(test)] == sizes
    assert test[:5].tolist() == first
    assert [data.group_codes.iloc[rows].sum() for rows in parts] == women
    assert [data.y.iloc[rows].mean() for rows in parts] == pytest.approx(means, abs=5e-7)


@pytest.mark.parametrize("name", BOTH)
def test_sex_can_be_the_last_feature(raw_data: Path, name: str) -> None:
    data = datasets.load(name, data_home=raw_data, include_protected=True)
    assert list(data.X.columns) == [*FEATURES, "sex"]
    assert_array_equal(data.X["sex"], data.group_codes)


@pytest.mark.parametrize("name", BOTH)
def test_previous_grades_can_be_left_out(raw_data: Path, name: str) -> None:
    data = datasets.load(name, data_home=raw_data, drop_previous_grades=True)
    assert list(data.X.columns) == [feature for feature in FEATURES if feature not in ("G1", "G2")]
