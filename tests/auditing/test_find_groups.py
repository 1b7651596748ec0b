"""The search for groups: counts against masks, claims against planted truths, and its refusals."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import groups as simulated
from metrifair import DataError, find_groups
from tests.expected_errors import Refusals


def meets(condition: Any, column: Any) -> Any:
    """The rows that meet a condition, by its words."""
    value = condition.value
    if value.startswith("≤"):
        return column <= float(value[1:])
    if value.startswith(">"):
        return column > float(value[1:])
    if value.startswith("("):
        low, high = map(float, value[1:-1].split(","))
        return (column > low) & (column <= high)
    return np.array([str(part) for part in column]) == value


def mask(X: dict[str, Any], conditions: Any) -> Any:
    return np.logical_and.reduce([meets(part, X[part.column]) for part in conditions])


@cache
def people(seed: int = 0, rows: int = 6_000) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    job = rng.choice(["Sales", "Tech", "Farm", None], rows, p=[0.3, 0.3, 0.3, 0.1])
    return {
        "job": job,
        "sex": rng.choice(["f", "m"], rows),
        "age": rng.integers(18, 80, rows).astype(float),
        "citizen": rng.random(rows) < 0.6,
    }


@cache
def planted(seed: int = 0) -> tuple[Any, Any, Any]:
    """Labels, decisions and the planted rows: a farm worker above 48, who is rarely selected."""
    X = people()
    rng = np.random.default_rng([seed, 7])
    rows = (X["job"] == "Farm") & (X["age"] > 48)
    y_true = rng.random(len(rows)) < 0.5
    y_pred = rng.random(len(rows)) < np.where(rows, 0.4, 0.7)
    return y_true, y_pred.astype(float), rows


@pytest.mark.parametrize("outcome", ["selected", "missed positives", "false positives", "score"])
def test_every_figure_is_that_of_the_rows_of_its_group(outcome: Any) -> None:
    X = people()
    y_true, y_pred, rows = planted()
    if outcome == "false positives":
        y_pred = 1 - y_pred
    search = find_groups(y_true, y_pred, X, outcome=outcome)
    counted = {"missed positives": y_true, "false positives": ~y_true}.get(
        outcome, np.ones(len(rows), dtype=bool)
    )
    values = y_pred if outcome != "missed positives" else 1 - y_pred
    assert len(search.record.worse) >= 3
    for group in search.record.worse:
        inside = mask(X, group.conditions)
        assert group.rows == (inside & counted).sum()
        assert group.figure == pytest.approx(values[inside & counted].mean())
        assert group.others == pytest.approx(values[~inside & counted].mean())
        assert group.gap == pytest.approx(abs(group.figure - group.others))
        assert 0 <= group.at_least <= group.gap
        for parent in group.parents:
            around = mask(X, parent.conditions) & counted
            assert (inside & counted <= around).all()
            assert parent.rows == around.sum() > group.rows
            assert parent.figure == pytest.approx(values[around].mean())


def test_all_groups_with_enough_rows_are_searched() -> None:
    """By loops over values: with two categories, groups of one and of two conditions."""
    rng = np.random.default_rng(3)
    X = {"a": rng.choice(list("xyz"), 400, p=[0.7, 0.2, 0.1]), "b": rng.choice(list("pq"), 400)}
    sizes = [(X["a"] == a).sum() for a in "xyz"] + [(X["b"] == b).sum() for b in "pq"]
    sizes += [((X["a"] == a) & (X["b"] == b)).sum() for a in "xyz" for b in "pq"]
    for least in (10, 30, 60):
        search = find_groups(None, rng.integers(0, 2, 400).astype(float), X, min_rows=least)
        enough = sum(least <= size <= 400 - least for size in sizes)
        assert search.record.searched == enough
        assert search.largest_gaps[0].groups == enough
    one = find_groups(None, rng.integers(0, 2, 400).astype(float), X, max_conditions=1)
    assert one.record.searched == 5


def test_the_planted_group_is_listed_and_its_parts_are_not() -> None:
    X = people()
    _, y_pred, rows = planted()
    search = find_groups(None, y_pred, X)
    first = search.groups[0]
    assert np.mean(mask(X, first.conditions) == rows) > 0.99
    assert first.is_worse_than_parents
    assert first.at_least > 0.15
    assert len(search.groups) < len(search.record.worse)
    for one in search.groups:
        for other in search.groups:
            inside = mask(X, one.conditions)
            assert one is other or not (inside <= mask(X, other.conditions)).all()


def test_parts_of_a_worse_group_are_not_worse_than_it() -> None:
    """An effect of one column alone: its conjunctions are worse than the rest, not than it."""
    X = people()
    rng = np.random.default_rng(1)
    y_pred = (rng.random(6_000) < np.where(X["sex"] == "f", 0.5, 0.7)).astype(float)
    search = find_groups(None, y_pred, X)
    assert [[part.value for part in group.conditions] for group in search.groups] == [["f"]]
    assert len(search.record.worse) > 10


def test_columns_of_sensitive_features_are_marked() -> None:
    X = people()
    _, y_pred, _ = planted()
    others = {name: column for name, column in X.items() if name != "age"}
    search = find_groups(None, y_pred, others, sensitive_features={"age": X["age"]})
    whole = find_groups(None, y_pred, X)
    assert [group.at_least for group in search.record.worse] == [
        group.at_least for group in whole.record.worse
    ]
    for group in search.record.worse:
        assert group.is_protected == any(part.column == "age" for part in group.conditions)
    assert not any(group.is_protected for group in whole.record.worse)
    assert search.record.protected == ["age"]


def test_the_users_cuts_make_the_bands() -> None:
    X = people()
    _, y_pred, _ = planted()
    search = find_groups(None, y_pred, X, cuts={"age": [48]})
    values = {part.value for group in search.record.worse for part in group.conditions}
    assert {value for value in values if value[0] in "≤>("} == {">48"}


def test_equal_weights_change_nothing_and_others_widen_bounds() -> None:
    X = people()
    _, y_pred, _ = planted()
    plain = find_groups(None, y_pred, X)
    doubled = find_groups(None, y_pred, X, sample_weight=np.full(6_000, 2.0))
    assert doubled.record == plain.record
    weight = np.random.default_rng(4).uniform(0.5, 1.5, 6_000)
    weighted = find_groups(None, y_pred, X, sample_weight=weight)
    assert not weighted.record.is_exact
    assert weighted.groups[0].at_least < plain.groups[0].at_least
    inside = mask(X, weighted.groups[0].conditions)
    assert weighted.groups[0].figure == pytest.approx(
        np.average(y_pred[inside], weights=weight[inside])
    )


@pytest.mark.oracle("SearchRecord.clusters")
def test_repeated_rows_in_clusters_show_no_more_than_the_rows() -> None:
    X = people()
    _, y_pred, _ = planted()
    four = {name: np.repeat(column, 4) for name, column in X.items()}
    person = np.repeat(np.arange(6_000), 4)
    repeated = find_groups(None, np.repeat(y_pred, 4), four, clusters=person)
    believed = find_groups(None, np.repeat(y_pred, 4), four)
    plain = find_groups(None, y_pred, X)
    assert repeated.record.clusters == 6_000
    assert len(repeated.record.worse) <= len(plain.record.worse) < len(believed.record.worse)
    assert repeated.groups[0].at_least <= plain.groups[0].at_least
    assert repeated.largest_gaps[0].gap >= plain.largest_gaps[0].gap


def test_rows_without_weight_do_not_count() -> None:
    X = people()
    _, y_pred, _ = planted()
    weight = np.ones(6_000)
    weight[:1_000] = 0
    rest = {name: column[1_000:] for name, column in X.items()}
    search = find_groups(None, y_pred, X, sample_weight=weight)
    assert search.record == find_groups(None, y_pred[1_000:], rest).record


@pytest.mark.oracle("SearchRecord.search_rows")
def test_search_rows_select_and_the_others_test() -> None:
    X = people()
    _, y_pred, rows = planted()
    selecting = np.random.default_rng(5).random(6_000) < 0.5
    search = find_groups(None, y_pred, X, search_rows=selecting)
    first = search.groups[0]
    inside = mask(X, first.conditions) & ~selecting
    assert first.rows == inside.sum()
    assert first.figure == pytest.approx(y_pred[inside].mean())
    assert search.record.search_rows == selecting.sum()
    assert search.record.rows == (~selecting).sum()
    # An effect of the search rows alone is not found on the others.
    only = np.where(rows & selecting, 0.0, 1.0) * (np.random.default_rng(6).random(6_000) < 0.7)
    assert not find_groups(None, only, X, search_rows=selecting).record.worse


def test_a_share_of_search_rows_takes_whole_clusters_and_its_seed() -> None:
    X = people()
    _, y_pred, _ = planted()
    person = np.arange(6_000) // 3
    searches = [
        find_groups(None, y_pred, X, search_rows=0.4, clusters=person, random_state=seed)
        for seed in (0, 0, 1)
    ]
    assert searches[0].record == searches[1].record
    assert searches[0].record.largest_gaps != searches[2].record.largest_gaps
    assert searches[0].record.search_rows is not None
    assert searches[0].record.search_rows % 3 == 0
    assert searches[0].record.search_rows == pytest.approx(2_400, abs=3)


def test_largest_gaps_fall_with_rows_and_contain_all_gaps() -> None:
    X = people()
    _, y_pred, rows = planted()
    search = find_groups(None, y_pred, X)
    gaps = [part.gap for part in search.largest_gaps]
    assert gaps == sorted(gaps, reverse=True)
    assert max(group.gap for group in search.record.worse) < gaps[0]
    assert gaps[0] > 0.3  # the planted gap is 30 points
    assert rows.sum() > search.largest_gaps[0].rows


ALARMS = dict.fromkeys(simulated.NULLS, (40, 7))
"""Sets, and the most with a false claim: at a true rate of 5%, more happen once in 500 times."""


@pytest.mark.extended
@pytest.mark.parametrize("name", list(simulated.NULLS))
def test_claims_are_rarely_false(name: str) -> None:
    sets, most = ALARMS[name]
    assert simulated.false_alarms(name, sets) * sets <= most


@pytest.mark.slow(rotate=False)
@pytest.mark.parametrize("name", list(simulated.NULLS))
def test_at_most_five_percent_of_a_thousand_sets_have_a_false_claim(name: str) -> None:
    """The sets are seeded: this is the share that docs/results/groups.md has, not a new sample."""
    assert simulated.false_alarms(name, 1_000) <= 0.05


@pytest.mark.extended
def test_a_planted_gap_of_ten_points_in_a_thousand_rows_is_found() -> None:
    """In at least 95% of sets; fewer than 11 of 15 happens once in 100,000 times then."""
    names = dict.fromkeys(simulated.ALTERNATIVES, np.inf)
    assert simulated.power(1_000, 15, names)["find_groups"] * 15 >= 11


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outcome": "rejected"}, "outcome must be one of 'selected', 'missed positives'"),
        ({"outcome": np.full(6_000, 2.0)}, "outcome must contain numbers from 0 to 1"),
        ({"outcome": "missed positives", "y_true": None}, "needs the true labels; pass y_true"),
        ({"outcome": "score", "y_pred": np.arange(6_000)}, "y_pred must contain numbers from 0"),
        (
            {"y_pred": np.arange(6_000)},
            "these scores have no threshold, got 'selected'; pass threshold=",
        ),
        ({"y_pred": None}, "y_pred must contain predictions"),
        ({"min_rows": 5_000}, "no group has 5,000 rows, and as many other rows; pass min_rows="),
        ({"max_conditions": 0}, "max_conditions must be an integer from 1 upwards"),
        ({"confidence": 95}, "95 percent is 0.95"),
        ({"search_rows": 40}, "search_rows must be a share between 0 and 1"),
        ({"search_rows": np.ones(6_000, dtype=bool)}, "search_rows must leave rows on both sides"),
        ({"cuts": "deciles"}, "cuts must be 'quantiles', or a dict"),
        ({"cuts": {"height": [1]}}, "cuts names 'height'"),
        ({"sensitive_features": ["f"]}, "must have the same length"),
    ],
)
def test_bad_input_names_its_argument_and_a_remedy(changes: dict[str, Any], message: str) -> None:
    y_true, y_pred, _ = planted()
    arguments = {"y_true": y_true, "y_pred": y_pred, "X_audit": people(), **changes}
    with pytest.raises(DataError) as error:
        find_groups(**arguments)
    assert message in str(error.value)


@pytest.mark.parametrize("outcome", ["selected", "score"])
def test_the_positive_label_of_an_outcome_without_labels_changes_nothing(outcome: Any) -> None:
    y_true, y_pred, _ = planted()
    named = np.where(y_true, "hired", "rejected")
    with_label = find_groups(named, y_pred, people(), outcome=outcome, pos_label="hired")
    without = find_groups(None, y_pred, people(), outcome=outcome)
    assert with_label.record == without.record
    with pytest.raises(DataError) as error:
        find_groups(None, y_pred, people(), outcome=outcome, pos_label="hired")
    assert error.value.argument == "pos_label"


def test_a_column_of_ids_has_too_many_values(refused: Refusals) -> None:
    X = {"id": np.repeat(np.arange(150), 40).astype(str)}
    with refused(DataError):
        find_groups(None, np.ones(6_000), X)


def search_of(name: str = "Farm") -> Any:
    X = dict(people())
    X["job"] = np.where(X["job"] == "Farm", name, X["job"])
    return find_groups(None, planted()[1], X)


def test_json_frame_and_page_have_the_values_of_the_record(tmp_path: Path) -> None:
    search = search_of("<b>Farm")
    content = json.loads(search.to_json(tmp_path / "groups.json"))
    assert json.loads((tmp_path / "groups.json").read_text(encoding="utf-8")) == content
    assert content["kind"] == "metrifair group search"
    assert [part["at_least"] for part in content["worse"]] == [
        group.at_least for group in search.record.worse
    ]
    frame = search.to_frame("polars")
    assert frame["at_least"].to_list() == [group.at_least for group in search.record.worse]
    assert frame["is_listed"].sum() == len(search.groups)
    search.to_html(tmp_path / "groups.html", title="Search", about={"date": "today"})
    page = (tmp_path / "groups.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;Farm" in page
    assert "<b>Farm" not in page
    assert page.count('class="change-bar"') == len(search.groups)
    assert "How large a gap could be missed" in page
    assert all(sentence.split(" “")[0] in page for sentence in search.summary.splitlines())
    assert str(search) == search.summary


def test_the_chart_has_one_row_for_each_listed_group() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    search = search_of()
    display = search.plot()
    assert len(display.ax_.get_yticklabels()) == len(search.groups)
    assert display.figure_ is display.ax_.figure
    gaps = display.ax_.lines[1].get_xdata()
    np.testing.assert_allclose(gaps, [100 * group.gap for group in search.groups])
    figure, axes = pyplot.subplots()
    assert search.plot(ax=axes).figure_ is figure
    pyplot.close("all")


def test_a_search_without_a_worse_group_says_so() -> None:
    rng = np.random.default_rng(9)
    search = find_groups(None, (rng.random(6_000) < 0.7).astype(float), people())
    assert search.groups == []
    assert search.summary.splitlines()[0].startswith("None of the ")
    assert len(search.to_frame("polars")) == 0
