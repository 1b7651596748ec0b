"""Audits by probabilities of groups: estimates, corrections, intervals, tests, notes and words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from metrifair import (
    AuditOptions,
    DataError,
    GroupProbabilities,
    audit,
    audit_file,
    audit_table,
    unfairness,
)
from tests.expected_errors import Refusals
from tests.seams.auditing import (
    bootstrap,
    compared_figures,
    correlations,
    group_pairs,
    measure_pairs,
    parts_for,
)

QUICK = AuditOptions(resamples=100, permutations=99)


def logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


class Simulated:
    """A score that depends on the input of the probabilities only, and a group that has these
    probabilities.
    """

    def __init__(self, rows: int, strength: float, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.input = random.normal(size=rows)
        self.share = logistic(strength * self.input)
        self.group = np.where(random.uniform(size=rows) < self.share, "v", "u")
        self.score = stats.norm.cdf(
            0.588 * self.input + np.sqrt(1 - 0.588**2) * random.normal(size=rows)
        )

    def race(self, **further: Any) -> GroupProbabilities:
        return GroupProbabilities(
            {"u": 1 - self.share, "v": self.share}, attribute="race", **further
        )


@pytest.mark.parametrize(("strength", "true"), [(0.814, 0.169), (1.730, 0.276), (3.537, 0.353)])
def test_weights_show_the_true_gap_and_thresholds_do_not(strength: float, true: float) -> None:
    """A weak, a middle and a strong proxy; thresholding makes the same groups of all three."""
    found = Simulated(40_000, strength)
    known = unfairness(None, found.score, sensitive_features=found.group)
    weighted = unfairness(None, found.score, sensitive_features=found.race())
    thresholded = unfairness(None, found.score, sensitive_features=found.share > 0.5)
    assert known == pytest.approx(true, abs=0.015)
    assert weighted == pytest.approx(known, abs=0.015)
    assert thresholded == pytest.approx(0.40, abs=0.015)


def test_strata_that_probabilities_know_nothing_of_are_named_in_the_headline() -> None:
    """Score and group are independent given the input, and within a stratum that depends on
    both they are not.
    """
    random = np.random.default_rng(0)
    place = random.integers(0, 2, 20_000)
    share = 0.3 + 0.4 * place
    group = (random.uniform(size=20_000) < share).astype(int)
    score = (place + random.uniform(size=20_000)) / 2
    stratum = random.uniform(size=20_000) < np.where(group == place, 0.9, 0.2)
    race = GroupProbabilities({"0": 1 - share, "1": share}, attribute="race")
    figures = [
        [
            unfairness(None, score, sensitive_features=one, control_features=given)
            for one in (group, race)
        ]
        for given in (None, stratum)
    ]
    assert figures[0][1] == pytest.approx(figures[0][0], abs=0.02)
    # the figure is wrong although the assumption holds
    assert figures[1][1] < 0.45 < 0.8 < figures[1][0]
    for given in (None, stratum):
        found = audit(
            None,
            score,
            sensitive_features=race,
            control_features=given,
            options=QUICK,
            random_state=0,
        )
        assert ("Strata must be among these inputs" in found.summary.splitlines()[1]) == (
            given is not None
        )


SMALL = Simulated(400, 2.0)
CELLS = np.floor(SMALL.input).clip(-2, 1)
KNOWN = np.where(np.arange(400) % 4 == 0, SMALL.group, None)
WEIGHT = np.random.default_rng(5).integers(1, 4, 400).astype(float)


def rate(selected: np.ndarray, amount: np.ndarray) -> float:
    return float(sum(amount * selected) / sum(amount))


def energy(scores: np.ndarray, left: np.ndarray, right: np.ndarray) -> float:
    c = left / left.sum() - right / right.sum()
    return float(-c @ np.abs(scores[:, None] - scores) @ c)


def noise(scores: np.ndarray, left: np.ndarray, right: np.ndarray) -> float:
    """The energy that the influences of single rows add, one by one."""
    a, b, total = left / left.sum(), right / right.sum(), 0.0
    apart = np.abs(scores[:, None] - scores)
    for row in range(len(scores)):
        one = np.arange(len(scores)) == row
        moved = a[row] * (one - a) - b[row] * (one - b)
        total -= float(moved @ apart @ moved)
    return total


@pytest.mark.oracle(
    "ProxyEstimate.weighted", "ProxyEstimate.corrected", "ProxyRecord.known", "ProxyRecord.cells"
)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["rows", "weights"])
def test_every_estimate_is_that_of_its_definition(weight: np.ndarray | None) -> None:
    race = SMALL.race(known_groups=KNOWN, cells=CELLS)
    found = audit(
        None, SMALL.score, sensitive_features=race, sample_weight=weight, options=QUICK
    ).record.proxy
    assert found is not None
    w, selected = np.ones(400) if weight is None else weight, (SMALL.score >= 0.5).astype(float)
    share = {"u": w * (1 - SMALL.share), "v": w * SMALL.share}
    inside = np.array([one is not None for one in KNOWN])
    true = {name: (w * (name == KNOWN))[inside] for name in "uv"}
    by_name = {(one.figure, one.groups): one for one in found.estimates}
    assert (found.known, found.cells, found.corrected_by, found.assumption) == (
        100,
        4,
        "known_groups",
        "scores",
    )
    rates = {}
    for name in "uv":
        one = by_name["selection_rate", (name,)]
        assert one.weighted.value == pytest.approx(rate(selected, share[name]), abs=1e-12)
        change = rate(selected[inside], true[name]) - rate(selected[inside], share[name][inside])
        rates[name] = rate(selected, share[name]) + change
        assert one.corrected is not None
        assert one.corrected.value == pytest.approx(rates[name], abs=1e-12)
    ratio = by_name["selection_ratio", ("u", "v")]
    assert ratio.corrected is not None
    assert ratio.corrected.value == pytest.approx(rates["u"] / rates["v"], abs=1e-12)
    distance = by_name["energy", ("u", "v")]
    assert distance.weighted.value == pytest.approx(
        energy(SMALL.score, share["u"], share["v"]), abs=1e-12
    )
    parts = SMALL.score[inside], true["u"], true["v"]
    guessed = SMALL.score[inside], share["u"][inside], share["v"][inside]
    change = energy(*parts) - noise(*parts) - energy(*guessed) + noise(*guessed)
    assert distance.corrected is not None
    assert distance.corrected.value == pytest.approx(distance.weighted.value + change, abs=1e-12)


def rate_bounds_by_hand(selected: np.ndarray, share: np.ndarray, cells: np.ndarray) -> list[float]:
    """The least and the largest selection rate of a group of which each cell has so many members:
    all that can be outside the selected rows are, or all that can be among them.
    """
    low = high = people = 0.0
    for cell in np.unique(cells):
        inside = cells == cell
        members = share[inside].sum()
        chosen = selected[inside].sum()
        low += max(0.0, members + chosen - inside.sum())
        high += min(members, chosen)
        people += members
    return [low / people, high / people]


@pytest.mark.oracle("ProxyEstimate.bounds", "ProxyEstimate.bounds_interval")
def test_bounds_of_a_selection_rate_are_those_of_all_possible_members() -> None:
    race = SMALL.race(cells=CELLS)
    found = audit(None, SMALL.score, sensitive_features=race, options=QUICK).record.proxy
    assert found is not None
    selected = (SMALL.score >= 0.5).astype(float)
    cells = np.asarray(CELLS)
    draw = np.random.default_rng(0)
    for name, share in (("u", 1 - SMALL.share), ("v", SMALL.share)):
        one = next(
            item
            for item in found.estimates
            if (item.figure, item.groups) == ("selection_rate", (name,))
        )
        low, high = rate_bounds_by_hand(selected, share, cells)
        assert one.bounds is not None
        assert one.bounds.low == pytest.approx(low, abs=1e-9)
        assert one.bounds.high == pytest.approx(high, abs=1e-9)
        resampled = []
        for _ in range(400):
            rows = draw.integers(0, 400, 400)
            resampled.append(rate_bounds_by_hand(selected[rows], share[rows], cells[rows]))
        errors = np.std(resampled, axis=0)
        assert one.bounds_interval is not None
        assert one.bounds_interval.low == pytest.approx(max(0, low - 1.96 * errors[0]), abs=0.03)
        assert one.bounds_interval.high == pytest.approx(min(1, high + 1.96 * errors[1]), abs=0.03)


def test_misclassified_groups_are_corrected_by_solving_for_the_true_ones() -> None:
    matrix = np.array([[0.8, 0.2], [0.1, 0.9]])
    random = np.random.default_rng(1)
    observed = np.where(random.uniform(size=400) < np.where(SMALL.group == "v", 0.9, 0.2), 1.0, 0.0)
    race = GroupProbabilities(
        {"u": 1 - observed, "v": observed}, attribute="race", confusion=matrix
    )
    found = audit(None, SMALL.score, sensitive_features=race, options=QUICK).record.proxy
    assert found is not None
    assert (found.assumption, found.corrected_by) == ("observed", "confusion")
    selected = SMALL.score >= 0.5
    seen = np.array([(observed == code).mean() for code in (0, 1)])
    people = np.linalg.solve(matrix.T, seen)
    mixture = matrix.T * people / seen[:, None]  # P(true | observed)
    rates = np.linalg.solve(mixture, [selected[observed == code].mean() for code in (0, 1)])
    corrected = {
        one.groups: one.corrected for one in found.estimates if one.figure == "selection_rate"
    }
    for name, expected in zip("uv", rates, strict=True):
        assert corrected[name,].value == pytest.approx(expected, abs=1e-12)  # type: ignore[union-attr]
    steps = np.sort(SMALL.score)
    curves = np.linalg.solve(
        mixture,
        [[(SMALL.score[observed == code] <= step).mean() for step in steps] for code in (0, 1)],
    )
    expected = 2 * float(((curves[0] - curves[1])[:-1] ** 2) @ np.diff(steps))
    energies = [one.corrected for one in found.estimates if one.figure == "energy"]
    assert energies[0].value == pytest.approx(expected, abs=1e-12)  # type: ignore[union-attr]


@pytest.mark.oracle("ProxyRecord.reliability")
def test_reliability_is_the_share_of_known_groups() -> None:
    found = audit(
        None, SMALL.score, sensitive_features=SMALL.race(known_groups=KNOWN), options=QUICK
    ).record.proxy
    assert found is not None
    inside = np.array([one is not None for one in KNOWN])
    for name, share in (("u", 1 - SMALL.share), ("v", SMALL.share)):
        edges = np.minimum((share[inside] * 10).astype(int), 9)
        for bin_index, one in zip(np.unique(edges), found.reliability[name], strict=True):
            own = edges == bin_index
            assert one.size == own.sum()
            assert one.score == pytest.approx(share[inside][own].mean(), abs=1e-12)
            assert one.rate == pytest.approx((KNOWN[inside][own] == name).mean(), abs=1e-12)


def measured(found: Simulated) -> Any:
    result = audit(
        None, found.score, sensitive_features=found.race(), options=QUICK, random_state=0
    )
    assert result.rows is not None
    sample, request = result.rows.sample, result.rows.request
    part = next(parts_for(sample, request.named_criteria(), None))
    pairs = measure_pairs(
        sample, group_pairs(sample, part, "pairs"), ["wasserstein", "kolmogorov"], 2048
    )
    return next(pairs)


def test_intervals_have_the_error_of_resampled_rows() -> None:
    """A row keeps its probabilities: what both sides have in common makes the interval narrower
    than of two samples.
    """
    found = Simulated(1500, 2.0, seed=4)
    pair = measured(found)
    random, values = np.random.default_rng(0), []
    for _ in range(300):
        rows = random.integers(0, 1500, 1500)
        again = GroupProbabilities(
            {"u": 1 - found.share[rows], "v": found.share[rows]}, attribute="race"
        )
        values.append(
            unfairness(None, found.score[rows], sensitive_features=again, metric="wasserstein")
        )
    options: dict[str, Any] = {"confidence": 0.95, "resamples": 400}
    interval = bootstrap(
        pair.pair, ["wasserstein"], generator=random, rows=pair.rows, **options
    ).alone["wasserstein"]
    assert (interval.high - interval.low) / (2 * 1.96) == pytest.approx(np.std(values), rel=0.12)
    apart = bootstrap(pair.pair, ["wasserstein"], generator=random, **options).alone["wasserstein"]
    assert apart.high - apart.low > 1.3 * (interval.high - interval.low)


def test_p_values_are_about_uniform_without_a_gap_and_small_with_one() -> None:
    p_values = []
    for seed in range(120):
        random = np.random.default_rng(seed)
        share = random.beta(0.5, 0.5, 150)
        race = GroupProbabilities({"u": 1 - share, "v": share}, attribute="race")
        scores = random.uniform(size=150)
        found = audit(
            None,
            scores,
            sensitive_features=race,
            options=QUICK,
            metrics="kolmogorov",
            random_state=seed,
        )
        p_values.append(found.findings[0].p_value)
    assert 0.35 < np.mean(p_values) < 0.65
    assert np.mean(np.array(p_values) <= 0.05) <= 0.12
    strong = audit(
        None, SMALL.score, sensitive_features=SMALL.race(), options=QUICK, random_state=0
    )
    assert all(one.p_value == 1 / 101 for one in strong.findings)


WEAK = Simulated(100, 0.8, seed=2)


def test_two_models_are_paired_by_rows_that_count_for_both_groups() -> None:
    """The correlation of two distances is that of their derivatives by the weights of rows."""
    other = np.clip(WEAK.score + np.random.default_rng(3).normal(0, 0.3, 100), 0, 1)
    models = {"old": WEAK.score, "new": other}
    found = audit(
        None,
        models,
        sensitive_features=WEAK.race(),
        options=QUICK,
        metrics="wasserstein",
        random_state=0,
    )
    audits = list(found.audits.values())
    figures = [
        next(one for key, one in compared.items() if key[-1] == "wasserstein")
        for compared in (compared_figures(one.record) for one in audits)
    ]
    correlation = correlations(*audits, [(figures[0], figures[1])])

    def change(score: np.ndarray, row: int) -> float:
        """By how much the distance changes with the weight of a row."""
        step = 1e-4 * (np.arange(len(score)) == row)
        ends = [
            unfairness(
                None,
                score,
                sensitive_features=WEAK.race(),
                sample_weight=1 + sign * step,
                metric="wasserstein",
            )
            for sign in (1, -1)
        ]
        return ends[0] - ends[1]

    changes = np.array([[change(score, row) for row in range(100)] for score in models.values()])
    products = changes @ changes.T
    expected = products[0, 1] / np.sqrt(products[0, 0] * products[1, 1])
    assert correlation is not None
    assert next(iter(correlation.values())) == pytest.approx(expected, abs=1e-4)


def test_people_to_be_expected_decide_about_the_minimum_group_size() -> None:
    share = np.full(400, 0.02)
    race = GroupProbabilities({"u": 1 - share, "v": share}, attribute="race")
    found = audit(None, SMALL.score, sensitive_features=race, options=QUICK, random_state=0)
    assert found.findings[0].sizes == (392, 8)
    assert not found.findings[0].enough
    assert [rate.size for rate in found.decisions[0].rates] == [392, 8]


def test_rows_without_probabilities_are_missing() -> None:
    share = np.where(np.arange(400) < 40, np.nan, SMALL.share)
    race = GroupProbabilities({"u": 1 - share, "v": share}, attribute="race")
    found = audit(None, SMALL.score, sensitive_features=race, options=QUICK, random_state=0)
    assert (found.record.rows, found.record.left_out) == (360, 40)
    rest = GroupProbabilities({"u": 1 - share[40:], "v": share[40:]}, attribute="race")
    expected = unfairness(None, SMALL.score[40:], sensitive_features=rest)
    assert found.worst().value == pytest.approx(expected, abs=1e-12)


LABEL = (SMALL.score + np.random.default_rng(9).normal(0, 0.3, 400) > 0.5).astype(int)


@pytest.mark.parametrize(
    ("given", "assumption", "words"),
    [
        (None, "scores", "only if score and group are independent given the inputs of P(race)"),
        (
            "independent",
            "scores_and_labels",
            (
                "only if score and label together are independent of the group given the inputs of "
                "P(race)"
            ),
        ),
        (
            "included",
            "labels_included",
            "only if score and group are independent given the label and the inputs of P(race)",
        ),
    ],
)
def test_the_assumption_is_in_every_headline(
    tmp_path: Path, given: Any, assumption: str, words: str
) -> None:
    race = SMALL.race(with_labels=given, source="BISG")
    found = audit(LABEL, SMALL.score, sensitive_features=race, options=QUICK, random_state=0)
    assert found.record.proxy is not None
    assert found.record.proxy.assumption == assumption
    sentence = (
        f"The figures weight each row by P(race) (BISG). They are valid for the true groups {words}"
    )
    assert found.summary.splitlines()[1].startswith(sentence)
    found.to_html(tmp_path / "page.html")
    head = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert sentence in head
    assert json.loads(found.to_json())["proxy"]["assumption"] == assumption
    criteria = {one.criterion for one in found.findings}
    by_label = {"equal_opportunity", "predictive_equality"}
    assert criteria == {"statistical_parity"} | (by_label if given else set())
    assert bool(found.record.by_group) == bool(given)
    assert ("labels_unused" in {note.kind for note in found.notes}) == (given is None)
    assert (found.decisions[0].rates[0].true_positive_rate is None) == (given is None)


def test_the_page_shows_estimates_corrections_bounds_and_reliability(tmp_path: Path) -> None:
    race = SMALL.race(known_groups=KNOWN, cells=CELLS)
    found = audit(None, SMALL.score, sensitive_features=race, options=QUICK, random_state=0)
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for text in (
        "Weighted by P(race)",
        "Bounds without the assumption",
        "Reliability of P(race)",
        "Share of known groups",
    ):
        assert text in page
    corrected = "Corrected with 100 rows of known group, the impact ratio of “u” to “v” is"
    assert corrected in found.summary


def test_few_known_groups_correct_nothing_and_a_note_says_so() -> None:
    few = np.where(np.arange(400) < 4, SMALL.group, None)
    found = audit(
        None,
        SMALL.score,
        sensitive_features=SMALL.race(known_groups=few),
        options=QUICK,
        random_state=0,
    )
    assert found.record.proxy is not None
    assert all(one.corrected is None for one in found.record.proxy.estimates)
    assert "few_known_rows" in {note.kind for note in found.notes}


def test_rules_that_ask_for_reported_groups_refuse_probabilities(refused: Refusals) -> None:
    found = audit(None, SMALL.score, sensitive_features=SMALL.race(), options=QUICK, random_state=0)
    with refused(DataError):
        found.rates("ll144")
    for standard in ("four-fifths", "credit"):
        table = found.rates(standard, reference="v" if standard == "credit" else "highest")
        assert "The figures weight each row by P(race)" in table.audit.summary


def test_files_too_large_for_memory_refuse_probabilities(tmp_path: Path, refused: Refusals) -> None:
    frame = pl.DataFrame({"p": SMALL.score, "u": 1 - SMALL.share, "v": SMALL.share})
    frame.write_parquet(tmp_path / "scores.parquet")
    race = GroupProbabilities(["u", "v"], attribute="race")
    shared: dict[str, Any] = {
        "score": "p",
        "group": race,
        "options": AuditOptions(in_memory_rows=100),
    }
    with refused(DataError):
        audit_file(tmp_path / "scores.parquet", **shared)
    with refused(DataError):
        audit_table(frame, **shared)
    with refused(DataError):
        audit_file(tmp_path / "scores.parquet", score="p", group=SMALL.race())


def test_corrected_rates_and_distances_are_possible_ones() -> None:
    """Few known groups of which nearly all, or none, are selected: their errors reach beyond 0
    and 1.
    """
    random = np.random.default_rng(3)
    reached = set()
    for seed in range(8):
        found = Simulated(400, 1.0, seed)
        selected = np.where(found.group == "v", 0.97, 0.03) > random.uniform(size=400)
        race = found.race(known_groups=np.where(random.uniform(size=400) < 0.1, found.group, None))
        estimates = audit(
            None, selected * 1.0, sensitive_features=race, options=QUICK, random_state=0
        ).record.proxy
        for one in estimates.estimates:
            measure, most = one.corrected, 1.0 if one.figure == "selection_rate" else np.inf
            assert 0 <= measure.interval.low <= measure.value <= measure.interval.high <= most
            reached |= {measure.interval.low, measure.interval.high} & {0.0, 1.0}
    assert reached == {0.0, 1.0}
