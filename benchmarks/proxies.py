"""How often intervals by probabilities of groups hold the truth: `python -m benchmarks.proxies
[--sets 2000]`.

Data sets are drawn whose groups and score distributions are known, and audited by the probabilities
of groups. The table that it prints is the one of docs/results/group-probabilities.md. With
`--counted`, scores are rounded down to two digits, and a state of their counts is audited in place
of the rows. With `--compas FOLDER`, it prints both ends of audits of the COMPAS scores in that
folder, by probabilities that behave like places and like names.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, softmax

from metrifair import Audit, AuditOptions, AuditState, GroupProbabilities, audit, unfairness

FIGURES = (
    "kolmogorov",
    "wasserstein",
    "energy",
    "rate",
    "ratio",
    "corrected rate",
    "corrected energy",
    "bounds",
    "size",
)
WEAK, STRONG = 0.8, 3.5  # of the probabilities: log odds for each standard deviation of their input
_INPUT = np.linspace(-6, 6, 1201)
_SCORES = np.linspace(0.0005, 0.9995, 1000)
_KNOWN = 0.25  # of the rows
_CELLS = 8
_ROUNDING = 1e-9  # of a ratio of 1
_OPTIONS = AuditOptions(resamples=200, permutations=1, min_group_size=5)


class Setting(NamedTuple):
    """Probabilities by one input; the score is the quantile of a normal that has the input in
    common.
    """

    strength: float
    groups: int = 2
    rows: int = 1000
    common: float = 0.588  # correlation of score and input
    weights: float = 0.0  # spread of lognormal weights
    rare: float = 0.0  # log odds against the first group
    beyond: float = 0.0  # by how much the first group scores higher, whatever the input


SETTINGS = {
    "weak, two groups": Setting(WEAK),
    "strong, two groups": Setting(STRONG),
    "weak, five groups": Setting(WEAK, groups=5),
    "strong, five groups": Setting(STRONG, groups=5),
    "weak, weights": Setting(WEAK, weights=0.7),
    "strong, weights": Setting(STRONG, weights=0.7),
    "weak, a small group": Setting(WEAK, rare=2.0),
    "strong, a small group": Setting(STRONG, rare=3.0),
    "strong, few rows (200)": Setting(STRONG, rows=200),
    "weak, no gap": Setting(WEAK, common=0.0),
    "strong, no gap": Setting(STRONG, common=0.0),
    "strong, the assumption is wrong": Setting(STRONG, beyond=0.5),
}


def probabilities(setting: Setting, values: Any) -> Any:
    """P(group | input), (n, groups): logits from -strength/2 to strength/2 times the input."""
    slopes = np.linspace(-0.5, 0.5, setting.groups) * setting.strength
    odds = values[:, None] * slopes
    odds[:, 0] -= setting.rare
    return softmax(odds, axis=1)


def truth(setting: Setting) -> dict[str, float]:
    """The figures of the first and the last group, summed over a grid of inputs and scores."""
    share = probabilities(setting, _INPUT) * np.exp(-(_INPUT**2) / 2)[:, None]
    curves = []
    for group in (0, setting.groups - 1):
        ahead = setting.common * _INPUT + setting.beyond * (group == 0)
        below = ndtr((ndtri(_SCORES)[:, None] - ahead) / np.sqrt(1 - setting.common**2))
        curves.append(below @ share[:, group] / share[:, group].sum())
    gap, step = curves[0] - curves[1], _SCORES[1] - _SCORES[0]
    rates = [1 - float(np.interp(0.5, _SCORES, curve)) for curve in curves]
    return {
        "kolmogorov": float(np.abs(gap).max()),
        "wasserstein": float(np.abs(gap).sum() * step),
        "energy": float(2 * (gap**2).sum() * step),
        "rate": rates[0],
        "ratio": rates[0] / rates[1],
    }


def draw_rows(setting: Setting, generator: np.random.Generator) -> dict[str, Any]:
    """Arguments of an audit."""
    values = generator.normal(size=setting.rows)
    share = probabilities(setting, values)
    group = (
        (share.cumsum(1) < generator.uniform(size=setting.rows)[:, None])
        .sum(1)
        .clip(max=setting.groups - 1)
    )
    noise = np.sqrt(1 - setting.common**2) * generator.normal(size=setting.rows)
    score = ndtr(setting.common * values + setting.beyond * (group == 0) + noise)
    names = [f"g{number}" for number in range(setting.groups)]
    known = np.where(
        generator.uniform(size=setting.rows) < _KNOWN, np.array(names, dtype=object)[group], None
    )
    cells = np.floor(_CELLS * ndtr(values))
    race = GroupProbabilities(
        dict(zip(names, share.T, strict=True)), attribute="race", known_groups=known, cells=cells
    )
    weight = generator.lognormal(0.0, setting.weights, setting.rows) if setting.weights else None
    return {"y_pred": score, "sensitive_features": race, "sample_weight": weight}


def audit_rows(arguments: dict[str, Any], seed: int) -> Audit:
    """The audit of rows in memory."""
    return audit(
        None, **arguments, options=replace(_OPTIONS, score_range=(0.0, 1.0)), random_state=seed
    )


def audit_counts(arguments: dict[str, Any], seed: int) -> Audit:
    """The audit of the counts of the same rows. Known groups and cells need rows."""
    race = replace(arguments["sensitive_features"], known_groups=None, cells=None)
    rounded = arguments | {
        "y_pred": np.floor(100 * arguments["y_pred"]) / 100,
        "sensitive_features": race,
    }
    return AuditState().add(None, **rounded).audit(options=_OPTIONS, random_state=seed)


def count_coverage(setting: Setting, sets: int, *, counted: bool = False) -> dict[str, float]:
    """The share of intervals that hold the truth; under "size", that of p-values up to 0.05
    where there is no gap.
    """
    true, counts, of = truth(setting), Counter[str](), Counter[str]()
    ends = "g0", f"g{setting.groups - 1}"

    def note(figure: str, interval: Any, value: float) -> None:
        if interval is not None:
            of[figure] += 1
            counts[figure] += interval.low - _ROUNDING <= value <= interval.high + _ROUNDING

    for seed in range(sets):
        result = (audit_counts if counted else audit_rows)(
            draw_rows(setting, np.random.default_rng(seed)), seed
        )
        assert result.record.proxy is not None
        for finding in result.findings:
            if finding.groups == ends:
                note(finding.metric, finding.interval, true[finding.metric])
                if (
                    finding.metric == "kolmogorov"
                    and finding.p_value is not None
                    and true["kolmogorov"] < 1e-6
                ):
                    of["size"] += 1
                    counts["size"] += finding.p_value <= 0.05
        for estimate in result.record.proxy.estimates:
            if estimate.figure == "selection_rate" and estimate.groups == ends[:1]:
                note("rate", estimate.weighted.interval, true["rate"])
                note("bounds", estimate.bounds_interval, true["rate"])
                note(
                    "corrected rate",
                    estimate.corrected and estimate.corrected.interval,
                    true["rate"],
                )
            if estimate.figure == "selection_ratio" and estimate.groups == ends:
                note("ratio", estimate.weighted.interval, true["ratio"])
            if estimate.figure == "energy" and estimate.groups == ends:
                note(
                    "corrected energy",
                    estimate.corrected and estimate.corrected.interval,
                    true["energy"],
                )
    return {figure: counts[figure] / of[figure] for figure in FIGURES if of[figure]}


class Ends(NamedTuple):
    """Kolmogorov distances between two groups, by probabilities of one kind."""

    kind: str
    true: float
    weighted: float
    r2: float
    divided: float
    most_probable: float


def compas_ends(folder: Path) -> Iterator[Ends]:
    """Distances of the COMPAS scores between African-Americans and others.

    Probabilities like places are the shares of the group by score: the score has no information
    beyond their input. Those like names are posterior probabilities by a normal signal of the
    group, which knows nothing of the score.
    """
    with gzip.open(folder / "compas-scores-two-years.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    score = np.array([float(row["decile_score"]) for row in rows])
    member = np.array([row["race"] == "African-American" for row in rows])
    by_score = np.bincount(score.astype(int), member) / np.maximum(
        1, np.bincount(score.astype(int))
    )
    yield both_ends("places", score, member, by_score[score.astype(int)])
    odds, random = member.mean() / (1 - member.mean()), np.random.default_rng(0)
    for apart in (1.0, 2.0):
        signal = random.normal(apart * member)
        likelihoods = odds * np.exp(apart * signal - apart**2 / 2)
        yield both_ends(
            f"names, {apart:g} s.d. apart", score, member, likelihoods / (1 + likelihoods)
        )


def both_ends(kind: str, score: Any, member: Any, probability: Any) -> Ends:
    """The distance that is true, both ends of an audit by probabilities, and the distance of
    most probable groups.
    """
    race = GroupProbabilities({"member": probability, "other": 1 - probability}, attribute="race")
    options = replace(_OPTIONS, resamples=0, permutations=0)
    finding = audit(
        None, score, sensitive_features=race, metrics="kolmogorov", options=options
    ).findings[0]
    assert finding.divided is not None
    assert finding.divided.value is not None
    true = unfairness(None, score, sensitive_features=member)
    most_probable = unfairness(None, score, sensitive_features=probability > 0.5)
    return Ends(kind, true, finding.value, finding.divided.r2, finding.divided.value, most_probable)


def ends_table(folder: Path) -> str:
    """The table of both ends, in Markdown."""
    lines = [
        "| probabilities | true | weighted | R2 | divided by R2 | most probable group |",
        "|---|---|---|---|---|---|",
    ]
    for kind, *figures in compas_ends(folder):
        lines.append(f"| {kind} | {' | '.join(f'{figure:.3f}' for figure in figures)} |")
    return "\n".join(lines)


def main() -> None:
    """Print a table, one row for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=2000, help="data sets of each setting")
    parser.add_argument("--counted", action="store_true", help="audit counts in place of rows")
    parser.add_argument(
        "--compas", type=Path, help="folder of the COMPAS scores: print both ends of their audits"
    )
    options = parser.parse_args()
    if options.compas is not None:
        print(ends_table(options.compas))
        return
    print(f"| setting | {' | '.join(FIGURES)} |\n|---|{'---|' * len(FIGURES)}")
    for name, setting in SETTINGS.items():
        shares = count_coverage(setting, options.sets, counted=options.counted)
        cells = (f"{100 * shares[figure]:.1f}" if figure in shares else "–" for figure in FIGURES)
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
