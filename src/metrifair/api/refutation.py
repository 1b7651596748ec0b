"""Refutation of linear alternatives: a lower bound for all linear models of the same features."""

from __future__ import annotations

import numpy as np

from metrifair.api.pages import Summarized
from metrifair.encoding.encoder import TableEncoder
from metrifair.errors import DataError
from metrifair.figures.certificates import check_confidence
from metrifair.figures.linear_bounds import (
    LinearContrast,
    LinearProblem,
    LinearRefutation,
    contrast,
    free_solution,
    least_gap,
    linear_certificate,
    risk,
    sampling_error,
    standardized,
)
from metrifair.problem.problem import Inputs, Problem, make_problem
from metrifair.problem.tables import Table
from metrifair.support.checks import check_number
from metrifair.support.special import normal_quantile
from metrifair.wording.refutation import refutation_text


class Refutation(Summarized, LinearRefutation):
    """Whether a linear model with a low risk and a small gap is excluded.

    Attributes
    ----------
    refuted : bool
        Whether no linear model has at most ``max_risk`` and ``max_gap`` on these rows.
    refuted_in_population : bool
        Whether the same holds in the population, with the given confidence.
    max_risk, max_gap : float
        The limits that were asked for.
    loss : {"log_loss", "squared_error"}
        The risk that is bounded.
    least_risk : float
        Every linear model whose gap is at most ``max_gap`` has at least this risk.
    least_risk_in_population : float
        The lower confidence limit of the same in the population.
    least_gap : float
        Every linear model whose risk is at most ``max_risk`` has at least this gap; infinite if no
        linear model has such a risk.
    risk_without_limit : float
        The risk of the linear model that is trained without a limit.
    comparison : str
        The groups whose bound is the highest.
    features : int
        Number of features after encoding.
    rows : int
        Number of rows with weight.
    confidence : float
        Confidence of the statements about the population.
    """

    @property
    def summary(self) -> str:
        """The result in words."""
        return refutation_text(self)


def refute_linear(
    X: Table,
    y: Table,
    *,
    sensitive_features: Table,
    max_risk: float,
    max_gap: float,
    criterion: str = "statistical_parity",
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    pos_label: object = None,
    confidence: float = 0.95,
) -> Refutation:
    """Whether no linear model with these features has at most this risk and this gap.

    The gap is the Wasserstein distance between the groups' outputs of the model (log-odds, or
    predicted numbers), in units of the output. It is at least the difference of the mean outputs.
    Under a limit on that difference, the least risk of all linear models is a convex problem,
    and its dual gives a bound that no linear model can break. If the bound is above ``max_risk``,
    no search can find such a linear model. Otherwise nothing is claimed: it may exist or not.

    Parameters
    ----------
    X : data frame, dict of columns or array
        Features. Text and categories become one column a level, as in ``TableEncoder``.
    y : array-like
        Labels of two classes, or numbers.
    sensitive_features : array-like or data frame
        Groups, or a table of several attributes.
    max_risk : float
        Risk in question: the mean log loss, or the mean squared error if ``y`` has numbers.
    max_gap : float
        Gap in question, in units of the output.
    criterion : str, default="statistical_parity"
        Fairness criterion, which determines the rows that are compared.
    control_features : array-like or data frame, default=None
        Strata within which groups are compared.
    sample_weight : array-like, default=None
        Weights of rows.
    pos_label : object, default=None
        The positive label. By default the last of both.
    confidence : float, default=0.95
        Confidence of statements about the population. They use the normal approximation for the
        least risk of a sample, which is too low on average.

    Returns
    -------
    Refutation
        The bounds, and whether both limits together are excluded.

    Examples
    --------
    >>> import numpy as np
    >>> from metrifair.evidence import refute_linear
    >>> generator = np.random.default_rng(0)
    >>> sex = np.repeat(["f", "m"], 500)
    >>> X = generator.normal(size=(1000, 2)) + np.outer(sex == "m", [1, 0])
    >>> y = X.sum(axis=1) + generator.normal(size=1000)
    >>> result = refute_linear(X, y, sensitive_features=sex, max_risk=1.1, max_gap=0.2)
    >>> print(result)
    No linear model with these 2 features has a squared error of at most 1.100 and a gap of at most
    0.200 on these rows. With this gap (sensitive_features 'f' against 'm', everyone), the squared
    error is at least 1.733. In the population it is at least 1.505 (95% confidence).
    """
    check_confidence(confidence)
    check_number("max_risk", max_risk, low=0.0)
    check_number("max_gap", max_gap, low=0.0)
    inputs = Inputs(
        y=y,
        sensitive_features=sensitive_features,
        control_features=control_features,
        sample_weight=sample_weight,
        rows={"X": X},
    )
    problem = make_problem(inputs, criterion=criterion, pos_label=pos_label)
    linear = _linear_problem(problem, X)
    groups_by_name = _contrasts(problem, linear)
    free = free_solution(linear)
    bounds = {
        name: linear_certificate(linear, groups, max_gap, free).least_risk(max_gap)
        for name, groups in groups_by_name.items()
    }
    name = max(bounds, key=bounds.__getitem__)
    error = sampling_error(linear, groups_by_name[name], max_gap, free)
    in_population = bounds[name] - normal_quantile(confidence) * error
    gaps = [least_gap(linear, groups, max_risk, free) for groups in groups_by_name.values()]
    return Refutation(
        refuted=bounds[name] > max_risk,
        refuted_in_population=in_population > max_risk,
        max_risk=max_risk,
        max_gap=max_gap,
        loss=linear.loss,
        least_risk=bounds[name],
        least_risk_in_population=in_population,
        least_gap=max(gaps),
        risk_without_limit=risk(linear, free),
        comparison=name,
        features=linear.x.shape[1] - 1,
        rows=len(linear.x),
        confidence=confidence,
    )


def _linear_problem(problem: Problem, X: Table) -> LinearProblem:
    """The encoded features of the rows with weight, with labels -1 and 1 or with numbers."""
    encoder = TableEncoder(min_frequency=1)
    features = problem.kept_rows(encoder.fit_transform(X))
    weight = problem.row_weights
    if problem.labels is None:
        raise DataError("y is missing; pass the labels or numbers that the models predict")
    classes = len(problem.scheme.classes)
    if classes == 0:
        outcome = problem.labels.astype(np.float64)
        return standardized(features, outcome, weight, "squared_error")
    if classes != 2:
        raise DataError(f"y must have two classes or numbers, got {classes} classes")
    outcome = np.where(problem.targets() > 0, 1.0, -1.0)
    return standardized(features, outcome, weight, "log_loss")


def _contrasts(problem: Problem, linear: LinearProblem) -> dict[str, LinearContrast]:
    """The groups of each comparison, by its name."""
    problem.sides()  # a group without rows is an error
    named = {}
    for comparison in problem.comparisons:
        left, right = (
            linear.weight * np.isin(problem.cell, cells)
            for cells in (comparison.left, comparison.right)
        )
        named[str(comparison)] = contrast(linear, left, right)
    return named
