"""Raw rows to tables: areas of every cell with the printed value beside them, as Markdown and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from math import nan
from statistics import fmean, stdev
from typing import NamedTuple

from experiments.judging import exact, trapezoid
from experiments.printed import LABELS_ONLY, METHODS, Printed, printed
from experiments.rows import Row
from experiments.settings import CLASSIFICATION, DATA, REGRESSION
from metrifair.report.html import Markup, element

Table = Sequence[Sequence[str]]  # the heading first
FULL = 10  # seeds of a whole run; a mean of fewer says so


class Mean(NamedTuple):
    """Mean and standard error over seeds; a single seed has no error."""

    value: float
    error: float
    seeds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Of the values of all seeds."""
        error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else nan
        return cls(fmean(values), error, len(values))

    def __str__(self) -> str:
        few = f" ({self.seeds} seeds)" if self.seeds < FULL else ""
        return f"{self.value:.3f} (1 seed)" if self.seeds == 1 else f"{self.value:.3f} ± {self.error:.3f}{few}"


class Curve(NamedTuple):
    """All rows of one method on one cell."""

    experiment: str
    protocol: str
    input: str
    data: str
    method: str
    rows: tuple[Row, ...]

    @property
    def seconds(self) -> float:
        """Of one fit, on average."""
        return fmean(row.seconds for row in self.rows)

    @property
    def seeds(self) -> list[tuple[Row, ...]]:
        """The rows of each seed that have at least one model."""
        parts = groupby(sorted(self.rows, key=lambda row: row.seed), key=lambda row: row.seed)
        found = [tuple(row for row in part if not row.failed) for _, part in parts]
        return [part for part in found if part]

    def exact(self, on: str, *, constant: bool = False) -> Mean:
        """The dominated area; ``constant`` gives every method the best constant model, which is fair."""
        own = DATA[self.data].majority if constant else 0.0
        return Mean.of([exact(part, on=on, constant=own) for part in self.seeds])

    def published(self, on: str = "labels", *, anchor_last: bool = False) -> Mean:
        """The area as the authors computed it."""
        return Mean.of(
            [
                trapezoid([row.gap(on) for row in part], [row.accuracy for row in part], anchor_last=anchor_last)
                for part in self.seeds
            ]
        )


def curves(rows: Iterable[Row]) -> list[Curve]:
    """The rows by cell and method, in the order of the paper's tables; experiments that share a figure are mixed."""
    names = [*CLASSIFICATION, *REGRESSION, "drug-heroin"]

    def key(row: Row) -> tuple[str, str, str, str, str]:
        return (row.experiment, row.protocol, row.input, row.data, row.method)

    def place(row: Row) -> tuple[object, ...]:
        known = list(METHODS)
        return (row.protocol, row.input, names.index(row.data), known.index(row.method), row.experiment)

    return [Curve(*found, tuple(part)) for found, part in groupby(sorted(rows, key=place), key=key)]


def close(value: float, target: Printed) -> bool:
    """Within two printed standard errors, or 0.01 if that is more."""
    return abs(value - target.area) <= max(2 * target.error, 0.01)


def published_table(found: Sequence[Curve]) -> Table:
    """Areas as the authors computed them, with theirs beside."""
    heading = ["data", "method", "printed", "ours", "difference", "close", "s per fit, printed", "s per fit, ours"]
    lines = []
    for curve in found:
        target = printed(curve.experiment, curve.data, curve.method)
        for name, area in _published_areas(curve):
            lines.append(
                [
                    DATA[curve.data].title,
                    METHODS[curve.method] + name,
                    _printed_area(target),
                    str(area),
                    f"{area.value - target.area:+.3f}" if target else "",
                    ("yes" if close(area.value, target) else "no") if target else "",
                    f"{target.seconds:g}" if target else "",
                    f"{curve.seconds:.3g}",
                ]
            )
    return without_empty([heading, *lines])


