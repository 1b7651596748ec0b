"""The whole accuracy-fairness trade-off from one training run, as a record of values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from math import hypot, sqrt
from statistics import fmean
from time import monotonic
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from metrifair.encoding.encoder import TableEncoder
from metrifair.errors import DataError, Remedy
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.figures.intervals import FEW
from metrifair.figures.utility import CONSTANT, UTILITIES, Predictions, Utility, UtilityLike, as_utility
from metrifair.problem.criteria import Criterion
from metrifair.problem.problem import Problem, attributes_equal_to_label, classes_in
from metrifair.problem.proxies import GroupProbabilities
from metrifair.problem.tables import Table, levels, not_numbers, one_column, table_library
from metrifair.stacking import has_lightgbm
from metrifair.support.checks import check_known, is_number, last_step, make_seed
from metrifair.support.progress import Progress
from metrifair.support.reuse import reusing_results
from metrifair.tradeoff.evaluate import Evaluator, all_small, predict, small_groups_note, unfairness_by_chance
from metrifair.tradeoff.ledger import Ledger, content_text
from metrifair.tradeoff.points import FrontierNote, Job, Outcome, Point
from metrifair.tradeoff.portfolio import ALWAYS_TRIED, AUTO, STRENGTHS, Portfolio
from metrifair.tradeoff.repeats import repeat_notes
from metrifair.tradeoff.result import NestedFold, SweepContext, TradeOff, in_row_order
from metrifair.tradeoff.split import (
    DataSet,
    HeldOut,
    Rows,
    Split,
    data_set,
    outer_splits,
    split_rows,
    with_common_comparisons,
)
from metrifair.tradeoff.sweep import Family, RowsToTrain, SearchOptions, fitted_values, make_families, sweep

_BENDS = 8  # strengths that a refinement adds
_TEST = 0.25  # share of test rows
_TEST_FOLDS = 5
_ENOUGH = 200  # test rows of the smallest group: with more, one split is the default
_MOST_ROWS = 20_000  # beyond which test folds would take long


@dataclass(frozen=True, eq=False)
class FrontierRequest:
    """The arguments of :func:`metrifair.frontier`."""

    estimator: Any
    X: Table
    y: Table
    sensitive_features: Table | GroupProbabilities
    control_features: Table | None
    sample_weight: Table | None
    parameter: str | None
    strengths: Sequence[float] | Literal["auto"] | None
    validation: float
    test: float | None
    unfairness_of: Literal["scores", "decisions"]
    utility: UtilityLike
    criterion: str | Criterion | None
    pos_label: Any
    random_state: Any
    search: SearchOptions
    automatic: bool = False  # whether the families are those of "auto"

    def checked(self) -> FrontierRequest:
        """The same request with a seed; a DataError where arguments cannot be combined."""
        check_known("unfairness_of", self.unfairness_of, ("scores", "decisions"))
        if not isinstance(self.search, SearchOptions):
            raise DataError("must be None or SearchOptions(...)", argument="search", received=self.search)
        if self.search.ledger is not None and self.random_state is None:
            raise DataError(
                "must be given with a ledger, which stores models of one split",
                argument="random_state",
                remedy=Remedy("random_state", 0),
            )
        if self.search.test_folds is not None:
            self._check_test_folds()
        request = replace(self, random_state=make_seed(self.random_state))
        if isinstance(self.estimator, str) and self.estimator == AUTO:
            return request._with_portfolio()
        for name, value in {"families": self.search.families, "pos_label": self.pos_label}.items():
            if value is not None:
                problem = "applies to frontier('auto', ...) only; omit it if you pass estimators"
                raise DataError(problem, argument=name, received=value)
        return request

    def _with_portfolio(self) -> FrontierRequest:
        """The same request with the families that suit the data as estimators."""
        for name, value in {"parameter": self.parameter, "devices": self.search.devices}.items():
            if value is not None:
                raise DataError("must be omitted with 'auto'", argument=name, received=value)
        utility = UTILITIES.get(self.utility) if isinstance(self.utility, str) else self.utility
        numeric = isinstance(utility, Utility) and utility.needs == "numbers"
        classes = 0 if numeric else len(classes_in("y", levels("y", one_column("y", self.y))))
        if not classes and self.pos_label is not None:
            raise DataError("applies to labels, and y contains numbers", argument="pos_label", received=self.pos_label)
        data = self.data([FairClassifier(pos_label=self.pos_label) if classes else FairRegressor()])
        portfolio = Portfolio(
            rows=len(data.rows),
            classes=classes,
            aim={"criterion": data.problem.scheme.criterion, "contrast": self.search.contrast}
            | ({"pos_label": self.pos_label} if classes else {}),
            numeric_groups=data.problem.numbers is not None,
            strata=self.control_features is not None,
            needs_group=self.search.needs_group,
            by_probabilities=isinstance(self.sensitive_features, GroupProbabilities),
        )
        families, search = portfolio.chosen(self.search.families or (), replace(self.search, families=None))
        if not_numbers(self.X):
            families = {key: Pipeline([("encoder", TableEncoder()), ("model", item)]) for key, item in families.items()}
        return replace(
            self,
            estimator=families,
            strengths=STRENGTHS if self.strengths is None else self.strengths,
            search=search,
            automatic=True,
        )

    def _check_test_folds(self) -> None:
        """Refuse options that test folds cannot be combined with."""
        refused = {
            "test": (self.test is not None, "a share of the rows or test_folds are held out, not both"),
            "ledger": (self.search.ledger is not None, "a ledger stores figures, and test folds need scores"),
            "strengths": (
                isinstance(self.strengths, str),
                "'auto' adds strengths by the figures of all rows, which no choice in a test fold may use",
            ),
        }
        for argument, (is_set, problem) in refused.items():
            if is_set:
                remedy = f"leave {argument} or test_folds out"
                raise DataError(f"cannot be combined with test_folds: {problem}", argument=argument, remedy=remedy)

    @property
    def test_share(self) -> float:
        """The share of test rows of one split."""
        return _TEST if self.test is None else self.test

    def test_folds(self, data: DataSet, *, train: bool) -> int:
        """The number of test folds; 0: one split."""
        if self.search.test_folds is not None:
            if not train:
                remedy = Remedy("test_folds", leave_out=True)
                raise DataError("needs models to train, and these are fitted", argument="test_folds", remedy=remedy)
            return self.search.test_folds
        fixed = self.test is not None or self.search.ledger is not None or isinstance(self.strengths, str)
        return 0 if fixed or not train else automatic_test_folds(data, self.test_share)

    def setting(self, members: Sequence[Any], name: str, default: Any = None) -> Any:
        """A parameter of the first estimator that has it: unfairness is computed in one way for all."""
        return next((getattr(member, name) for member in map(last_step, members) if hasattr(member, name)), default)

    def data(self, members: Sequence[Any]) -> DataSet:
        """The checked rows."""
        setting = partial(self.setting, members)
        return data_set(
            self.X,
            self.y,
            self.sensitive_features,
            self.control_features,
            regression=is_regressor(members[0]),
            criterion=setting("criterion", "statistical_parity") if self.criterion is None else self.criterion,
            contrast=setting("contrast", self.search.contrast),
            pos_label=setting("pos_label"),
            intersectional=setting("intersectional", False),
            continuous=setting("continuous", "auto") if self.search.continuous is None else self.search.continuous,
            sample_weight=self.sample_weight,
            clusters=self.search.clusters,
            held_out=(self.test_share,) if self.search.folds else (self.validation, self.test_share),
        )


def trade_off(request: FrontierRequest) -> TradeOff:
    """Train the models of every strength and seed, and evaluate them on held-out rows."""
    request = request.checked()
    search, families = request.search, make_families(request.estimator, request.parameter)
    if search.continuous is not None and families is not None:
        families = tuple(family.with_parameter("continuous", search.continuous) for family in families)
    members = list(request.estimator) if families is None else [family.estimator for family in families]
    data = request.data(members)
    scheme = data.problem.scheme
    numbers = [attribute.name for attribute in scheme.attributes if attribute.is_number or attribute.cuts]
    if numbers and families is not None and request.setting(members, "continuous") == "auto":
        # Decided once, by all rows: a subset might be classified differently.
        families = tuple(family.with_parameter("continuous", numbers) for family in families)
    utility = as_utility(request.utility, classes=scheme.classes)
    plan = _SweepPlan(request, data, utility, families or ())
    test_folds = request.test_folds(data, train=families is not None)
    with reusing_results():
        result = plan.cross_fit(test_folds) if test_folds else plan.fit_one_split(members)
    context, outcomes, tried, notes = result.context, result.outcomes, result.tried, [result.note]
    if families is not None:
        notes += repeat_notes(data, context.test_part(data.rows))
    if (families_note := _families_note(request, plan.families, len(context.families))) is not None:
        notes.append(families_note)
    if len(scheme.classes) == 2 and request.setting(members, "pos_label") is None:
        labels = [_plain(label) for label in scheme.classes]
        notes.append(FrontierNote("positive_label", {"labels": labels, "positive": scheme.positive}))
    record = _record(request, outcomes, context, data, utility=utility, notes=notes)
    return replace(record, test_folds=test_folds, tried=tried if isinstance(request.strengths, str) else None)


def _families_note(request: FrontierRequest, families: Sequence[Family], tried: int) -> FrontierNote | None:
    """The families that were tried within the budget; None for families of the user without a budget."""
    if not request.automatic and request.search.budget is None:
        return None
    names, budget = [family.name for family in families], request.search.budget
    facts: dict[str, Any] = {"tried": names[:tried], "untried": names[tried:], "budget": budget}
    return FrontierNote("families", facts | {"trees": not request.automatic or has_lightgbm()})


def automatic_test_folds(data: DataSet, test: float) -> int:
    """5 if a group that is compared would have few test rows and training five times is fast enough; else 0."""
    groups = data.held_out(data.rows).members.values()
    sizes = [float(member.sum()) for by_group in groups for member in by_group.values()]
    smallest = min((size for size in sizes if size >= FEW), default=0)
    return _TEST_FOLDS if smallest * test < _ENOUGH and len(data.rows) <= _MOST_ROWS else 0


class _SweepResult(NamedTuple):
    """Outcomes of all families, their rows, and the number of models to choose among."""

    context: SweepContext
    outcomes: list[Outcome]
    tried: int
    note: FrontierNote


@dataclass(frozen=True, eq=False)
class _SweepPlan:
    """The families to train and the rows; without families, the models were passed fitted."""

    request: FrontierRequest
    data: DataSet
    utility: Utility
    families: tuple[Family, ...]

    @cached_property
    def table(self) -> RowsToTrain:
        """All rows."""
        request = self.request
        # One weight for all rows changes nothing.
        weight = None if is_number(request.sample_weight) else request.sample_weight
        groups_and_weight = request.sensitive_features, request.control_features, weight
        return RowsToTrain(request.X, request.y, *groups_and_weight, self.data.rows, request.search.clusters)

    @property
    def _shown(self) -> tuple[int, Utility]:
        """The seed whose score distributions are kept, and the utility beside the usual ones."""
        return self.request.search.seed_values[0], self.utility

    def started_families(self) -> Iterator[Family]:
        """The families, one after the other until the budget is spent; the progress bar names the current one."""
        budget, start, width = self.request.search.budget, monotonic(), max(len(item.name) for item in self.families)
        bar = Progress("Training", len(self.families), text="{} families".format) if len(self.families) > 1 else None
        with bar or nullcontext():
            for place, family in enumerate(self.families):
                if place >= ALWAYS_TRIED and budget is not None and monotonic() - start > budget:
                    return
                if bar is not None:
                    bar.show(place, f"{family.name:<{width}}")
                yield family

    def fit_one_split(self, members: Sequence[Any]) -> _SweepResult:
        """All models on one split into training, validation and test rows."""
        request, train = self.request, bool(self.families)
        shares = request.validation, request.test_share
        split, folds = split_rows(self.data, *shares, request.random_state, folds=request.search.folds, train=train)
        evaluator, tried = self.evaluator(split, folds), 0
        outcomes: list[Outcome] = []
        families: list[Family] = []
        if train:
            for family in self.started_families():
                new, candidates = self.train_family(family, evaluator, split, folds)
                outcomes, tried = [*outcomes, *new], tried + candidates
                families.append(family)
            context = SweepContext(evaluator, split.test, tuple(families), self.table)
        else:
            parameter, values = fitted_values(members, request.parameter)
            context, seed = SweepContext(evaluator, split.test, parameter=parameter), request.search.seed_values[0]
            outcomes = [evaluator(model, Job(value, seed)) for model, value in zip(members, values, strict=True)]
        sizes = {"training": len(split.train), "validation": len(split.validation), "test": len(split.test)}
        return _SweepResult(context, outcomes, tried, FrontierNote("split", {**sizes, "folds": len(folds)}))

    def cross_fit(self, count: int) -> _SweepResult:
        """Figures of all rows by models that were trained and chosen without them, and models trained on all rows."""
        request, data = self.request, self.data
        splits = outer_splits(data, count, request.validation, request.random_state, folds=request.search.folds)
        nested = [
            NestedFold(replace(self.evaluator(split, folds), nested=True), split.test, []) for split, folds in splits
        ]
        rows = [fold.rows for fold in nested]
        predictions: dict[Job, Predictions | None] = {}
        (part,) = with_common_comparisons(data.held_out(data.rows))
        test_fold = np.repeat(np.arange(count), list(map(len, rows)))[np.argsort(np.concatenate(rows))]
        evaluator = Evaluator(part, part, part, part, *self._shown, cross_predictions=predictions, test_fold=test_fold)
        all_rows = Split(data.rows, data.rows, data.rows)
        outcomes: list[Outcome] = []
        families: list[Family] = []
        tried = 0
        for family in self.started_families():
            by_fold = [
                self.train_family(family, fold.evaluator, *split)[0] for fold, split in zip(nested, splits, strict=True)
            ]
            for same in zip(*by_fold, strict=True):
                parts = [outcome.model.test for outcome in same if outcome.model is not None]
                predictions[same[0].job] = in_row_order(parts, rows) if len(parts) == count else None
            nested = [replace(fold, outcomes=[*fold.outcomes, *new]) for fold, new in zip(nested, by_fold, strict=True)]
            new, candidates = self.train_family(family, evaluator, all_rows, ())
            outcomes, tried = [*outcomes, *new], tried + candidates
            families.append(family)
        context = SweepContext(evaluator, data.rows, tuple(families), self.table, tuple(nested))
        first, folds = splits[0]
        sizes = {"training": len(first.train), "validation": len(first.validation), "test": len(data.rows)}
        facts = {**sizes, "test_folds": count, "folds": len(folds)}
        return _SweepResult(context, outcomes, tried, FrontierNote("cross_fitted", facts))

    def evaluator(self, split: Split, folds: Sequence[Rows]) -> Evaluator:
        """The evaluator of models on these rows; all its parts have common comparisons."""
        rows = (split.validation, split.test, np.concatenate([split.validation, split.test]), split.train)
        parts = with_common_comparisons(*map(self.data.held_out, rows if self.families else rows[:3]))
        validation, test, held_out = parts[:3]
        training = parts[3] if self.families else None
        predicted: dict[Job, Predictions | None] | None = {} if folds else None
        return Evaluator(training, validation, test, held_out, *self._shown, cross_predictions=predicted)

    def train_family(
        self, family: Family, evaluator: Evaluator, split: Split, folds: Sequence[Rows]
    ) -> tuple[list[Outcome], int]:
        """The outcomes of a family, and the number of models to choose among."""
        search, data, rows = self.request.search, self.data, replace(self.table, rows=split.train)
        train: Callable[..., list[Outcome]] = sweep
        if folds:
            train = partial(cross_sweep, parts=[(fold, data.held_out(fold)) for fold in folds])
        ledger = None
        if search.ledger is not None:
            # Points have all named utilities anyway.
            utilities = () if self.utility.name in UTILITIES else (self.request.utility,)
            parts = (split.validation, split.test, *folds)
            ledger = Ledger(search.ledger, _run_name(family, rows, data, parts, utilities))
        options = {"ledger": ledger, "n_jobs": search.n_jobs, "devices": search.devices}
        train = partial(train, family.estimator, rows, evaluate=evaluator, **options)
        return _train_values(self.request, train, family, self.utility)


def _record(
    request: FrontierRequest,
    outcomes: Sequence[Outcome],
    context: SweepContext,
    data: DataSet,
    *,
    utility: Utility,
    notes: Sequence[FrontierNote],
) -> TradeOff:
    """Outcomes and notes; the first ``notes`` are about the rows."""
    unfairness_of, scheme, evaluator = request.unfairness_of, data.problem.scheme, context.evaluator
    test, parameters = evaluator.test, {family.name: family.parameter for family in context.families}
    floor, validation = unfairness_by_chance(test, unfairness_of), evaluator.validation
    all_notes = [
        *notes,
        None if data.problem.weight is None else FrontierNote("weighted"),
        None
        if data.problem.clusters is None
        else FrontierNote("clusters", {"clusters": len(np.unique(data.problem.clusters)), "rows": len(data.rows)}),
        *group_notes(data.problem),
        small_groups_note({"test": test, "validation": validation}),
        FrontierNote(
            "chance", {"unfairness": floor, "comparisons": len(test.comparisons), "unfairness_of": unfairness_of}
        ),
        _overfit_note(outcomes, parameters),
        *_constant_notes(outcomes, parameters),
        _same_decisions_note(outcomes, utility),
    ]
    sizes = {name: round(float(member.sum())) for groups in test.members.values() for name, member in groups.items()}
    constant, constant_value = evaluator.constant(utility)
    return TradeOff(
        outcomes,
        unfairness_of,
        "accuracy" if scheme.classes else "R2",
        tuple(sizes),
        sizes,
        tuple(note for note in all_notes if note is not None),
        comparisons=len(validation.comparisons) * (len(scheme.classes) if len(scheme.classes) > 2 else 1),
        parameter=next(iter(parameters.values())) if len(parameters) == 1 else context.parameter,
        floor=floor,
        validation_floor=floor if validation is test else unfairness_by_chance(validation, unfairness_of),
        all_small=all_small(test),
        utility=utility,
        constant=constant,
        constant_value=_plain(constant_value),
        source=context,
        parameters={name: parameter for name, parameter in parameters.items() if name},
        library=table_library(request.X, request.y, request.sensitive_features),
        provenance=data.provenance(request.random_state),
    )


def group_notes(problem: Problem) -> Iterator[FrontierNote]:
    """Groups that are the label, are missing in some rows, or have probabilities only."""
    for name in attributes_equal_to_label(problem):
        yield FrontierNote("label_groups", {"attribute": name})
    if (probabilities := problem.probabilities) is not None:
        assumption = {"assumption": probabilities.assumption, "source": probabilities.source}
        strata = {"strata": problem.strata is not None}
        yield FrontierNote("probabilities", {"attribute": probabilities.name} | assumption | strata)
        return
    for attribute, code in zip(problem.scheme.attributes, problem.groups.T, strict=True):
        if missing := int((code < 0).sum()):
            yield FrontierNote("missing_groups", {"attribute": attribute.name, "rows": missing, "of": len(code)})


def _plain(label: Any) -> str | float:
    """A label that files can store."""
    return label if isinstance(label, str | int | float) else str(label)


def _overfit_note(outcomes: Sequence[Outcome], parameters: Mapping[str, str]) -> FrontierNote | None:
    """The number of models that are significantly less unfair on training rows, and figures of the worst."""
    by_gap = [(outcome.training.unfairness, outcome) for outcome in outcomes if outcome.training is not None]
    overfit = [(gap, outcome) for gap, outcome in by_gap if outcome.test.overfit]
    if not overfit:
        return None
    gap, worst = max(overfit, key=lambda pair: pair[1].validation.unfairness + pair[1].test.unfairness - 2 * pair[0])
    return FrontierNote(
        "overfit",
        {
            "models": len(overfit),
            "trained": len(by_gap),
            "family": worst.job.family,
            "parameter": parameters.get(worst.job.family, "strength"),
            "value": worst.test.strength,
            "training": gap,
            "validation": worst.validation.unfairness,
            "test": worst.test.unfairness,
        },
    )


def _constant_notes(outcomes: Sequence[Outcome], parameters: Mapping[str, str]) -> Iterator[FrontierNote]:
    """The strengths of each family at which our models are constant."""
    for family in (name for name, parameter in parameters.items() if parameter == "strength"):
        models = [
            (outcome.job.value, getattr(last_step(outcome.model), "predictor_", None))
            for outcome in outcomes
            if outcome.job.family == family
        ]
        values = {value for value, _ in models}
        varied = {value for value, model in models if not getattr(model, "is_constant", False)}
        if constant := values - varied - {0.0}:
            facts = {"family": family, "strengths": sorted(values), "constant": sorted(constant)}
            yield FrontierNote("constant_models", facts)


def _same_decisions_note(outcomes: Sequence[Outcome], utility: Utility) -> FrontierNote | None:
    """The number of models with constant decisions whose scores are better than those of a constant predictor."""
    points = [outcome.test for outcome in outcomes if not outcome.test.failed]
    same = sum(point.marks.get("accuracy") == CONSTANT and not point.marks.get(utility.key) for point in points)
    return FrontierNote("same_decisions", {"models": same, "of": len(points)}) if same else None


def _train_values(
    request: FrontierRequest, train: Callable[..., list[Outcome]], family: Family, utility: Utility
) -> tuple[list[Outcome], int]:
    """The outcomes of one family, at all values and seeds, and the number of models to choose among.

    With strengths="auto", some are added where the curve bends.
    """
    seeds, tolerances = request.search.seed_values, request.search.tolerances
    relaxed = family.parameter == "tolerance" and (bool(family.name) or tolerances is not None)
    values = family.values(tolerances if relaxed else request.strengths)

    def train_at(strengths: Sequence[float]) -> list[Outcome]:
        jobs = [Job(float(value), seed, family.name) for seed in seeds for value in strengths]
        return train(jobs=jobs, parameter=family.parameter)

    outcomes = train_at(values)
    if relaxed or not isinstance(request.strengths, str):
        return outcomes, len(outcomes)
    outcomes += train_at(_bends(outcomes, request.unfairness_of, utility))
    outcomes.sort(key=lambda outcome: (outcome.job.seed, outcome.job.value))
    # The validation rows decide which strengths are added, so a certificate on these rows must be valid for all that
    # could have been added: one between each two neighbors.
    return outcomes, len(seeds) * (2 * len(values) - 1)


def _run_name(
    family: Family, rows: RowsToTrain, data: DataSet, parts: Sequence[Rows], utilities: Sequence[UtilityLike | None]
) -> str:
    """A name for everything that a run's figures depend on, except the values and seeds, which name its jobs."""
    estimator, parameter, problem = family.estimator, family.parameter, data.problem
    settings = {
        name: value
        for name, value in sorted(estimator.get_params().items())
        if name not in (parameter, "random_state", "verbose")
    }
    inputs = [type(estimator), parameter, problem.scheme.criterion, utilities, settings, list(parts)]
    comparisons = [str(comparison) for comparison in problem.comparisons]
    return rows.fingerprint(content_text(inputs), *comparisons)


