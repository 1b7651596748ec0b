"""The families that ``frontier("auto", ...)`` tries: in the order of what they are expected to gain
for their work, and as many as the promised work allows.

The work follows from the size of the data, not from the clock, so that two machines choose the same
model. Families are not dropped on a part of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from metrifair.errors import DataError
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.postprocessing.barycenter import BarycenterPostprocessor
from metrifair.postprocessing.threshold import ThresholdPostprocessor
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.saving.models import class_named
from metrifair.stacking import FairStackingClassifier, FairStackingRegressor, has_lightgbm
from metrifair.support.checks import check_known
from metrifair.tradeoff.family_names import AUTO_FAMILIES
from metrifair.tradeoff.sweep import SearchOptions

AUTO = "auto"
STRENGTHS = (0.0, *np.geomspace(0.1, 100, 10).round(3).tolist())
"""Those of every family, before the refinement."""
BENDS = 4  # strengths that are added where the curve bends
ALWAYS_TRIED = 2
"""Families that are trained with any budget in seconds: linear models, and the next ones."""
_MANY_ROWS = 20_000  # with more, large trees are better than small ones, and training takes long


class _Work(NamedTuple):
    """The work of a family in one fold, about a second of a processor core of 2026 for a unit."""

    least: float
    more: float  # for each million numbers in the training rows


_WORK = {
    "linear": _Work(0.9, 4),
    "barycenter": _Work(0.3, 9),  # half of their common base
    "thresholds": _Work(0.3, 9),
    "small_trees": _Work(2.0, 30),
    "large_trees": _Work(4.0, 40),
    "blind_barycenter": _Work(0.3, 2),
    "stack": _Work(1.1, 30),
    "network": _Work(0.7, 18),
    "stack_with_features": _Work(0.8, 26),
}
"""Measured with 15 strengths, 300 to 5,000 rows and 5 to 100 columns."""
_GROUP_AWARE = ("barycenter", "thresholds")
_NEED_LIGHTGBM = ("small_trees", "large_trees")
_FEW_ROWS = 300
_WORK_OF_FEW = 10.0
_GROWTH = 0.39  # 20 units for 2,000 rows and 30 for 5,000
_SMALL_TREES = {"num_leaves": 8, "n_estimators": 80}
_LARGE_TREES = {"num_leaves": 31, "n_estimators": 100}
FEWEST_ROWS_OF_TREES = 40
"""Two leaves of 20 rows each, LightGBM's least."""
_BEFORE_MAP = 1.0  # strength of the model whose scores are moved


