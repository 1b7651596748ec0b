"""Audits that spell the same groups differently: 1, 1.0 and "1" match, each figure with one
other, and rows pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

from metrifair import Audit, AuditOptions, AuditState, DataError, audit, compare, monitor
from tests.expected_errors import Refusals
from tests.flat_options import flat, flat_audit
from tests.seams.auditing import ComparedFigure, change, compared_figures, correlations
from tests.seams.figures import Interval

QUICK: dict[str, Any] = {
    "criteria": "statistical_parity",
    "metrics": ["kolmogorov", "energy"],
    "resamples": 30,
    "permutations": 0,
    "random_state": 0,
}


def three(seed: int = 0) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Groups 1, 2 and 10, the scores of two models that are much alike, and labels."""
    generator = np.random.default_rng(seed)
    group = generator.choice([1, 2, 10], 600)
    latent = generator.normal(size=600) + np.select([group == 2, group == 10], [1.0, 2.0], 0.0)
    scores = [expit(latent + 0.1 * generator.normal(size=600)) for _ in range(2)]
    return group, scores, (generator.random(600) < scores[0]).astype(int)


@pytest.mark.parametrize(("kind", "weighted"), [(float, False), (str, True)])
def test_pairs_are_the_same_however_groups_are_spelled(kind: type, weighted: bool) -> None:
    group, scores, label = three()
    group[group == 10] = 3  # text sorts as numbers do: the same resamples are drawn
    strata = np.arange(len(group)) % 2 + 1
    weight = np.random.default_rng(1).uniform(0.5, 1.5, len(group)) if weighted else None

    def one(score: Any, spell: type) -> Audit:
        given: dict[str, Any] = {
            "sensitive_features": group.astype(spell),
            "control_features": strata.astype(spell),
        }
        return audit(label, score, sample_weight=weight, **flat(**given, **QUICK))

    before, same, other = one(scores[0], int), one(scores[1], int), one(scores[1], kind)
    expected, found = (compare(before, after, paired=True) for after in (same, other))
    assert len(expected.differences) == len(found.differences) > 20
    assert found.record.unmatched == 0
    for mine, theirs in zip(expected.differences, found.differences, strict=True):
        assert (mine.interval, mine.p_value) == (theirs.interval, theirs.p_value), mine
    apart = compare(before, other, paired=False)
    for mine, theirs in zip(found.differences, apart.differences, strict=True):
        if mine.metric in ("kolmogorov", "auc", "log_loss"):
            assert mine.interval is not None
            assert theirs.interval is not None
            assert mine.interval.high - mine.interval.low < 0.7 * (
                theirs.interval.high - theirs.interval.low
            ), mine


@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_rows_are_pairs_where_text_sorts_otherwise_than_numbers(
    weighted: bool, refused: Refusals
) -> None:
    group, scores, label = three()
    weight = np.random.default_rng(1).uniform(0.5, 1.5, 600) if weighted else None
    options: dict[str, Any] = {"sample_weight": weight, **QUICK}
    before = audit(label, scores[0], sensitive_features=group, **flat(**options))
    audits = [
        audit(label, scores[1], sensitive_features=group.astype(kind), **flat(**options))
        for kind in (int, str)
    ]
    figures = compared_figures(before.record)
    matches = []
    for one in audits:
        others = compared_figures(one.record)
        assert others.keys() == figures.keys()
        matches.append([(figure, others[key]) for key, figure in figures.items()])
    assert {one.groups for one in audits[1].findings} >= {("10", "2")}
    by_names = [
        correlations(before, one, pairs) for one, pairs in zip(audits, matches, strict=True)
    ]
    assert by_names[0] is not None
    assert len(by_names[0]) == len(figures)
    assert by_names[1] == pytest.approx(by_names[0], abs=1e-9)
    found = compare(before, audits[1], paired=True)
    assert (found.record.pairing, found.record.unmatched) == ("rows", 0)
    elsewhere = np.where(np.arange(600) == 7, group[group != group[7]][0], group).astype(str)
    with refused(DataError):
        compare(
            before,
            audit(label, scores[1], sensitive_features=elsewhere, **flat(**options)),
            paired=True,
        )


def test_groups_whose_names_mean_the_same_are_compared_each_with_itself() -> None:
    generator = np.random.default_rng(0)
    group = generator.choice(["1", "1.0", "True", "2"], 800)
    label = np.arange(800) % 2
    options: dict[str, Any] = {"y_true": label, **QUICK}
    one = flat_audit(generator.random(800), sensitive_features=group, **options)
    found = compare(one, one)
    by_group = 4 * 4  # AUC, accuracy, log loss and calibration error of four groups
    assert len(found.differences) == len(one.findings) + len(one.decisions) + by_group
    assert found.record.unmatched == 0
    assert {each.difference for each in found.differences} == {0.0}
    # "1.0" could be "1" or "True", so that only "2" and "2.0" match, which nothing else means.
    several = flat_audit(
        generator.random(800), sensitive_features=np.where(group == "1.0", "1", group), **options
    )
    single = flat_audit(
        generator.random(800), sensitive_features=np.where(group == "2", "2.0", "1.0"), **options
    )
    found = compare(several, single)
    assert {each.groups for each in found.differences if each.criterion == "by_group"} == {("2.0",)}
    assert {each.criterion for each in found.differences} == {"by_group"}  # no ratio: groups differ
    figures = sum(len(compared_figures(each.record)) for each in (several, single))
    assert found.record.unmatched == figures - 2 * 4


def test_intervals_have_no_negative_zero() -> None:
    figure = ComparedFigure(
        "sex", "decisions", "everyone", (), "selection_ratio", 1.0, Interval(1.0, 1.0), True
    )
    interval = change(figure, figure, 0.0, 0.95).interval
    assert interval is not None
    assert [str(interval.low), str(interval.high)] == ["0.0", "0.0"]


def test_a_series_goes_on_where_a_look_spells_groups_as_text() -> None:
    group, scores, _ = three()
    looks = {
        str(kind): AuditState().add(None, scores[0].round(2), sensitive_features=group.astype(kind))
        for kind in (int, str)
    }
    found = monitor(
        looks, metrics=["energy"], random_state=0, options=AuditOptions(resamples=30)
    ).record.series
    first, second = ([one for one in found if one.look == str(kind)] for kind in (int, str))
    assert [(one.groups, one.sizes, one.value) for one in first] == [
        (one.groups, one.sizes, pytest.approx(one.value)) for one in second
    ]
    assert ("2", "10") in [one.groups for one in second]
