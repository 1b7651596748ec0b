"""The names of all figures and columns, with their definitions: each name is written here only."""

from __future__ import annotations

from typing import NamedTuple

from metrifair.wording.metrics import metric_words


class Term(NamedTuple):
    """What people read for a figure: its name, and its definition for a glossary.

    CONFIDENCE in a definition is the confidence of the audit.
    """

    name: str
    about: str = ""


TERMS = {
    # The place of a figure
    "group": Term("Group", "The rows with the same value of a protected attribute."),
    "groups": Term("Groups"),
    "attribute": Term("Attribute"),
    "within": Term("Among"),
    "rows": Term("Rows"),
    "metric": Term("Distance"),
    "figure": Term("Figure"),
    # Distances
    "value": Term("Value"),
    "witness": Term(
        "Benefit",
        "A utility of the score, chosen so that its means differ most between the groups: the "
        "witness function of the distance.",
    ),
    "unbiased": Term(
        "Unbiased value",
        "The distance without its expected bias from sampling noise. It can be negative.",
    ),
    "probability_r2": Term("R2 of the probabilities"),
    "weighted": Term("Weighted"),
    "divided": Term(
        "Divided by R2",
        "Right if score and probabilities are independent given the group: the distance divided "
        "by R2, the variance of a group's probability as a share of the largest variance there "
        "could be. Squared distances are divided by R2 squared. A pair among three or more groups "
        "is corrected for the mixing of all groups.",
    ),
    "corrected": Term("Corrected"),
    "bounds": Term("Bounds without the assumption"),
    "interval": Term(
        "Interval",
        "A bootstrap CONFIDENCE confidence interval of the distance in the population. It covers "
        "one finding by itself, not the largest of many.",
    ),
    "joint_interval": Term(
        "Joint interval",
        "Confidence intervals that, with CONFIDENCE confidence, hold simultaneously for all "
        "comparisons by this distance. Findings are ranked by the lower end.",
    ),
    "significant": Term(
        "Significance",
        "Whether a gap is statistically significant, adjusted for the number of comparisons: the "
        "joint interval excludes 0. Without such an interval, by permutation p-values with the "
        "Bonferroni correction.",
    ),
    "bracket": Term(
        "Proven bracket",
        "Proven bounds of the value for this file, which was too large for memory.",
    ),
    "certified": Term(
        "Certified upper bound",
        "With CONFIDENCE confidence, the distance in the population is at most this, for any "
        "distributions (Dvoretzky-Kiefer-Wolfowitz inequality). For a difference of shares, a "
        "bound of 1 rules nothing out.",
    ),
    "certified_jointly": Term(
        "Joint certified bound",
        "The same bound, valid simultaneously for all findings of this audit.",
    ),
    "p_value": Term(
        "p-value",
        "The probability of a difference at least this large between two groups with equal "
        "distributions. It is not adjusted for the number of comparisons.",
    ),
    # Decisions
    "share": Term("Share"),
    "selected": Term("Selected"),
    "selection_rate": Term(
        "Selection rate",
        "The share of a group that is selected: at the threshold, or beyond the median score.",
    ),
    "scoring_rate": Term(
        "Scoring rate", "The share of a group that scores beyond the median score."
    ),
    "selection_ratio": Term(
        "Impact ratio",
        "The selection rate of a group divided by that of the reference group.",
    ),
    "below": Term("Below 4/5"),
    "shortfall": Term(
        "Shortfall",
        "How many more selections would bring a group to the selection rate of the reference "
        "group.",
    ),
    "fisher_p": Term(
        "Fisher’s p",
        "The p-value of Fisher's exact test that two groups have the same selection rate.",
    ),
    "standard_deviations": Term(
        "Standard deviations",
        "The difference of two selection rates in standard deviations of equal rates (two-sample "
        "z). United States practice calls a difference beyond 2 statistically significant.",
    ),
    "odds_ratio": Term(
        "Odds ratio",
        "The odds of selection in a group divided by those in the reference group.",
    ),
    "mean_difference": Term("Mean difference"),
    "four_fifths": Term(
        "Four-fifths ratio",
        "The smallest impact ratio. Below 0.8, a rule of thumb of United States law requires an "
        "explanation.",
    ),
    "true_positive_rate": Term(
        "True positive rate", "The share of rows with a positive label that is selected."
    ),
    "false_positive_rate": Term(
        "False positive rate", "The share of rows with a negative label that is selected."
    ),
    "decision_rate": Term("Decision rate"),
    "largest_difference": Term("Largest difference"),
    "smallest_ratio": Term("Smallest ratio"),
    # Scores and outcomes of a group, or of a model
    "base_rate": Term(
        "Base rate", "The share of the group with the outcome that high scores predict."
    ),
    "mean_score": Term("Mean score"),
    "mean_outcome": Term("Mean outcome"),
    "mean_prediction": Term("Mean prediction"),
    "accuracy": Term("Accuracy", "The share of right decisions."),
    "balanced_accuracy": Term(
        "Balanced accuracy",
        "The share of right decisions of each class, averaged over the classes.",
    ),
    "auc": Term(
        "AUC",
        "The probability that a row with the outcome scores higher than a row without it; ties "
        "count one half. 1 is perfect, 0.5 is chance. The interval of a group uses DeLong's "
        "variance.",
    ),
    "log_loss": Term(
        "Log loss",
        "The mean logarithmic loss of the predicted probabilities. Smaller is better.",
    ),
    "brier": Term(
        "Brier score",
        "The mean squared distance of the probabilities from the outcomes. Smaller is better.",
    ),
    "calibration_error": Term(
        "Calibration error",
        "The mean absolute difference between the mean score and the share with the outcome, over "
        "ten bins of equal width (expected calibration error). Sampling noise alone makes it "
        "larger than 0.",
    ),
    "r2": Term(
        "R²",
        "The share of the outcome's variance that the predictions explain: 1 is perfect, 0 no "
        "better than the mean.",
    ),
    "mean_absolute_error": Term(
        "Mean absolute error",
        "The mean distance of the predictions from the outcomes. Smaller is better.",
    ),
    "mean_squared_error": Term(
        "Mean squared error",
        "The mean squared distance of the predictions from the outcomes. Smaller is better.",
    ),
    "expected_cost": Term("Expected cost", "The mean cost of the decisions. Smaller is better."),
    # A trade-off
    "strength": Term("Strength"),
    "needs_group": Term("Group at prediction"),
    "seed": Term("Seed"),
    "models": Term("Number of models"),
    "pareto": Term("Pareto front", "The best utility at each unfairness. No model lies above it."),
    "training": Term("Training state"),
    "constant": Term(
        "Constant predictor",
        "Predicts the same for everyone: the base rate or the mean. A model that is not "
        "significantly better (by the 95 % interval of the difference) is marked.",
    ),
    "unfairness": Term(
        "Unfairness",
        "The largest difference between the groups' shares at or above a score, over all scores "
        "(the Kolmogorov distance), and over all pairs of groups that are compared. 0 means equal "
        "distributions, 1 that the groups do not overlap at all.",
    ),
    "with_allowance": Term(
        "Unfairness with allowance",
        "The unfairness with an allowance for choosing among many models and, with a confidence, "
        "for sampling.",
    ),
    "decision_unfairness": Term(
        "Unfairness of decisions",
        "The largest difference between the groups' shares of positive decisions. 0 means equal "
        "shares.",
    ),
    "known_unfairness": Term("Unfairness of known groups"),
    # A search for groups
    "others": Term("Other rows", "All rows outside the group that the outcome counts."),
    "gap": Term("Worse by"),
    "at_least": Term(
        "At least",
        "Lower bound of the gap in the population. All bounds of a search hold jointly at its "
        "confidence level, however its groups overlap.",
    ),
    "worst_parent": Term(
        "Worst parent",
        "A parent is the group without one of its conditions, or with a wider band of numbers. The "
        "figure is that of the worst one. A group that is worse than each of its parents is not "
        "explained by fewer or wider conditions.",
    ),
    "group_rows": Term("Rows of a group"),
    "largest_gap": Term(
        "Worse by at most",
        "Upper bound of the gaps of all groups of the search with so many rows. It says nothing "
        "about groups that were not searched.",
    ),
    # Changes
    "difference": Term(
        "Difference",
        "The figure of the model less that of the baseline. Smaller distances and losses are "
        "better; larger ratios, accuracies and AUCs are better.",
    ),
    "p_adjusted": Term("Adjusted p-value"),
    "verdict": Term("Verdict"),
    "look": Term("Look"),
    "since_baseline": Term("Since the baseline"),
    "level": Term("Level"),
    "alarm": Term(
        "Alarm",
        "A distance that differs significantly from its baseline. If all looks are counts of rows "
        "without weights, an exact test must also show that the scores of the two groups have "
        "changed.",
    ),
}
"""Terms by the key of the figure or column."""


def term_name(key: str) -> str:
    """The name of a figure or a column; a figure of the user's keeps its own.

    >>> term_name("auc"), term_name("selection_ratio"), term_name("energy"), term_name("my_cost")
    ('AUC', 'Impact ratio', 'Energy distance', 'my_cost')
    """
    term = TERMS.get(key)
    if term is None:
        return metric_words(key).name
    return term.name


def glossary_entries(*keys: str) -> list[tuple[str, str]]:
    """The names and definitions of terms that have one.

    >>> glossary_entries("rows", "accuracy")
    [('Accuracy', 'The share of right decisions.')]
    """
    return [(TERMS[key].name, TERMS[key].about) for key in keys if TERMS[key].about]
