"""What only experts set of a fair estimator."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias

from metrifair.errors import DataError
from metrifair.metrics.registry import PENALTY_ESTIMATES, Estimate
from metrifair.problem.cells import CONTRASTS, Combine, Contrast
from metrifair.problem.criteria import Penalize
from metrifair.support.checks import check_known, check_switches, is_number

Solver: TypeAlias = Literal["auto", "lbfgs", "sgd"]
SmallGroups: TypeAlias = Literal["leave_out", "error"]
"""What becomes of a group that is too small to train on."""

_CHOICES = {
    "estimate": PENALTY_ESTIMATES,
    "combine": ("mean", "sum"),
    "contrast": CONTRASTS,
    "penalize": ("prediction", "output"),
    "small_groups": ("leave_out", "error"),
    "solver": ("auto", "lbfgs", "sgd"),
}


@dataclass(frozen=True, kw_only=True)
class PenaltyOptions:
    """Options of the penalty and of its optimization that few users set.

    Pass them as ``penalty`` of an estimator. ``set_params(penalty__contrast="rest")`` and searches
    such as ``GridSearchCV`` change single fields.

    Parameters
    ----------
    estimate : {"rows", "population", "batch"}, default="rows"
        Distance that the penalty estimates, for energy, cramer and mmd. ``"rows"``: the distance
        between the groups' training rows, without bias and never negative. ``"population"``: the
        distance in the population, without bias, as in the paper; on few rows it rewards spread at
        large strengths. ``"batch"``: the distance within each batch, which is biased upwards, and
        for boosters the same as ``"rows"``. All other metrics use ``"batch"``.
    combine : {"mean", "sum"}, default="mean"
        How comparisons are combined. ``"mean"`` averages the penalty over pairs of groups and
        control strata, and sums it over sets of labels and attributes. ``"sum"`` sums it over
        everything, as in the paper. Both are equal for two groups.
    contrast : {"pairs", "rest"}, default="pairs"
        Which groups are compared. ``"pairs"`` compares all pairs of groups, ``"rest"`` each group
        with the rest.
    penalize : {"prediction", "output"}, default="prediction"
        Penalize predictions or outputs (probabilities or log-odds).
    small_groups : {"leave_out", "error"}, default="leave_out"
        Treatment of groups with fewer than two training rows (in a set of the criterion).
        ``"leave_out"`` excludes them from the penalty and warns; ``"error"`` raises.
    solver : {"auto", "lbfgs", "sgd"}, default="auto"
        Training algorithm. ``"lbfgs"`` fits a linear model to all rows at once, on the CPU and
        independent of the seed. ``"sgd"`` takes stochastic gradient steps. ``"auto"`` uses L-BFGS
        for linear models, unless ``epochs``, ``batch_size`` or ``learning_rate`` is set, the metric
        has no useful gradient (kolmogorov, total_variation, functions of your own),
        ``estimate="population"``, mmd has more than 2,000 rows, or X has more than 100 million
        numbers. Boosters ignore it.
    learning_rate_decay : float or "auto", default="auto"
        Factor of the learning rate after each epoch. By default the strength grows to its final
        value over the first half of the steps, and the learning rate falls to 0 over the last half.
        With a number the strength is constant. Boosters ignore it.
    standardize : bool, default=True
        Center and scale the features, and the target of a regressor. Boosters ignore it.

    Examples
    --------
    >>> from metrifair import FairClassifier, PenaltyOptions
    >>> model = FairClassifier(penalty=PenaltyOptions(contrast="rest"))
    >>> model.set_params(penalty__combine="sum").penalty
    PenaltyOptions(combine='sum', contrast='rest')
    """

    estimate: Estimate = "rows"
    combine: Combine = "mean"
    contrast: Contrast = "pairs"
    penalize: Penalize = "prediction"
    small_groups: SmallGroups = "leave_out"
    solver: Solver = "auto"
    learning_rate_decay: float | Literal["auto"] = "auto"
    standardize: bool = True

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def check(self) -> None:
        """Raise a DataError that names the first field out of its range."""
        for name, known in _CHOICES.items():
            check_known(name, getattr(self, name), known)
        decay = self.learning_rate_decay
        if not (isinstance(decay, str) and decay == "auto") and not (
            is_number(decay) and 0 < decay <= 1
        ):
            raise DataError(
                f"learning_rate_decay must be 'auto' or a number above 0, at most 1, got {decay!r}"
            )
        check_switches(standardize=self.standardize)


class HasPenaltyOptions:
    """Parameters of an estimator whose ``penalty`` is None or PenaltyOptions."""

    penalty: PenaltyOptions | None

    def set_params(self, **parameters: Any) -> Any:
        """Set parameters of this estimator, and fields of its ``penalty``.

        Parameters
        ----------
        **parameters : dict
            Parameters by name; ``penalty__NAME`` is a field of ``penalty``.

        Returns
        -------
        self : object
            The estimator.
        """
        changed = {
            name.removeprefix("penalty__"): parameters.pop(name)
            for name in list(parameters)
            if name.startswith("penalty__")
        }
        if changed:
            for name in changed:
                check_known(
                    "a field of penalty", name, [field.name for field in fields(PenaltyOptions)]
                )
            old = parameters.get("penalty", self.penalty) or PenaltyOptions()
            parameters["penalty"] = replace(old, **changed)
        return super().set_params(**parameters)  # type: ignore[misc]


def penalty_options(estimator: Any) -> PenaltyOptions:
    """The options of an estimator's penalty; None means the defaults.

    >>> class Estimator:
    ...     penalty = None
    >>> penalty_options(Estimator())
    PenaltyOptions()
    """
    options = estimator.penalty
    if options is None:
        return PenaltyOptions()
    if not isinstance(options, PenaltyOptions):
        raise DataError(
            "must be PenaltyOptions or None",
            argument="penalty",
            received=options,
            remedy="pass penalty=PenaltyOptions(...)",
        )
    return options
