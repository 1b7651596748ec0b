"""What was measured on which machine, kept; README's table says the range of it: `python -m benchmarks.record`."""

from __future__ import annotations

import json
import platform
import re
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
        "linear fit on 45,000 x 100 against fairlearn's ExponentiatedGradient",
        "{} faster at strength 1, {} at 10",
        (f"{_FIT} 1:", f"{_FIT} 10:"),
    ),
    (
        "25 linear models of a frontier on those rows: stochastic steps against the solver",
        "{} faster",
        ("25 linear models of a frontier",),
    ),
    (
        "Kolmogorov, W1 and energy of 2 million scores, against scipy's three calls",
        "{} faster",
        ("Kolmogorov, W1 and energy of 2,000,000 scores",),
    ),
    (
        "unbiased energy distance with gradient, 8,192 scores, against all pairs",
        "{} faster",
        ("energy, value and gradient, 8,192 scores",),
    ),
    (
        "dependence on a number with gradient, 8,192 rows, against all pairs; its value, 65,536 rows, against dcor",
        "{}; {} faster",
        (
            "distance covariance of scores and a number, value and gradient, 8,192 rows",
            "distance covariance of scores and a number, 65,536 rows",
        ),
    ),
    (
        "rates of 4 groups on a million rows, against fairlearn's MetricFrame; of 2 groups, against AIF360",
        "{}; {} faster",
        ("2 metrics x 4 groups x 1,000,000 rows, rates:", "rates and accuracy of 2 groups x 1,000,000 rows"),
    ),
    (
        "an interval of 50 resamples, against fairlearn's MetricFrame",
        "{} faster",
        ("2 metrics x 4 groups x 100,000 rows, rates with an interval",),
    ),
    (
        "audit of 10^8 rows of Parquet, brackets of 1e-9, against a bare polars count",
        "{} its time",
        ("1e+08 rows of Parquet",),
    ),
    (
        "a round of LightGBM, of XGBoost with the penalty, 100,000 rows",
        "{}, {} the plain booster's time",
        ("LightGBM, 100,000", "XGBoost, 100,000"),
    ),
    (
        "250 models at once, per model and step, against one alone",
        "{} (Drug shape), {} (Adult shape)",
        ("250 models at once, Drug", "250 models at once, Adult"),
    ),
    (
        "`frontier` of 10 seeds x 25 strengths, against 250 single fits",
        "{} (Drug shape), {} (Adult shape)",
        (f"{_FRONTIER} Drug", f"{_FRONTIER} Adult"),
    ),
    (
        "a training step with the penalty, against one without, batch 512",
        "{} in our loop; {} with `UnfairnessPenalty` in a bare PyTorch loop",
        (f"{_STEP} our loop", f"{_STEP} UnfairnessPenalty"),
    ),
)
"""README's rows: what, the figures, and how the claims begin whose ratios they are."""


def ratio_of(measured: str) -> float | None:
    """The ratio that a measured text tells.

    >>> ratio_of("1,100x (3 s)"), ratio_of("8.1 ms against 6.0 ms plain: 1.35x"), ratio_of("85 MB")
    (1100.0, 1.35, None)
    """
    found = re.search(r"([\d,]+(?:\.\d+)?)x", measured)
    return float(found[1].replace(",", "")) if found else None


def add(path: Path) -> None:
    """Add the ratios that were printed, with the machine and the day."""
    where = {"machine": platform.machine(), "day": f"{datetime.now(UTC):%Y-%m-%d}"}
    ratios = [(one.claim, ratio_of(one.measured)) for one in timing.printed]
    with path.open("a") as file:
        for claim, ratio in ratios:
            if ratio is not None:
                plain = re.sub(r" \([\d,.]+ m?u?s\)", "", claim)  # times differ from run to run, names must not
                file.write(json.dumps({**where, "claim": plain, "ratio": ratio}) + "\n")
    timing.printed.clear()


def span(ratios: list[float]) -> str:
    """From the least to the most, in two digits.

    >>> span([3.14, 6.96, 5.0]), span([248.0]), span([1.96, 2.04]), span([3977, 9352])
    ('3.1 - 7x', '250x', '2x', '4,000 - 9,400x')
    """
    ends = [f"{float(f'{ratio:.2g}'):,.10g}" for ratio in (min(ratios), max(ratios))]
    return f"{' - '.join(dict.fromkeys(ends))}x"


def table(path: Path = KEPT) -> str:
    """README's table, from what was recorded."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [one for one in lines if "superseded" not in one]  # by another algorithm; told by hand, with its commit
    days = sorted({one["day"] for one in kept})
    rows = []
    for what, figures, claims in ROWS:
        seen = [[one for one in kept if one["claim"].startswith(claim)] for claim in claims]
        ratios = [span([one["ratio"] for one in found]) for found in seen]
        machines = sorted({_CALLED.get(one["machine"], one["machine"]) for found in seen for one in found})
        rows.append(f"| {what} | {figures.format(*ratios)} | {', '.join(machines)} |")
    when = " to ".join(dict.fromkeys((days[0], days[-1])))
    said = f"Measured with `make bench` ({when}, one thread, busy machines): the range of all ratios seen."
    return "\n".join([said, "", "| what | ratio | seen on |", "|---|---|---|", *rows])


def in_text(text: str, shown: str) -> str:
    """A text with the table that it shows between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{shown}\n{END}{after}"


if __name__ == "__main__":
    readme = KEPT.parents[1] / "README.md"
    readme.write_text(in_text(readme.read_text(), table()))
