"""Audits compared: differences, intervals and verdicts, paired and independent, of several
models and of files.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import pickle
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

from benchmarks.differences import SETTINGS, count_coverage, draw_rows, truth
from metrifair import (
    Audit,
    AuditDifference,
    AuditOptions,
    AuditState,
    DataError,
    audit,
    audit_file,
    audit_table,
    compare,
)
from tests.expected_errors import Refusals
from tests.flat_options import flat, flat_audit
from tests.seams.auditing import (
    AuditArguments,
    ComparedFigure,
    Difference,
    Request,
    change,
    compared_figures,
    correlations,
)
from tests.seams.figures import Interval, ratio_intervals

QUICK: dict[str, Any] = {"resamples": 100, "permutations": 0}


def logistic(values: Any) -> Any:
    return 1 / (1 + np.exp(-values))


def models(
    rows: int, shifts: tuple[float, float], *, common: float = 0.8, seed: int = 0
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Groups, and the scores of two models of the same rows; the first group's scores are
    shifted.
    """
    generator = np.random.default_rng(seed)
    group = np.repeat(["a", "b"], [rows, rows * 3 // 4])
    shared, own = generator.normal(size=(len(group), 1)), generator.normal(size=(len(group), 2))
    latent = np.sqrt(common) * shared + np.sqrt(1 - common) * own + np.outer(group == "a", shifts)
    return group, dict(zip(("old", "new"), logistic(latent).T, strict=True))


def test_identical_audits_differ_by_nothing_and_cannot_be_told_apart() -> None:
    group, scores = models(200, (0.7, 0.7))
    label = (np.arange(len(group)) % 3 == 0).astype(int)
    one = audit(label, scores["old"], sensitive_features=group, random_state=0, **flat(**QUICK))
    for found in (compare(one, one), compare(one, one, paired=False)):
        by_group = 8  # AUC, accuracy, log loss and calibration error of two groups
        assert len(found.differences) == len(one.findings) + len(one.decisions) + by_group
        assert {(each.difference, each.p_value, each.verdict) for each in found.differences} == {
            (0.0, 1.0, "not_distinguishable")
        }


def test_a_planted_improvement_is_found_and_the_way_back_is_worse() -> None:
    group, scores = models(400, (1.0, 0.2))
    audits = [
        audit(None, one, sensitive_features=group, random_state=0, **flat(**QUICK))
        for one in scores.values()
    ]
    there, back = compare(*audits, paired=True), compare(*audits[::-1], paired=True)
    assert {one.verdict for one in there.differences if one.criterion != "decisions"} == {"better"}
    assert {one.verdict for one in back.differences if one.criterion != "decisions"} == {"worse"}
    for one, other in zip(there.differences, back.differences, strict=True):
        assert one.difference == -other.difference
        assert one.interval is not None
        assert other.interval is not None
        assert one.interval.low == pytest.approx(-other.interval.high)
    assert "better than “before” in" in there.summary.splitlines()[0]


def test_what_models_have_in_common_cancels_where_rows_are_at_hand() -> None:
    group, scores = models(300, (0.8, 0.7), common=0.98)
    label = (np.random.default_rng(1).random(len(group)) < scores["old"] ** 2).astype(int)
    options: dict[str, Any] = {
        "sensitive_features": group,
        "y_true": label,
        "criteria": "statistical_parity",
        **QUICK,
    }
    audits = [flat_audit(one, random_state=0, **options) for one in scores.values()]
    paired, apart = compare(*audits, paired=True), compare(*audits, paired=False)
    assert (paired.record.pairing, apart.record.pairing) == ("rows", "independent")
    told = set()
    for one, other in zip(paired.differences, apart.differences, strict=True):
        assert one.interval is not None
        assert other.interval is not None
        assert one.interval.high - one.interval.low < 0.6 * (
            other.interval.high - other.interval.low
        ), one.metric
        told.add(one.metric)
    assert told >= {
        "kolmogorov",
        "energy",
        "selection_ratio",
        "auc",
        "accuracy",
        "log_loss",
        "calibration_error",
    }


def test_ratios_of_rates_are_compared_by_their_rows() -> None:
    group, scores = models(400, (0.9, 0.5), common=0.7, seed=3)
    # who is no part of the smallest ratio
    group = np.where(np.arange(len(group)) % 5 == 0, "c", group)
    scores = {name: np.where(group == "c", 0.6 * one + 0.25, one) for name, one in scores.items()}
    audits = audit(
        None, scores, sensitive_features=group, random_state=0, **flat(**QUICK)
    ).audits.values()
    found = compare(*(one.rates(reference="a").audit for one in audits))
    (ratio,) = (one for one in found.differences if one.metric == "selection_ratio")
    chosen = {name: [one[group == name] >= 0.5 for one in scores.values()] for name in "ab"}
    generator, drawn = np.random.default_rng(1), []
    for _ in range(1000):
        rates = []
        for both in chosen.values():
            again = generator.integers(len(both[0]), size=len(both[0]))
            rates.append([one[again].mean() for one in both])
        ratios = np.divide(*rates[::-1])
        drawn.append(ratios[1] - ratios[0])
    assert ratio.interval is not None
    # Two ratios are looked at in each audit, by bounds that hold for both at once: 1.14 times as
    # wide as one.
    assert (ratio.interval.high - ratio.interval.low) / (3.92 * np.std(drawn)) == pytest.approx(
        1.14, abs=0.12
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_the_interval_of_a_paired_difference_is_as_wide_as_resampled_rows_say(
    weighted: bool,
) -> None:
    group, scores = models(300, (0.9, 0.5), common=0.7, seed=3)
    generator = np.random.default_rng(1)
    weight = generator.uniform(0.5, 1.5, len(group)) if weighted else np.ones(len(group))
    given = weight if weighted else None
    found = audit(
        None,
        scores,
        sensitive_features=group,
        sample_weight=given,
        metrics=["wasserstein", "energy"],
        random_state=0,
        **flat(**QUICK),
    )
    assert isinstance(found, AuditDifference)
    assert found.record.pairing == "rows"
    order = np.argsort(np.stack(list(scores.values())), axis=1)
    drawn = []
    for _ in range(400):
        picked = np.concatenate(
            [
                generator.choice(own, len(own))
                for own in (np.flatnonzero(group == name) for name in "ab")
            ]
        )
        again = np.bincount(picked, minlength=len(group)) * weight
        values = []
        for place, score in zip(order, scores.values(), strict=True):
            below = [
                np.cumsum((again * (group == name))[place]) / again[group == name].sum()
                for name in "ab"
            ]
            gap, step = (below[0] - below[1])[:-1], np.diff(score[place])
            values.append((np.abs(gap) @ step, 2 * gap**2 @ step))
        drawn.append(np.subtract(values[1], values[0]))
    for one, spread in zip(found.differences, np.std(drawn, axis=0), strict=False):
        assert one.interval is not None
        # An error of 1 / sqrt(800) in the spread, and the intervals' own corrections; unpaired: 1.8
        # times.
        assert (one.interval.high - one.interval.low) / (2 * 1.96 * spread) == pytest.approx(
            1.0, abs=0.2
        )


@pytest.mark.parametrize("name", ["beta", "half of the scores 0"])
def test_what_the_benchmark_takes_for_the_truth_is_that_of_many_rows(name: str) -> None:
    setting = SETTINGS[name]._replace(rows=(30_000, 20_000))
    group, label, scores = draw_rows(setting, np.random.default_rng(0))
    options: dict[str, Any] = {
        "threshold": setting.threshold,
        "resamples": 0,
        "permutations": 0,
        "random_state": 0,
    }
    found = audit(
        label, scores[1], sensitive_features=group, criteria="statistical_parity", **flat(**options)
    )
    true = truth(setting, 1)
    figures = {
        (one.metric, *one.groups): one.value for one in compared_figures(found.record).values()
    }
    for key, value in figures.items():
        assert value == pytest.approx(
            true.get(key, true.get(key[:1], -1.0)), rel=0.03, abs=0.015
        ), key


@pytest.mark.slow(rotate=False)
@pytest.mark.parametrize(
    "names", [["halved (0.8 to 0.4 standard deviations)"], ["few rows (120 and 90)", "lognormal"]]
)
def test_intervals_of_differences_cover(names: list[str]) -> None:
    found = Counter[tuple[str, ...]]()
    for seed in range(10):  # 1,000 pairs of audits
        for key, times in count_coverage(names[seed % len(names)], seed, 100).items():
            found[key[1:]] += times
    figures = [key for key in found if key[-1] != "of" and key[0] != "calibration_error"]
    assert len(figures) == 14
    for key in figures:
        # Of 1,000 intervals of 95 %, fewer than 925 hold once in 3,000 times (binomial); of 90 %,
        # that is 199 times of 200. Maxima of few rows may hold 97 %, and three standard errors
        # more.
        assert 0.925 <= found[key] / found[*key, "of"] <= 0.986, key


def test_the_difference_of_ratios_covers_where_one_model_selects_all_alike() -> None:
    generator, rates, held = np.random.default_rng(2), ((0.8, 0.5), (0.5, 0.5)), 0
    for _ in range(400):
        figures = []
        for shares in rates:
            yes = generator.binomial([400, 300], shares).astype(float)
            counts = np.stack([[400, 300] - yes, yes], 1)
            ratios = list(yes / [400, 300] / (yes / [400, 300]).max())
            interval = ratio_intervals(counts, ratios, confidence=0.95)[1]
            figures.append(
                ComparedFigure(
                    "sex",
                    "decisions",
                    "everyone",
                    (),
                    "selection_ratio",
                    min(ratios),
                    interval,
                    True,
                )
            )
        found = change(figures[0], figures[1], 0.0, 0.95)
        assert found.interval is not None
        held += found.interval.low <= 1 - 0.5 / 0.8 <= found.interval.high
    # 95 % of 400, and three standard errors; 84 % where the ratio 1 counts as an error on both
    # sides.
    assert 367 <= held <= 393


def test_models_that_favor_opposite_groups_have_opposite_errors() -> None:
    group, scores = models(400, (0.9, -0.9), common=0.9, seed=5)
    options: dict[str, Any] = {
        "sensitive_features": group,
        "threshold": None,
        "random_state": 0,
        **QUICK,
    }
    audits = [audit(None, one, **flat(**options)) for one in scores.values()]
    paired, apart = compare(*audits, paired=True), compare(*audits, paired=False)
    for one, other in zip(paired.differences, apart.differences, strict=True):
        assert one.interval is not None
        assert other.interval is not None
        # Whatever moves one distance up moves the other down: their difference varies more than
        # that of strangers.
        assert one.interval.high - one.interval.low > 1.15 * (
            other.interval.high - other.interval.low
        ), one.metric


def test_json_files_are_compared_as_different_rows(tmp_path: Path, refused: Refusals) -> None:
    group, scores = models(200, (0.9, 0.3))
    audits = [
        audit(None, one, sensitive_features=group, random_state=0, **flat(**QUICK))
        for one in scores.values()
    ]
    files = [tmp_path / "old.json", tmp_path / "new.json"]
    for file, one in zip(files, audits, strict=True):
        one.to_json(file)
    found, held = compare(*files), compare(*audits, paired=False)
    assert list(found.differences) == list(held.differences)
    assert "independent" in found.summary
    assert json.loads(found.to_json())["pairing"] == "independent"
    assert pickle.loads(pickle.dumps(audits[0])).rows is None
    with refused(DataError):
        compare(*files, paired=True)
    strange = tmp_path / "strange.json"
    strange.write_text('{"kind": "something else"}')
    with refused(DataError):
        compare(strange, files[0])
    with pytest.raises(DataError, match="cannot read"):
        compare(tmp_path / "none.json", files[0])


@pytest.mark.parametrize("column", [np.array, pd.Series, pl.Series])
def test_a_dict_is_several_models_whatever_it_holds(column: Any) -> None:
    group, scores = models(100, (0.8, 0.2))
    given = {name: column(one) for name, one in scores.items()}
    found = audit(None, given, sensitive_features=group, random_state=0, **flat(**QUICK))
    assert isinstance(found, AuditDifference)
    assert list(found.audits) == ["old", "new"]
    assert {one.model for one in found.differences} == {"new"}
    kind = pd.DataFrame if column is pd.Series else pl.DataFrame
    assert isinstance(found.to_frame(), kind)
    assert isinstance(found.audits["old"].to_frame(), kind)


def test_a_table_is_one_model_whose_columns_are_classes(refused: Refusals) -> None:
    group, scores = models(100, (0.8, 0.2))
    pair = {"no": 1 - scores["old"], "yes": scores["old"]}
    for table in (pd.DataFrame, pl.DataFrame):
        assert isinstance(
            audit(None, table(pair), sensitive_features=group, random_state=0, **flat(**QUICK)),
            Audit,
        )
        with refused(DataError):
            audit(None, table(scores), sensitive_features=group)
    assert isinstance(
        audit(None, pair, sensitive_features=group, random_state=0, **flat(**QUICK)),
        AuditDifference,
    )
    with refused(DataError):
        audit(None, np.stack(list(scores.values()), 1), sensitive_features=group)
    with refused(DataError):
        audit(None, {"old": scores["old"]}, sensitive_features=group)
    three = {name: np.stack([one, (1 - one) / 2, (1 - one) / 2], 1) for name, one in scores.items()}
    assert isinstance(
        audit(None, three, sensitive_features=group, random_state=0, **flat(**QUICK)),
        AuditDifference,
    )


def test_files_and_tables_of_several_scores_are_compared_by_the_rows_that_have_all(
    tmp_path: Path,
) -> None:
    group, scores = models(100, (0.8, 0.2))
    table = pl.DataFrame({**scores, "sex": group}).with_row_index()
    table = table.with_columns(new=pl.when(pl.col("index") == 3).then(None).otherwise("new"))
    table.write_parquet(tmp_path / "scores.parquet")
    options = {"score": ["old", "new"], "group": "sex", "random_state": 0, **QUICK}
    held = audit_file(tmp_path / "scores.parquet", **flat(**options))
    assert isinstance(held, AuditDifference)
    assert held.record.pairing == "rows"
    assert {one.record.left_out for one in held.audits.values()} == {1}
    counted = audit_file(tmp_path / "scores.parquet", **flat(in_memory_rows=10, **options))
    assert isinstance(counted, AuditDifference)
    assert counted.record.pairing == "unknown"
    assert "hold for any correlation" in counted.summary
    elsewhere = audit_table(table.drop_nulls().lazy(), **flat(**options))
    assert isinstance(elsewhere, AuditDifference)
    assert elsewhere.record.pairing == "rows"
    with pytest.raises(DataError, match="several different ones"):
        audit_file(tmp_path / "scores.parquet", **flat(**options | {"score": ["old", "old"]}))


def test_scores_of_a_table_are_paired_row_by_row_as_those_of_a_file_are(tmp_path: Path) -> None:
    generator = np.random.default_rng(8)
    score, label = generator.random(300), generator.integers(2, size=300)
    table = pl.DataFrame(
        {"a": score, "b": 0.9 - 0.8 * score, "sex": np.repeat(["f", "m"], 150), "y": label}
    )
    table = table.with_columns(b=pl.when(pl.int_range(pl.len()) == 5).then(None).otherwise("b"))
    table.write_parquet(tmp_path / "scores.parquet")
    options: dict[str, Any] = {
        "group": "sex",
        "label": "y",
        "random_state": 0,
        "threshold": 0.5,
        **QUICK,
    }
    both: dict[str, Any] = {"score": ["a", "b"], **options}
    of_file, of_table = (
        audit_file(tmp_path / "scores.parquet", **flat(**both)),
        audit_table(table.lazy(), **flat(**both)),
    )
    assert isinstance(of_file, AuditDifference)
    assert isinstance(of_table, AuditDifference)
    assert of_table.record.pairing == "rows"
    assert {one.record.left_out for one in of_table.audits.values()} == {1}
    widths = [
        {
            one.groups: one.interval.high - one.interval.low
            for one in found.differences
            if one.metric == "auc" and one.interval
        }
        for found in (of_file, of_table)
    ]
    assert len(widths[0]) == 2
    # Opposite scores have opposite errors; paired by rank, theirs would cancel and the interval be
    # far too narrow.
    assert widths[1] == pytest.approx(widths[0], rel=0.3)
    alone = [audit_table(table, score=name, **flat(**options)) for name in ("a", "b")]
    assert compare(*alone).record.pairing == "independent"
    with pytest.raises(DataError, match="paired=True needs the rows"):
        compare(*alone, paired=True)


def test_rows_that_only_look_alike_are_not_paired_unless_told() -> None:
    group, scores = models(200, (0.5, 0.5))
    options: dict[str, Any] = {"sensitive_features": group, "random_state": 0, **QUICK}
    strangers = [
        audit(None, models(200, (0.5, 0.5), seed=seed)[1]["old"], **flat(**options))
        for seed in (1, 2)
    ]
    found = compare(*strangers)
    assert found.record.pairing == "independent"
    assert "paired=True" in found.summary
    assert compare(*strangers, paired=True).record.pairing == "rows"
    together = audit(None, scores, **flat(**options))
    assert isinstance(together, AuditDifference)
    assert compare(*together.audits.values()).record.pairing == "rows"


def test_audits_of_another_positive_label_or_favorable_score_are_refused(tmp_path: Path) -> None:
    group, scores = models(100, (0.5, 0.5))
    label = np.arange(len(group)) % 3 % 2
    options: dict[str, Any] = {
        "sensitive_features": group,
        "y_true": label,
        "random_state": 0,
        **QUICK,
    }
    one = flat_audit(scores["old"], **options)
    one.to_json(tmp_path / "one.json")
    for argument, value in (("pos_label", 0), ("favorable", "low")):
        other = flat_audit(scores["new"], **options, **{argument: value})
        other.to_json(tmp_path / "other.json")
        for both in ((one, other), (tmp_path / "one.json", tmp_path / "other.json")):
            with pytest.raises(DataError, match=f"{argument} is .* audit both with the same value"):
                compare(*both)
    boolean = flat_audit(scores["new"], **options | {"y_true": label == 1})
    assert compare(one, boolean).differences


def test_groups_match_by_equality_however_a_file_spells_them() -> None:
    group, scores = models(100, (0.8, 0.2))
    names = [np.where(group == "a", one, two) for one, two in ((1, 2), (1.0, 2.0), ("1", "2"))]
    label = np.arange(len(group)) % 2
    audits = [
        audit(
            label.astype(kind),
            scores["old"],
            sensitive_features=one,
            random_state=0,
            **flat(**QUICK),
        )
        for one, kind in zip(names, (int, float, bool), strict=True)
    ]
    by_criterion = [one for one in audits[0].findings if "y=" not in one.within]
    for other in audits[1:]:
        found = compare(audits[0], other)
        assert {one.difference for one in found.differences} == {0.0}
        assert len(found.differences) >= len(by_criterion) + 1 + 8
    assert compare(*audits[:2]).record.unmatched == 0
    assert compare(*audits[:2], paired=True).record.pairing == "rows"


def test_ratios_of_other_groups_are_not_compared_but_a_group_may_be_absent(
    refused: Refusals,
) -> None:
    rng = np.random.default_rng(0)
    score, age = rng.random(600), rng.integers(18, 80, 600)
    at_45, at_25, unbanded = (
        flat_audit(score, sensitive_features={"age": age}, **how, **QUICK)
        for how in ({"cuts": [45]}, {"cuts": [25]}, {"continuous": True})
    )
    for other in (at_25, unbanded):
        with refused(DataError):
            compare(at_45, other)
    assert "selection_ratio" in {row.metric for row in compare(unbanded, unbanded).differences}
    region = rng.choice(["north", "south", "west"], 600)
    every = flat_audit(score, sensitive_features={"region": region}, **QUICK)
    known = region != "west"
    fewer = flat_audit(score[known], sensitive_features={"region": region[known]}, **QUICK)
    assert "selection_ratio" in {row.metric for row in compare(every, fewer).differences}
    # too few to be a group
    mistyped = [np.where(np.arange(600) == 0, name, region) for name in ("nroth", "suoth")]
    both = [
        flat_audit(score, sensitive_features={"region": column}, **QUICK) for column in mistyped
    ]
    assert "selection_ratio" in {row.metric for row in compare(*both).differences}


def test_json_of_one_file_is_compared_by_bounds_that_hold_for_any_dependence(
    tmp_path: Path,
) -> None:
    group, scores = models(200, (0.9, 0.3))
    pl.DataFrame({**scores, "sex": group}).write_csv(tmp_path / "scores.csv")
    for name in scores:
        audit_file(
            tmp_path / "scores.csv", score=name, group="sex", random_state=0, **flat(**QUICK)
        ).to_json(tmp_path / f"{name}.json")
    files = tmp_path / "old.json", tmp_path / "new.json"
    same, apart = compare(*files), compare(*files, paired=False)
    assert (same.record.pairing, apart.record.pairing) == ("unknown", "independent")
    pl.DataFrame({**scores, "sex": group}).reverse().write_csv(tmp_path / "others.csv")
    others = audit_file(
        tmp_path / "others.csv", score="new", group="sex", random_state=0, **flat(**QUICK)
    )
    for both in ((files[0], others), (others, files[0])):
        assert compare(*both).record.pairing == "independent"
    assert [one.files[0].name for one in same.record.provenance] == ["scores.csv", "scores.csv"]
    for one, other in zip(same.differences, apart.differences, strict=True):
        assert one.interval is not None
        assert other.interval is not None
        assert one.interval.low <= other.interval.low < other.interval.high <= one.interval.high


def test_figures_by_group_are_compared_by_their_rows() -> None:
    generator = np.random.default_rng(4)
    group, scores = models(300, (0.5, 0.5), common=0.9)
    label = (generator.random(len(group)) < scores["old"]).astype(int)
    found = audit(label, scores, sensitive_features=group, random_state=0, **flat(**QUICK))
    assert isinstance(found, AuditDifference)
    own = {
        (one.groups[0], one.metric): one for one in found.differences if one.criterion == "by_group"
    }
    inside = group == "a"
    y, both = label[inside], [one[inside] for one in scores.values()]
    drawn: dict[str, list[float]] = {"auc": [], "accuracy": [], "log_loss": []}
    for _ in range(300):
        again = generator.integers(len(y), size=len(y))
        values = []
        for p in (one[again] for one in both):
            rank, positive = np.argsort(np.argsort(p)), y[again] == 1
            auc = (rank[positive].mean() - (positive.sum() - 1) / 2) / (~positive).sum()
            values.append(
                (auc, ((p >= 0.5) == positive).mean(), -np.log(np.where(positive, p, 1 - p)).mean())
            )
        for name, difference in zip(drawn, np.subtract(values[1], values[0]), strict=True):
            drawn[name].append(float(difference))
    for name, differences in drawn.items():
        interval = own["a", name].interval
        assert interval is not None
        assert (interval.high - interval.low) / (3.92 * np.std(differences)) == pytest.approx(
            1.0, abs=0.2
        ), name


def test_every_figure_of_an_audit_has_a_correlation_of_1_with_itself() -> None:
    group, scores = models(200, (0.7, 0.7))
    label = (np.random.default_rng(3).random(len(group)) < scores["old"]).astype(int)
    for weight in (None, 1.0 + np.arange(len(group)) % 4):
        found = audit(
            label, scores["old"], sensitive_features=group, sample_weight=weight, **flat(**QUICK)
        )
        figures = compared_figures(found.record).values()
        known = correlations(found, found, list(zip(figures, figures, strict=True)))
        assert known is not None
        assert {names[-1] for names in known} >= {
            "auc",
            "accuracy",
            "log_loss",
            "calibration_error",
            "selection_ratio",
        }
        assert list(known.values()) == pytest.approx([1.0] * len(known))


def test_audits_at_other_thresholds_are_refused_unless_they_select_the_same_rows() -> None:
    group, scores = models(100, (0.5, 0.5))

    def at(score: Any, threshold: Any) -> Audit:
        return audit(None, score, sensitive_features=group, threshold=threshold, **flat(**QUICK))

    low, high = at(scores["old"], 0.5), at(scores["old"], 0.7)
    with pytest.raises(DataError) as caught:
        compare(low, high)
    assert str(caught.value) == (
        "threshold is 0.5 in before and 0.7 in after, so that the figures of these audits do not "
        "compare; "
        "audit both with the same value"
    )
    decided = np.round(scores["old"])
    # at 0.7, too, the decisions 1 would be selected
    assert compare(at(decided, 0.5), high).differences
    assert compare(at(scores["old"], 0.7), at(scores["new"], 0.7)).differences
    without = compare(at(scores["old"], None), high)  # distances are the same at any threshold
    assert {one.metric for one in without.differences} == {"kolmogorov", "wasserstein", "energy"}


@pytest.mark.oracle("Difference.joint_interval", "Difference.p_adjusted", "Difference.verdict")
def test_verdicts_hold_for_all_differences_at_once() -> None:
    """By hand: the joint interval has the width of a level shared by all tested differences,
    and decides.
    """
    group, scores = models(400, (0.8, 0.4))
    found = compare(
        *(audit(None, one, sensitive_features=group, **flat(**QUICK)) for one in scores.values())
    )
    tested = [one for one in found.differences if one.p_value is not None]
    wider = norm.isf(0.05 / (2 * len(tested))) / norm.isf(0.025)
    assert len(tested) > 3
    for one in tested:
        assert one.interval is not None
        assert one.joint_interval is not None
        assert one.p_value is not None
        width, joint = (end.high - end.low for end in (one.interval, one.joint_interval))
        assert joint == pytest.approx(wider * width, rel=0.02), "the difference lies within both"
        assert one.p_adjusted == pytest.approx(min(1.0, one.p_value * len(tested)))
        excludes_0 = one.joint_interval.low > 0 or one.joint_interval.high < 0
        assert one.verdict == (
            ("worse" if _grows(one) else "better") if excludes_0 else "not_distinguishable"
        )
        assert excludes_0 == (one.p_adjusted is not None and one.p_adjusted <= 0.05)
    assert {one.verdict for one in tested} >= {"better"}


def test_a_center_on_the_other_side_of_0_than_the_difference_is_no_verdict() -> None:
    """The value fell by 0.02, the centers of both intervals rose by 0.1: 0 lies between them."""
    place = "g", "statistical_parity", "everyone", ("a", "b"), "kolmogorov"
    before, after = (
        ComparedFigure(*place, 0.3, Interval(0.2, 0.24)),
        ComparedFigure(*place, 0.28, Interval(0.3, 0.34)),
    )
    found = change(before, after, 0.0, 0.95)
    assert found.difference == pytest.approx(-0.02)
    assert found.joint_interval is not None
    assert found.joint_interval.low <= found.difference < 0 < found.joint_interval.high
    assert (found.p_value, found.verdict) == (1.0, "not_distinguishable")


def _grows(one: Difference) -> bool:
    """Whether a difference is for the worse: of a ratio, less is."""
    return (one.difference > 0) != (one.metric == "selection_ratio")


def test_audits_that_have_nothing_in_common_or_another_confidence_are_refused(
    refused: Refusals,
) -> None:
    group, scores = models(50, (0.8, 0.2))
    one = audit(
        None,
        scores["old"],
        sensitive_features=group,
        metrics="energy",
        threshold=None,
        **flat(**QUICK),
    )
    other = audit(
        None,
        scores["old"],
        sensitive_features=group,
        metrics="wasserstein",
        threshold=None,
        **flat(**QUICK),
    )
    with pytest.raises(DataError, match="no finding in common"):
        compare(one, other)
    with refused(DataError):
        compare(
            one,
            audit(None, scores["new"], sensitive_features=group, confidence=0.9, **flat(**QUICK)),
        )
    with pytest.raises(DataError, match="compare takes audits"):
        compare(one, 3)  # type: ignore[arg-type]


def test_groups_whose_scores_are_the_same_in_both_models_are_neither_better_nor_worse() -> None:
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b", "c"], 600)
    score = rng.random(600) ** np.select([group == "a", group == "b"], [0.5, 1.0], 1.4)
    other = np.where(group == "c", np.minimum(1.0, score + 0.3), score)
    found = audit(
        None,
        {"old": score, "new": other},
        sensitive_features=group,
        random_state=0,
        options=AuditOptions(permutations=0),
    )
    same = [
        one
        for one in found.differences
        if one.groups == ("a", "b") and one.metric in ("kolmogorov", "energy")
    ]
    assert len(same) == 2
    for one in same:
        assert (one.difference, one.p_value, one.verdict) == (0.0, 1.0, "not_distinguishable")
        assert one.interval.low <= 0 <= one.interval.high
    assert any(one.verdict != "not_distinguishable" for one in found.differences)


@pytest.mark.parametrize("function", [audit, audit_file, audit_table, AuditState.audit])
def test_every_audit_has_the_same_arguments_with_the_same_defaults(function: Any) -> None:
    shown = inspect.signature(function).parameters
    shared = {field.name: field.default for field in dataclasses.fields(Request)}
    shared |= {"confidence": None, "continuous": None}  # None: that of options
    assert len(shown) <= 17
    assert {
        name: one.default for name, one in shown.items() if name in shared
    }.items() <= shared.items()
    assert set(get_type_hints(AuditArguments)) <= {*shown, "threshold", "favorable_decision"}


@pytest.mark.parametrize(
    ("name", "message"), [("metric", "audit()"), ("threshold", "AuditState.audit()")]
)
def test_an_option_that_there_is_not_is_refused_as_python_does(name: str, message: str) -> None:
    ask: Any = (
        AuditState().audit
        if "State" in message
        else partial(audit, None, [0.1, 0.9], sensitive_features=["a", "b"])
    )
    with pytest.raises(
        TypeError, match=re.escape(f"{message} got an unexpected keyword argument '{name}'")
    ):
        ask(**{name: 0.5})
