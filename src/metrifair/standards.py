"""The tables that rules ask for, as data: which attributes, whether crossed, who is selected, which columns.

Each table is called by what it computes. None of them says whether a law is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

StandardName: TypeAlias = Literal["ll144", "four-fifths", "credit"]

NO_VERDICT = (
    "These are figures. Whether a law or a rule is kept is not said here: people judge that, and by more than these."
)

COLUMNS = {
    "group": "Category",
    "rows": "Rows",
    "share": "Share",
    "selected": "Selected",
    "rate": "Selection rate",
    "ratio": "Impact ratio",
    "below": "Below 4/5",
    "p": "Fisher’s p",
    "shortfall": "Shortfall",
    "difference": "Mean difference",
}
"""What a table of rates can show, and what its columns are called."""

_USUAL = ("group", "rows", "share", "selected", "rate", "ratio", "p", "shortfall")


@dataclass(frozen=True)
class Standard:
    """What a rule asks to be computed."""

    title: str
    about: str  # in sentences
    columns: tuple[str, ...] = _USUAL
    crossed: bool = False  # also the crossing of all attributes, and each of them where they are crossed
    by_median: bool = False  # scores above the median are selected, unless decisions or a threshold are given
    named: bool = False  # the reference must be named
    four_fifths: bool = True  # whether four fifths are spoken of
    scores: bool = False  # also mean scores, and ratios at every decile
    fields: tuple[str, ...] = ()  # what only the user knows


STANDARDS: dict[str, Standard] = {
    "": Standard(  # where none is asked for
        "Rates and ratios", "Of each category, how many are selected, and the rate divided by that of the reference."
    ),
    "ll144": Standard(
        "Rates and impact ratios by sex, race/ethnicity and their crossing (New York City, Local Law 144)",
        "Of each category of each attribute, and of the attributes crossed: the selection rate, or the scoring rate "
        "(the share with a score above the median of the full sample), and the impact ratio: that rate divided by the "
        "highest. The rule has no threshold for the ratio, so none is shown.",
        columns=("group", "rows", "share", "selected", "rate", "ratio"),
        crossed=True,
        by_median=True,
        four_fifths=False,
        fields=("date of the data", "source of the data", "explanation of the data", "distribution date of the tool"),
    ),
    "four-fifths": Standard(
        "Selection rates against the highest (Uniform Guidelines, 29 CFR 1607.4 D)",
        "Of each category, the selection rate divided by the highest. Ratios below four fifths are marked; Fisher’s "
        "exact p-value and the shortfall stand beside them, since small samples and small differences are weighed.",
        columns=("group", "rows", "share", "selected", "rate", "ratio", "below", "p", "shortfall"),
    ),
    "credit": Standard(
        "Adverse impact ratios and mean scores against a reference (credit)",
        "Of each category, the selection rate divided by that of the reference, and the standardised mean difference: "
        "the mean score less the reference’s, in standard deviations of all scores. Further, the ratio at every decile "
        "of the score.",
        columns=("group", "rows", "share", "selected", "rate", "ratio", "p", "shortfall", "difference"),
        named=True,
        four_fifths=False,
        scores=True,
    ),
}
"""By the name that is asked for."""
