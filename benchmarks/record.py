"""Measured ratios by machine, and the tables of their ranges on pages: `python -m
benchmarks.record`.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import timing

KEPT = Path(__file__).parent / "recorded.jsonl"
_CALLED = {"aarch64": "ARM", "x86_64": "x86-64"}
BEGIN, END = "<!-- benchmarks: python -m benchmarks.record -->", "<!-- end of benchmarks -->"

_FIT, _FRONTIER = "linear fit on 45,000 x 100, strength", "frontier of 10 seeds x 25 strengths,"
_STEP = "training step, linear model, batch 512: with the penalty against without,"
ROWS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "Linear fit, 45,000 rows x 100 columns, against fairlearn's `ExponentiatedGradient`",
        "{} faster at strength 1, {} at strength 10",
        (f"{_FIT} 1:", f"{_FIT} 10:"),
    ),
    (
        "Frontier of 25 linear models on the same rows: solver against stochastic steps",
        "{} faster",
        ("25 linear models of a frontier",),
    ),
    (
        (
            "Kolmogorov, Wasserstein and energy distance of 2 million scores, against three SciPy "
            "calls"
        ),
        "{} faster",
        ("Kolmogorov, W1 and energy of 2,000,000 scores",),
    ),
    (
        "Unbiased energy distance with gradient, 8,192 scores, against all pairs",
        "{} faster",
        ("energy, value and gradient, 8,192 scores",),
    ),
    (
        (
            "Dependence on a numeric attribute: gradient, 8,192 rows, against all pairs; value, "
            "65,536 "
            "rows, against dcor"
        ),
        "{} faster; {} faster",
        (
            "distance covariance of scores and a number, value and gradient, 8,192 rows",
            "distance covariance of scores and a number, 65,536 rows",
        ),
    ),
    (
        (
            "Rates by group, a million rows: 4 groups, against fairlearn's `MetricFrame`; 2 "
            "groups, "
            "against AIF360"
        ),
        "{} faster; {} faster",
        (
            "2 metrics x 4 groups x 1,000,000 rows, rates:",
            "rates and accuracy of 2 groups x 1,000,000 rows",
        ),
    ),
    (
        "Confidence intervals from 50 resamples of 100,000 rows, against fairlearn's `MetricFrame`",
        "{} faster",
        ("2 metrics x 4 groups x 100,000 rows, rates with an interval",),
    ),
    (
        "Audit of 10^8 rows of Parquet, error bounds of 1e-9, against a plain polars count",
        "{} its time",
        ("1e+08 rows of Parquet",),
    ),
    (
        "Boosting round with the penalty, 100,000 rows: LightGBM; XGBoost",
        "{}; {} the time without it",
        ("LightGBM, 100,000", "XGBoost, 100,000"),
    ),
    (
        "Whole default fit of a fair booster against the plain one: LightGBM; XGBoost",
        "{}; {} the time (30,000 rows x 23), {}; {} (171,067 rows x 142)",
        (
            "LightGBM, 30,000 rows x 23",
            "XGBoost, 30,000 rows x 23",
            "LightGBM, 171,067 rows x 142",
            "XGBoost, 171,067 rows x 142",
        ),
    ),
    (
        (
            "Thresholds of a fitted model, 45,000 rows, against fairlearn's `ThresholdOptimizer`: "
            "equal selection rates; equalized odds"
        ),
        "{} faster; {} faster",
        (
            "thresholds, demographic parity, 45,000 rows",
            "thresholds, equalized odds, 45,000 rows",
        ),
    ),
    (
        "250 models trained at once, time per model and step, against one model",
        "{} faster with 1,413 rows, {} with 32,561 rows",
        ("250 models at once, Drug", "250 models at once, Adult"),
    ),
    (
        "`frontier` of 10 seeds x 25 strengths, against 250 single fits",
        "{} faster with 1,413 rows, {} with 32,561 rows",
        (f"{_FRONTIER} Drug", f"{_FRONTIER} Adult"),
    ),
    (
        (
            "Training step with the penalty, batch of 512: estimators; `UnfairnessPenalty` in a "
            "PyTorch loop"
        ),
        "{}; {} the time without it",
        (f"{_STEP} our loop", f"{_STEP} UnfairnessPenalty"),
    ),
)
"""Rows of the table: the task, its ratios, and the beginnings of the recorded claims behind
them.
"""

ROOT = KEPT.parents[1]
PAGES: dict[Path, tuple[int, ...]] = {
    ROOT / "docs" / "results" / "benchmarks.md": tuple(range(len(ROWS))),
    ROOT / "README.md": (5, 2, 12, 9),
}
"""Pages with a table, and the rows that each shows."""


def read_ratio(text: str) -> float | None:
    """Return the ratio in a measured text.

    >>> read_ratio("1,100x (3 s)"), read_ratio("8.1 ms against 6.0 ms plain: 1.35x"), read_ratio("85 MB")
    (1100.0, 1.35, None)
    """
    match = re.search(r"([\d,]+(?:\.\d+)?)x", text)
    return float(match[1].replace(",", "")) if match else None


def add(path: Path) -> None:
    """Append the printed ratios, with the machine and the day."""
    where = {"machine": platform.machine(), "day": f"{datetime.now(UTC):%Y-%m-%d}"}
    ratios = [(claim.claim, read_ratio(claim.measured)) for claim in timing.printed]
    with path.open("a") as file:
        for claim, ratio in ratios:
            if ratio is not None:
                # times differ from run to run, names must not
                plain = re.sub(r" \([\d,.]+ m?u?s\)", "", claim)
                file.write(json.dumps({**where, "claim": plain, "ratio": ratio}) + "\n")
    timing.printed.clear()


def span(ratios: list[float]) -> str:
    """Format the lowest and the highest ratio with two digits.

    >>> span([3.14, 6.96, 5.0]), span([248.0]), span([1.96, 2.04]), span([3977, 9352])
    ('3.1 - 7x', '250x', '2x', '4,000 - 9,400x')
    """
    ends = [f"{float(f'{ratio:.2g}'):,.10g}" for ratio in (min(ratios), max(ratios))]
    return f"{' - '.join(dict.fromkeys(ends))}x"


def table(path: Path = KEPT, rows: Sequence[int] | None = None) -> str:
    """Return the table of recorded ratios: all rows, or those with these indices."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    records = [record for record in lines if "superseded" not in record]  # by another algorithm
    shown, days = [], set[str]()
    for task, figures, claims in ROWS if rows is None else [ROWS[row] for row in rows]:
        matches = [
            [record for record in records if record["claim"].startswith(claim)] for claim in claims
        ]
        ratios = [span([record["ratio"] for record in match]) for match in matches]
        days |= {record["day"] for match in matches for record in match}
        machines = sorted(
            {
                _CALLED.get(record["machine"], record["machine"])
                for match in matches
                for record in match
            }
        )
        shown.append(f"| {task} | {figures.format(*ratios)} | {', '.join(machines)} |")
    when = " to ".join(dict.fromkeys((min(days), max(days))))
    heading = f"Lowest and highest ratio of all runs of `make bench` ({when}, one thread, shared machines):"
    return "\n".join([heading, "", "| task | ratio | machines |", "|---|---|---|", *shown])


def in_text(text: str, shown: str) -> str:
    """Return the text with this table between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{shown}\n{END}{after}"


if __name__ == "__main__":
    for page, rows in PAGES.items():
        page.write_text(in_text(page.read_text(), table(rows=rows)))
