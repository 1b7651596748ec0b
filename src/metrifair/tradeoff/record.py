"""What is known of a frontier besides its models: its record, which files keep and pages show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from metrifair.saving.records import Count, Scalar
from metrifair.support.provenance import Provenance
from metrifair.tradeoff.goal import Goal
from metrifair.tradeoff.points import Change, FrontierNote, Point


@dataclass(frozen=True, kw_only=True)
class FrontierRecord:
    """The facts of a frontier and of its choice, all of them values.

    Parameters
    ----------
    unfairness_of : {"scores", "decisions"}, default="scores"
        What unfairness compares across groups: score distributions, or decisions.
    accuracy_name : {"accuracy", "R2"}, default="accuracy"
        Name of the first figure of a point.
    groups : tuple of str, default=()
        Names of the groups.
    sizes : dict of str to int, default={}
        Rows by group.
    notes : tuple of FrontierNote, default=()
        Notes on the rows and the models, each a kind with its facts; ``summary`` has the sentences.
    parameter : str, default="strength"
        The parameter of the estimator that was varied.
    parameters : dict of str to str, default={}
        The parameter that was varied, by family, where there are several.
    noise : float, default=None
        A gap below it cannot be distinguished from 0 with these rows.
    constant : Point, default=None
        Figures of the best constant predictor; its strength and seed mean nothing.
    constant_value : str or float, default=None
        The label or number that it predicts.
    folds : int, default=0
        Number of folds. 0: the models were passed fitted and are only evaluated.
    test_rows : int, default=0
        Number of test rows, which the chosen model is evaluated on. 0: its figures are those
        expected on new rows.
    provenance : Provenance, default=Provenance()
        Rows, columns, the call, seed, versions and time.
    chosen : Point, default=None
        The figures of the chosen model; None: none is chosen.
    goal : Goal, default=None
        What was asked of it: the limits, the confidence and whether prediction may need the group.
    unmet : Goal, default=None
        What the last choice asked for, if no model meets it. The earlier choice then remains.
    is_best_effort : bool, default=False
        Whether the chosen model is the least unfair one, as none meets the goal.
    change : Change, default=None
        Its figures less those of the model without the penalty, with intervals.
    choice_notes : tuple of FrontierNote, default=()
        Notes on the choice.

    Examples
    --------
    >>> FrontierRecord(goal=Goal(max_unfairness=0.2)).limit
    0.2
    """

    unfairness_of: Literal["scores", "decisions"] = "scores"
    accuracy_name: Literal["accuracy", "R2"] = "accuracy"
    groups: tuple[str, ...] = ()
    sizes: Mapping[str, Count] = field(default_factory=dict)
    notes: tuple[FrontierNote, ...] = ()
    parameter: str = "strength"
    parameters: Mapping[str, str] = field(default_factory=dict)
    noise: float | None = None
    constant: Point | None = None
    constant_value: Scalar | None = None
    folds: Count = 0
    test_rows: Count = 0
    provenance: Provenance = field(default_factory=Provenance)
    chosen: Point | None = None
    goal: Goal | None = None
    unmet: Goal | None = None
    is_best_effort: bool = False
    change: Change | None = None
    choice_notes: tuple[FrontierNote, ...] = ()

    @property
    def limit(self) -> float | None:
        """The unfairness limit of the choice."""
        if self.goal is None:
            return None
        return self.goal.max_unfairness

    @property
    def all_notes(self) -> tuple[FrontierNote, ...]:
        """The notes on the choice, then those on the rows and the models."""
        return (*self.choice_notes, *self.notes)
