"""What changed in the corrected tables since our method is trained otherwise: areas before, now,
and the best other.

``python -m experiments.changes docs/results NEW.csv ...`` puts new points of our method in the
place of the kept ones of the corrected protocol, which go to ``raw/before``, and writes
``changes.md``; without new points, only the page.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.comparisons import completed
from experiments.page import Page, write_page
from experiments.printed import METHODS
from experiments.results import ModelResult, read_csv, write_csv
from experiments.settings import DATA
from experiments.summary import OURS
from experiments.tables import Curve, curves

_NOTES = [
    (
        "Before: strengths 1e-5 to 100, estimate='population', the whole strength from the first "
        "step, linear models "
        "by steps. Now: the default strengths of frontier(), estimate='rows', and networks trained "
        "as docs/defaults.md "
        "says (input raw: with the paper's batches, epochs and learning rates); linear models on "
        "standardized inputs "
        "by the solver. Points of the other methods are the same."
    ),
    (
        "Exact dominated areas, mean over ten seeds ± standard error. Plain: the constant counts "
        "for methods that "
        "reach it; constant: it is granted to all. Other: the best of the other methods that ran "
        "all seeds."
    ),
]


def replace_results(folder: Path, new: Sequence[Path]) -> None:
    """Replace our points of the corrected protocol by new ones, and keep the old ones in a file."""
    file = folder / "raw" / "mfl.csv.gz"
    results = read_csv([file])
    write_csv(
        folder / "raw" / "before" / "mfl-corrected.csv.gz",
        [result for result in results if result.protocol == "corrected"],
    )
    write_csv(
        file, [result for result in results if result.protocol != "corrected"] + read_csv(new)
    )


def changes_page(folder: Path) -> Page:
    """One line for every case and model of ours."""
    now = _corrected(completed(read_csv(sorted((folder / "raw").glob("*.csv.gz")))))
    before = _corrected(read_csv([folder / "raw" / "before" / "mfl-corrected.csv.gz"]))
    kinds = [
        "plain, before",
        "plain, now",
        "plain, other",
        "constant, before",
        "constant, now",
        "constant, other",
    ]
    lines = [["table", "data", "input", "model", "area of", *kinds]]
    for key, curve in now.items():
        if key not in before:
            continue
        rivals = [
            other
            for place, other in now.items()
            if place[:3] == key[:3] and _compares(other, curve)
        ]
        for on in ("scores",) if curve.experiment == "regression" else ("scores", "labels"):
            texts = []
            for constant in (False,) if curve.experiment == "regression" else (False, True):
                areas = [version.exact(on, constant=constant) for version in (before[key], curve)]
                others = [other.exact(on, constant=constant) for other in rivals]
                texts += [
                    *map(str, areas),
                    str(max(others, key=lambda area: area.value)) if others else "",
                ]
            texts += [""] * (len(kinds) - len(texts))
            lines.append(
                [
                    curve.experiment,
                    DATA[curve.data].title,
                    curve.input,
                    METHODS[curve.method],
                    on,
                    *texts,
                ]
            )
    return Page(
        title="What changed in the corrected tables",
        notes=_NOTES,
        tables={"Areas": lines},
        charts={},
    )


def _compares(other: Curve, ours: Curve) -> bool:
    """Whether it is another method that ran the same splits."""
    return other.method not in OURS and len(other.seeds) == len(ours.seeds)


def _corrected(results: Sequence[ModelResult]) -> dict[tuple[str, str, str, str], Curve]:
    corrected = curves(result for result in results if result.protocol == "corrected")
    return {
        (result.experiment, result.input, result.data, result.method): result
        for result in corrected
    }


if __name__ == "__main__":
    place = Path(sys.argv[1])
    if sys.argv[2:]:
        replace_results(place, [Path(name) for name in sys.argv[2:]])
    write_page(changes_page(place), place, "changes", html=False)
