"""The whole accuracy-fairness trade-off from one training run, and the choice of a model from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from math import hypot, inf, sqrt
from numbers import Real
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import is_regressor

from metrifair.cells import Contrast
from metrifair.certificates import dkw_radius
from metrifair.choices import check_known
from metrifair.criteria import Criterion, criterion_named
from metrifair.errors import DataError, ModelFileError
from metrifair.points import Curves, Point, area, pareto
from metrifair.report.charts import frontier_chart, save_picture
from metrifair.report.page import frontier_html, write_html
from metrifair.report.view import FrontierView
from metrifair.saving.modelfile import Content, Json, PathLike, prefixed, under, write
from metrifair.tables import Table
from metrifair.tradeoff.evaluation import curves_of, point_of
from metrifair.tradeoff.holdout import DataSet, Parts, data_set
from metrifair.tradeoff.ledger import Ledger, fingerprint
from metrifair.tradeoff.sweep import (
    Job,
    Material,
    Outcome,
    model_of,
    outcome_from,
    parts_of,
    point_from,
    record_of,
    sweep,
)

DEFAULT_STRENGTHS = (0.0, *np.geomspace(1e-3, 100, 24).round(6).tolist())
FRONTIER = "frontier"
_PLAIN = ("on", "accuracy_name", "groups", "sizes", "notes", "comparisons", "parameter")
_BENDS = 8  # strengths that a refinement adds


@dataclass(eq=False)
class Frontier:
    """Trained models and what they reach: points on data that were used neither for training nor for choosing.

    ``points`` are on test data, ``validation_points`` on those that ``select`` looks at, in the same order as
    ``models``. ``chosen`` is the test point of the last selection.

    >>> points = [Point(0.0, 0, 0.9, 0.4), Point(1.0, 0, 0.8, 0.1)]
    >>> outcomes = [Outcome(Job(point.strength, 0), point, point, model=f"model {point.strength}") for point in points]
    >>> front = Frontier(outcomes, "scores", "accuracy", ("a", "b"), {"a": 100, "b": 100})
    >>> front
    Frontier(2 models: accuracy up to 0.900, unfairness of scores down to 0.100, area 0.780)
    >>> front.select(max_unfairness=0.2)
    'model 1.0'
    """

    outcomes: Sequence[Outcome]
    on: Literal["scores", "decisions"]
    accuracy_name: str
    groups: tuple[str, ...]
    sizes: dict[str, int]  # test rows by group
    notes: tuple[str, ...] = ()
    comparisons: int = 1  # distances behind each unfairness: comparisons, times classes where there are several
    parameter: str = "strength"
    chosen: Point | None = field(default=None, init=False)

    @property
    def points(self) -> tuple[Point, ...]:
        """What each model reaches on test data."""
        return tuple(outcome.test for outcome in self.outcomes)

    @property
    def validation_points(self) -> tuple[Point, ...]:
        """What each model reaches on validation data."""
        return tuple(outcome.validation for outcome in self.outcomes)

    @property
    def models(self) -> tuple[Any, ...]:
        """The fitted models; None where training failed."""
        return tuple(outcome.model for outcome in self.outcomes)

    @property
    def pareto(self) -> tuple[Point, ...]:
        """The test points that no other beats."""
        return pareto(self.points, on=self.on)

    @property
    def area(self) -> float:
        """Share of the unit box that the test points dominate."""
        return area(self.points, on=self.on)

    def select(
        self,
        *,
        max_unfairness: float | None = None,
        min_accuracy: float | None = None,
        rule: Literal["donini"] | None = None,
        certified: bool = False,
    ) -> Any:
        """The fitted model that suits best, judged on validation data.

        Give one of: ``max_unfairness`` (best accuracy among models at most so unfair; with ``certified``, whose proven
        upper bound is at most that, jointly for all models), ``min_accuracy`` (least unfair among models at least so
        accurate), ``rule="donini"`` (least unfair among those with 97 % of the best accuracy). ``chosen`` is then the
        model's point on test data.
        """
        if sum(given is not None for given in (max_unfairness, min_accuracy, rule)) != 1:
            raise DataError("select needs exactly one of max_unfairness, min_accuracy and rule")
        if certified and max_unfairness is None:
            raise DataError("certified goes with max_unfairness: it is the unfairness that is certified")
        candidates = [outcome for outcome in self.outcomes if not outcome.validation.failed]
        if not candidates:
            raise DataError("no model to select from: training failed at every strength; lower the learning rate")
        if max_unfairness is not None:
            found = self._fair_enough(candidates, max_unfairness, certified=certified)
            best = max(found, key=lambda one: (one.validation.accuracy, -one.validation.gap(self.on)))
        else:
            if rule is not None:
                check_known("rule", rule, ("donini",))
                best_accuracy = max(one.validation.accuracy for one in candidates)
                min_accuracy = min(best_accuracy, 0.97 * best_accuracy)  # a negative R2 has no 97 %
            found = self._accurate_enough(candidates, 0.0 if min_accuracy is None else min_accuracy)
            best = min(found, key=lambda one: (one.validation.gap(self.on), -one.validation.accuracy))
        if best.model is None:
            raise DataError(
                "the ledger kept this model's figures but not the model; fit it with "
                f"{self.parameter}={best.job.value:g} and random_state={best.job.seed}"
            )
        self.chosen = best.test
        return best.model

    def _fair_enough(self, candidates: list[Outcome], limit: float, *, certified: bool) -> list[Outcome]:
        gaps = {
            id(one): self._bound(one.validation, len(candidates)) if certified else one.validation.gap(self.on)
            for one in candidates
        }
        found = [one for one in candidates if gaps[id(one)] <= limit]
        if not found:
            kind = "certified unfairness" if certified else "unfairness"
            raise DataError(
                f"no model has {kind} at most {limit:g} on validation data; it ranges from {min(gaps.values()):.4f} to "
                f"{max(gaps.values()):.4f}: ask for more, train with larger strengths, or hold more data out"
            )
        return found

    def _accurate_enough(self, candidates: list[Outcome], limit: float) -> list[Outcome]:
        found = [one for one in candidates if one.validation.accuracy >= limit]
        if not found:
            reached = [one.validation.accuracy for one in candidates]
            raise DataError(
                f"no model has {self.accuracy_name} at least {limit:g} on validation data; it ranges from "
                f"{min(reached):.4f} to {max(reached):.4f}"
            )
        return found

    def _bound(self, point: Point, models: int) -> float:
        """Upper bound of the unfairness that holds for all models at once, so also for the one that is chosen."""
        name = "unfairness" if self.on == "scores" or point.decision_unfairness is None else "decision_unfairness"
        gap, interval = point.gap(self.on), point.intervals[name]
        if interval.high >= 1:  # cut off there: the sample proves nothing
            return 1.0
        # Radii grow with the number of functions as sqrt(log(2 m / delta)).
        cdfs = 2 * self.comparisons
        return gap + (interval.high - gap) * dkw_radius(1, cdfs=cdfs * models) / dkw_radius(1, cdfs=cdfs)

    def view(self, title: str = "Accuracy and fairness") -> FrontierView:
        """What the pictures and the page show: one seed's distributions for each strength."""
        curves: dict[float, Curves] = {}
        for outcome in self.outcomes:
            if outcome.curves is not None:
                curves.setdefault(outcome.job.value, outcome.curves)
        return FrontierView(
            self.points,
            curves,
            self.chosen,
            title,
            self.accuracy_name,
            self.on,
            self.groups,
            self.notes,
            sizes=self.sizes,
        )

    def plot(self) -> Any:
        """An altair chart: points, Pareto line, chosen model."""
        return frontier_chart(self.view())

    def to_html(self, path: str | Path, *, title: str = "Accuracy and fairness") -> None:
        """Write a self-contained page with a slider over the strengths."""
        write_html(path, frontier_html(self.view(title)))

    def to_picture(self, path: str | Path) -> None:
        """Write the chart as .png or .svg."""
        save_picture(self.plot(), path)

    def save(self, path: PathLike) -> None:
        """Write figures and models to one file, which ``metrifair.load`` reads without running any code."""
        arrays: dict[str, NDArray[Any]] = {}
        outcomes: list[Json] = []
        for place, outcome in enumerate(self.outcomes):
            kept = None
            if outcome.model is not None:
                kept, own = parts_of(outcome.model)
                arrays |= prefixed(f"{place}/", own)
            outcomes.append({"value": outcome.job.value, "seed": outcome.job.seed, "model": kept, **record_of(outcome)})
        meta: dict[str, Json] = {name: getattr(self, name) for name in _PLAIN}
        meta |= {"outcomes": outcomes, "chosen": None if self.chosen is None else asdict(self.chosen)}
        write(path, Content(FRONTIER, meta, arrays))

    def __repr__(self) -> str:
        failed = sum(point.failed for point in self.points)
        usable = [point for point in self.points if not point.failed]
        if not usable:
            return f"Frontier({len(self.points)} models, all failed)"
        least, best = min(p.gap(self.on) for p in usable), max(p.accuracy for p in usable)
        lost = f", {failed} failed" if failed else ""
        return (
            f"Frontier({len(self.points)} models{lost}: {self.accuracy_name} up to {best:.3f}, "
            f"unfairness of {self.on} down to {least:.3f}, area {self.area:.3f})"
        )


