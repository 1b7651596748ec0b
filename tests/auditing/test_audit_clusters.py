"""Rows of one person depend on each other: intervals and tests of an audit with clusters allow
for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import combinations, pairwise
from math import erf, exp, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from metrifair import (
    Audit,
    AuditDifference,
    AuditOptions,
    AuditState,
    DataError,
    GroupProbabilities,
    audit,
    audit_file,
    audit_table,
    compare,
    monitor,
)
from tests.auditing.twosamples import two_samples
from tests.seams.auditing import (
    ClusterErrors,
    ClusterRows,
    TwoSamples,
    cluster_p_values,
    shares,
    sum_of_products,
)
from tests.seams.figures import share_correlations, share_size

PERSONS, EACH, CORRELATION, SHIFT = 60, 5, 0.5, 0.8
QUICK = AuditOptions(resamples=60, permutations=40, min_group_size=5)
NAMES = ("source", "provenance", "notes", "clusters")


class Rows:
    """Scores, labels and groups of persons with several rows each."""

    def __init__(self, seed: int = 0, *, persons: int = PERSONS, shift: float = SHIFT) -> None:
        random = np.random.default_rng(seed)
        self.person = np.repeat(np.arange(2 * persons), EACH)
        self.group = np.repeat(["a", "b"], persons * EACH)
        common = random.normal(size=2 * persons)[self.person]
        own = random.normal(size=len(self.person))
        self.score = (
            sqrt(CORRELATION) * common + sqrt(1 - CORRELATION) * own + shift * (self.group == "b")
        )
        self.probability = 1 / (1 + np.exp(-self.score))
        self.label = (random.random(len(self.person)) < self.probability).astype(int)
        self.age = random.uniform(20, 70, 2 * persons)[self.person]

    def table(self, clusters: Any) -> pl.DataFrame:
        """The rows as columns."""
        names = {
            "s": self.probability,
            "t": self.probability**1.1,
            "sex": self.group,
            "y": self.label,
        }
        return pl.DataFrame(names | {"person": pl.Series(list(clusters))})


ROWS = Rows()


def in_memory(clusters: Any, folder: Path) -> Any:
    given = {} if clusters is None else {"clusters": clusters}
    group = {"sex": ROWS.group}
    return audit(
        ROWS.label,
        ROWS.probability,
        sensitive_features=group,
        random_state=0,
        options=QUICK,
        **given,
    )


def of_models(clusters: Any, folder: Path) -> Any:
    given = {} if clusters is None else {"clusters": clusters}
    scores = {"old": ROWS.probability, "new": ROWS.probability**1.1}
    return audit(
        ROWS.label,
        scores,
        sensitive_features={"sex": ROWS.group},
        random_state=0,
        options=QUICK,
        **given,
    )


def of_a_number(clusters: Any, folder: Path) -> Any:
    given = {} if clusters is None else {"clusters": clusters}
    return audit(
        ROWS.label,
        ROWS.probability,
        sensitive_features={"age": ROWS.age},
        continuous=True,
        random_state=0,
        options=QUICK,
        **given,
    )


def of_a_file(clusters: Any, folder: Path) -> Any:
    given = {} if clusters is None else {"clusters": "person"}
    ROWS.table(np.arange(len(ROWS.group)) if clusters is None else clusters).write_parquet(
        folder / "rows.parquet"
    )
    roles = {"score": "s", "group": "sex", "label": "y"}
    return audit_file(folder / "rows.parquet", **roles, random_state=0, options=QUICK, **given)


def of_a_table(clusters: Any, folder: Path) -> Any:
    given = {} if clusters is None else {"clusters": "person"}
    table = ROWS.table(np.arange(len(ROWS.group)) if clusters is None else clusters)
    return audit_table(
        table, score=["s", "t"], group="sex", label="y", random_state=0, options=QUICK, **given
    )


def weighted(clusters: Any, folder: Path) -> Any:
    given = {} if clusters is None else {"clusters": clusters}
    weight = np.tile([1.0, 2.0, 0.5, 1.5], len(ROWS.group) // 4)
    return audit(
        ROWS.label,
        ROWS.probability,
        sensitive_features={"sex": ROWS.group},
        sample_weight=weight,
        random_state=0,
        options=QUICK,
        **given,
    )


ENTRIES: list[Callable[[Any, Path], Any]] = [
    in_memory,
    of_models,
    of_a_number,
    of_a_file,
    of_a_table,
    weighted,
]


def figures(result: Audit | AuditDifference) -> list[Any]:
    """All figures of a result, without the words on clusters."""
    if isinstance(result, AuditDifference):
        audits = [figure for audit in result.audits.values() for figure in figures(audit)]
        return [*audits, *result.differences]
    record = result.record
    values = [getattr(record, field.name) for field in fields(record) if field.name not in NAMES]
    return [*values, result.by_group({"mean": mean_label}).record]


def mean_label(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    return float(np.average(y_true, weights=sample_weight))


@pytest.mark.parametrize("entry", ENTRIES)
def test_clusters_of_one_row_change_no_figure(
    entry: Callable[[Any, Path], Any], tmp_path: Path
) -> None:
    assert figures(entry(None, tmp_path)) == figures(entry(np.arange(len(ROWS.group)), tmp_path))


@pytest.mark.parametrize("entry", ENTRIES)
def test_clusters_change_intervals_and_no_value(
    entry: Callable[[Any, Path], Any], tmp_path: Path
) -> None:
    alone, together = entry(None, tmp_path), entry(ROWS.person, tmp_path)
    if isinstance(alone, AuditDifference):
        alone, together = (
            alone.audits[next(iter(alone.audits))],
            together.audits[next(iter(together.audits))],
        )
    for one, other in zip(alone.findings, together.findings, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-12)
        assert (one.sizes, one.groups) == (other.sizes, other.groups)
        assert other.clusters is not None
        assert (
            other.certified is other.certified_jointly is other.unbiased is other.detectable is None
        )
    assert together.record.clusters.count == 2 * PERSONS
    assert [note.kind for note in together.notes].count("clustered_rows") == 1
    assert together.provenance.columns["cluster"] == [together.record.clusters.column]


@pytest.mark.parametrize("entry", ENTRIES)
def test_values_of_clusters_have_no_type(entry: Callable[[Any, Path], Any], tmp_path: Path) -> None:
    """100 rows of the first group are of two clusters; each other row, without a value, is one
    of its own.
    """
    flag = np.arange(len(ROWS.group)) % 2 == 0
    known = np.arange(len(ROWS.group)) < 100
    spellings = [(True, False), (1, 0), ("1", "0"), ("True", "False"), ("yes", "no"), (1.0, 0.0)]
    results = [
        figures(
            entry(
                [values[not one] if has else None for one, has in zip(flag, known, strict=True)],
                tmp_path,
            )
        )
        for values in spellings
    ]
    assert all(first == second for first, second in pairwise(results))


def test_a_row_order_changes_no_p_value_and_names_of_clusters_neither() -> None:
    order = np.random.default_rng(1).permutation(len(ROWS.group))
    name = np.array([f"person {number}" for number in ROWS.person])
    results = [
        audit(
            None, score, sensitive_features=group, clusters=clusters, random_state=0, options=QUICK
        )
        for score, group, clusters in (
            (ROWS.score, ROWS.group, ROWS.person),
            (ROWS.score[order], ROWS.group[order], name[order]),
        )
    ]
    first, second = ([finding.p_value for finding in result.findings] for result in results)
    assert first == second


@pytest.mark.parametrize("score", ["score", "decision"])
def test_copies_of_rows_in_clusters_say_no_more_than_the_rows(score: str) -> None:
    """Five copies without clusters have intervals that are narrower by the root of five."""
    rows = Rows(3, persons=100)
    group, values = rows.group[::EACH], rows.score[::EACH]
    values = (values > 0.4).astype(float) if score == "decision" else values
    copies = np.repeat(np.arange(len(group)), 5)
    options = AuditOptions(resamples=2000, permutations=0)
    single, clustered, naive = (
        audit(
            None, values[at], sensitive_features=group[at], random_state=0, options=options, **given
        )
        for at, given in (
            (np.arange(len(group)), {}),
            (copies, {"clusters": copies}),
            (copies, {}),
        )
    )
    for one, same, narrow in zip(single.findings, clustered.findings, naive.findings, strict=True):
        assert one.interval is not None
        assert same.interval is not None
        assert narrow.interval is not None
        width = one.interval.high - one.interval.low
        assert same.value == pytest.approx(one.value, rel=1e-12)
        assert same.interval.low == pytest.approx(one.interval.low, abs=0.1 * width)
        assert same.interval.high == pytest.approx(one.interval.high, abs=0.1 * width)
        assert narrow.interval.high - narrow.interval.low < 0.6 * width
    for result in (single, clustered):
        assert result.findings[0].enough
    if score == "decision":
        for one, same in zip(single.decisions[0].rates, clustered.decisions[0].rates, strict=True):
            assert one.interval is not None
            assert same.interval is not None
            assert same.interval.low == pytest.approx(one.interval.low, abs=0.01)
            assert same.interval.high == pytest.approx(one.interval.high, abs=0.01)
            assert same.p_value is None


@pytest.mark.oracle("Finding.clusters", "GroupFigures.clusters", "GroupRates.clusters")
def test_the_minimum_group_size_counts_clusters() -> None:
    rows = Rows(persons=25)
    found = audit(
        rows.label,
        rows.probability,
        sensitive_features=rows.group,
        clusters=rows.person,
        random_state=0,
    )
    assert all(
        finding.sizes[0] >= 30 and not finding.enough
        for finding in found.findings
        if not finding.conditions
    )
    assert all(
        rate.few and rate.clusters == 25 and rate.size == 125 for rate in found.decisions[0].rates
    )
    assert {finding.clusters for finding in found.findings if not finding.conditions} == {(25, 25)}
    assert [group.clusters for group in found.record.by_group[0].groups] == [25, 25]
    (text,) = [text for text in found.note_texts() if "minimum group size of" in text]
    assert "30 clusters" in text
    assert "(25 clusters in everyone)" in text
    assert "fewer than 30 clusters" in found.summary.splitlines()[0]


# --- oracles


def tiny(seed: int, *, mixed: bool) -> tuple[TwoSamples, ClusterRows, np.ndarray, np.ndarray]:
    """Few rows in clusters of different sizes, with weights; ``mixed``: clusters have rows on
    both sides.
    """
    random = np.random.default_rng(seed)
    cluster = np.sort(random.integers(14, size=40))
    score = np.round(random.normal(size=40), 1)
    on_left = random.random(40) < 0.5 if mixed else cluster % 2 == 0
    weight = random.uniform(0.5, 2, 40)
    pair = two_samples(score, on_left, weight)
    place = np.searchsorted(pair.values, score)
    return pair, ClusterRows.of(place, cluster, weight * on_left, weight * ~on_left), cluster, score


@pytest.mark.parametrize("mixed", [False, True])
def test_the_noise_has_the_covariance_of_the_clusters(mixed: bool) -> None:
    """Each cluster's rows, less its share of the side, scaled by 1 - its share: summed cluster
    by cluster.
    """
    pair, rows, cluster, _ = tiny(0, mixed=mixed)
    added = 4.0
    errors, width = ClusterErrors(pair, rows, added), len(pair.values)
    expected = np.zeros((width, width))
    for side, size in zip(pair[1:], rows.sizes, strict=True):
        variance = added * (shares(pair.left) + shares(pair.right)) / 2 / size / (size + added)
        centered = np.eye(width) - np.outer(shares(side), np.ones(width))
        expected += centered @ np.diag(variance) @ centered.T
    kept = [np.sqrt(size / (size + added)) for size in rows.sizes]
    for number in np.unique(cluster):
        inside, residual = cluster == number, np.zeros(width)
        for sign, side, share in (
            (kept[0], rows.left, shares(pair.left)),
            (-kept[1], rows.right, shares(pair.right)),
        ):
            own = np.bincount(rows.place[inside], side[inside], width)
            residual += sign * (own - own.sum() * share) / np.sqrt(1 - own.sum())
        expected += np.outer(residual, residual)
    normals = np.eye(width)
    root = errors.noise(normals)
    assert root.T @ root == pytest.approx(expected, abs=1e-8)
    utility = np.random.default_rng(1).normal(size=width)
    deviations = utility - shares(pair.left) @ utility, utility - shares(pair.right) @ utility
    _, variance, _ = errors.gap_moments(deviations)
    assert variance == pytest.approx(utility @ expected @ utility, rel=1e-9)


@pytest.mark.parametrize("width", [3, 40, 200])
def test_products_of_few_and_of_many_scores_in_a_cluster_are_those_of_a_table(width: int) -> None:
    random = np.random.default_rng(0)
    cluster = np.concatenate([np.zeros(90, np.int64), random.integers(1, 30, 60)])
    place, values = random.integers(width, size=150), random.normal(size=150)
    table = np.zeros((30, width))
    np.add.at(table, (cluster, place), values)
    assert sum_of_products(place, cluster, values, width) == pytest.approx(table.T @ table)


def test_p_values_of_a_tiny_sample_are_those_of_all_permutations_of_clusters() -> None:
    cluster = np.repeat(np.arange(7), [1, 3, 2, 4, 1, 2, 3])
    score = np.round(np.random.default_rng(2).normal(size=16) + (cluster > 3), 1)
    on_left = cluster < 3
    pair = two_samples(score, on_left)
    rows = ClusterRows.of(
        np.searchsorted(pair.values, score), cluster, 1.0 * on_left, 1.0 * ~on_left
    )
    observed, times = np.abs(score[on_left].mean() - score[~on_left].mean()), 0
    gap = wasserstein(score, on_left)
    everything = list(combinations(range(7), 3))
    for chosen in everything:
        times += wasserstein(score, np.isin(cluster, chosen)) >= gap - 1e-12
    generator = np.random.default_rng(0)
    found = cluster_p_values(
        pair, ["wasserstein"], permutations=20_000, generator=generator, rows=rows
    )
    assert observed > 0
    assert found["wasserstein"] == pytest.approx(times / len(everything), abs=0.02)


def wasserstein(score: np.ndarray, on_left: Any) -> float:
    grid = np.unique(score)
    below = [
        np.array([(side <= point).mean() for point in grid])
        for side in (score[on_left], score[~on_left])
    ]
    return float(np.abs(below[0] - below[1])[:-1] @ np.diff(grid))


def test_a_share_is_worth_as_many_rows_as_the_design_effect_says() -> None:
    """Many clusters of four rows: 1 + 3 r, where r is the correlation of two rows of one
    cluster.
    """
    random = np.random.default_rng(0)
    cluster = np.repeat(np.arange(5000), 4)
    alike = random.random(5000)[cluster] < 0.5
    value = np.where(alike, random.random(5000)[cluster], random.random(20_000)) < 0.3
    table = value.reshape(-1, 4) - value.mean()
    correlation = (
        np.mean([(table[:, i] * table[:, j]).mean() for i, j in combinations(range(4), 2)])
        / table.var()
    )
    assert share_size(value, np.ones(20_000), cluster) == pytest.approx(
        20_000 / (1 + 3 * correlation), rel=0.01
    )
    none = np.zeros(20_000, np.bool_)
    assert share_size(none, np.ones(20_000), cluster) == 5000


def test_a_share_that_is_the_same_in_every_cluster_is_as_sure_as_that_of_single_rows() -> None:
    """Its variance between clusters is 0. The size lies between those of clusters and of rows."""
    half = np.tile([True, False], 50)
    assert 25 < share_size(half, np.ones(100), np.repeat(np.arange(25), 4)) <= 100


def test_rates_of_groups_in_the_same_clusters_are_correlated() -> None:
    random = np.random.default_rng(0)
    cluster, group = np.repeat(np.arange(400), 2), np.tile([0, 1], 400)
    value = np.where(
        random.random(800) < 0.6, (random.random(400) < 0.4)[cluster], random.random(800) < 0.4
    )
    expected = np.corrcoef(value[group == 0], value[group == 1])
    assert share_correlations(value, np.ones(800), group, cluster) == pytest.approx(expected)


def test_the_error_of_an_auc_is_that_of_resampled_clusters() -> None:
    rows = Rows(5, persons=150)
    (table,) = audit(
        rows.label,
        rows.probability,
        sensitive_features=rows.group,
        clusters=rows.person,
        options=QUICK,
    ).record.by_group
    random, inside = np.random.default_rng(0), rows.group == "a"
    score, label, person = rows.probability[inside], rows.label[inside], rows.person[inside]
    values = []
    for _ in range(400):
        drawn = np.concatenate(
            [np.flatnonzero(person == number) for number in random.integers(150, size=150)]
        )
        values.append(area(score[drawn], label[drawn]))
    auc, error = table.groups[0].auc, float(np.std(values))
    assert auc is not None
    assert auc.interval is not None
    assert auc.value == pytest.approx(area(score, label))
    assert auc.interval.high - auc.interval.low == pytest.approx(2 * 1.96 * error, rel=0.12)


def area(score: np.ndarray, label: Any) -> float:
    above = score[label == 1][:, None] - score[label == 0][None, :]
    return float(((above > 0) + (above == 0) / 2).mean())


# --- comparisons and series


def test_two_models_on_the_same_rows_are_paired_by_clusters() -> None:
    """Five copies of each row, in clusters: the difference of two models is as uncertain as on
    the rows.
    """
    rows = Rows(4, persons=150)
    first = slice(None, None, EACH)
    score, group = rows.probability[first], rows.group[first]
    other = np.clip(
        score + np.random.default_rng(0).normal(0, 0.1, len(score)) + 0.15 * (group == "b"), 0, 1
    )
    copies = np.repeat(np.arange(len(score)), 5)
    options = AuditOptions(resamples=1000, permutations=0)
    single, clustered, naive = (
        audit(
            None,
            {"old": score[at], "new": other[at]},
            sensitive_features=group[at],
            metrics="wasserstein",
            threshold=None,
            random_state=0,
            options=options,
            **given,
        ).differences[0]
        for at, given in ((np.arange(len(score)), {}), (copies, {"clusters": copies}), (copies, {}))
    )
    widths = [
        one.interval.high - one.interval.low
        for one in (single, clustered, naive)
        if one.interval is not None
    ]
    assert widths[1] == pytest.approx(widths[0], rel=0.1)
    assert widths[2] < 0.6 * widths[0]


def audited(seed: int, clusters: bool, shift: float = SHIFT) -> Audit:
    rows = Rows(seed, shift=shift)
    given = {"clusters": {"person": rows.person}} if clusters else {}
    return audit(
        None,
        rows.score,
        sensitive_features={"sex": rows.group},
        random_state=0,
        options=QUICK,
        **given,
    )


def test_different_rows_may_be_of_the_same_clusters() -> None:
    one, two = audited(0, True), audited(1, True)
    any_correlation, different = compare(one, two), compare(one, two, paired=False)
    assert (any_correlation.record.pairing, different.record.pairing) == ("clusters", "independent")
    for wide, narrow in zip(any_correlation.differences, different.differences, strict=True):
        assert wide.interval is not None
        assert narrow.interval is not None
        assert wide.interval.low < narrow.interval.low
        assert wide.interval.high > narrow.interval.high
    assert any(
        "a cluster may have rows in several" in sentence
        for sentence in any_correlation.summary.splitlines()
    )


def test_compare_and_monitor_refuse_audits_without_the_clusters(tmp_path: Path) -> None:
    clustered, plain = audited(0, True), audited(1, False)
    state = AuditState().add(None, ROWS.probability, sensitive_features={"sex": ROWS.group})
    assert compare(clustered, audited(1, True), clusters="person").differences
    assert monitor([clustered, audited(1, True)], clusters="person").record.clustered
    for refused, words in (
        (
            lambda: compare(clustered, plain),
            "before has clusters of rows, and after treats rows as independent",
        ),
        (lambda: monitor([clustered, plain]), "treats rows as independent"),
        (
            lambda: compare(clustered, audited(1, True), clusters="id"),
            "clusters must be 'person', as in before",
        ),
        (lambda: compare(plain, plain, clusters="person"), "clusters does not apply to before"),
        (lambda: monitor([state, state], clusters="person"), "counts contain no clusters"),
        (
            lambda: compare(clustered, clustered, clusters=ROWS.person),
            "must be the name of a column",
        ),
    ):
        with pytest.raises(DataError, match=words):
            refused()


def test_a_series_of_clustered_audits_allows_for_persons_at_several_looks() -> None:
    looks = [audited(seed, True, shift) for seed, shift in ((0, 0.8), (1, 0.8), (2, 4.0))]
    series = monitor(looks)
    assert {look.look for look in series.alarms} == {"look 3"}
    assert all(not look.exact for look in series.record.series)
    few = [
        replace(look.record, findings=[replace(f, clusters=(20, 20)) for f in look.findings])
        for look in looks
    ]
    assert all(
        baseline.enough is False
        for baseline in monitor([Audit(record) for record in few]).record.baselines
    )


def test_what_cannot_be_right_with_clusters_is_refused_in_words(tmp_path: Path) -> None:
    ROWS.table(ROWS.person).write_csv(tmp_path / "rows.csv")
    roles = {"score": "s", "group": "sex", "clusters": "person"}
    proxy = GroupProbabilities({"f": np.full(600, 0.3), "m": np.full(600, 0.7)}, attribute="sex")
    small = AuditOptions(in_memory_rows=100)
    for refused, words in (
        (
            lambda: audit_file(tmp_path / "rows.csv", **roles, options=small),
            "clusters needs rows in memory",
        ),
        (
            lambda: audit_table(ROWS.table(ROWS.person), **roles, options=small),
            "clusters needs rows in memory",
        ),
        (
            lambda: audit(None, ROWS.score, sensitive_features=proxy, clusters=ROWS.person),
            "probabilities of groups",
        ),
        (
            lambda: in_memory(ROWS.person, tmp_path).to_evidence(tmp_path / "evidence"),
            "counts of scores",
        ),
        (
            lambda: AuditState().add(
                None, ROWS.score, sensitive_features=proxy, clusters=ROWS.person
            ),
            "counts of scores",
        ),
        (lambda: in_memory(ROWS.person[:-1], tmp_path), "clusters"),
        (
            lambda: audit_file(tmp_path / "rows.csv", **roles | {"clusters": "s"}),
            "both name the column 's'",
        ),
    ):
        with pytest.raises(DataError, match=words):
            refused()


def test_an_id_that_repeats_is_noted_where_the_column_is_known(tmp_path: Path) -> None:
    table = ROWS.table(ROWS.person).rename({"person": "person_id"})
    table = table.with_columns(row_id=np.arange(len(table)), state_id=np.arange(len(table)) % 3)
    table.write_csv(tmp_path / "rows.csv")
    roles = {"score": "s", "group": "sex", "random_state": 0, "options": QUICK}
    for result in (audit_file(tmp_path / "rows.csv", **roles), audit_table(table, **roles)):
        (note,) = [note for note in result.notes if note.kind == "repeated_ids"]
        assert note.facts == {"column": "person_id", "values": 2 * PERSONS, "rows": len(table)}
    clustered = audit_file(tmp_path / "rows.csv", clusters="person_id", **roles)
    assert "repeated_ids" not in {note.kind for note in clustered.notes}


def test_a_number_that_differs_within_a_cluster_is_tested_too() -> None:
    """Rows of a person depend on each other: without clusters, an unrelated age is significant
    far too often.
    """
    rejected = {True: 0, False: 0}
    for seed in range(40):
        rows = Rows(seed, shift=0.0)
        age = rows.age + np.tile(np.arange(EACH), 2 * PERSONS)
        for clusters in (True, False):
            found = audit(
                None,
                rows.score,
                sensitive_features={"age": age},
                continuous=True,
                metrics="energy",
                random_state=seed,
                options=AuditOptions(permutations=99, resamples=0),
                **({"clusters": rows.person} if clusters else {}),
            ).findings[0]
            assert found.p_value is not None
            rejected[clusters] += found.p_value <= 0.05
    assert rejected[True] <= 6
    assert rejected[False] >= 8


# --- coverage and size


def true_distances(shift: float) -> dict[str, float]:
    """Of two normal distributions with variance 1."""

    def below(x: float) -> float:
        return (1 + erf(x / sqrt(2))) / 2

    def mean_size(mean: float) -> float:  # of a normal number with variance 2
        deviation = sqrt(2)
        density = deviation * sqrt(2 / pi) * exp(-((mean / deviation) ** 2) / 2)
        return density + mean * (1 - 2 * below(-mean / deviation))

    energy = 2 * mean_size(shift) - 2 * mean_size(0.0)
    return {
        "wasserstein": shift,
        "kolmogorov": 2 * below(shift / 2) - 1,
        "energy": energy,
        "rate": 1 - below(0.4),
    }


def coverage(data_sets: int, *, clusters: bool) -> dict[str, float]:
    """The share of intervals that cover the truth, of distances, of the difference of two rates
    and of a rate.
    """
    truth = true_distances(SHIFT)
    truth["rates"] = truth["kolmogorov"]  # the share above the middle differs by as much
    covered = dict.fromkeys(truth, 0)
    options = AuditOptions(resamples=300, permutations=0)
    for seed in range(data_sets):
        rows = Rows(seed)
        given: dict[str, Any] = {"clusters": rows.person} if clusters else {}
        given |= {"sensitive_features": rows.group, "random_state": seed, "options": options}
        for finding in audit(None, rows.score, **given).findings:
            assert finding.interval is not None
            covered[finding.metric] += (
                finding.interval.low <= truth[finding.metric] <= finding.interval.high
            )
        decided = audit(None, (rows.score > 0.4).astype(float), metrics="kolmogorov", **given)
        for name, interval in (
            ("rates", decided.findings[0].interval),
            ("rate", decided.decisions[0].rates[0].interval),
        ):
            assert interval is not None
            covered[name] += interval.low <= truth[name] <= interval.high
    return {name: times / data_sets for name, times in covered.items()}


@pytest.mark.slow(rotate=False)
def test_intervals_of_clustered_rows_cover_in_93_to_97_percent_of_250_data_sets() -> None:
    """300 and 300 rows, five a person, correlated by 0.5: without clusters, about 80 %.

    Two standard errors of a share of 250 are 2.7 %: they are granted around 93 and 97 %.
    """
    for name, share in coverage(250, clusters=True).items():
        assert 0.93 - 0.027 <= share <= 0.97 + 0.027, name
    assert max(coverage(100, clusters=False).values()) < 0.9


@pytest.mark.slow(rotate=False)
def test_the_page_has_the_coverage_of_1000_data_sets() -> None:
    text = (Path(__file__).parents[2] / "docs" / "results" / "differences.md").read_text()
    columns = ("kolmogorov", "wasserstein", "energy", "rate", "rates")
    for row, clusters in (("with `clusters`", True), ("without", False)):
        (line,) = re.findall(rf"^\| {row} \| (.*) \|$", text, re.MULTILINE)
        printed = [float(figure) for figure in line.split(" | ")]
        computed = coverage(1000, clusters=clusters)
        assert printed == pytest.approx([100 * computed[name] for name in columns], abs=0.5)
        assert all(93 < figure < 97 for figure in printed) == clusters


@pytest.mark.slow(rotate=False)
def test_tests_of_clusters_have_their_size() -> None:
    """No gap, five rows a person: at most one p-value in twenty is below 0.05, but for two
    standard errors.
    """
    rejected = dict.fromkeys(("kolmogorov", "wasserstein", "energy"), 0)
    for seed in range(250):
        rows = Rows(seed, shift=0.0)
        options = AuditOptions(resamples=200, permutations=199)
        result = audit(
            None,
            rows.score,
            sensitive_features=rows.group,
            clusters=rows.person,
            random_state=seed,
            options=options,
        )
        for finding in result.findings:
            assert finding.p_value is not None
            rejected[finding.metric] += finding.p_value <= 0.05
    for metric, times in rejected.items():
        assert 0.01 <= times / 250 <= 0.05 + 0.028, metric


@pytest.mark.slow
def test_a_test_keeps_its_size_where_clusters_of_the_groups_differ_in_size() -> None:
    """20 persons with 2 rows, 150 with 15: permutations alone, which mix them, are significant
    in one case of five.
    """
    person = np.repeat(np.arange(170), np.repeat([2, 15], [20, 150]))
    on_left = person < 20
    rejected, by_permutation = 0, 0
    options = AuditOptions(resamples=100, permutations=99, min_group_size=5)
    for seed in range(60):
        random = np.random.default_rng(seed)
        score = sqrt(0.5) * random.normal(size=170)[person] + sqrt(0.5) * random.normal(
            size=len(person)
        )
        finding = audit(
            None,
            score,
            sensitive_features=on_left,
            clusters=person,
            metrics="kolmogorov",
            random_state=seed,
            options=options,
        ).findings[0]
        pair = two_samples(score, on_left)
        rows = ClusterRows.of(
            np.searchsorted(pair.values, score), person, 1.0 * on_left, 1.0 * ~on_left
        )
        alone = cluster_p_values(
            pair, ["kolmogorov"], permutations=99, generator=random, rows=rows
        )["kolmogorov"]
        assert finding.p_value is not None
        assert alone is not None
        rejected += finding.p_value <= 0.05
        by_permutation += alone <= 0.05
    assert rejected <= 0.05 * 60 + 3
    assert by_permutation >= 0.1 * 60