def _bends(outcomes: Sequence[Outcome], unfairness_of: str, utility: Utility) -> list[float]:
    """Strengths halfway (on a logarithmic scale) between neighbors whose validation points lie farthest apart."""
    means: dict[float, tuple[float, float]] = {}
    for value in {outcome.job.value for outcome in outcomes}:
        points = [outcome.validation for outcome in outcomes if outcome.job.value == value]
        if points := [point for point in points if not point.failed]:
            mean_utility = fmean(point.figure(utility.name) or 0.0 for point in points)
            means[value] = fmean(point.gap(unfairness_of) for point in points), mean_utility
    if not means:
        return []
    spans = [max(figures) - min(figures) or 1.0 for figures in zip(*means.values(), strict=True)]
    jumps = []
    for low, high in pairwise(sorted(means)):
        jump = hypot(*((means[low][k] - means[high][k]) / spans[k] for k in (0, 1)))
        jumps.append((jump, round(sqrt(low * high) if low > 0 else high / 10, 9)))
    return [middle for _, middle in sorted(jumps, reverse=True)[:_BENDS]]


def cross_sweep(
    estimator: Any,
    data: RowsToTrain,
    jobs: Sequence[Job],
    evaluate: Evaluator,
    *,
    parts: Sequence[tuple[Rows, HeldOut]],
    ledger: Ledger | None = None,
    **more: Any,
) -> list[Outcome]:
    """Every job's outcome, as from ``sweep``; models of the other folds predict each fold for the evaluator.

    ``parts`` are the folds. A ledger stores one seed after the other, with its folds.
    """
    finished = {} if ledger is None else ledger.finished()
    outcomes: list[Outcome] = []
    for seed in dict.fromkeys(job.seed for job in jobs):
        of_seed = [job for job in jobs if job.seed == seed]
        new = [job for job in of_seed if job.name not in finished]
        by_fold: dict[Job, list[Predictions | None]] = {job: [] for job in new}
        for fold, part in parts:
            others = replace(data, rows=np.setdiff1d(data.rows, fold))
            for outcome in sweep(estimator, others, new, partial(_fold_predictions, part), **more):
                by_fold[outcome.job].append(outcome.model)
        for job, folds in by_fold.items():
            complete = [predictions for predictions in folds if predictions is not None]
            if evaluate.cross_predictions is not None:
                joined = Predictions.joined(complete) if len(complete) == len(folds) else None
                evaluate.cross_predictions[job] = joined
        outcomes += sweep(estimator, data, of_seed, evaluate, ledger=ledger, **more)
    return outcomes


def _fold_predictions(part: HeldOut, model: Any, job: Job) -> Outcome:
    """Predictions for the rows of a fold in the place of the outcome's model; None where training failed."""
    placeholder = Point(job.value, job.seed, 0.0, 1.0, failed=True)
    return Outcome(job, placeholder, placeholder, model=None if model is None else predict(model, part))
