"""The words for metrics and criteria, one row each."""

from __future__ import annotations

from typing import NamedTuple


class MetricWords(NamedTuple):
    """A metric as readers meet it.

    ``meaning`` is the template for a value: {first} and {second} are the groups, {value}, {half},
    {root} and {points} (percentage points) the number, {cutoff} that of the largest gap.
    """

    name: str
    about: str = ""  # for the glossary
    meaning: str = ""

    @property
    def short(self) -> str:
        """The name where the context is distances.

        >>> metric_words("energy").short
        'Energy'
        """
        return self.name.removesuffix(" distance")

    @property
    def figure(self) -> str:
        """The name beside a figure: that of the gap, where the metric is the gap.

        >>> metric_words("kolmogorov").figure, metric_words("energy").figure
        ('Gap (Kolmogorov distance)', 'Energy distance')
        """
        return f"Gap ({self.name})" if self is METRIC_WORDS["kolmogorov"] else self.name


_APART = (
    "Scores of two people drawn from {{first}} and {{second}} lie {{{0}}} further apart, on "
    "average, than scores of "
    "two people drawn from the same group."
)

METRIC_WORDS = {
    "energy": MetricWords(
        "Energy distance",
        "Twice the squared difference between the shares at or below a score, integrated over all "
        "scores; in units of "
        "the score. It responds to differences at every score, not only at the largest gap.",
        _APART.format("half"),
    ),
    "kolmogorov": MetricWords(
        "Kolmogorov distance",
        "The largest difference between the groups' shares at or above a score, over all scores: "
        "the gap. 0 means equal distributions; 1 means no overlap; 0.1 is 10 points (percentage "
        "points).",
        "For any cutoff, the shares of {first} and {second} at or above it differ by at most "
        "{points}. The largest difference is at {cutoff}.",
    ),
    "wasserstein": MetricWords(
        "Wasserstein distance",
        "How far the scores of one group would have to move, on average, to have the other group's "
        "distribution; in "
        "units of the score.",
        "Scores would have to move by {value} on average to give {first} and {second} the same "
        "distribution.",
    ),
    "cramer": MetricWords(
        "Cramér distance",
        "The squared difference between the shares at or below a score, integrated over all "
        "scores: half the energy "
        "distance.",
        _APART.format("value"),
    ),
    "lp": MetricWords(
        "L^p distance",
        "The difference between the shares at or below a score, as a norm over all scores.",
        "The difference between the shares of {first} and {second} at or below a score has the "
        "norm {value} over all "
        "scores.",
    ),
    "mmd": MetricWords(
        "Kernel distance (MMD)",
        "The squared difference between the two groups' means of a smooth, bell-shaped utility.",
        "The mean of one smooth utility of the score differs by {root} between {first} and "
        "{second}. No smooth "
        "utility of norm 1 differs by more.",
    ),
    "total_variation": MetricWords(
        "Total variation distance",
        "The share of one group whose scores have no counterpart in the other group. Where scores "
        "rarely repeat, it is "
        "near 1 for any two samples.",
        "For any set of scores, the shares of {first} and {second} in it differ by at most "
        "{points}.",
    ),
}


def metric_words(metric: str) -> MetricWords:
    """The words for a metric; a custom metric keeps its name.

    >>> metric_words("kolmogorov").name, metric_words("my_metric").name
    ('Kolmogorov distance', 'my_metric')
    """
    return METRIC_WORDS.get(metric) or MetricWords(metric)


CRITERION_MEANINGS = {
    "statistical_parity": "All groups have the same score distribution.",
    "equal_opportunity": "All groups have the same score distribution among rows with a positive "
    "label.",
    "predictive_equality": "All groups have the same score distribution among rows with a negative "
    "label.",
    "equalized_odds": "All groups have the same score distribution among rows with the same label.",
    "risk_parity": "All groups have the same distribution of the loss, the error of the scores.",
    "conditional_statistical_parity": "All groups have the same score distribution within each "
    "stratum of the control "
    "features.",
}
"""The definition of each criterion."""


def criterion_name(criterion: str) -> str:
    """The name of a criterion; a custom criterion keeps its name.

    >>> criterion_name("equal_opportunity"), criterion_name("my criterion")
    ('Equal opportunity', 'my criterion')
    """
    return (
        criterion.replace("_", " ").capitalize() if criterion in CRITERION_MEANINGS else criterion
    )
