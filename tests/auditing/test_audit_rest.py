"""Many groups, each against the rest: what all of them share is counted once, and every figure
is the plain one.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair import AuditOptions, audit
from metrifair.metrics import distances, energy_distance
from tests.seams.auditing import (
    AllGroups,
    TwoSamples,
    audit_record,
    count_rows,
    in_pooled_bins,
    largest_gap,
)

METRICS = ("kolmogorov", "wasserstein", "energy", "cramer", "lp", "total_variation")


def plain(scores, own) -> TwoSamples:
    values = np.unique(scores)
    sides = (np.searchsorted(values, scores[rows]) for rows in (own, ~own))
    return TwoSamples(
        values, *(np.bincount(side, minlength=len(values)).astype(float) for side in sides)
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    digits=st.integers(1, 6),
    size=st.integers(1, 9),
    shift=st.floats(-1e3, 1e3),
)
def test_every_distance_and_the_largest_gap_are_those_of_the_scores(seed, digits, size, shift):
    """Groups of any size, ties with the rest, any place on the line."""
    rng = np.random.default_rng(seed)
    codes = np.append(np.zeros(size, np.int64), rng.integers(1, 4, 200))
    scores = np.append(rng.beta(2, 4, size), rng.random(200)).round(digits) + shift
    order = rng.permutation(len(codes))
    scores, codes = scores[order], codes[order]
    everyone = AllGroups(count_rows(scores), np.arange(len(codes)), codes, len(codes))
    for group in range(4):  # one that is measured by stretches, and three that are not
        own = codes == group
        found, _, (points, counts), means, gap, values = everyone.against_rest(group, METRICS)
        direct = plain(scores, own)
        assert all(np.array_equal(*pair) for pair in zip(found, direct, strict=True))
        assert np.array_equal(np.repeat(points, counts.astype(int)), np.sort(scores[own]))
        assert means == pytest.approx((scores[own].mean(), scores[~own].mean()), rel=1e-9)
        assert gap == largest_gap(direct)
        exact = distances(scores[own], scores[~own], METRICS)
        assert values == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_few_scores_stand_for_many_and_nothing_is_lost(monkeypatch):
    """What is drawn from takes few of them, while distances, sizes and the gap take all."""
    rng = np.random.default_rng(3)
    monkeypatch.setattr(audit_record, "_SHARED", 2)  # still more than are resampled
    codes = rng.permutation(np.arange(20_000) % 50)
    scores = rng.normal(0.002 * codes, 1.0)
    found = audit(
        None,
        scores,
        sensitive_features=codes.astype(str),
        metrics=METRICS,
        options=AuditOptions(resamples=20, permutations=19),
    )
    assert len(found.findings) == 50 * len(METRICS)
    for one in found.findings[:: 5 * len(METRICS)]:
        own = codes == int(one.groups[0])
        exact = distances(scores[own], scores[~own], METRICS)
        same = {f.metric: f for f in found.findings if f.groups == one.groups}
        assert {name: f.value for name, f in same.items()} == pytest.approx(exact, rel=1e-9)
        unbiased = energy_distance(scores[own], scores[~own], unbiased=True)
        assert same["energy"].unbiased == pytest.approx(unbiased, abs=1e-6)
        assert one.sizes == (400, 19_600)
        assert one.means == pytest.approx((scores[own].mean(), scores[~own].mean()), rel=1e-9)
        for metric in ("kolmogorov", "wasserstein", "energy"):
            assert same[metric].interval.low <= same[metric].value <= same[metric].interval.high
            assert 0 < same[metric].p_value <= 1
        assert same["total_variation"].interval is None  # no bin keeps it


def test_a_small_group_costs_its_own_rows_only():
    """No pass over everyone's scores for a group of few: the time of all groups is linear in
    rows and groups.
    """
    rng = np.random.default_rng(4)
    codes, scores = rng.permutation(np.arange(40_000) % 400), rng.random(40_000)
    everyone = AllGroups(count_rows(scores), np.arange(40_000), codes, 64)
    for name in ("_order", "_place", "_count", "_upto", "_share", "values"):
        setattr(everyone, name, getattr(everyone, name).view(Watched))
    everyone._few = everyone._few._replace(bin_index=everyone._few.bin_index.view(Watched))
    everyone._running = [one.view(Watched) for one in everyone._running]
    Watched.seen.clear()
    for group in range(400):
        everyone.against_rest(group, METRICS)
    assert len(Watched.seen) > 400
    assert max(Watched.seen) <= 4 * 100  # a group has 100 rows, everyone 40,000


class Watched(np.ndarray):
    """An array that notes the length of what is computed from it."""

    seen: list[int] = []  # noqa: RUF012

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [np.asarray(one) if isinstance(one, Watched) else one for one in inputs]
        found = getattr(ufunc, method)(*plain, **options)
        self.seen.append(max(np.size(one) for one in [*plain, found]))
        return found


def test_labels_and_unknown_groups_are_seen_to():
    """Sets of rows, groups that are missing, and a group that one set lacks."""
    rng = np.random.default_rng(5)
    codes, scores = rng.integers(40, size=4_000), rng.random(4_000).round(3)
    labels = (rng.random(4_000) < scores).astype(int)
    labels[codes == 7] = 0
    names = np.where(rng.random(4_000) < 0.1, None, codes.astype(str).astype(object))
    found = audit(
        labels,
        scores,
        sensitive_features=names,
        metrics=["wasserstein"],
        options=AuditOptions(resamples=0, permutations=0),
    )
    known = names != None  # noqa: E711
    for one in found.findings:
        inside = (
            known
            & {
                "statistical_parity": True,
                "equal_opportunity": labels == 1,
                "predictive_equality": labels == 0,
            }[one.criterion]
        )
        own = names == one.groups[0]
        exact = distances(scores[inside & own], scores[inside & ~own], ["wasserstein"])[
            "wasserstein"
        ]
        assert one.value == pytest.approx(exact, rel=1e-9)
        assert one.sizes == (int((inside & own).sum()), int((inside & ~own).sum()))
    assert len(found.findings) == 40 + 39 + 40


def test_a_group_and_the_rest_are_permuted_over_bins_that_all_groups_share() -> None:
    rng = np.random.default_rng(3)
    scores, codes = rng.normal(size=40_000), rng.integers(0, 40, 40_000)
    everyone = AllGroups(count_rows(scores), np.arange(len(codes)), codes, 2**15)
    groups = [everyone.against_rest(group, ["kolmogorov"]) for group in (0, 39)]
    for one in groups:
        for ours, separate in zip(
            one.permuted(64).pair, in_pooled_bins(one.pair, 64).pair, strict=True
        ):
            np.testing.assert_array_equal(ours, separate)
    assert groups[0].permuted(64).shared is groups[1].permuted(64).shared
    assert groups[0].permuted(64).pair.left.sum() == (codes == 0).sum()


def test_the_mean_of_a_rest_has_no_part_of_the_group() -> None:
    """Scores of the group, however large, must not leave a rounding error in the mean of scores
    that are all 0.
    """
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(40), rng.integers(30, 200, 40))
    scores = np.where(codes == 7, 1e15 * rng.random(len(codes)), 0.0)
    everyone = AllGroups(count_rows(scores), np.arange(len(codes)), codes, len(codes))
    means = everyone.against_rest(7, METRICS).means
    assert means[0] == pytest.approx(scores[codes == 7].mean(), rel=1e-12)
    assert means[1] == 0.0
