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
_MANY_ROWS = 20_000  # from which on large trees are better than small ones, and training takes long
_BUDGET, _LONG_BUDGET = 15.0, 60.0  # seconds, up to so many rows and beyond
_SMALL_TREES = {"num_leaves": 8, "n_estimators": 80}
_LARGE_TREES = {"num_leaves": 31, "n_estimators": 100}
_BEFORE_MAP = 1.0  # strength of the model whose scores are moved


@dataclass(frozen=True)
class Portfolio:
    """What decides which families suit: the task, the criterion, the data, and what models may need."""

    rows: int
    classes: int  # 0: a number is predicted
    aim: Mapping[str, Any] = field(default_factory=dict)  # parameters of every fair estimator, such as the criterion
    numeric_groups: bool = False  # whether an attribute is a number
    strata: bool = False  # whether groups are compared within strata
    needs_group: bool = False  # whether models may need the group to predict
    saved: bool = False  # whether a model file must hold every model
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
        """The estimators by name, the best first."""
        single = {
            "network": self._ours(FairClassifier, FairRegressor),
            "linear": self._ours(FairClassifier, FairRegressor, **self._linear),
        }
        trees, stack, others = self._trees(), {}, {}
        if self._can_stack:
            kinds = FairStackingClassifier, FairStackingRegressor
            stack = {"stack": self._ours(*kinds)}
            others = {"stack_with_features": self._ours(*kinds, passthrough=True)}
        if self.classes <= 2 and not self.numeric_groups and not self.strata:
            others |= self._postprocessors()
        first = stack | trees if self.rows <= _MANY_ROWS else trees | stack
        return first | single | others

    def chosen(self, names: Sequence[str], search: SearchOptions) -> tuple[dict[str, Any], SearchOptions]:
        """The families of these names, all of which are trained; without names all families, within a budget."""
        known = self.families()
        for name in names:
            check_known("families", name, known)
        if names:
            return {name: known[name] for name in names}, search
        return known, replace(search, budget=search.budget or self.budget)

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

    def _postprocessors(self) -> dict[str, Any]:
        """Maps and thresholds for the scores of a model; of two classes or numbers, and of groups."""
        found: dict[str, Any] = {}
        parity = self.criterion.name == "statistical_parity"
        if parity:
            base = self._ours(FairClassifier, FairRegressor, strength=_BEFORE_MAP, **self._linear)
            found["blind_barycenter"] = BarycenterPostprocessor(base, needs_group=False)
        if self.needs_group and not self.by_probabilities:
            base = self._ours(FairStackingClassifier, FairStackingRegressor, strength=0.0, random_state=0)
            if parity:
                found["barycenter"] = BarycenterPostprocessor(base)
            if self.classes:
                label = self.aim.get("pos_label")
                found["thresholds"] = ThresholdPostprocessor(base, criterion=self.criterion, pos_label=label)
        return found

    def _ours(self, classifier: Any, regressor: Any, **more: Any) -> Any:
        return (classifier if self.classes else regressor)(**self.aim, **more)