def as_printed(curve: Curve) -> Mean:
    """The area as it was printed: under equal opportunity, our linear model was scored by parity by mistake."""
    mistaken = curve.experiment == "equal-opportunity" and curve.method == "mfl-linear"
    return curve.published("parity" if mistaken else "labels")


def _published_areas(curve: Curve) -> list[tuple[str, Mean]]:
    """The area as it was printed, and what else is worth a line."""
    found = [("", as_printed(curve))]
    if curve.experiment == "regression":
        found.append((" (anchor last)", curve.published(anchor_last=True)))
    if curve.experiment == "equal-opportunity" and curve.method == "mfl-linear":
        found = [(" (scored by parity, as printed)", found[0][1]), ("", curve.published())]
    return found


def _printed_area(target: Printed | None) -> str:
    return f"{target.area:.3f} ± {target.error:.3f}" if target else ""


def without_empty(table: Table) -> Table:
    """The table without the columns that hold nothing.

    >>> without_empty([["data", "close", "area"], ["Drug", "", "0.8"]])
    [['data', 'area'], ['Drug', '0.8']]
    """
    full = [any(cells) for cells in zip(*table[1:], strict=True)] or [True] * len(table[0])
    return [[text for text, kept in zip(line, full, strict=True) if kept] for line in table]


def corrected_table(found: Sequence[Curve], *, marked: bool = True) -> Table:
    """Exact areas of scores and of labels, and the printed ones, which are other areas of other models.

    ``marked``: in bold the best of each data set and input, of the most seeds.
    """
    kinds = ["area, scores", "scores, constant allowed", "area, labels", "labels, constant allowed"]
    heading = ["data", "input", "method", *kinds, "printed (published protocol)", "s per fit"]
    lines = []
    for (inputs, data), part in groupby(found, key=lambda curve: (curve.input, curve.data)):
        own = list(part)
        areas = [_corrected_areas(curve) for curve in own]
        best = [_best(column) if marked else nan for column in zip(*areas, strict=True)]
        for curve, row in zip(own, areas, strict=True):
            texts = [_marked(area, top) for area, top in zip(row, best, strict=True)]
            texts.append(_printed_area(printed(curve.experiment, data, curve.method)))
            lines.append([DATA[data].title, inputs, METHODS[curve.method], *texts, f"{curve.seconds:.3g}"])
    return without_empty([heading, *lines])


def _corrected_areas(curve: Curve) -> list[Mean | None]:
    """Of scores, alone and beside a constant, then of labels; None where there are no such."""
    if DATA[curve.data].task == "regression":
        return [curve.exact("scores"), None, None, None]
    on = {"scores": curve.method not in LABELS_ONLY, "labels": True}
    return [curve.exact(name, constant=c) if known else None for name, known in on.items() for c in (False, True)]


def _best(areas: Sequence[Mean | None]) -> float:
    """The largest area among those of the most seeds: means over other splits do not compare."""
    known = [area for area in areas if area]
    most = max((area.seeds for area in known), default=0)
    return max((area.value for area in known if area.seeds == most), default=nan)


def _marked(area: Mean | None, best: float) -> str:
    if area is None:
        return ""
    return f"**{area}**" if area.value == best else str(area)


def markdown(table: Table) -> str:
    """The table in Markdown.

    >>> print(markdown([["data", "area"], ["Drug", "0.8"]]))
    | data | area |
    |---|---|
    | Drug | 0.8 |
    """
    heading, *lines = (f"| {' | '.join(line)} |" for line in table)
    return "\n".join([heading, "|" + "---|" * len(table[0]), *lines])


def html(table: Table) -> Markup:
    """The table in HTML; what Markdown has in bold is bold here."""
    heading, *lines = table
    head = element("tr", *(element("th", text, scope="col") for text in heading))
    body = [element("tr", *(element("td", _bold(text)) for text in line)) for line in lines]
    return element("table", element("thead", head), element("tbody", *body))


def _bold(text: str) -> str:
    return element("b", text.strip("*")) if text.startswith("**") else text
