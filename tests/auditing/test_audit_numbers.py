"""An audit of an attribute that is a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy.stats import ks_2samp

from metrifair import AuditOptions, AuditState, audit, audit_file
from metrifair.cli import main
from metrifair.criteria import criterion_named
from metrifair.errors import MetrifairWarning
from metrifair.metrics import (
    distance_correlation,
    energy_dependence,
    kolmogorov_distance,
    wasserstein_distance,
)
from tests.flat_options import flat
from tests.seams.auditing import (
    Bands,
    BandTable,
    Finding,
    MemorySource,
    Request,
    _scan_cuts,
    parts_for,
    significance,
)
from tests.seams.figures import Interval
from tests.seams.problem import candidate_cuts, coded_columns, number_facts, numbers_warning
from tests.seams.wording import finding_meaning, finding_sentence

FAST = {"random_state": 0, "permutations": 99, "resamples": 50}


def people(n: int = 400, seed: int = 0):
    generator = np.random.default_rng(seed)
    age = generator.integers(18, 90, n).astype(float)
    score = np.clip(generator.normal(0.5, 0.15, n) - 0.2 * (age > 60), 0, 1).round(3)
    return score, age, generator.integers(2, size=n)


def of(found, metric: str):
    (one,) = [one for one in found.findings if one.metric == metric and one.attribute == "age"]
    return one


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("dependent", [True, False, None])
@pytest.mark.parametrize("p_value", [0.01, 0.2])
def test_a_cut_is_significant_only_after_the_dependence(
    joint: bool, dependent: bool | None, p_value: float
) -> None:
    """So that all metrics of an attribute keep the level together; other attributes do not
    matter.
    """

    def finding(metric: str, attribute: str = "age", p_value: float = p_value, **more) -> Finding:
        sizes, groups = (100, 100), ("≤40", ">40")
        return Finding(
            attribute,
            "statistical_parity",
            "everyone",
            groups,
            sizes,
            metric,
            0.1,
            cuts=9,
            p_value=p_value,
            **more,
        )

    energy = {"joint_interval": Interval(0.1 * bool(dependent), 0.5)} if joint else {}
    cuts = [finding("wasserstein"), finding("wasserstein", "height")]
    dependence = [
        finding("energy", p_value=0.001 if dependent else 0.5, **energy),
        finding("energy", "height", 0.001),
    ]
    findings = cuts if dependent is None else [*cuts, *dependence]
    own, other, *_ = significance.with_significance(findings, 0.95, 999)
    assert own.significant == (p_value < 0.025 and dependent is not False)
    assert other.significant == (p_value < 0.025)
    assert own.tested_by == other.tested_by == "bonferroni"


@pytest.mark.oracle("Finding.cuts", "Finding.cut", "Finding.correlation")
def test_the_worst_cut_and_the_dependence_are_found_and_said() -> None:
    score, age, sex = people()
    found = audit(
        None, score, sensitive_features={"age": age, "sex": sex}, continuous=["age"], **flat(**FAST)
    )
    cuts = [cut for cut in candidate_cuts(age) if min((age <= cut).sum(), (age > cut).sum()) >= 30]
    gaps = {cut: kolmogorov_distance(score[age <= cut], score[age > cut]) for cut in cuts}
    worst = max(gaps, key=gaps.get)
    cut, dependence = of(found, "kolmogorov"), of(found, "energy")
    assert cut.value == pytest.approx(gaps[worst], abs=1e-12)
    assert cut.groups == (f"≤{worst:.0f}", f">{worst:.0f}")
    assert cut.sizes == (int((age <= worst).sum()), int((age > worst).sum()))
    assert cut.cuts == len(gaps)
    assert cut.p_value == dependence.p_value == 0.01
    assert cut.value < cut.certified <= cut.certified_jointly
    assert dependence.value == pytest.approx(energy_dependence(score, age), rel=1e-12)
    assert 0 < dependence.interval.low < dependence.value < dependence.interval.high
    assert dependence.correlation == pytest.approx(distance_correlation(score, age))
    assert f"distance correlation is {distance_correlation(score, age):.3f}"[
        :32
    ] in finding_meaning(dependence)
    assert finding_sentence(cut).startswith(f"Scores are lower for age above {worst:.0f}: ")
    assert found.summary.splitlines()[0].startswith("The largest significant gap is ")
    assert " between “≤" in found.summary.splitlines()[0]
    (bands,) = [one for one in found.decisions if one.attribute == "age"]
    assert len(bands.rates) == 5
    assert sum(rate.size for rate in bands.rates) == 400


def ends_over_all_cuts(
    score: np.ndarray, age: np.ndarray, cuts: list[float], functions: int, level: float
) -> tuple[float, float]:
    """The largest gap lies between these ends, by the inequality of Dvoretzky, Kiefer, Wolfowitz
    and Massart for so many distribution functions.
    """
    lower, upper = [], []
    for cut in cuts:
        young, old = score[age <= cut], score[age > cut]
        gap = ks_2samp(young, old).statistic
        radius = sum(
            np.sqrt(np.log(2 * functions / level) / (2 * len(side))) for side in (young, old)
        )
        lower.append(gap - radius)
        upper.append(gap + radius)
    return max(lower), max(upper)


@pytest.mark.oracle("Finding.certified", "Finding.certified_jointly", "Finding.joint_interval")
def test_bounds_at_the_worst_cut_hold_for_all_cuts_at_once() -> None:
    score, age, sex = people(8000)
    found = audit(
        None, score, sensitive_features={"age": age, "sex": sex}, continuous=["age"], **flat(**FAST)
    )
    cut = of(found, "kolmogorov")
    cuts = [cut for cut in candidate_cuts(age) if min((age <= cut).sum(), (age > cut).sum()) >= 30]
    functions = 2 * len(cuts)
    assert cut.cuts == len(cuts) > 5
    alone = ends_over_all_cuts(score, age, cuts, functions, 0.05)
    assert cut.certified == pytest.approx(alone[1])
    with_sex = ends_over_all_cuts(score, age, cuts, functions + 2, 0.05)
    assert cut.certified_jointly == pytest.approx(with_sex[1])
    two_comparisons = ends_over_all_cuts(score, age, cuts, functions, 0.05 / 2)
    assert two_comparisons[0] > 0.1
    ends = cut.joint_interval.low, cut.joint_interval.high
    assert ends == pytest.approx(two_comparisons)


def test_the_interval_of_a_dependence_begins_at_0_where_noise_may_explain_it() -> None:
    """Without a relation in nearly all samples, and with one in none."""
    options = flat(random_state=0, permutations=199, resamples=100)
    begins_at_0 = []
    for seed in range(12):
        generator = np.random.default_rng(seed)
        age, score = generator.uniform(20, 70, 200), generator.random(200)
        related = np.clip(score + (age - 45) / 50, 0, 1)
        for values in (score, related):
            found = audit(
                None, values, sensitive_features={"age": age}, continuous=["age"], **options
            )
            dependence = of(found, "energy")
            assert (dependence.interval.low == 0) == (dependence.p_value > 0.05)
            begins_at_0.append(dependence.interval.low == 0)
    assert sum(begins_at_0[::2]) >= 10
    assert sum(begins_at_0[1::2]) == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_the_distance_at_every_cut_is_that_of_both_sides(weighted: bool) -> None:
    score, age, _ = people(200)
    # the highest score, and the attribute of some rows, are nobody else's
    age[:3], score[-1] = np.nan, 0.999
    weight = np.random.default_rng(3).uniform(0.5, 2.0, 200) if weighted else None
    request = Request(continuous=True, min_group_size=10)
    sample = MemorySource(score, {"age": age}, sample_weight=weight).counts(request)
    (part,) = parts_for(sample, [criterion_named("statistical_parity")], None)
    bands = Bands.of(sample, part, 0, 10)
    found = _scan_cuts(bands)
    weight = np.ones(200) if weight is None else weight
    expected = []
    for cut in bands.cuts:
        low, high = age <= cut, age > cut
        shares = [
            np.array([weight[side & (score <= at)].sum() for at in score]) for side in (low, high)
        ]
        expected.append(
            np.abs(shares[0] / weight[low].sum() - shares[1] / weight[high].sum()).max()
        )
    np.testing.assert_allclose(found.distances, expected, rtol=1e-12)
    assert (found.number, found.size) == (np.argmax(expected), pytest.approx(max(expected)))


def test_of_cuts_with_equal_gaps_the_lowest_is_the_worst() -> None:
    age, score = np.repeat([10.0, 20.0, 30.0, 40.0], 10), np.repeat([0.0, 1.0, 1.0, 0.0], 10)
    options = AuditOptions(resamples=0, permutations=0, min_group_size=5)
    found = audit(
        None,
        score,
        sensitive_features={"age": age},
        continuous=True,
        threshold=None,
        options=options,
    )
    assert of(found, "kolmogorov").groups == ("≤10", ">10")  # 2/3, as between 30 and 40


def test_scores_of_chance_have_p_values_of_chance() -> None:
    """The maximum over all cuts is dealt anew as a whole: no more than their share of p-values
    is small.
    """
    generator = np.random.default_rng(0)
    small = {"kolmogorov": 0, "energy": 0}
    for _ in range(40):
        age, score = generator.integers(18, 90, 60).astype(float), generator.random(60)
        found = audit(
            None,
            score,
            sensitive_features={"age": age},
            continuous=True,
            threshold=None,
            options=AuditOptions(permutations=39, resamples=0, min_group_size=10),
        )
        for metric in small:
            small[metric] += of(found, metric).p_value <= 0.2
    # 8 expected; beyond, once in a thousand runs
    assert all(2 <= count <= 16 for count in small.values())


def test_there_are_no_p_values_without_permutations_or_of_weighted_rows() -> None:
    score, age, _ = people(200)
    for permutations, weight in ((0, None), (19, 1.0 + np.arange(200) % 2), (19, None)):
        found = audit(
            None,
            score,
            sensitive_features={"age": age},
            sample_weight=weight,
            continuous=True,
            threshold=None,
            options=AuditOptions(permutations=permutations, resamples=0),
        )
        known = {one.p_value is not None for one in found.findings}
        assert known == {permutations > 0 and weight is None}


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
    weight = (
        np.random.default_rng(1).integers(1, 4, 3000).astype(float) if weighted else np.ones(3000)
    )
    pl.DataFrame({"p": score, "age": age, "w": weight}).write_parquet(tmp_path / "s.parquet")
    options = {
        "score": "p",
        "group": "age",
        "continuous": True,
        **FAST,
        **({"weight": "w"} if weighted else {}),
    }
    held, counted = (
        audit_file(tmp_path / "s.parquet", **flat(in_memory_rows=most, **options))
        for most in (10**6, 10)
    )
    for metric, rounding in (("kolmogorov", 1e-3), ("energy", 3e-2), ("wasserstein", 3e-2)):
        assert of(counted, metric).value == pytest.approx(of(held, metric).value, rel=rounding)
    assert of(counted, "kolmogorov").groups == of(held, "kolmogorov").groups


def test_what_was_taken_for_a_number_is_said() -> None:
    score, age, _ = people(100)
    with pytest.warns(MetrifairWarning, match="'age' .* is taken as a number"):
        audit(
            None,
            score,
            sensitive_features={"age": age},
            options=AuditOptions(permutations=0, resamples=0),
        )


def test_the_page_shows_the_cut(tmp_path) -> None:
    score, age, sex = people()
    audit(
        None, score, sensitive_features={"age": age, "sex": sex}, continuous=["age"], **flat(**FAST)
    ).to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Scores are lower for age above" in page
    assert "&gt;60" in page or "≤60" in page


def test_few_rows_are_cut_where_enough_are_on_either_side() -> None:
    generator = np.random.default_rng(0)
    age = np.sort(generator.uniform(18, 90, 300))
    score = np.clip(
        0.2 + 0.6 * (np.arange(300) < 20) + 0.1 * (age > 50) + generator.normal(0, 0.05, 300), 0, 1
    )
    found = audit(None, score, sensitive_features={"age": age}, continuous=True, **flat(**FAST))
    assert all(one.enough and min(one.sizes) >= 30 for one in found.findings)
    assert not any("No significant gap" in line for line in found.summary.splitlines())
    few = audit(
        None, score[::6], sensitive_features={"age": age[::6]}, continuous=True, **flat(**FAST)
    )  # 50 rows: no cut has 30
    assert {one.metric: one.enough for one in few.findings} == {
        "kolmogorov": False,
        "wasserstein": False,
        "energy": True,
    }


def test_each_distance_names_its_own_worst_cut(tmp_path) -> None:
    age = np.repeat(np.arange(10.0), 100)
    score = np.where(age < 2, 0.45, 0.5)  # told apart entirely, though near to each other
    score[age == 9] = np.where(np.arange(100) < 90, 1.0, 0.5)
    found = audit(None, score, sensitive_features={"age": age}, continuous=True, **flat(**FAST))
    assert (of(found, "kolmogorov").groups[0], of(found, "wasserstein").groups[0]) == ("≤1", "≤8")
    far = of(found, "wasserstein")
    assert far.sizes == (900, 100)
    assert far.value == pytest.approx(
        wasserstein_distance(score[age <= 8], score[age > 8]), rel=1e-9
    )
    assert "age above 8" in finding_sentence(far) or "age up to 8" in finding_sentence(far)
    found.to_html(tmp_path / "r.html")


@pytest.mark.parametrize("count", [99, 100])
def test_fewer_than_a_hundred_rows_have_no_interval_of_a_dependence(count: int) -> None:
    score, age, _ = people(count)
    found = audit(None, score, sensitive_features={"age": age}, continuous=True, **flat(**FAST))
    one = of(found, "energy")
    assert (one.interval is None, one.joint_interval is None) == (count < 100,) * 2
    assert any(note.kind == "few_rows_for_dependence" for note in found.notes) == (count < 100)


def test_weighted_bands_are_the_same_wherever_the_rows_are(tmp_path) -> None:
    score, age, _ = people(2000)
    weight = np.where(age > 60, 4.3, 0.7)
    options = {"continuous": True, "permutations": 0, "resamples": 0}
    held = audit(
        None, score, sensitive_features={"age": age}, sample_weight=weight, **flat(**options)
    )
    pl.DataFrame({"p": score, "age": age, "w": weight}).write_parquet(tmp_path / "s.parquet")
    chunks = audit_file(
        tmp_path / "s.parquet",
        score="p",
        group="age",
        weight="w",
        **flat(in_memory_rows=10, **options),
    )
    halves = [
        AuditState().add(
            None, score[half], sensitive_features={"age": age[half]}, sample_weight=weight[half]
        )
        for half in (slice(900), slice(900, None))
    ]
    states = halves[0].merge(halves[1]).audit(**flat(**options))

    def bands(found):
        (along,), (decisions,) = found.record.along, found.decisions
        return (
            along.bands,
            along.sizes,
            [(rate.group, rate.size) for rate in decisions.rates],
            found.findings[0].groups,
        )

    assert bands(held) == bands(chunks) == bands(states)
    assert (
        bands(held)[2]
        != bands(audit(None, score, sensitive_features={"age": age}, **flat(**options)))[2]
    )


def test_decisions_are_told_in_bands_of_enough_rows() -> None:
    score, age, _ = people(120)
    age[:100] = 18  # most have one value
    for rows, most in ((score > -1, 2), (age > 18, 2)):
        found = audit(
            None,
            score[rows],
            sensitive_features={"age": age[rows]},
            continuous=True,
            **flat(min_group_size=20, **FAST),
        )
        (bands,) = found.decisions
        assert len(bands.rates) == most
    # too few for two of 20: as even as can be
    assert [rate.size for rate in bands.rates] == [10, 10]


def two_numbers(rows: int = 400) -> dict[str, Any]:
    generator = np.random.default_rng(6)
    return {
        "age": generator.integers(18, 80, rows).astype(float),
        "debt": generator.normal(size=rows),
    }


def test_two_numeric_attributes_need_no_other() -> None:
    numbers = two_numbers()
    score = np.clip(numbers["age"] / 100, 0, 1)
    options = AuditOptions(resamples=0, permutations=0, continuous=True)
    found = audit(None, score, sensitive_features=numbers, random_state=0, options=options)
    for name, values in numbers.items():
        alone = audit(
            None, score, sensitive_features={name: values}, random_state=0, options=options
        )
        same = [finding for finding in found.findings if finding.attribute == name]
        assert [(one.metric, one.value) for one in same] == [
            (one.metric, one.value) for one in alone.findings
        ]
    tables = found.rates("ll144").tables
    assert [rated.attribute for rated in tables] == ["age", "debt"]


def test_two_numeric_attributes_on_the_command_line(tmp_path: Path) -> None:
    numbers = two_numbers()
    path = tmp_path / "people.csv"
    pl.DataFrame({**numbers, "p": np.random.default_rng(7).random(400)}).write_csv(path)
    command = ["audit", str(path), "--score", "p", "--group", "age", "--group", "debt"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert "are taken as numbers" in " ".join(result.output.split())


def test_the_warning_about_numbers_agrees_with_their_number() -> None:
    numbers = coded_columns("people", two_numbers())
    assert "'debt' (400 different values) are taken as numbers: " in str(
        numbers_warning(number_facts(numbers, ["age", "debt"]))
    )
    assert "'debt' (400 different values) is taken as a number: " in str(
        numbers_warning(number_facts(numbers, ["debt"]))
    )
