"""Metrics of users by group: as fairlearn's MetricFrame computes them, with intervals that
cover, and typed errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fairlearn.metrics as theirs
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    log_loss,
    mean_absolute_error,
    precision_score,
    r2_score,
    recall_score,
    roc_auc_score,
)

from metrifair import Audit, AuditOptions, AuditState, DataError, audit, audit_file
from tests.expected_errors import Refusals
from tests.seams.api import read_audit
from tests.seams.auditing import _percentiles

QUICK: dict[str, Any] = {"random_state": 0, "metrics": "kolmogorov"}
DECIDED = {
    "accuracy": accuracy_score,
    "precision": precision_score,
    "recall": recall_score,
    "f1": f1_score,
    "selected": theirs.selection_rate,
    "false positives": theirs.false_positive_rate,
}
SCORED = {"auc": roc_auc_score, "log loss": log_loss}
ROWS = 900
RANDOM = np.random.default_rng(0)
SEX = RANDOM.choice(["f", "m"], ROWS, p=[0.3, 0.7])
RACE = RANDOM.choice(["a", "b", "c"], ROWS)
REGION = RANDOM.choice(["north", "south"], ROWS)
LABEL = (RANDOM.random(ROWS) < 0.3 + 0.3 * (SEX == "m")).astype(int)
SCORE = np.clip(0.3 * LABEL + 0.1 * (RACE == "b") + RANDOM.normal(0.35, 0.2, ROWS), 0.01, 0.99)
WEIGHT = RANDOM.uniform(0.1, 7.0, ROWS)
BOTH = pd.DataFrame({"sex": SEX, "race": RACE})


def audited(
    y_pred: Any = SCORE, y_true: Any = LABEL, groups: Any = BOTH, resamples: int = 0, **others: Any
) -> Audit:
    options = AuditOptions(resamples=resamples, permutations=0)
    return audit(y_true, y_pred, sensitive_features=groups, options=options, **QUICK, **others)


def values(table: Any, metric: str) -> dict[str, float | None]:
    measures = {one.group: one.measures[metric] for one in table.groups}
    return {group: None if one is None else one.value for group, one in measures.items()}


def frame(
    metrics: Any, y_true: Any, y_pred: Any, groups: Any, weight: Any = None, control: Any = None
) -> Any:
    given = None if weight is None else {name: {"sample_weight": weight} for name in metrics}
    return theirs.MetricFrame(
        metrics=metrics,
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features=groups,
        control_features=control,
        sample_params=given,
    )


def assert_as_fairlearn(table: Any, peer: Any, stratum: str | None = None) -> None:
    by_group, differences, ratios = peer.by_group, peer.difference(), peer.ratio()
    if stratum is not None:
        by_group, differences, ratios = (
            by_group.loc[stratum],
            differences.loc[stratum],
            ratios.loc[stratum],
        )
    for metric in table.differences:
        expected = {name: by_group[metric][name] for name in by_group.index}
        found = values(table, metric)
        assert list(found) == [
            name if isinstance(name, str) else " x ".join(name) for name in expected
        ]
        assert list(found.values()) == pytest.approx(list(expected.values()), abs=1e-12, rel=1e-12)
        assert table.differences[metric] == pytest.approx(differences[metric], abs=1e-12, rel=1e-12)
        assert table.ratios[metric] == pytest.approx(ratios[metric], abs=1e-12, rel=1e-12)


@pytest.mark.parametrize("kind", ["decisions", "scores"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("controlled", [False, pytest.param(True, marks=pytest.mark.extended)])
def test_values_differences_and_ratios_are_those_of_fairlearn(
    kind: Any, weighted: bool, controlled: bool
) -> None:
    weight, control = WEIGHT if weighted else None, {"region": REGION} if controlled else None
    metrics, y_pred = (
        (DECIDED, (SCORE >= 0.4).astype(int)) if kind == "decisions" else (SCORED, SCORE)
    )
    result = audited(sample_weight=weight, control_features=control, threshold=0.4).by_group(
        metrics, y_pred=kind
    )
    assert len(result.record) == (4 if controlled else 2)
    for table in result.record:
        peer = frame(
            metrics, LABEL, y_pred, BOTH[[table.attribute]], weight, REGION if controlled else None
        )
        assert_as_fairlearn(
            table, peer, table.within.removeprefix("region=") if controlled else None
        )
        rows = sum(one.size for one in table.groups)
        assert rows == (
            np.sum(table.within.removeprefix("region=") == REGION) if controlled else ROWS
        )


def test_intersections_are_those_of_fairlearn() -> None:
    (table,) = audited(intersectional=True).by_group(DECIDED).record
    assert_as_fairlearn(table, frame(DECIDED, LABEL, (SCORE >= 0.5).astype(int), BOTH))


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_of_a_numeric_target_receive_the_predictions(weighted: bool) -> None:
    target, weight = SCORE + RANDOM.normal(0, 0.3, ROWS), WEIGHT if weighted else None
    metrics = {"error": mean_absolute_error}
    table = audited(SCORE, target, sample_weight=weight).by_group(metrics).record[0]
    assert_as_fairlearn(table, frame(metrics, target, SCORE, SEX, weight))
    table = audited(SCORE, 2 - target, sample_weight=weight).by_group({"r2": r2_score}).record[0]
    assert min(value for value in values(table, "r2").values() if value is not None) < 0
    assert table.ratios["r2"] is None


def test_metrics_of_three_labels_receive_labels_or_all_probabilities() -> None:
    names = np.array(["high", "low", "middle"])
    y_true, probabilities = names[RANDOM.integers(3, size=ROWS)], RANDOM.dirichlet([1, 1, 1], ROWS)
    result = audited(probabilities, y_true)
    table = result.by_group({"accuracy": accuracy_score}).record[0]
    assert_as_fairlearn(
        table, frame({"accuracy": accuracy_score}, y_true, names[probabilities.argmax(1)], SEX)
    )
    table = result.by_group({"loss": log_loss}, y_pred="scores").record[0]
    assert values(table, "loss")["f"] == pytest.approx(
        log_loss(y_true[SEX == "f"], probabilities[SEX == "f"])
    )


@pytest.mark.parametrize("favorable", ["high", "low"])
def test_one_is_the_positive_label_and_the_favorable_decision(favorable: Any) -> None:
    words = np.where(LABEL == 1, "repaid", "defaulted")
    low = favorable == "low"
    result = audited(1 - SCORE if low else SCORE, words, pos_label="repaid", favorable=favorable)
    selected = (1 - SCORE < 0.5 if low else SCORE >= 0.5).astype(int)
    assert_as_fairlearn(result.by_group(DECIDED).record[0], frame(DECIDED, LABEL, selected, SEX))
    # The order of scores and labels agrees in either case.
    table = result.by_group({"auc": roc_auc_score}, y_pred="scores").record[0]
    assert_as_fairlearn(table, frame({"auc": roc_auc_score}, LABEL, SCORE, SEX))
    kinds = result.by_group({"integers": lambda y, p: y.dtype.kind + p.dtype.kind == "ii"}).record[
        0
    ]
    assert values(kinds, "integers") == {"f": 1.0, "m": 1.0}


def test_metrics_receive_the_weights_as_passed() -> None:
    def total(y_true: Any, y_pred: Any, sample_weight: Any) -> float:
        return float(sample_weight.sum())

    for factor in (1.0, 1e300, 1e-300):
        found = values(
            audited(sample_weight=factor * WEIGHT).by_group({"total": total}).record[0], "total"
        )
        assert found["f"] == pytest.approx(factor * WEIGHT[SEX == "f"].sum(), rel=1e-12)


def test_rows_with_a_missing_group_are_counted_and_left_out() -> None:
    groups = SEX.astype(object)
    groups[:40] = None
    result = audited(groups={"sex": groups, "race": RACE}).by_group(DECIDED)
    first, second = result.record
    assert (first.missing, second.missing) == (40, 0)
    assert_as_fairlearn(
        first, frame(DECIDED, LABEL[40:], (SCORE[40:] >= 0.5).astype(int), SEX[40:])
    )
    assert "40 rows with a missing group are left out." in result._repr_html_()


def test_a_metric_is_none_where_a_group_lacks_a_label_or_divides_by_zero() -> None:
    group, label = np.array(["a"] * 50 + ["b"] * 50), np.array([0, 1] * 25 + [0] * 50)

    def strict(y_true: Any, y_pred: Any) -> float:
        if len(set(y_true)) < 2:
            raise ValueError("one label only")
        return 0.25

    metrics = {
        "strict": strict,
        "rate": lambda y, p: 1 / int(y.sum()),
        "nan": lambda y, p: float("nan") if not y.any() else 0.5,
    }
    (table,) = audited(np.linspace(0, 1, 100), label, {"g": group}).by_group(metrics).record
    assert {name: list(values(table, name).values()) for name in metrics} == {
        "strict": [0.25, None],
        "rate": [1 / 25, None],
        "nan": [0.5, None],
    }
    assert table.differences == dict.fromkeys(metrics)
    assert table.ratios == dict.fromkeys(metrics)


def raises(y_true: Any, y_pred: Any) -> float:
    raise ValueError("no such thing")


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "raises": (
        lambda: audited().by_group({"odd": raises}),
        "'odd' raised ValueError for the group 'f' of 'sex': no such",
    ),
    "no number": (
        lambda: audited().by_group({"odd": lambda y, p: "a b"}),
        "'odd' raised ValueError for the group 'f'",
    ),
    "no scalar": (
        lambda: audited().by_group({"odd": lambda y, p: y}),
        "'odd' raised TypeError for the group 'f'",
    ),
    "weights": (
        lambda: audited(sample_weight=WEIGHT).by_group({"odd": lambda y, p: 0.0}),
        "'odd' has no argument sample_weight, and this audit has weights",
    ),
    "a function": (
        lambda: audited().by_group(f1_score),
        "metrics must be a dict that maps names to functions",
    ),
    "no metrics": (
        lambda: audited().by_group({}),
        "metrics must be a dict that maps names to functions",
    ),
    "a name": (
        lambda: audited().by_group({"f1": "f1"}),
        "metrics must be a dict that maps names to functions",
    ),
    "a number": (
        lambda: audited().by_group({1: f1_score}),
        "metrics must be a dict that maps names to functions",
    ),
    "a kind": (lambda: audited().by_group(DECIDED, y_pred="labels"), "y_pred must be one of"),
    "no labels": (lambda: audited(y_true=None).by_group(DECIDED), "y_true is missing"),
    "no decisions": (
        lambda: audited(100 * SCORE).by_group(DECIDED),
        "pass threshold=... to audit, or pass y_pred='scores'",
    ),
    "one score of three labels": (
        lambda: audited(y_true=RACE).by_group(DECIDED),
        "y_pred 'decisions' needs an audit with",
    ),
    "a state": (
        lambda: (
            AuditState()
            .add(LABEL, SCORE, sensitive_features={"sex": SEX})
            .audit(random_state=0)
            .by_group(DECIDED)
        ),
        "need rows in memory",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_what_cannot_be_computed_is_a_typed_error(case: str) -> None:
    call, words = ERRORS[case]
    with pytest.raises(DataError) as caught:
        call()
    assert words in str(caught.value)


def test_files_have_metrics_only_while_their_rows_are_in_memory(tmp_path: Path) -> None:
    table = pl.DataFrame({"p": SCORE, "sex": SEX, "y": LABEL})
    table.write_parquet(tmp_path / "scores.parquet")
    named: dict[str, Any] = {"score": "p", "group": "sex", "label": "y"} | QUICK
    quick = AuditOptions(resamples=0, permutations=0)
    here = audit_file(tmp_path / "scores.parquet", **named, options=quick)
    assert_as_fairlearn(
        here.by_group(DECIDED).record[0], frame(DECIDED, LABEL, (SCORE >= 0.5).astype(int), SEX)
    )
    here.to_json(tmp_path / "audit.json")
    streamed = audit_file(
        tmp_path / "scores.parquet", **named, options=replace(quick, in_memory_rows=0)
    )
    for result in (streamed, read_audit(tmp_path / "audit.json")):
        with pytest.raises(DataError, match="need rows in memory"):
            result.by_group(DECIDED)
        # those of every audit need no rows
        assert result.by_group().to_frame("pandas")["metric"].nunique() > 5


def test_without_metrics_the_figures_of_the_audit_come_back() -> None:
    result = audited(groups={"sex": SEX})
    found = result.by_group().to_frame("pandas")
    (figures,), (decisions,) = result.record.by_group, result.decisions
    first = found[(found["metric"] == "auc") & (found["group"] == "f")].iloc[0]
    auc = figures.groups[0].auc
    assert auc is not None
    assert auc.interval is not None
    assert (first["value"], first["interval_low"], first["interval_high"]) == (
        auc.value,
        auc.interval.low,
        auc.interval.high,
    )
    assert first["difference"] == pytest.approx(figures.gaps["auc"].value)
    rates = found[found["metric"] == "true_positive_rate"].set_index("group")["value"]
    assert rates.to_dict() == {one.group: one.true_positive_rate for one in decisions.rates}


def share_right(y_true: Any, y_pred: Any) -> float:
    return float((y_true == y_pred).mean())


@pytest.mark.extended
def test_intervals_cover_the_value_of_each_group() -> None:
    """Resampling the rows of all groups, or too many of them, lowers the coverage below 70% in
    the smaller group.
    """
    sizes, rates, runs = (80, 800), (0.8, 0.6), 200
    generator, covered, widths = np.random.default_rng(7), np.zeros((runs, 2)), np.zeros((runs, 2))
    group = np.repeat(["few", "many"], sizes)
    for run in range(runs):
        label = generator.integers(2, size=sum(sizes))
        right = generator.random(sum(sizes)) < np.repeat(rates, sizes)
        result = audit(
            label,
            np.where(right, label, 1 - label),
            sensitive_features={"g": group},
            criteria="statistical_parity",
            metrics="kolmogorov",
            random_state=run,
            options=AuditOptions(resamples=200, permutations=0),
        )
        (table,) = result.by_group({"right": share_right}).record
        for place, one in enumerate(table.groups):
            measure = one.measures["right"]
            assert measure is not None
            assert measure.interval is not None
            covered[run, place] = measure.interval.low <= rates[place] <= measure.interval.high
            widths[run, place] = measure.interval.high - measure.interval.low
    assert ((covered.mean(0) > 0.90) & (covered.mean(0) < 0.985)).all()
    normal = [2 * 1.96 * np.sqrt(p * (1 - p) / n) for p, n in zip(rates, sizes, strict=True)]
    assert widths.mean(0) == pytest.approx(normal, rel=0.06)


def test_intervals_are_seeded_and_do_not_depend_on_other_metrics() -> None:
    result = audited(groups={"sex": SEX}, resamples=50, confidence=0.9)
    first, again = (result.by_group({"f1": f1_score}).record[0].groups for _ in range(2))
    third = result.by_group({"right": share_right, "f1": f1_score}).record[0].groups
    assert [one.measures["f1"] for one in first] == [one.measures["f1"] for one in again]
    assert [one.measures["f1"] for one in first] == [one.measures["f1"] for one in third]
    wider = (
        audited(groups={"sex": SEX}, resamples=50, confidence=0.99)
        .by_group({"f1": f1_score})
        .record[0]
        .groups
    )
    for narrow, wide in zip(first, wider, strict=True):
        ends = [one.measures["f1"].interval for one in (narrow, wide)]  # type: ignore[union-attr]
        assert ends[1].low < ends[0].low < ends[0].high < ends[1].high  # type: ignore[union-attr]


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9])
def test_an_interval_leaves_out_as_many_values_below_as_above(confidence: float) -> None:
    interval = _percentiles(list(range(101)), confidence)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx(
        (50 - 50 * confidence, 50 + 50 * confidence)
    )


def test_the_lowest_of_values_is_divided_by_the_highest_unless_it_is_negative() -> None:
    group = np.repeat(["a", "b"], 20)
    metrics = {
        f"{low}": lambda y, p, low=low: low if p.mean() < 0.5 else 2.0 for low in (-1.0, 0.0, 1.0)
    }
    scores = np.where(group == "a", 0.2, 0.7)
    (table,) = audited(scores, np.arange(40) % 2, {"g": group}).by_group(metrics).record
    assert table.ratios == {"-1.0": None, "0.0": 0.0, "1.0": 0.5}
    assert table.differences == {"-1.0": 3.0, "0.0": 2.0, "1.0": 1.0}


def test_groups_are_compared_with_all_rows_unless_their_name_says_that_nobody_knows_it() -> None:
    """Means of 0.2, 0.4 and 0.9 in 10, 30 and 10 rows, 0.46 in all of them, and the rest to 1."""
    group = np.repeat(["a", "b", "unknown"], [10, 30, 10])
    scores = np.repeat([0.2, 0.4, 0.9], [10, 30, 10])
    metrics = {"mean": lambda y, p: p.mean(), "rest": lambda y, p: 1 - p.mean()}
    found = audited(scores, np.arange(50) % 2, {"g": group}).by_group(metrics, y_pred="scores")
    expected = [
        (found.difference(), (0.2, 0.2)),
        (found.difference("to_overall"), (0.26, 0.26)),
        (found.ratio(), (0.2 / 0.4, 0.6 / 0.8)),
        (found.ratio("to_overall"), (0.2 / 0.46, 0.54 / 0.8)),
        (found.group_min(), (0.2, 0.6)),
        (found.group_max(), (0.4, 0.8)),
    ]
    for table, values_by_hand in expected:
        assert table["value"].to_list() == pytest.approx(values_by_hand)


def test_there_is_no_interval_of_few_rows_or_where_a_metric_is_often_undefined() -> None:
    group = np.array(["four"] * 4 + ["five"] * 5 + ["many"] * 91)
    calls: list[int] = []

    def often_undefined(y_true: Any, y_pred: Any) -> float:
        calls.append(0)
        if len(calls) > 3 and len(calls) % 10 == 0:
            raise RuntimeError("sometimes")
        return float(y_pred.mean())

    metrics = {
        "mean": lambda y, p: float(p.mean()),
        "often": often_undefined,
        "constant": lambda y, p: 1.0,
    }
    scores = np.tile([0.1, 0.9], 50)
    (table,) = audited(scores, scores > 0.5, {"g": group}, resamples=100).by_group(metrics).record
    known = {
        one.group: {name: one.measures[name].interval is not None for name in metrics}
        for one in table.groups
    }  # type: ignore[union-attr]
    assert known == {
        "four": {"mean": False, "often": False, "constant": False},
        "five": {"mean": True, "often": False, "constant": False},
        "many": {"mean": True, "often": False, "constant": False},
    }


def test_the_frame_the_page_and_the_text_have_all_values(tmp_path: Path) -> None:
    groups = np.where(SEX == "f", "<b>f", "m&n")
    result = audited(groups=pd.DataFrame({"<i>sex": groups}), resamples=20)
    found = result.by_group({"<script>f1": f1_score, "recall": recall_score})
    rows = found.to_frame()
    assert isinstance(rows, pd.DataFrame)  # as the audited data
    assert rows.columns.tolist() == [
        *(
            "attribute",
            "within",
            "metric",
            "group",
            "rows",
            "value",
            "interval_low",
            "interval_high",
        ),
        *("difference", "ratio"),
    ]
    assert rows["rows"].tolist() == 2 * [int((SEX == "f").sum()), int((SEX == "m").sum())]
    assert (rows["interval_low"] < rows["value"]).all()
    assert found.to_frame("polars")["value"].to_list() == rows["value"].tolist()
    assert repr(found).startswith("<script>f1 by <i>sex, everyone: 0.")
    result.to_html(tmp_path / "with.html", by_group=found)
    result.to_html(
        tmp_path / "asked.html", by_group={"<script>f1": f1_score, "recall": recall_score}
    )
    page = (tmp_path / "with.html").read_text()
    assert (tmp_path / "asked.html").read_text() == page
    for text in (page, found._repr_html_()):
        assert "Metrics by group" in text
        assert all(
            escaped in text for escaped in ("&lt;script&gt;f1", "&lt;b&gt;f", "&lt;i&gt;sex")
        )
        assert not any(markup in text for markup in ("<script>f1", "<b>f", "<i>sex"))
        assert text.count("Smallest ratio") == 1
    result.to_html(tmp_path / "without.html")
    assert "Metrics by group" not in (tmp_path / "without.html").read_text()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("controlled", [False, True])
def test_the_figures_of_a_metric_frame_are_those_of_fairlearn(
    weighted: bool, controlled: bool
) -> None:
    weight = WEIGHT if weighted else None
    control = {"region": REGION} if controlled else None
    decided = (SCORE >= 0.4).astype(int)
    groups = {"race": RACE}
    result = audited(
        groups=groups,
        resamples=20,
        sample_weight=weight,
        control_features=control,
        threshold=0.4,
    ).by_group(DECIDED)
    peer = frame(DECIDED, LABEL, decided, RACE, weight, REGION if controlled else None)
    strata = ["north", "south"] if controlled else [None]
    pairs = [
        (result.overall, peer.overall),
        (result.difference(), peer.difference()),
        (result.difference("to_overall"), peer.difference(method="to_overall")),
        (result.ratio(), peer.ratio()),
        (result.ratio("to_overall"), peer.ratio(method="to_overall")),
        (result.group_min(), peer.group_min()),
        (result.group_max(), peer.group_max()),
    ]
    for ours, expected in pairs:
        assert ours["metric"].to_list() == list(DECIDED) * len(strata)
        wanted = [
            (expected if stratum is None else expected.loc[stratum])[metric]
            for stratum in strata
            for metric in DECIDED
        ]
        assert ours["value"].to_list() == pytest.approx(wanted, abs=1e-12)
    for bounded in (result.overall, result.group_min(), result.group_max()):
        assert (bounded["interval_low"] <= bounded["value"]).all()
        assert (bounded["value"] <= bounded["interval_high"]).all()
    by_group = result.by_group.filter(pl.col("metric") == "accuracy")
    lowest = by_group.filter(pl.col("within") == by_group["within"][0]).sort("value")["group"][0]
    assert result.group_min()["group"][0] == lowest


def test_an_unknown_method_of_difference_is_refused(refused: Refusals) -> None:
    result = audited().by_group(DECIDED)
    for figure in (result.difference, result.ratio):
        with refused(DataError):
            figure("overall")  # type: ignore[arg-type]
