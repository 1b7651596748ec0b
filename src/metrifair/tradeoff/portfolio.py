"""The families that ``frontier("auto", ...)`` tries, in the order in which it tries them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.postprocessing.barycenter import BarycenterPostprocessor
from metrifair.postprocessing.threshold import ThresholdPostprocessor
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.saving.models import class_named
from metrifair.stacking import FairStackingClassifier, FairStackingRegressor, has_lightgbm
from metrifair.support.checks import check_known
from metrifair.tradeoff.sweep import SearchOptions

AUTO = "auto"
STRENGTHS = (0.0, *np.geomspace(0.1, 100, 10).round(3).tolist())
"""Those of every family: trees are fitted strength by strength."""
ALWAYS_TRIED = 2  # families that are trained with any budget: of "auto", linear models and trees
_MANY_ROWS = 20_000  # with more, large trees are better than small ones, and training takes long
_BUDGET, _LONG_BUDGET = 15.0, 60.0  # seconds, with fewer and with more rows
_SMALL_TREES = {"num_leaves": 8, "n_estimators": 80}
_LARGE_TREES = {"num_leaves": 31, "n_estimators": 100}
_BEFORE_MAP = 1.0  # strength of the model whose scores are moved


@dataclass(frozen=True)
class Portfolio:
    """The task, the criterion and the data, which determine the families that suit them."""

    rows: int
    classes: int  # 0: a number is predicted
    aim: Mapping[str, Any] = field(default_factory=dict)  # parameters of every fair estimator, such as the criterion
    numeric_groups: bool = False  # whether an attribute is a number
    strata: bool = False  # whether groups are compared within strata
    needs_group: bool = False  # whether models may need the group to predict
    saved: bool = False  # whether a model file must be able to store every model
    by_probabilities: bool = False  # whether groups are known by probabilities only

    @property
    def budget(self) -> float:
        """Seconds after which no family is started, by default."""
        return _BUDGET if self.rows <= _MANY_ROWS else _LONG_BUDGET

    @property
    def criterion(self) -> Criterion:
        """The comparisons."""
        return criterion_named(self.aim.get("criterion", "statistical_parity"))

    def families(self) -> dict[str, Any]:
        """The estimators by name, in the order in which they are tried.

        Linear models come first: they lose least where a group has few rows. Trees follow, which suit many rows.
        Families that need the group come next: users who allow them expect them. docs/results/defaults.md has times
        and figures.
        """
        linear = {"linear": self._ours(FairClassifier, FairRegressor, **self._linear)}
        network = {"network": self._ours(FairClassifier, FairRegressor)}
        kinds = FairStackingClassifier, FairStackingRegressor
        stack = {"stack": self._ours(*kinds)} if self._can_stack else {}
        with_features = {"stack_with_features": self._ours(*kinds, passthrough=True)} if self._can_stack else {}
        return linear | self._trees() | self._group_aware() | stack | network | self._blind_map() | with_features

    def chosen(self, names: Sequence[str], search: SearchOptions) -> tuple[dict[str, Any], SearchOptions]:
        """The families of these names, all of which are trained; without names all families, within a budget."""
        families = self.families()
        for name in names:
            check_known("families", name, families)
        if names:
            return {name: families[name] for name in names}, search
        return families, replace(search, budget=search.budget or self.budget)

    @property
    def _can_stack(self) -> bool:
        """Whether the theory of a stack applies, and a file can store it if required."""
        groups = not self.numeric_groups and self.aim.get("contrast") != "independence"
        saved = has_lightgbm() or not self.saved
        return groups and saved and self.criterion.score == "prediction" and not self.by_probabilities

    @property
    def _linear(self) -> dict[str, Any]:
        """A linear model with the regularization of scikit-learn's: a label may follow from a column of few rows."""
        return {"model": "linear", "weight_decay": 1 / self.rows}

    def _trees(self) -> dict[str, Any]:
        """Trees with the penalty: small ones where rows are few."""
        if not has_lightgbm():
            return {}
        kinds = map(class_named, ("FairLGBMClassifier", "FairLGBMRegressor"))
        name, size = ("small_trees", _SMALL_TREES) if self.rows <= _MANY_ROWS else ("large_trees", _LARGE_TREES)
        return {name: self._ours(*kinds, **size, verbose=-1)}

    @property
    def _can_postprocess(self) -> bool:
        """Whether scores can be moved: those of two classes or numbers, by groups that are known and not numbers."""
        if self.by_probabilities:  # they may contain too little about a rare group
            return False
        return self.classes <= 2 and not self.numeric_groups and not self.strata

    def _blind_map(self) -> dict[str, Any]:
        """A map of scores that needs no groups."""
        if not self._can_postprocess or self.criterion.name != "statistical_parity":
            return {}
        base = self._ours(FairClassifier, FairRegressor, strength=_BEFORE_MAP, **self._linear)
        return {"blind_barycenter": BarycenterPostprocessor(base, needs_group=False)}

    def _group_aware(self) -> dict[str, Any]:
        """Thresholds and maps that need the group, if models may."""
        families: dict[str, Any] = {}
        if not self._can_postprocess or not self.needs_group:
            return families
        # One number, the blend's prediction, needs no more than a linear model and few folds.
        last = {"strength": 0.0, "model": "linear", "folds": 2, "random_state": 0}
        base = self._ours(FairStackingClassifier, FairStackingRegressor, **last)
        if self.classes:
            label = self.aim.get("pos_label")
            families["thresholds"] = ThresholdPostprocessor(base, criterion=self.criterion, pos_label=label)
        if self.criterion.name == "statistical_parity":
            families["barycenter"] = BarycenterPostprocessor(base)
        return families

    def _ours(self, classifier: Any, regressor: Any, **more: Any) -> Any:
        return (classifier if self.classes else regressor)(**self.aim, **more)