@dataclass(frozen=True)
class Portfolio:
    """The task, the criterion and the data, which determine the families that suit them."""

    rows: int
    classes: int  # 0: a number is predicted
    # parameters of every fair estimator, such as the criterion
    aim: Mapping[str, Any] = field(default_factory=dict)
    numeric_groups: bool = False  # whether an attribute is a number
    strata: bool = False  # whether groups are compared within strata
    needs_group: bool = False  # whether models may need the group to predict
    saved: bool = False  # whether a model file must be able to store every model
    by_probabilities: bool = False  # whether groups are known by probabilities only
    # of the smallest part that trains a model; None: enough for every family
    training_rows: int | None = None
    columns: int = 20
    folds: int = 5

    @property
    def budget(self) -> float:
        """The work that families may promise together: it grows with the number of rows.

        >>> [round(Portfolio(rows, classes=2).budget) for rows in (300, 2_000, 5_000, 40_000)]
        [10, 21, 30, 103]
        """
        rows = min(max(self.rows, _FEW_ROWS), _MANY_ROWS)
        more = max(1.0, self.rows / _MANY_ROWS)
        return float(_WORK_OF_FEW * (rows / _FEW_ROWS) ** _GROWTH * more)

    def promised(self, family: str) -> float:
        """The work of a family in all folds, from the number of rows, columns and rounds."""
        work = _WORK[family]
        if self.training_rows is None:
            rows = self.rows
        else:
            rows = self.training_rows
        return self.folds * (work.least + work.more * rows * self.columns / 1_000_000)

    @property
    def criterion(self) -> Criterion:
        """The comparisons."""
        return criterion_named(self.aim.get("criterion", "statistical_parity"))

    def families(self) -> dict[str, Any]:
        """The estimators by name, in the order in which they are tried.

        Linear models come first: they lose least where a group has few rows. Families that need the
        group come next, if models may: users who allow them expect them. Trees follow, which suit
        many rows. docs/results/defaults.md has times and figures.
        """
        linear = {"linear": self._ours(FairClassifier, FairRegressor, **self._linear)}
        network = {"network": self._ours(FairClassifier, FairRegressor, model="mlp")}
        kinds = FairStackingClassifier, FairStackingRegressor
        stack = {}
        with_features = {}
        if self._can_stack:
            stack = {"stack": self._ours(*kinds)}
            with_features = {"stack_with_features": self._ours(*kinds, passthrough=True)}
        found = (
            linear
            | self._group_aware()
            | self._trees()
            | self._blind_map()
            | stack
            | network
            | with_features
        )
        return {name: found[name] for name in AUTO_FAMILIES if name in found}

    def chosen(
        self, names: Sequence[str], search: SearchOptions
    ) -> tuple[dict[str, Any], SearchOptions]:
        """The families of these names, all of which are trained; without names, those whose work
        is within the budget.

        With a budget in seconds, all families, which the clock then stops.
        """
        families = self.families()
        for name in names:
            self._check_suitable(name, families)
        if names:
            return {name: families[name] for name in names}, search
        if search.budget is None:
            families = self._within_budget(families)
        return families, search

    def _check_suitable(self, name: str, families: Mapping[str, Any]) -> None:
        """Raise a DataError for a family that is not among those that suit the data."""
        if name in families:
            return
        check_known("families", name, AUTO_FAMILIES)
        remedy = "leave it out"
        if name in _NEED_LIGHTGBM and not has_lightgbm():
            remedy = "leave it out, or install LightGBM: pip install 'metrifair[boosting]'"
        if name in _GROUP_AWARE and self._can_postprocess and not self.needs_group:
            remedy = "leave it out, or allow models that need the group (needs_group)"
        raise DataError(
            f"names {name!r}, which does not suit this task and these rows; "
            f"{', '.join(map(repr, families))} do",
            argument="families",
            remedy=remedy,
        )

    def _within_budget(self, families: Mapping[str, Any]) -> dict[str, Any]:
        """The families, in their order, that fit into what is left of the budget.

        Linear models are always among them, and one family that needs the group if models may.
        """
        aware = [name for name in _GROUP_AWARE if name in families]
        always = {"linear", *aware[:1]}
        left = self.budget - sum(self.promised(name) for name in always)
        within: dict[str, Any] = {}
        for name, estimator in families.items():
            work = 0.0
            if name not in always:
                work = self.promised(name)
            if name in always or work <= left:
                left -= work
                within[name] = estimator
        return within

    @property
    def can_train_trees(self) -> bool:
        """Whether every part that trains a model has enough rows for two leaves of a tree."""
        return self.training_rows is None or self.training_rows >= FEWEST_ROWS_OF_TREES

    @property
    def _can_stack(self) -> bool:
        """Whether the theory of a stack applies, and a file can store it if required."""
        saved = has_lightgbm() or not self.saved
        return (
            not self.numeric_groups
            and saved
            and self.can_train_trees
            and self.criterion.score == "prediction"
            and not self.by_probabilities
        )

    @property
    def _linear(self) -> dict[str, Any]:
        """A linear model with the regularization of scikit-learn's: a label may follow from a
        column of few rows.
        """
        return {"model": "linear", "weight_decay": 1 / self.rows}

    def _trees(self) -> dict[str, Any]:
        """Trees with the penalty: small ones where rows are few; none where rows are too few to
        split.
        """
        if not has_lightgbm() or not self.can_train_trees:
            return {}
        kinds = map(class_named, ("FairLGBMClassifier", "FairLGBMRegressor"))
        if self.rows <= _MANY_ROWS:
            return {"small_trees": self._ours(*kinds, **_SMALL_TREES, verbose=-1)}
        return {"large_trees": self._ours(*kinds, **_LARGE_TREES, verbose=-1)}

    @property
    def _can_postprocess(self) -> bool:
        """Whether scores can be moved: those of two classes or numbers, by groups that are
        known and not numbers.
        """
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
        if self.criterion.name == "statistical_parity":
            families["barycenter"] = BarycenterPostprocessor(base)
        if self.classes:
            label = self.aim.get("pos_label")
            families["thresholds"] = ThresholdPostprocessor(
                base, criterion=self.criterion, pos_label=label
            )
        return families

    def _ours(self, classifier: Any, regressor: Any, **more: Any) -> Any:
        return (classifier if self.classes else regressor)(**self.aim, **more)
