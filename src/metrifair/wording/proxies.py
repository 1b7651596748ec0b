"""The wording of audits by probabilities of groups: the assumption, and estimates beside
corrections and bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metrifair.auditing.measure.r2_correction import gap_bracket
from metrifair.auditing.records import AuditRecord, Finding, ProxyRecord
from metrifair.figures.attenuation import SMALLEST_R2, UNSTABLE_R2
from metrifair.figures.membership_estimates import CELL_ROWS
from metrifair.wording.numbers import (
    count_text,
    interval_text,
    listed,
    number_text,
    quoted,
)

_ASSUMPTIONS = {
    "scores": "only if score and group are independent given the inputs of {name}, as with most "
    "places",
    "scores_and_labels": "only if score and label together are independent of the group given the "
    "inputs of {name}",
    "labels_included": "only if score and group are independent given the label and the inputs of "
    "{name}",
}
_DIVIDED_IF = {
    "scores": "score and {name} are independent given the group, as with most surnames",
    "scores_and_labels": "score and {name} are independent given group and label, as with most "
    "surnames",
    "labels_included": "score and {name} are independent given group and label, as with most "
    "surnames",
}


def assumption_sentence(proxy: ProxyRecord) -> str:
    """The assumptions of the audit's figures.

    >>> assumption_sentence(ProxyRecord("P(race)", "scores", source="BISG"))[:69]
    'The figures weight each row by P(race) (BISG). They are valid for the'
    """
    source = "" if proxy.source is None else f" ({proxy.source})"
    if proxy.assumption == "observed":
        return (
            f"The observed groups of {proxy.attribute}{source} can be wrong, so gaps between the "
            "true groups can be "
            "larger. Corrected figures assume that score and observed group are independent given "
            "the true group."
        )
    if proxy.r2 and min(proxy.r2.values()) == 1:
        return f"All probabilities of {proxy.attribute}{source} are 0 or 1, so that each row has one group."
    holds = _ASSUMPTIONS[proxy.assumption].format(name=proxy.attribute)
    strata = " Strata must be among these inputs: figures within others can be far too small or too large."
    return (
        f"The figures weight each row by {proxy.attribute}{source}. They are valid for the true "
        f"groups {holds}. "
        f"{_second_assumption(proxy)}{strata if proxy.strata else ''}"
    )


def _second_assumption(proxy: ProxyRecord) -> str:
    """When the divided figures are valid, with R2 of each group; or that R2 is too small for them.

    >>> _second_assumption(ProxyRecord("P(race)", "scores", r2={"b": 0.0123, "w": 0.0123}))
    'R2 of P(race) is 0.012, below 0.02: it says too little about the group to divide by, and the true gaps can be \
far larger.'
    """
    if not proxy.r2:
        return "Otherwise, the true gaps can be larger."
    name = proxy.attribute
    smallest = min(proxy.r2.values())
    small = {group: r2 for group, r2 in proxy.r2.items() if r2 < SMALLEST_R2}
    if len(small) == len(proxy.r2):
        return (
            f"R2 of {name} is {_r2_text(proxy.r2)}, below {SMALLEST_R2:g}: it says too little "
            "about the group to "
            "divide by, and the true gaps can be far larger."
        )
    condition = _DIVIDED_IF[proxy.assumption].format(name=name)
    figures = "divided by R2" if len(proxy.r2) == 2 else "corrected for the mixing of groups"
    omitted = (
        f" Below {SMALLEST_R2:g}, figures are not corrected: R2 {_r2_text(small)}." if small else ""
    )
    unstable = f" Intervals omit the sampling error of R2, which matters below {UNSTABLE_R2:g}."
    return (
        f"If instead {condition}, the true gaps are those {figures} (R2 {_r2_text(proxy.r2)})."
        f"{omitted}{unstable if smallest < UNSTABLE_R2 else ''}"
    )


def _r2_text(by_group: Mapping[str, float]) -> str:
    """R2 of two groups, which is the same; or of each of several.

    >>> _r2_text({"a": 0.2, "b": 0.31, "c": 0.4})
    '0.200 for “a”, 0.310 for “b”, 0.400 for “c”'
    """
    shown = {number_text(r2) for r2 in by_group.values()}
    if len(by_group) == 2 and len(shown) == 1:
        return shown.pop()
    return listed([f"{number_text(r2)} for {quoted(group)}" for group, r2 in by_group.items()])


def attenuated_sentences(by_audit: Sequence[Mapping[str, float]]) -> list[str]:
    """That differences of weighted figures are those of the true ones times R2; none if each row
    has one group.

    >>> print(*attenuated_sentences([{"b": 0.2, "w": 0.2}, {"b": 0.3, "w": 0.3}]))
    Figures are weighted by probabilities of groups. If score and probabilities are independent given the group, \
differences of distances are too small by R2 (0.200 to 0.300), and a change of R2 looks like one of the distances.
    """
    every = [r2 for audit in by_audit for r2 in audit.values()]
    if not every or min(every) == 1:
        return []
    smallest = number_text(min(every))
    largest = number_text(max(every))
    values = smallest if smallest == largest else f"{smallest} to {largest}"
    changes = "" if smallest == largest else ", and a change of R2 looks like one of the distances"
    text = (
        "Figures are weighted by probabilities of groups. If score and probabilities are "
        "independent given the group, "
        f"differences of distances are too small by R2 ({values}){changes}."
    )
    return [text]


def gap_interval_text(record: AuditRecord, finding: Finding) -> str:
    """Both ends of a distance, or its value if there is one end."""
    bracket = gap_bracket(finding, record)
    return number_text(finding.value) if bracket is None else interval_text(bracket)


def checked_sentence(proxy: ProxyRecord) -> str:
    """The smallest impact ratio, corrected and bounded; "" if neither is known.

    >>> from metrifair.auditing.records import Measure, ProxyEstimate
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


def check_hints(proxy: ProxyRecord) -> list[str]:
    """How the columns of the table were computed."""
    hints = ["Confidence intervals are in parentheses."]
    if any(estimate.divided is not None for estimate in proxy.estimates):
        hints.append(
            "Figures divided by R2 (for squared distances: twice) are valid if "
            f"{_DIVIDED_IF[proxy.assumption]}. Those "
            "of three or more groups are corrected for the mixing of the groups.".format(
                name=proxy.attribute
            )
        )
    if proxy.corrected_by == "known_groups":
        hints.append(
            "Corrected figures remove the error of the weighted figures that "
            f"{count_text(proxy.known, 'row')} of "
            "known group show. These rows must be a random sample of all rows."
        )
    if proxy.cells:
        hints.append(
            "Bounds hold for any dependence between score and group within a cell. Cells with "
            "fewer than "
            f"{CELL_ROWS} rows are merged; at most {count_text(proxy.cells, 'cell')} remain."
        )
    return hints
