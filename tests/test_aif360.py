"""AIF360 as an oracle: weights of Reweighing, and what it calls the same of decisions; skipped
where it is absent.

What AIF360 does differently, and is translated here: differences are signed (the others less the
privileged group) and ratios may exceed 1; several groups are not compared in pairs, all but the
privileged one are thrown together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from metrifair import AuditOptions, audit, unfairness
from metrifair.baselines import ReweighingClassifier
from tests.seams.baselines import independence_weights

pytestmark = pytest.mark.extended

REASON = "needs AIF360 (pip install aif360)"
datasets = pytest.importorskip("aif360.datasets", reason=REASON)
preprocessing = pytest.importorskip("aif360.algorithms.preprocessing", reason=REASON)
metrics = pytest.importorskip("aif360.sklearn.metrics", reason=REASON)
several = pytest.importorskip("aif360.sklearn.preprocessing", reason=REASON)
pandas = pytest.importorskip("pandas")

SEEDS = st.integers(0, 2**32 - 1)


def table(seed: int, classes: int, groups: int, *, weighted: bool) -> tuple[Any, Any, Any]:
    """Labels that depend on the group, with no cell empty; weights, or None."""
    rng = np.random.default_rng(seed)
    cells = np.array([(k, g) for k in range(classes) for g in range(groups)])
    likely = rng.dirichlet(np.ones(len(cells)))
    y, a = np.concatenate([cells, cells[rng.choice(len(cells), 40, p=likely)]]).T
    return y, a, rng.random(len(y)) + 0.1 if weighted else None


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.booleans())
def test_weights_of_two_groups(seed: int, weighted: bool) -> None:
    y, a, prior = table(seed, 2, 2, weighted=weighted)
    frame = pandas.DataFrame({"y": y, "a": a, "w": 1.0 if prior is None else prior})
    data = datasets.BinaryLabelDataset(
        df=frame, label_names=["y"], protected_attribute_names=["a"], instance_weights_name="w"
    )
    theirs = preprocessing.Reweighing([{"a": 0}], [{"a": 1}]).fit_transform(data).instance_weights
    np.testing.assert_allclose(independence_weights(y, a, prior), theirs)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(2, 4), st.integers(2, 4), st.booleans())
def test_weights_of_several_groups_and_classes(
    seed: int, classes: int, groups: int, weighted: bool
) -> None:
    y, a, prior = table(seed, classes, groups, weighted=weighted)
    # groups are its index
    frame = pandas.DataFrame({"x": np.arange(len(y))}, index=pandas.Index(a, name="a"))
    labels = pandas.Series(y, index=frame.index)
    _, theirs = several.Reweighing("a").fit_transform(frame, labels, sample_weight=prior)
    np.testing.assert_allclose(independence_weights(y, a, prior), theirs)


def test_the_reweighed_classifier() -> None:
    y, a, prior = table(3, 3, 3, weighted=True)
    x = np.random.default_rng(3).normal(size=(len(y), 2)) + np.c_[y, a]
    frame = pandas.DataFrame(x, index=pandas.Index(a, name="a"))
    theirs = several.ReweighingMeta(LogisticRegression()).fit(
        frame, pandas.Series(y, index=frame.index), sample_weight=prior
    )
    ours = ReweighingClassifier(LogisticRegression()).fit(
        x, y, sensitive_features=a, sample_weight=prior
    )
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(frame), atol=1e-6)


def decisions(seed: int, groups: int, *, weighted: bool) -> tuple[Any, Any, Any, Any]:
    """Labels, decisions, groups and weights; every group has both labels."""
    y, a, weight = table(seed, 2, groups, weighted=weighted)
    rng = np.random.default_rng([seed, 1])
    return y, (rng.random(len(y)) < rng.random((2, groups))[y, a]).astype(int), a, weight


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.booleans())
def test_decisions_about_two_groups(seed: int, weighted: bool) -> None:
    y, decided, a, weight = decisions(seed, 2, weighted=weighted)
    # rows of all cells: somebody of either group is selected, or their ratio is 1 / 0
    decided[:4] = 1, 0, 0, 1
    named = {"prot_attr": a, "sample_weight": weight}
    found = audit(
        y,
        decided,
        sensitive_features=a,
        sample_weight=weight,
        criteria="statistical_parity",
        options=AuditOptions(resamples=0, permutations=0),
    )
    (ours,) = found.record.decisions
    difference = metrics.statistical_parity_difference(y, decided, **named)
    assert ours.selection_difference == pytest.approx(abs(difference))
    ratio = metrics.disparate_impact_ratio(y, decided, **named)
    assert ours.selection_ratio == pytest.approx(min(ratio, 1 / ratio))
    assert ours.true_positive_difference == pytest.approx(
        abs(metrics.equal_opportunity_difference(y, decided, **named))
    )
    assert (ours.true_positive_difference + ours.false_positive_difference) / 2 == pytest.approx(
        metrics.average_odds_error(y, decided, **named)
    )


@pytest.mark.parametrize(
    ("criterion", "theirs"),
    [
        ("statistical_parity", "statistical_parity_difference"),
        ("equal_opportunity", "equal_opportunity_difference"),
    ],
)
@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, groups=st.integers(2, 4), weighted=st.booleans())
def test_each_group_against_the_rest(
    criterion: str, theirs: str, seed: int, groups: int, weighted: bool
) -> None:
    """The largest of AIF360's differences, with each group once as the privileged one."""
    y, decided, a, weight = decisions(seed, groups, weighted=weighted)
    each = [
        getattr(metrics, theirs)(y, decided, prot_attr=a, priv_group=group, sample_weight=weight)
        for group in range(groups)
    ]
    ours = unfairness(
        y, decided, sensitive_features=a, criterion=criterion, sample_weight=weight, contrast="rest"
    )
    assert ours == pytest.approx(max(map(abs, each)))
