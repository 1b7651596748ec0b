"""A refutation of linear alternatives in words."""

from __future__ import annotations

from metrifair.figures.linear_bounds import LinearRefutation
from metrifair.wording.numbers import confidence_text, number_text

_LOSSES = {"log_loss": "log loss", "squared_error": "squared error"}


def refutation_text(facts: LinearRefutation) -> str:
    """The answer, the bound that proves it, and what holds in the population."""
    loss = _LOSSES[facts.loss]
    limits = (
        f"a {loss} of at most {number_text(facts.max_risk)} and a gap of at most "
        f"{number_text(facts.max_gap)}"
    )
    if not facts.refuted:
        return (
            f"Not refuted: the bound does not exclude a linear model with {limits}. Such a model "
            "may exist or not."
        )
    bound = number_text(facts.least_risk, limit=facts.max_risk)
    least = number_text(facts.least_risk_in_population, limit=facts.max_risk)
    population = (
        f"In the population it is at least {least} ({confidence_text(facts.confidence)} "
        "confidence)."
    )
    if not facts.refuted_in_population:
        population = "These rows are too few to exclude such a model in the population."
    features = f"these {facts.features} features"
    if facts.features == 1:
        features = "this feature"
    return (
        f"No linear model with {features} has {limits} on these rows. With "
        f"this gap ({facts.comparison}), the {loss} is at least {bound}. {population}"
    )
