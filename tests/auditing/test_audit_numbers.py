"""An audit of an attribute that is a number."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from metrifair import audit, audit_file, distance_correlation, energy_dependence, kolmogorov_distance
from metrifair.auditing.numbers import BandTable
from metrifair.errors import MetrifairWarning
from metrifair.problem.bands import cuts_of

FAST = {"random_state": 0, "permutations": 99, "resamples": 50}


def people(n: int = 400, seed: int = 0):
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 90, n).astype(float)
    score = np.clip(generator.normal(0.5, 0.15, n) - 0.2 * (age > 60), 0, 1).round(3)
    return score, age, generator.integers(2, size=n)


def of(found, metric: str):
    (one,) = [one for one in found.findings if one.metric == metric and one.attribute == "age"]
    return one


def test_the_worst_cut_and_the_dependence_are_found_and_said() -> None:
    score, age, sex = people()
    found = audit(score, sensitive_features={"age": age, "sex": sex}, continuous=["age"], **FAST)
    gaps = {cut: kolmogorov_distance(score[age <= cut], score[age > cut]) for cut in cuts_of(age)}
    worst = max(gaps, key=gaps.get)
    cut, dependence = of(found, "kolmogorov"), of(found, "energy")
    assert cut.value == pytest.approx(gaps[worst], abs=1e-12)
    assert cut.groups == (f"up to {worst:.0f}", f"above {worst:.0f}")
    assert cut.sizes == (int((age <= worst).sum()), int((age > worst).sum()))
    assert cut.cuts == len(gaps)
    assert cut.p_value == dependence.p_value == 0.01
    assert cut.value < cut.certified <= cut.certified_jointly
    assert dependence.value == pytest.approx(energy_dependence(score, age), rel=1e-12)
    assert 0 < dependence.interval.low < dependence.value < dependence.interval.high
    assert f"distance correlation is {distance_correlation(score, age):.3f}"[:32] in dependence.meaning
    assert cut.sentence.startswith(f"People of age above {worst:.0f} score lower: ")
    assert found.summary[0].startswith("The largest gap that is certain is between “up to")
    (bands,) = [one for one in found.decisions if one.attribute == "age"]
    assert len(bands.rates) == 5
    assert sum(rate.size for rate in bands.rates) == 400


def test_scores_of_chance_have_p_values_of_chance() -> None:
    """The maximum over all cuts is dealt anew as a whole: no more than their share of p-values is small."""
    generator = np.random.default_rng(0)
    small = {"kolmogorov": 0, "energy": 0}
    for _ in range(40):
        age, score = generator.integers(18, 90, 60).astype(float), generator.random(60)
        found = audit(
            score, sensitive_features={"age": age}, continuous=True, permutations=39, resamples=0, threshold=None
        )
        for metric in small:
            small[metric] += of(found, metric).p_value <= 0.2
    assert all(2 <= count <= 16 for count in small.values())  # 8 expected; beyond, once in a thousand runs


def test_the_table_gives_the_dependence_itself() -> None:
    score, age, _ = people(200)
    levels, scores = np.unique(age), np.unique(score)
    counts = np.zeros((len(levels), len(scores)))
    np.add.at(counts, (np.searchsorted(levels, age), np.searchsorted(scores, score)), 1)
    gaps = BandTable(counts, scores, levels).gaps()
    assert float(gaps.energy) == pytest.approx(energy_dependence(score, age), rel=1e-10)
    for place, cut in enumerate(levels[:-1]):
        expected = kolmogorov_distance(score[age <= cut], score[age > cut])
        assert gaps.kolmogorov[place] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_file_too_large_to_hold_says_the_same(tmp_path, weighted: bool) -> None:
    score, age, _ = people(3000)
    weight = np.random.default_rng(1).integers(1, 4, 3000).astype(float) if weighted else np.ones(3000)
    pl.DataFrame({"p": score, "age": age, "w": weight}).write_parquet(tmp_path / "s.parquet")
    options = {"score": "p", "group": "age", "continuous": True, **FAST, **({"weight": "w"} if weighted else {})}
    held, counted = (audit_file(tmp_path / "s.parquet", **options, in_memory_rows=most) for most in (10**6, 10))
    for metric, rounding in (("kolmogorov", 1e-3), ("energy", 3e-2), ("wasserstein", 3e-2)):
        assert of(counted, metric).value == pytest.approx(of(held, metric).value, rel=rounding)
    assert of(counted, "kolmogorov").groups == of(held, "kolmogorov").groups


def test_what_was_taken_for_a_number_is_said() -> None:
    score, age, _ = people(100)
    with pytest.warns(MetrifairWarning, match="'age' .* is taken as a number"):
        audit(score, sensitive_features={"age": age}, permutations=0, resamples=0)


def test_the_page_shows_the_cut(tmp_path) -> None:
    score, age, sex = people()
    audit(score, sensitive_features={"age": age, "sex": sex}, continuous=["age"], **FAST).to_html(
        tmp_path / "page.html"
    )
    page = (tmp_path / "page.html").read_text()
    assert "People of age above" in page
    assert "above 60" in page or "up to 60" in page


def test_independence_is_one_finding_of_all_groups(tmp_path) -> None:
    """The dependence on names, and the group that the rest differs from most, wherever the rows are."""
    score, age, _ = people(600)
    region = np.array(list("abcd"))[(age // 20).astype(int) % 4]
    found = audit(score, sensitive_features={"region": region}, contrast="independence", **FAST)
    kolmogorov, wasserstein, energy = found.findings
    gaps = {one: kolmogorov_distance(score[region == one], score[region != one]) for one in "abcd"}
    worst = max(gaps, key=gaps.get)
    assert kolmogorov.groups == (worst, "the rest")
    assert kolmogorov.value == pytest.approx(gaps[worst], abs=1e-12)
    assert wasserstein.value > 0
    assert energy.value == pytest.approx(energy_dependence(score, region), rel=1e-12)
    assert energy.interval.low < energy.value < energy.interval.high
    assert kolmogorov.p_value == energy.p_value == 0.01
    assert kolmogorov.value < kolmogorov.certified
    assert "Whichever of the 4 groups of region" in kolmogorov.meaning
    pl.DataFrame({"p": score, "region": region}).write_parquet(tmp_path / "s.parquet")
    counted = audit_file(
        tmp_path / "s.parquet", score="p", group="region", contrast="independence", in_memory_rows=10, **FAST
    )
    for ours, theirs in zip(found.findings, counted.findings, strict=True):
        assert theirs.value == pytest.approx(ours.value, rel=1e-3)
        assert theirs.groups == ours.groups


def test_the_table_of_groups_gives_the_dependence_itself() -> None:
    generator = np.random.default_rng(0)
    score, group = generator.random(200).round(2), generator.choice(list("abc"), 200, p=[0.6, 0.3, 0.1])
    score[group == "c"] /= 2
    names, scores = np.unique(group), np.unique(score)
    counts = np.zeros((3, len(scores)))
    np.add.at(counts, (np.searchsorted(names, group), np.searchsorted(scores, score)), 1)
    gaps = BandTable(counts, scores, np.arange(3.0), named=True).gaps()
    assert float(gaps.energy) == pytest.approx(energy_dependence(score, group), rel=1e-10)
    for place, name in enumerate(names):
        expected = kolmogorov_distance(score[group == name], score[group != name])
        assert gaps.kolmogorov[place] == pytest.approx(expected, abs=1e-10)
