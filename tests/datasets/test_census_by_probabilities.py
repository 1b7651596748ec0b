"""Names and places on real rows: what an audit by group probabilities reports, and what is true."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks import proxies
from metrifair import AuditOptions, GroupProbabilities, audit, unfairness

RESULTS = Path(__file__).parents[2] / "docs/results"
OPTIONS = AuditOptions(resamples=0, permutations=0)


def adult(raw_data: Path) -> tuple[np.ndarray, np.ndarray]:
    """A score of the census rows (hours and years of school), and whether somebody is a woman."""
    with gzip.open(raw_data / "adult.data.gz", "rt") as file:
        rows = [line.strip().split(", ") for line in file if line.strip()]
    hours, school = (np.array([float(row[at]) for row in rows]) for at in (12, 4))
    married = np.array([row[7] in ("Husband", "Wife") for row in rows])
    woman = np.array([row[9] == "Female" for row in rows])
    return stats.norm.cdf(
        (hours - 40) / 12 + (school - 10) / 3 + 0.8 * married - 0.5
    ), woman.astype(float)


def by_signal(signal: np.ndarray, woman: np.ndarray) -> np.ndarray:
    """P(woman | signal), by shares within two hundred equal slices."""
    slices = np.argsort(np.argsort(signal)) * 200 // len(signal)
    return (np.bincount(slices, woman) / np.bincount(slices))[slices]


def test_names_and_places_on_census_rows(raw_data: Path) -> None:
    score, woman = adult(raw_data)
    random = np.random.default_rng(0)
    true = unfairness(None, score, sensitive_features=woman)
    for apart in (1.0, 2.0):
        share = by_signal(random.normal(apart * woman), woman)
        race = GroupProbabilities({"man": 1 - share, "woman": share}, attribute="sex")
        found = audit(None, score, sensitive_features=race, options=OPTIONS).findings[0]
        hard = unfairness(None, score, sensitive_features=share > 0.5)
        assert found.divided is not None
        assert found.value == pytest.approx(found.divided.r2 * true, rel=0.12)
        assert found.divided.value == pytest.approx(true, rel=0.12)
        assert found.value < hard < true  # of names, the most probable group is nearer
    share = by_signal(score + 1e-9 * random.normal(size=len(score)), woman)
    race = GroupProbabilities({"man": 1 - share, "woman": share}, attribute="sex")
    assert unfairness(None, score, sensitive_features=race) == pytest.approx(true, abs=0.02)
    # of places, it is far off
    assert unfairness(None, score, sensitive_features=share > 0.5) > 1.7 * true


def test_the_page_of_results_has_the_table_of_the_benchmark(raw_data: Path) -> None:
    """True figures and the most probable groups are computed by SciPy, from the file itself."""
    assert proxies.ends_table(raw_data) in (RESULTS / "group-probabilities.md").read_text(
        encoding="utf-8"
    )
    places, first, second = proxies.compas_ends(raw_data)
    with gzip.open(raw_data / "compas-scores-two-years.csv.gz", "rt", encoding="utf-8") as file:
        rows = [
            (row["race"] == "African-American", float(row["decile_score"]))
            for row in csv.DictReader(file)
        ]
    member, score = (np.array(part) for part in zip(*rows, strict=True))
    true = stats.ks_2samp(score[member], score[~member]).statistic
    assert places.true == pytest.approx(true, abs=1e-9)
    assert places.weighted == pytest.approx(true, abs=1e-9)
    assert places.most_probable > 3 * true
    for names in (first, second):
        assert names.weighted == pytest.approx(names.r2 * true, abs=0.01)
        assert names.divided == pytest.approx(true, abs=0.02)
        assert names.weighted < names.most_probable < true
