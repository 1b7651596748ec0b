"""The words of a report on a frontier, and what they mean."""

from __future__ import annotations

from metrifair.report.frontier.view import FrontierView
from metrifair.results import Point  # noqa: F401  # for the examples


def glossary(view: FrontierView) -> tuple[tuple[str, str], ...]:
    """The words of the report and what they mean.

    >>> [word for word, _ in glossary(FrontierView([Point(0, 0, 0.9, 0.4)]))]
    ['Strength', 'Accuracy', 'Unfairness', 'Pareto line', 'Density', 'Share below']
    """
    explained = [
        (view.label("strength"), _FAMILIES if view.knobs else _STRENGTH),
        (view.label("accuracy"), _ACCURACY[view.accuracy_name]),
        *([(view.label(view.key), _UTILITY.get(view.key, "How good a model is."))] if view.key != "accuracy" else []),
        (view.label("unfairness"), _UNFAIRNESS),
        (view.label("decision_unfairness"), _DECISIONS),
        *([("Constant model", _CONSTANT)] if view.baseline is not None else []),
        ("Pareto line", "The best that is to be had at each unfairness. No model lies above it."),
        ("Density", "Where the scores of a group lie: the higher the curve, the more of its members have that score."),
        ("Share below", "The share of a group whose score is at most this one, the group's distribution function."),
    ]
    return tuple(pair for pair in explained if pair[1] is not _DECISIONS or "decision_unfairness" in view.keys)


_STRENGTH = "How much training weighs fairness against accuracy. 0 means: not at all."
_FAMILIES = (
    "A family, and the value of the parameter by which it trades accuracy for fairness: of a strength 0 means none, of "
    "a tolerance 0 means parity. Where the group is needed, nothing can be predicted for rows without it."
)
_ACCURACY = {
    "accuracy": "The share of right decisions.",
    "R2": "The share of the outcome's variance that the predictions explain: 1 is perfect, 0 no better than the mean.",
}
_UTILITY = {
    "balanced_accuracy": "The share of right decisions of each class, averaged over the classes.",
    "auc": "How often a member of the class has a higher score than another: 1 is perfect, 0.5 is chance.",
    "log_loss": "Minus the logarithm of the probability of what happened, on average: less is better.",
    "brier": "The squared distance of the probabilities from what happened, on average: less is better.",
    "mean_absolute_error": "The distance of the predictions from what happened, on average: less is better.",
    "mean_squared_error": "The squared distance of the predictions from what happened, on average: less is better.",
    "expected_cost": "What the decisions cost, on average: less is better.",
}
_CONSTANT = (
    "Decides the same for everyone, as the base rate or the mean asks. A model that is not better by more than chance "
    "(the 95 % interval of the difference) is marked."
)
_UNFAIRNESS = (
    "The Kolmogorov distance: the largest difference between the groups' shares below any score, over all pairs of "
    "groups that are compared. 0 means equal distributions, 1 that the groups do not overlap at all."
)
_DECISIONS = "The largest difference between the groups' shares of positive decisions. 0 means equal shares."
