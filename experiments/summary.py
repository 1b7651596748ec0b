"""The overview of all results, docs/results/README.md: its text with every figure read from the
kept points.

``python -m experiments.summary docs/results`` writes it anew. In ``summary.md`` a figure stands as
``{{name words}}``: the name of a function of ``Figures`` and what it is asked for, so that text and
tables cannot part.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Sequence
from functools import cached_property, partial
from itertools import product
from math import ceil
from pathlib import Path

from experiments.comparisons import completed
from experiments.online import kept_records, mean_curves
from experiments.printed import Printed, printed
from experiments.results import read_csv
from experiments.settings import CLASSIFICATION, REGRESSION
from experiments.tables import Curve, Mean, close, curves
from metrifair.support.files import replace_file

OURS = ("mfl-linear", "mfl-nn")
_TABLES = ("classification", "equal-opportunity")
_TEMPLATE = Path(__file__).with_name("summary.md")


class Figures:
    """The figures of the text; every method returns the words of one placeholder."""

    def __init__(self, folder: Path) -> None:
        self.raw = folder / "raw"

    @cached_property
    def by_case(self) -> dict[tuple[str, ...], Curve]:
        """Curves by protocol, experiment, input, data and method."""
        all_curves = curves(completed(read_csv(sorted(self.raw.glob("*.csv.gz")))))
        return {
            (curve.protocol, curve.experiment, curve.input, curve.data, curve.method): curve
            for curve in all_curves
        }

    def area(self, *what: str) -> str:
        """The exact area of the curve: protocol, experiment, input, data, method, labels or
        scores[, constant].
        """
        return f"{self._area(*what).value:.3f}"

    def mean(self, *what: str) -> str:
        """The same with its standard error."""
        area = self._area(*what)
        return f"{area.value:.3f} ± {area.error:.3f}"

    def _area(self, *what: str) -> Mean:
        protocol, experiment, inputs, data, method, on, *more = what
        return self.by_case[protocol, experiment, inputs, data, method].exact(
            on, constant="constant" in more
        )

    def ours(self, experiment: str, data: str, method: str) -> str:
        """The area as the authors computed it, of our run of the published protocol."""
        return f"{self._published(experiment, data, method)[0]:.3f}"

    def printed(self, experiment: str, data: str, method: str) -> str:
        """The area that the paper prints."""
        return f"{self._published(experiment, data, method)[1].area:.3f}"

    def _published(self, experiment: str, data: str, method: str) -> tuple[float, Printed]:
        target = printed(experiment, data, method)
        if target is None:
            raise KeyError((experiment, data, method))
        return self.by_case["published", experiment, "raw", data, method].as_printed().value, target

    def _cells(
        self, methods: Sequence[str], experiments: Sequence[str]
    ) -> list[tuple[float, Printed]]:
        names = {
            "regression": REGRESSION,
            "classification": CLASSIFICATION,
            "equal-opportunity": CLASSIFICATION,
        }
        return [
            self._published(experiment, data, method)
            for experiment in experiments
            for data in names[experiment]
            for method in methods
            if printed(experiment, data, method) is not None
        ]

    def close(self, *experiments: str) -> str:
        """In how many printed cells of our method we are within two standard errors, or 0.01."""
        cells = self._cells(OURS, experiments)
        return f"{sum(close(value, target) for value, target in cells)} of {len(cells)}"

    def close_by_error(self, *experiments: str) -> str:
        """The same by two standard errors alone."""
        cells = self._cells(OURS, experiments)
        return f"{sum(abs(value - target.area) <= 2 * target.error for value, target in cells)} of {len(cells)}"

    def within(self, method: str, count: str, *experiments: str) -> str:
        """By how much, rounded up, so many of a method's printed cells differ at most, and of
        how many.
        """
        cells = self._cells([method], experiments)
        off = sorted(abs(value - target.area) for value, target in cells)
        return (
            f"{ceil(off[int(count) - 1] * 1000 - 1e-9) / 1000:.3f} in {count} of {len(cells)} cells"
        )

    def ahead(self, experiment: str, inputs: str, data: str, method: str, on: str) -> str:
        """By how much a method is ahead of the better of ours, with the constant granted to
        all; below 0: behind.
        """
        areas = [
            self.by_case["corrected", experiment, inputs, data, name].exact(on, constant=True).value
            for name in (method, *OURS)
        ]
        return f"{areas[0] - max(areas[1:]):z.3f}"

    def first(self, experiment: str, on: str) -> str:
        """In how many cells one of ours is first, with the constant granted to all, or behind
        by a standard error.
        """
        cells = [self._rivals(experiment, *cell, on) for cell in self._places(experiment)]
        first = sum(ours.value >= best.value for ours, best in cells)
        level = sum(ours.value < best.value <= ours.value + ours.error for ours, best in cells)
        return (
            f"first in {first} of {len(cells)} cells, behind by at most a standard error in {level}"
        )

    def _places(self, experiment: str) -> list[tuple[str, str]]:
        """Inputs and data of a corrected table."""
        return sorted(
            {(key[2], key[3]) for key in self.by_case if key[:2] == ("corrected", experiment)}
        )

    def behind(self, *experiments: str) -> str:
        """The cells in which both of ours are behind the first by more than a standard error,
        with the constant.
        """
        cells = []
        for experiment, on in product(experiments, ("scores", "labels")):
            for inputs, data in self._places(experiment):
                ours, best = self._rivals(experiment, inputs, data, on)
                if best.value > ours.value + ours.error:
                    by = f"{best.value - ours.value:.3f}, standard error {ours.error:.3f}"
                    cells.append(f"{data} ({inputs}, {experiment}, {on}: by {by})")
        return "; ".join(cells) or "none"

    def plain(self, experiment: str, method: str) -> str:
        """In how many cells the plain area of scores of the better of ours is at least that of
        a method.
        """
        leads = []
        for inputs, data in self._places(experiment):
            areas = {
                key[4]: curve.exact("scores")
                for key, curve in self.by_case.items()
                if key[:4] == ("corrected", experiment, inputs, data)
            }
            ours = max((areas[name] for name in OURS), key=lambda area: area.value)
            if method in areas and areas[method].seeds == ours.seeds:
                leads.append((f"{data} ({inputs})", ours.value - areas[method].value))
        lower = [f"{cell} by {-lead:.3f}" for cell, lead in leads if lead < 0]
        return f"{len(leads) - len(lower)} of {len(leads)} cells" + (
            f" (lower: {', '.join(lower)})" if lower else ""
        )

    def lead(self, data: str) -> str:
        """By how much the better of ours leads on a data set, least and most over tables,
        inputs and figures.
        """
        tables = {
            key[1:3]
            for key in self.by_case
            if key[0] == "corrected" and key[3] == data and key[1] in _TABLES
        }
        pairs = [
            self._rivals(table, inputs, data, on)
            for table, inputs in tables
            for on in ("scores", "labels")
        ]
        leads = [ours.value - best.value for ours, best in pairs]
        return f"{min(leads):.3f} to {max(leads):.3f}"

    def _rivals(self, experiment: str, inputs: str, data: str, on: str) -> tuple[Mean, Mean]:
        """The better of ours, and the best of the others that ran as many seeds: other splits
        do not compare.
        """
        areas = {
            key[4]: curve.exact(on, constant=experiment != "regression")
            for key, curve in self.by_case.items()
            if key[:4] == ("corrected", experiment, inputs, data) and not key[4].endswith("-decay")
        }
        ours = max((areas[method] for method in OURS), key=lambda area: area.value)
        others = [
            area
            for method, area in areas.items()
            if method not in OURS and area.seeds == ours.seeds
        ]
        return ours, max(others, key=lambda area: area.value)

    def costs(self, experiment: str, data: str, method: str) -> str:
        """By how much the decay of the learning rate lowers the published area."""
        areas = [
            self.by_case["published", experiment, "raw", data, name].as_printed().value
            for name in (method, f"{method}-decay")
        ]
        return f"{areas[0] - areas[1]:z.3f}"

    def took(self, which: str) -> str:
        """How long all runs of a file of times took."""
        return f"{json.loads((self.raw / f'times-{which}.json').read_text())['total']:.0f} s"

    def online(self, protocol: str, size: str, kind: str, when: str) -> str:
        """Test objective of online regression: at the end of the stream, or before its law
        changes.
        """
        means = mean_curves(kept_records(self.raw / "online" / f"regression-{protocol}.csv.gz"))
        curve = [
            record
            for record in means
            if (record["size"], record["kind"]) == (int(size), kind.replace("_", " "))
        ]
        last = (
            curve[-1]
            if when == "end"
            else [record for record in curve if record["seen"] < curve[-1]["seen"] // 2][-1]
        )
        return f"{last['objective']:.2f} ± {last['high'] - last['objective']:.2f}"

    def stream(self, protocol: str, size: str, kind: str, figure: str) -> str:
        """Accuracy or label gap of online classification."""
        records = kept_records(self.raw / "online" / f"classification-{protocol}.csv.gz")
        values = [
            float(record[figure])
            for record in records
            if (record["size"], record["kind"]) == (int(size), kind)
        ]
        return f"{Mean.of(values).value:z.3f}"


def summary(folder: Path) -> str:
    """The text, its figures filled in and its lines broken anew."""
    figures = Figures(folder)

    def fill_in(match: re.Match[str]) -> str:
        name, *what = match[1].split()
        return str(getattr(figures, name)(*what))

    text = re.sub(r"\{\{([^}]*)\}\}", fill_in, _TEMPLATE.read_text())
    return "\n\n".join(_broken(part) for part in text.rstrip().split("\n\n")) + "\n"


def _broken(part: str) -> str:
    """A paragraph, or a list of them, in lines of at most 120 characters; tables and headings
    as they are.
    """
    if part.startswith(("#", "|")):
        return part
    items = re.split(r"\n(?=- )", part)
    fill = partial(textwrap.fill, width=120, break_long_words=False, break_on_hyphens=False)
    return "\n".join(
        fill(" ".join(item.split()), subsequent_indent="  " * item.startswith("- "))
        for item in items
    )


if __name__ == "__main__":
    replace_file(Path(sys.argv[1]) / "README.md", summary(Path(sys.argv[1])).encode())
