"""The unit of the weights: sums of weights are in it, and no other figure depends on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from metrifair import (
    Audit,
    AuditOptions,
    AuditState,
    GroupProbabilities,
    audit,
    audit_file,
    audit_table,
)
from tests.seams.report import proxy_reliability_chart as proxy_chart
from tests.seams.report import reliability_chart

OPTIONS = AuditOptions(resamples=30, permutations=10)
OUT_OF_CORE = AuditOptions(resamples=30, permutations=10, in_memory_rows=0)
COUNT = 700


def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(5)
    group = generator.choice(["f", "m"], COUNT)
    score = generator.random(COUNT).round(2)
    label = (generator.random(COUNT) < score).astype(int)
    return group, score, label


def weights(kind: str) -> np.ndarray:
    generator = np.random.default_rng(6)
    if kind == "mixed":
        return generator.choice([0.001, 0.37, 1.0, 2.5, 100.0], COUNT)
    return np.full(COUNT, float(kind))


def from_memory(weight: np.ndarray, folder: Path) -> Audit:
    group, score, label = rows()
    return audit(
        label,
        score,
        sensitive_features=group,
        sample_weight=weight,
        random_state=0,
        options=OPTIONS,
    )


def people(weight: np.ndarray) -> pl.DataFrame:
    group, score, label = rows()
    return pl.DataFrame({"p": score, "y": label, "sex": group, "w": weight})


def from_file(weight: np.ndarray, folder: Path) -> Audit:
    people(weight).write_csv(folder / "people.csv")
    return audit_file(
        folder / "people.csv",
        score="p",
        label="y",
        group="sex",
        weight="w",
        random_state=0,
        options=OPTIONS,
    )


def from_counted_file(weight: np.ndarray, folder: Path) -> Audit:
    people(weight).write_parquet(folder / "people.parquet")
    return audit_file(
        folder / "people.parquet",
        score="p",
        label="y",
        group="sex",
        weight="w",
        random_state=0,
        options=OUT_OF_CORE,
    )


def from_table(weight: np.ndarray, folder: Path) -> Audit:
    return audit_table(
        people(weight),
        score="p",
        label="y",
        group="sex",
        weight="w",
        random_state=0,
        options=OUT_OF_CORE,
    )


def from_state(weight: np.ndarray, folder: Path) -> Audit:
    group, score, label = rows()
    state = AuditState().add(label, score, sensitive_features=group, sample_weight=weight)
    return state.audit(random_state=0, options=OPTIONS)


ENTRIES: list[Callable[[np.ndarray, Path], Audit]] = [
    from_memory,
    from_file,
    from_counted_file,
    from_table,
    from_state,
]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("kind", ["1", "0.37", "100", "mixed"])
def test_the_size_of_a_reliability_bin_is_the_sum_of_its_weights(
    entry: Callable[[np.ndarray, Path], Audit], kind: str, tmp_path: Path
) -> None:
    group, score, _ = rows()
    weight = weights(kind)
    (table,) = entry(weight, tmp_path).record.by_group
    for figures in table.groups:
        members = group == figures.group
        edges = np.arange(1, 10) / 10
        # a score at an edge is in the lower bin
        bins = np.digitize(score[members], edges, right=True)
        expected = [weight[members][bins == number].sum() for number in range(10)]
        sizes = [reliability_bin.size for reliability_bin in figures.reliability]
        assert len(sizes) == 10
        assert sizes == pytest.approx(expected, rel=1e-9)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a nested record, with its path."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, f"{path}.{key}")
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from leaves(part, f"{path}[{place}]")
    else:
        yield path, value


def figures_of(result: Audit) -> dict[str, Any]:
    record = json.loads(result.to_json())
    record.pop("provenance")
    return dict(leaves(record))


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("unit", [2.0**-20, 0.37, 100.0])
def test_only_sums_of_weights_change_with_their_unit(
    entry: Callable[[np.ndarray, Path], Audit], unit: float, tmp_path: Path
) -> None:
    weight = weights("mixed")
    before = figures_of(entry(weight, tmp_path))
    after = figures_of(entry(weight * unit, tmp_path))
    assert before.keys() == after.keys()
    assert sum(".reliability[" in path for path in before) > 20
    for path, value in before.items():
        factor = unit if ".reliability[" in path and path.endswith(".size") else 1.0
        if isinstance(value, float):
            assert after[path] == pytest.approx(value * factor, rel=1e-6, abs=1e-9), path
        else:
            assert after[path] == value, path


@pytest.mark.parametrize("unit", [1e-6, 0.37, 1.0, 100.0])
def test_the_calibration_chart_draws_the_same_bins_for_every_unit_of_weight(
    unit: float, tmp_path: Path
) -> None:
    for entry in ENTRIES:
        (table,) = entry(np.full(COUNT, unit), tmp_path).record.by_group
        assert [len(line.points) for line in reliability_chart(table).lines] == [10, 10]


def shares_of(group: np.ndarray) -> dict[str, np.ndarray]:
    probability = np.where(group == "f", 0.8, 0.3)
    return {"f": probability, "m": 1 - probability}


def by_probabilities(unit: float) -> Audit:
    """An audit by probabilities and known groups, where every row has the same weight."""
    group, score, label = rows()
    is_likely = np.random.default_rng(7).random(COUNT) < 0.75
    known = np.where(is_likely, group, np.where(group == "f", "m", "f"))
    proxy = GroupProbabilities(
        shares_of(group), attribute="sex", known_groups=known, with_labels="included"
    )
    return audit(
        label,
        score,
        sensitive_features=proxy,
        sample_weight=np.full(COUNT, unit),
        random_state=0,
        options=OPTIONS,
    )


@pytest.mark.parametrize("unit", [1e-6, 100.0])
def test_how_sure_shares_of_known_groups_are_depends_on_no_unit_of_weight(unit: float) -> None:
    one, other = by_probabilities(1.0).record.proxy, by_probabilities(unit).record.proxy
    assert one is not None
    assert other is not None
    for group, bins in one.reliability.items():
        assert len(bins) == 2
        for left, right in zip(bins, other.reliability[group], strict=True):
            assert right.rate == pytest.approx(left.rate, rel=1e-9)
            assert left.interval is not None
            assert right.interval is not None
            ends = right.interval.low, right.interval.high
            assert ends == pytest.approx((left.interval.low, left.interval.high), rel=1e-6)
            assert 0 < left.interval.low < left.rate < left.interval.high < 1


@pytest.mark.parametrize("unit", [1e-6, 100.0])
def test_the_chart_of_group_probabilities_draws_the_same_bins_for_every_unit_of_weight(
    unit: float,
) -> None:
    group, _, _ = rows()
    table = shares_of(group)
    result = by_probabilities(unit)
    (by_group,) = result.record.by_group
    for figures in by_group.groups:
        total = sum(reliability_bin.size for reliability_bin in figures.reliability)
        assert total == pytest.approx(table[figures.group].sum() * unit)
    assert result.record.proxy is not None
    for bins in result.record.proxy.reliability.values():
        assert sum(reliability_bin.size for reliability_bin in bins) == pytest.approx(COUNT * unit)
    assert [len(line.points) for line in proxy_chart(result.record.proxy).lines] == [2, 2]


def test_bins_of_few_rows_are_not_drawn_however_heavy_the_rows_are() -> None:
    group, score, label = rows()
    score = np.where(score > 0.9, 0.85, score)
    score[np.flatnonzero(group == "f")[:2]] = 0.95
    heavy = np.full(COUNT, 100.0)
    result = audit(
        label, score, sensitive_features=group, sample_weight=heavy, random_state=0, options=OPTIONS
    )
    (table,) = result.record.by_group
    assert [len(figures.reliability) for figures in table.groups] == [10, 9]
    assert [len(line.points) for line in reliability_chart(table).lines] == [9, 9]
