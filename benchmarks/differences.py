"""How often intervals of differences of two audits hold the truth: `python -m
benchmarks.differences [--pairs 2000]`.

Pairs of models are drawn whose figures are known, each is audited, and both are compared: on the
same rows (paired), and on different ones. The table that it prints is the one of
docs/results/differences.md.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import betaincinv, expit, ndtr

from metrifair import AuditOptions, audit, compare
from metrifair.support.parallel import run_parallel

Floats = NDArray[np.float64]
Figures = dict[tuple[str, ...], float]

FIGURES = (
    "kolmogorov",
    "wasserstein",
    "energy",
    "selection_ratio",
    "auc",
    "accuracy",
    "log_loss",
    "calibration_error",
)
PIECE = 50  # pairs that are drawn at a time
_NOISE = 0.7  # of labels, beyond what they have in common with scores
_GRID = np.linspace(-8.5, 8.5, 200_001)
_SMALLEST = float(np.finfo(np.float64).eps)


class Setting(NamedTuple):
    """Scores of two models (0 and 1) in groups a and b, as functions of a standard normal that
    both have in common.
    """

    score: Callable[[Floats, str, int], Floats]
    rows: tuple[int, int] = (400, 300)
    common: float = 0.8  # of the variance
    threshold: float = 0.5


def shifted(
    before: float, after: float, form: Callable[[Floats], Floats] = expit, **others: Any
) -> Setting:
    """Group a is ahead of b by so many standard deviations."""
    return Setting(
        lambda z, group, model: form(z + (before, after)[model] * (group == "a")), **others
    )


def _beta(z: Floats, group: str, model: int) -> Floats:
    return np.asarray(betaincinv(*(((4, 2), (3, 2.4))[model] if group == "a" else (2, 3)), ndtr(z)))


def _spread(z: Floats, group: str, model: int) -> Floats:
    return np.asarray(expit(((2.2, 1.6)[model] if group == "a" else 1.0) * z))


SETTINGS = {
    "halved (0.8 to 0.4 standard deviations)": shifted(0.8, 0.4),
    "equal (0.8 and 0.8)": shifted(0.8, 0.8),
    "nearly the same models (0.8, 0.75; 0.98 in common)": shifted(0.8, 0.75, common=0.98),
    "few rows (120 and 90)": shifted(0.9, 0.5, rows=(120, 90), common=0.6),
    "many rows (1,500 and 1,000)": shifted(0.8, 0.5, rows=(1500, 1000)),
    "turned round (0.8 to −0.4)": shifted(0.8, -0.4),
    "beta": Setting(_beta),
    "lognormal": shifted(0.8, 0.4, np.exp, threshold=1.5),
    "half of the scores 0": shifted(0.8, 0.4, lambda z: np.where(z < 0.2, 0.0, expit(z))),
    "ten different scores": shifted(
        0.8, 0.4, lambda z: np.floor(10 * np.clip(ndtr(z / 1.2), 0, 0.9999)) / 10 + 0.05
    ),
    "two humps": shifted(0.8, 0.4, lambda z: expit(2 * z + 3 * np.tanh(4 * z))),
    "only the spread differs": Setting(_spread),
    "decisions (0 and 1)": shifted(0.8, 0.4, lambda z: (z > 0).astype(np.float64)),
    "to nearly fair (0.8 to 0.1)": shifted(0.8, 0.1),
    "to fair (0.8 to 0)": shifted(0.8, 0.0),
    "from fair (0 to 0.8)": shifted(0.0, 0.8),
    "decisions, to fair": shifted(0.8, 0.0, lambda z: (z > 0).astype(np.float64)),
    "both fair": shifted(0.0, 0.0),
}


def truth(setting: Setting, model: int) -> Figures:
    """Every figure of the populations, summed over a fine grid."""
    z, mass = (_GRID[1:] + _GRID[:-1]) / 2, np.diff(ndtr(_GRID))
    chance = ndtr(np.sqrt(setting.common) * z / np.sqrt(1 - setting.common + _NOISE**2))
    yes, no = mass * chance, mass * (1 - chance)
    scores = {group: np.round(setting.score(z, group, model), 13) for group in "ab"}
    values, place = np.unique(np.concatenate(list(scores.values())), return_inverse=True)
    a, b = (np.bincount(part, mass, len(values)) for part in (place[: len(z)], place[len(z) :]))
    gap, step = np.cumsum(a - b)[:-1], np.diff(values)
    rates = [mass @ (score >= setting.threshold) for score in scores.values()]
    figures: Figures = {
        ("kolmogorov",): np.abs(gap).max(),
        ("wasserstein",): np.abs(gap) @ step,
        ("energy",): 2 * gap**2 @ step,
        ("selection_ratio",): min(rates) / max(rates),
    }
    for group, score in scores.items():
        points, at = np.unique(score, return_inverse=True)
        positive, negative = (np.bincount(at, side, len(points)) for side in (yes, no))
        below = np.cumsum(negative) - negative / 2
        inside = np.clip(score, _SMALLEST, 1 - _SMALLEST)
        bin_of = np.searchsorted(np.linspace(0, 1, 11)[1:-1], score)
        figures["auc", group] = positive @ below / positive.sum() / negative.sum()
        figures["accuracy", group] = np.where(score >= setting.threshold, yes, no).sum()
        figures["log_loss", group] = -(yes @ np.log(inside) + no @ np.log1p(-inside))
        figures["calibration_error", group] = np.abs(
            np.bincount(bin_of, mass * score) - np.bincount(bin_of, yes)
        ).sum()
    return figures


def draw_rows(
    setting: Setting, generator: np.random.Generator
) -> tuple[list[str], NDArray[np.int64], list[Floats]]:
    """Groups and labels of rows, and the scores of both models."""
    first, total = setting.rows[0], sum(setting.rows)
    shared = generator.normal(size=total)
    label = (shared + _NOISE * generator.normal(size=total) > 0).astype(np.int64)
    scores = []
    for model in range(2):
        z = np.sqrt(setting.common) * shared + np.sqrt(1 - setting.common) * generator.normal(
            size=total
        )
        parts = [
            setting.score(values, group, model)
            for values, group in ((z[:first], "a"), (z[first:], "b"))
        ]
        scores.append(np.concatenate(parts))
    return ["a"] * first + ["b"] * setting.rows[1], label, scores


def count_coverage(name: str, seed: int, pairs: int) -> Counter[tuple[str, ...]]:
    """How often intervals held the truth, by figure and whether rows are the same; and of how
    many, under "of".
    """
    torch.set_num_threads(1)
    setting, counts = SETTINGS[name], Counter[tuple[str, ...]]()
    before, after = (truth(setting, model) for model in range(2))
    for number in range(pairs):
        generator = np.random.default_rng([seed, number, 11])
        (group, label, scores), (_, later, then) = (
            draw_rows(setting, generator),
            draw_rows(setting, generator),
        )
        options: dict[str, Any] = {
            "sensitive_features": group,
            "threshold": setting.threshold,
            "criteria": "statistical_parity",
            "options": AuditOptions(permutations=0, resamples=300),
            "random_state": number,
        }
        old, new = (audit(label, score, **options) for score in scores)
        for kind, other in (("same", new), ("different", audit(later, then[1], **options))):
            for row in compare(old, other, paired=kind == "same").differences:
                key = (row.metric,) if (row.metric,) in before else (row.metric, *row.groups)
                if row.interval is not None and key in before:
                    inside = row.interval.low <= after[key] - before[key] <= row.interval.high
                    counts.update(
                        {(name, row.metric, kind): int(inside), (name, row.metric, kind, "of"): 1}
                    )
    return counts


def main(pairs: int = 2000) -> None:
    """Print the table."""
    torch.set_num_threads(1)
    work = [(name, seed, PIECE) for name in SETTINGS for seed in range(max(1, pairs // PIECE))]
    found = Counter[tuple[str, ...]]()
    for piece in run_parallel(lambda item: count_coverage(*item), work, -1):
        found.update(piece)
    print("| what changed | " + " | ".join(FIGURES) + " |\n|---|" + "---|" * len(FIGURES))
    for name in SETTINGS:
        cells = []
        for metric in FIGURES:
            keys = [(name, metric, kind) for kind in ("same", "different")]
            known = all(found[*key, "of"] for key in keys)
            cells.append(
                " / ".join(f"{100 * found[key] / found[*key, 'of']:.1f}" for key in keys)
                if known
                else "–"
            )
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.differences", description=__doc__.split(":")[0]
    )
    parser.add_argument(
        "--pairs", type=int, default=2000, help="of each setting; 2,000 take an hour of one core"
    )
    main(parser.parse_args().pairs)
