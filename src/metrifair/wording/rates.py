"""The wording of selection rates and impact ratios: columns, standards, and one sentence a
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from metrifair.auditing.ranking import compares_few, is_inconclusive, lowest_rate, worst_ratio
from metrifair.auditing.records import AuditSettings, Decisions, Favorable, SelectedBy
from metrifair.figures.selection_rates import FOUR_FIFTHS, STANDARDS, GroupRates, is_below
from metrifair.wording.numbers import (
    count_text,
    figure_text,
    interval_text,
    number_text,
    percent_text,
    quoted,
    score_text,
)
from metrifair.wording.sources import Source

NO_VERDICT = "These figures do not decide whether a law or a rule is met."

JUSTIFICATION = "justification"
"""The fact that justifies leaving out categories with a small share of the rows."""


class StandardWords(NamedTuple):
    """The title of a standard (``rates_title`` fills it in), its description, the facts that only
    the user can give, the document behind it, and the title of the page.
    """

    title: str
    about: str
    fields: tuple[str, ...] = ()
    source: Source | None = None
    page_title: str = "Selection rates and impact ratios"


STANDARD_WORDS = {
    "": StandardWords(
        "Selection rates and impact ratios",
        "The selection rate of each group, and its ratio to that of the reference group.",
    ),
    "ll144": StandardWords(
        "{rates} and impact ratios by {attributes} (New York City Local Law 144)",
        "For each category: the selection rate, or the scoring rate (the share with a score above "
        "the median of the full sample), and the impact ratio, that rate divided by the highest "
        "one. The rule sets no threshold for the ratio, so the table shows none.",
        fields=(
            *(
                "data",
                "period",
                "explanation of the data",
                "distribution date of the tool",
            ),
            JUSTIFICATION,
        ),
        source=Source(
            document="Rules of the City of New York, title 6, sections 5-300 to 5-304 (Local Law "
            "144 of 2021)",
            version="as adopted in April 2023",
            status="in force, enforced since 5 July 2023",
            source="excerpts and quotations in other documents",
            date="2026-11-17",
            limits="The official publication was not read.",
        ),
        page_title="Figures for a bias audit under New York City Local Law 144",
    ),
    "four-fifths": StandardWords(
        "Selection rates relative to the highest (Uniform Guidelines, 29 CFR 1607.4 D)",
        "The selection rate of each category, divided by the highest one. Ratios below four fifths "
        "are marked. "
        "Fisher’s exact p-value and the shortfall show whether the sample or the difference is "
        "small.",
        source=Source(
            document="Uniform Guidelines on Employee Selection Procedures, 29 CFR 1607.4 D",
            version="of 1978",
            status="its rescission is at the stage of a final rule (RIN 3046-AB43), by secondary "
            "sources",
            source="summaries of the section and notices about its rescission",
            date="2026-11-19",
            limits="Secondary sources: neither the Code of Federal Regulations nor the Federal "
            "Register was read.",
        ),
    ),
    "credit": StandardWords(
        "Adverse impact ratios and mean scores relative to a reference group (credit)",
        "The selection rate of each category, divided by that of the reference group, and the "
        "standardized mean "
        "difference: the mean score minus that of the reference group, in standard deviations of "
        "all scores. A second "
        "table shows the ratio at every decile of the score.",
        source=Source(
            document="practice of US lenders under the Equal Credit Opportunity Act, Regulation B "
            "(12 CFR 1002)",
            version="as amended on 22 April 2026",
            status="the effects test left Regulation B on 21 July 2026; other federal and state "
            "law may still use such figures",
            source="notes of the law firms Cooley and Venable on the final rule, May 2026",
            date="2026-11-19",
            limits="Secondary sources: the Federal Register was not read.",
        ),
    ),
}
"""The words for each standard in ``figures.selection_rates``."""


def selected_text(
    threshold: float,
    selected_by: SelectedBy,
    favorable: Favorable,
    favorable_decision: object = None,
) -> str:
    """Which scores or decisions are selected, as the beginning of a sentence.

    >>> selected_text(0.5, "threshold", "high"), selected_text(0.5, "median", "low")
    ('At threshold 0.5', 'Below the median score 0.5')
    >>> selected_text(0.5, "decisions", "high", "Approved"), selected_text(0.5, "decisions", "low")
    ('With the decision “Approved”', 'With the decision “0”')
    """
    at = score_text(threshold)
    low = favorable == "low"
    if selected_by == "median":
        return f"{'Below' if low else 'Above'} the median score {at}"
    if selected_by == "decisions":
        value = int(not low) if favorable_decision is None else favorable_decision
        return f"With the decision {quoted(str(value))}"
    return f"Below threshold {at}" if low else f"At threshold {at}"


def table_selected_text(table: Decisions) -> str:
    """Which scores or decisions a table counts as selected, as the beginning of a sentence."""
    return selected_text(
        table.threshold, table.selected_by, table.favorable, table.favorable_decision
    )


def exclusion_text(rate: GroupRates, table: Decisions, settings: AuditSettings) -> str:
    """Why a category has no impact ratio; empty if it has one.

    >>> table = Decisions("sex", "everyone", 0.5, [], 0.0, None)
    >>> exclusion_text(GroupRates("x", 3, 0.5, left_out="small_share"), table, AuditSettings())
    'under 2% of the rows'
    """
    under = f"under {100 * settings.min_group_share:g}% of the rows"
    reference = quoted(str(settings.reference.get(table.attribute, "")))
    texts = {
        "": "",
        "unknown_group": "its category is missing",
        "missing_or_unknown_name": "its category is missing or not stated",
        "unknown_name": "its name says that the group is not known",
        "small_share": under,
        "reference_absent": f"the reference {reference} has no rows here",
        "reference_small_share": f"the reference {reference} has {under}",
    }
    return texts[rate.left_out]


INCONCLUSIVE = "the true ratio may be above or below 0.80"
"""The verdict on an impact ratio from four fifths upwards whose interval includes four fifths."""


def four_fifths_text(table: Decisions) -> str:
    """Whether the smallest impact ratio is below four fifths, by its interval; empty if a
    standard has no limit.
    """
    if table.selection_ratio is None or not STANDARDS[table.standard].four_fifths:
        return ""
    below = is_below(table.selection_ratio)
    if is_inconclusive(table):
        return f"below four fifths; {INCONCLUSIVE}" if below else INCONCLUSIVE
    return "below four fifths" if below else "not below four fifths"


def rates_sentence(table: Decisions, settings: AuditSettings) -> str:
    """The answer of one table: the lowest and the reference rate, and their ratio; small groups
    make no headline.
    """
    worst = worst_ratio([table])
    where = table.attribute + ("" if table.within == "everyone" else f", {table.within}")
    if worst is None:
        return f"{where}: {ratio_text(table, settings)}"
    low, high = worst.group, worst.reference
    verb = "scores beyond the median" if table.selected_by == "median" else "is selected"
    times = figure_text(worst.ratio, digits=2, limit=FOUR_FIFTHS)
    rates = f"{percent_text(low.selection_rate)} and {percent_text(high.selection_rate)}"
    return (
        f"{where}: {quoted(low.group)} {verb} {times} times as often as {quoted(high.group)} "
        f"({rates}). {ratio_text(table, settings)}"
    )


def facts_given(about: Mapping[str, str]) -> dict[str, str]:
    """The user's statements about the data, by lower-case keys.

    >>> facts_given({" Justification": "too few applicants"})
    {'justification': 'too few applicants'}
    """
    return {key.strip().lower(): value for key, value in about.items()}


def exclusions_sentence(
    table: Decisions, settings: AuditSettings, about: Mapping[str, str] | None = None
) -> str:
    """The categories of a table without an impact ratio, by the reason for it; empty if all have
    one.

    For a standard that requires a justification of small categories, it includes the one in
    ``about``, or its absence.
    """
    reasons: dict[str, list[str]] = {}
    rates = list(table.rates)
    if table.unknown:
        rates.append(table.unknown)
    for rate in rates:
        if rate.left_out:
            size = f"{count_text(rate.size, 'row')}, {percent_text(rate.share)}"
            reasons.setdefault(exclusion_text(rate, table, settings), []).append(
                f"{quoted(rate.group)} ({size})"
            )
    listed = "; ".join(f"{why}: {', '.join(groups)}" for why, groups in reasons.items())
    justification = facts_given(about or {}).get(JUSTIFICATION, "")
    required = JUSTIFICATION in STANDARD_WORDS[table.standard].fields
    small = any(rate.left_out == "small_share" for rate in table.rates)
    justified = ""
    if small and (required or justification):
        justified = f" Justification: {justification or 'not given'}."
    return (
        f"Excluded from impact ratios by {table.attribute}, {listed}.{justified}" if listed else ""
    )


def ratio_hint(table: Decisions, settings: AuditSettings) -> str:
    """What the rows of a table do not show of its smallest ratio: the verdict, and the interval
    that is adjusted for the choice of it.
    """
    lowest = lowest_rate(table)
    if lowest is None or compares_few(table):
        return ratio_text(table, settings)
    sentences = []
    if verdict := four_fifths_text(table):
        if verdict == INCONCLUSIVE:
            sentences.append("The smallest true impact ratio may be above or below 0.80.")
        else:
            sentences.append(f"The smallest impact ratio is {verdict}.")
    interval = table.selection_ratio_interval
    if interval is not None and interval != lowest.ratio_interval:
        sentences.append(
            "The interval of the smallest impact ratio, adjusted for its choice, is "
            f"{interval_text(interval)}."
        )
    return " ".join(sentences)


def ratio_text(table: Decisions, settings: AuditSettings) -> str:
    """The smallest impact ratio with its interval, and whether it is below four fifths."""
    ratio = table.selection_ratio
    interval = table.selection_ratio_interval
    if ratio is None:
        known = [rate for rate in table.rates if rate.left_out != "unknown_name"]
        if len(known) < 2:
            return "There is no impact ratio: fewer than two groups are known."
        excluded = next((rate for rate in table.rates if rate.left_out), None)
        if excluded is not None:
            return f"There is no impact ratio: {exclusion_text(excluded, table, settings)}."
        some = any(rate.selection_rate > 0 for rate in table.rates)
        nobody = "Nobody of the reference group" if some else "Nobody"
        return f"{nobody} is selected, so there is no impact ratio."
    text = number_text(ratio, limit=FOUR_FIFTHS)
    if interval is not None:
        text = f"{text} ({interval_text(interval)})"
    if compares_few(table):
        lowest = lowest_rate(table)
        unit = "rows" if table.rates[0].clusters is None else "clusters"
        name = "" if lowest is None else lowest.group
        pair = f"{quoted(name)} to {quoted(table.reference or '')}"
        return (
            f"Impact ratio {text} of {pair}, one with fewer than {settings.min_group_size} {unit}."
        )
    verdict = four_fifths_text(table)
    return f"Four-fifths ratio {text}: {verdict}." if verdict else f"Smallest impact ratio {text}."
