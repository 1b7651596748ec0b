"""The wording of audits by probabilities of groups: the assumption, and estimates beside corrections and bounds."""

from __future__ import annotations

from collections.abc import Callable

from metrifair.auditing.records import Measure, ProxyEstimate, ProxyRecord
from metrifair.figures.proxies import CELL_ROWS
from metrifair.wording.findings import OTHERS
from metrifair.wording.numbers import count_text, interval_text, number_text, percent_text, quoted

WEIGHTED, CORRECTED, BOUNDS = "Weighted", "Corrected", "Bounds without the assumption"
HEADINGS = ("Figure", WEIGHTED, CORRECTED, BOUNDS)
"""The columns of a table of estimates."""

_ASSUMPTIONS = {
    "scores": "only if score and group are independent given the inputs of {name}",
    "scores_and_labels": "only if score and label together are independent of the group given the inputs of {name}",
    "labels_included": "only if score and group are independent given the label and the inputs of {name}",
}
_FIGURES = {"selection_rate": "Selection rate", "selection_ratio": "Impact ratio", "energy": "Energy distance"}


def assumption_sentence(proxy: ProxyRecord) -> str:
    """The assumptions of the audit's figures.

    >>> assumption_sentence(ProxyRecord("P(race)", "scores", source="BISG"))[:69]
    'The figures weight each row by P(race) (BISG). They are valid for the'
    """
    source = "" if proxy.source is None else f" ({proxy.source})"
    if proxy.assumption == "observed":
        return (
            f"The observed groups of {proxy.attribute}{source} can be wrong, so gaps between the true groups can be "
            "larger. Corrected figures assume that score and observed group are independent given the true group."
        )
    holds = _ASSUMPTIONS[proxy.assumption].format(name=proxy.attribute)
    strata = " Strata must be among these inputs: figures within others can be far too small or too large."
    return (
        f"The figures weight each row by {proxy.attribute}{source}. They are valid for the true groups {holds}. "
        f"Otherwise, the true gaps can be larger.{strata if proxy.strata else ''}"
    )


def checked_sentence(proxy: ProxyRecord) -> str:
    """The smallest impact ratio, corrected and bounded; "" if neither is known.

    >>> from metrifair.figures.intervals import Interval
    >>> bounds = {"bounds": Interval(0.2, 0.9), "bounds_interval": Interval(0.1, 0.95)}
    >>> ratio = ProxyEstimate("selection_ratio", ("b", "w"), Measure(0.5), **bounds)
    >>> print(checked_sentence(ProxyRecord("P(race)", "scores", estimates=[ratio])))
    Without the assumption, the impact ratio of “b” to “w” is between 0.200 and 0.900 (0.100 to 0.950 with
    sampling error).
    """
    ratios = [estimate for estimate in proxy.estimates if estimate.figure == "selection_ratio"]
    if not ratios:
        return ""
    worst = min(ratios, key=lambda estimate: estimate.weighted.value)
    parts = []
    if worst.corrected is not None:
        by_rows = f"with {count_text(proxy.known, 'row')} of known group"
        how = by_rows if proxy.known else "for errors of observed groups"
        interval = interval_text(worst.corrected.interval)
        parts.append(f"corrected {how}, %s is {number_text(worst.corrected.value)} ({interval})")
    if worst.bounds is not None:
        low, high = number_text(worst.bounds.low), number_text(worst.bounds.high)
        parts.append(f"without the assumption, %s is between {low} and {high}")
    if worst.bounds_interval is not None:
        parts[-1] += f" ({interval_text(worst.bounds_interval)} with sampling error)"
    if not parts:
        return ""
    figure = f"the impact ratio of {quoted(worst.groups[0])} to {quoted(worst.groups[1])}"
    text = "; ".join(part % subject for part, subject in zip(parts, (figure, "it"), strict=False))
    return f"{text[0].upper()}{text[1:]}."


def estimate_row(estimate: ProxyEstimate) -> tuple[str, str, str, str]:
    """One line of a table of estimates.

    >>> from metrifair.figures.intervals import Interval
    >>> estimate_row(ProxyEstimate("selection_rate", ("b",), Measure(0.5), bounds=Interval(0.2, 0.9)))
    ('Selection rate, “b”', '50.0%', '–', '20.0 to 90.0%')
    """
    show = percent_text if estimate.figure == "selection_rate" else number_text
    names = [OTHERS if name == "rest" else quoted(name) for name in estimate.groups]
    bounds = interval_text(estimate.bounds, show)
    if estimate.bounds_interval is not None:
        bounds += f" ({interval_text(estimate.bounds_interval, show)})"
    return (
        f"{_FIGURES[estimate.figure]}, {' / '.join(names)}",
        _measure_text(estimate.weighted, show),
        _measure_text(estimate.corrected, show),
        bounds,
    )


def _measure_text(measure: Measure | None, show: Callable[[float | None], str]) -> str:
    if measure is None or measure.interval is None:
        return show(None if measure is None else measure.value)
    return f"{show(measure.value)} ({interval_text(measure.interval, show)})"


def check_hints(proxy: ProxyRecord) -> list[str]:
    """How the columns of the table were computed."""
    hints = ["Confidence intervals are in parentheses."]
    if proxy.corrected_by == "known_groups":
        hints.append(
            f"Corrected figures remove the error of the weighted figures that {count_text(proxy.known, 'row')} of "
            "known group show. These rows must be a random sample of all rows."
        )
    if proxy.cells:
        hints.append(
            "Bounds hold for any dependence between score and group within a cell. Cells with fewer than "
            f"{CELL_ROWS} rows are merged; at most {proxy.cells:,} cells remain."
        )
    return hints