def frontier_from(content: Content, module: torch.nn.Module | None = None) -> Frontier:
    """The frontier that ``Frontier.save`` wrote; anything else is a ModelFileError."""
    try:
        entries = cast("list[dict[str, Any]]", content.meta["outcomes"])
        models = [_kept_model(entry, place, content, module) for place, entry in enumerate(entries)]
        jobs = [Job(float(entry["value"]), int(entry["seed"])) for entry in entries]
        outcomes = [outcome_from(*parts) for parts in zip(entries, jobs, models, strict=True)]
        plain: dict[str, Any] = {name: content.meta[name] for name in _PLAIN}
        plain |= {name: tuple(plain[name]) for name in ("groups", "notes")}
        found = Frontier(outcomes, **plain)
        chosen = cast("dict[str, Any] | None", content.meta["chosen"])
        found.chosen = None if chosen is None else point_from(chosen)
        repr(found)  # figures that are no numbers show themselves here
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"the file describes no frontier: {type(error).__name__} {error}") from error
    return found


def _kept_model(entry: dict[str, Any], place: int, content: Content, module: torch.nn.Module | None) -> Any:
    meta = entry["model"]
    if meta is None:
        return None
    return model_of(meta, under(f"{place}/", content.arrays), module)


def frontier(
    estimator: Any,
    X: Table,
    y: Table,
    *,
    sensitive_features: Table,
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    parameter: str = "strength",
    strengths: Sequence[float] | Literal["auto"] | None = None,
    seeds: int | Sequence[int] = 1,
    validation: float = 0.25,
    test: float = 0.25,
    on: Literal["scores", "decisions"] = "scores",
    criterion: str | Criterion | None = None,
    contrast: Contrast = "pairs",
    ledger: str | Path | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
) -> Frontier:
    """The trade-off between accuracy and fairness: models of every strength and seed, judged on held-out data.

    One split into training, validation and test rows serves all models; seeds change initial weights and batches
    only. FairClassifier and FairRegressor train all at once; any other scikit-learn estimator whose ``parameter``
    trades accuracy for fairness is fitted value by value (``n_jobs`` processes); a list of fitted models is only
    judged. ``strengths=None`` is 0 and 24 values from 0.001 to 100, ``"auto"`` adds some where the curve bends.
    ``criterion`` is what unfairness is measured by: the estimator's own, or statistical parity. ``ledger`` names a
    file in which finished work is kept, so that a run which was stopped goes on.

    Examples
    --------
    >>> from metrifair import FairClassifier, frontier
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=600)
    >>> X = generator.normal(size=(600, 3)) + a[:, None]
    >>> y = (X.sum(1) + generator.normal(size=600) > 1.5).astype(int)
    >>> front = frontier(FairClassifier(epochs=100), X, y, sensitive_features=a, strengths=[0, 0.1, 1, 10])
    >>> len(front.points), front.points[0].unfairness > 0.4
    (4, True)
    >>> model = front.select(max_unfairness=0.3)
    >>> model.strength > 0
    True
    """
    check_known("on", on, ("scores", "decisions"))
    if (seeds < 1) if isinstance(seeds, int) else not len(seeds):
        raise DataError(f"seeds must be a number from 1 upwards, or a list of seeds, got {seeds!r}")
    given = isinstance(estimator, (list, tuple))
    if given and not estimator:
        raise DataError("the list of fitted models is empty; pass at least one, or an estimator to train")
    first = estimator[0] if given else estimator
    data = data_set(
        X,
        y,
        sensitive_features,
        control_features,
        regression=is_regressor(first),
        criterion=criterion_named(
            criterion if criterion is not None else getattr(first, "criterion", "statistical_parity")
        ),
        contrast=getattr(first, "contrast", contrast),
        pos_label=getattr(first, "pos_label", None),
        intersectional=getattr(first, "intersectional", False),
        sample_weight=sample_weight,
    )
    parts = data.split(validation, test, random_state, train=not given)
    choosing, judging = data.held_out(parts.validation), data.held_out(parts.test)

    own_seeds = list(range(seeds) if isinstance(seeds, int) else seeds)

    def judge(model: Any, job: Job) -> Outcome:
        points = [point_of(model, part, strength=job.value, seed=job.seed) for part in (choosing, judging)]
        shown = job.seed == own_seeds[0] and not points[1].failed  # one seed's distributions are enough to look at
        return Outcome(job, points[0], points[1], curves_of(model, judging) if shown else None, model)

    if given:
        outcomes = [judge(model, Job(float(place), own_seeds[0])) for place, model in enumerate(estimator)]
    else:
        material = Material(X, y, sensitive_features, control_features, sample_weight, parts.train)
        run = None if ledger is None else Ledger(ledger, _run_name(estimator, material, parameter, data, parts))

        def trained(values: Sequence[float]) -> list[Outcome]:
            jobs = [Job(float(value), int(seed)) for seed in own_seeds for value in values]
            return sweep(estimator, material, jobs, judge, parameter=parameter, ledger=run, n_jobs=n_jobs)

        outcomes = trained(_values(strengths, parameter))
        if isinstance(strengths, str):
            outcomes += trained(_bends(outcomes, on))
            outcomes.sort(key=lambda one: (one.job.seed, one.job.value))
    names = judging.group_names
    return Frontier(
        outcomes,
        on,
        "R2" if judging.regression else "accuracy",
        names,
        {name: int((judging.groups == code).sum()) for code, name in enumerate(names)},
        (str(parts),),
        comparisons=len(data.cells.comparisons) * (len(data.classes) if len(data.classes) > 2 else 1),
        parameter=parameter,
    )


def _values(strengths: Sequence[float] | str | None, parameter: str) -> Sequence[float]:
    """The values to train at."""
    if strengths is None or (isinstance(strengths, str) and strengths == "auto"):
        return DEFAULT_STRENGTHS
    values: list[Any] = [] if isinstance(strengths, str) else list(strengths)
    least = 0.0 if parameter == "strength" else -inf
    if not values or not all(isinstance(value, Real) and least <= float(value) < inf for value in values):
        lowest = " from 0 upwards" if parameter == "strength" else ""
        raise DataError(f"strengths must be None, 'auto', or a list of finite numbers{lowest}, got {strengths!r}")
    return values


def _run_name(estimator: Any, material: Material, parameter: str, data: DataSet, parts: Parts) -> str:
    """A name for all that a run's figures depend on, except the values and seeds, which name its jobs."""
    named: list[str] = [type(estimator).__qualname__, parameter, repr(data.cells.criterion)]
    named += [str(comparison) for comparison in data.cells.comparisons]
    arrays: list[NDArray[Any]] = [parts.validation, parts.test]
    for name, value in sorted(estimator.get_params().items()):
        if name in (parameter, "random_state", "verbose"):
            continue
        if isinstance(value, torch.nn.Module):
            arrays += [tensor.detach().cpu().numpy() for tensor in value.state_dict().values()]
        if isinstance(value, np.ndarray):
            arrays.append(value)
        else:
            named.append(f"{name}={value!r}")
    return fingerprint([material.fingerprint(*named), *arrays])


def _bends(outcomes: Sequence[Outcome], on: str) -> list[float]:
    """Strengths halfway (on a logarithmic scale) between neighbours whose validation points lie farthest apart."""
    means: dict[float, tuple[float, float]] = {}
    for value in {one.job.value for one in outcomes}:
        own = [one.validation for one in outcomes if one.job.value == value and not one.validation.failed]
        if own:
            means[value] = fmean(point.gap(on) for point in own), fmean(point.accuracy for point in own)
    if not means:
        return []
    spans = [max(one[k] for one in means.values()) - min(one[k] for one in means.values()) or 1.0 for k in (0, 1)]
    jumps = []
    for low, high in pairwise(sorted(means)):
        jump = hypot(*((means[low][k] - means[high][k]) / spans[k] for k in (0, 1)))
        jumps.append((jump, round(sqrt(low * high) if low > 0 else high / 10, 9)))
    return [middle for _, middle in sorted(jumps, reverse=True)[:_BENDS]]
