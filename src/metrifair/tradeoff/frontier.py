"""The whole accuracy-fairness trade-off, as a record of values.

Every configuration is trained on all rows but one fold, for each fold, and scores the rows left
out. The configurations are compared by these scores; the chosen one is trained on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from math import hypot, sqrt
from statistics import fmean, stdev
from time import monotonic
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.base import is_regressor
from sklearn.pipeline import Pipeline

from metrifair.encoding.encoder import TableEncoder
from metrifair.errors import DataError, Remedy, TooFewSamples
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.figures.attenuation import overlaps_of_rows, r_squared
from metrifair.figures.fold_gaps import FoldSides, are_many, gap_without_chance
from metrifair.figures.utility import (
    CONSTANT,
    UTILITIES,
    Predictions,
    Utility,
    UtilityLike,
    as_utility,
)
from metrifair.metrics.penalty_options import HasPenaltyOptions, PenaltyOptions, penalty_options
from metrifair.postprocessing.threshold import ThresholdPostprocessor
from metrifair.problem.cells import Contrast
from metrifair.problem.criteria import Criterion
from metrifair.problem.memberships import GroupProbabilities
from metrifair.problem.missing_groups import missing_groups_in, no_warnings_of_groups
from metrifair.problem.problem import Problem, Scheme, attributes_equal_to_label, classes_in
from metrifair.problem.tables import (
    CodedColumn,
    Table,
    columns,
    not_numbers,
    one_column,
    table_library,
)
from metrifair.problem.unknown_names import (
    unknown_name_counts,
    warn_of_unknown_names,
)
from metrifair.stacking import has_lightgbm
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_integer, check_known, is_number, last_step, make_seed
from metrifair.support.progress import Progress
from metrifair.support.reuse import reusing_results
from metrifair.tradeoff.configurations import fold_utility, is_constant, lines
from metrifair.tradeoff.evaluate import (
    make_point,
    predict,
    score_curves,
    small_groups_note,
)
from metrifair.tradeoff.group_features import group_feature_notes
from metrifair.tradeoff.ledger import content_text
from metrifair.tradeoff.out_of_fold import (
    FoldEvaluator,
    FoldLedger,
    FoldResult,
    TrainingFit,
    pooled,
)
from metrifair.tradeoff.points import FrontierNote, Job, Outcome, Point
from metrifair.tradeoff.portfolio import (
    ALWAYS_TRIED,
    AUTO,
    BENDS,
    STRENGTHS,
    Portfolio,
)
from metrifair.tradeoff.record import FrontierRecord
from metrifair.tradeoff.repeats import repeat_notes
from metrifair.tradeoff.resamples import draw_rows, noise_of_any_scores
from metrifair.tradeoff.result import (
    SweepContext,
    TradeOff,
    unverifiable_error,
    with_gap,
    with_model,
    with_utility,
)
from metrifair.tradeoff.split import (
    DataSet,
    HeldOut,
    RowNumbers,
    data_set,
    make_folds,
    with_common_comparisons,
)
from metrifair.tradeoff.sweep import (
    Family,
    RowsToTrain,
    SearchOptions,
    fitted_values,
    make_families,
    needs_group,
    sweep,
)
from metrifair.tradeoff.thresholds import Threshold

_BENDS = 8  # strengths that strengths="auto" adds
# parameters that the families of "auto" have in common
_SHARED = ("metric", "penalty", "continuous", "pos_label")
USUAL_FOLDS = 5
_FEW_FOLDS = 3
_MANY_ROWS = 20_000  # beyond which three folds do


@dataclass(frozen=True, eq=False)
class FrontierRequest:
    """The arguments of :func:`metrifair.frontier`."""

    estimator: Any
    X: Table
    y: Table
    sensitive_features: Table | GroupProbabilities
    control_features: Table | None = None
    sample_weight: Table | None = None
    clusters: Table | None = None
    parameter: str | None = None
    strengths: Sequence[float] | Literal["auto"] | None = None
    folds: int | None = None
    test: float | None = None
    unfairness_of: Literal["scores", "decisions"] = "scores"
    utility: UtilityLike = "auto"
    criterion: str | Criterion | None = None
    pos_label: Any = None
    random_state: Any = None
    search: SearchOptions = field(default_factory=SearchOptions)
    # a fair estimator: families of "auto" have its parameters, and models are saved with encoders
    template: Any = None
    threshold: Threshold | None = None  # None: the models decide
    limit: float | None = None  # on unfairness: refused before training if rows cannot verify it
    automatic: bool = False  # whether the families are those of "auto"
    few_rows: bool = False  # whether "auto" leaves trees out, because too few rows train a model
    untried: tuple[str, ...] = ()  # families of "auto" whose work exceeds the budget

    def checked(self) -> FrontierRequest:
        """The same request with a seed; a DataError where arguments cannot be combined."""
        check_known("unfairness_of", self.unfairness_of, ("scores", "decisions"))
        if self.folds is not None:
            check_integer("folds", self.folds, least=2)
        if self.test is not None and not (is_number(self.test) and 0 < self.test < 1):
            raise DataError(
                "must be None, or a share above 0 that leaves rows for training",
                argument="test",
                received=self.test,
            )
        if self.search.ledger is not None and self.random_state is None:
            raise DataError(
                "must be given with a ledger, which stores models of certain folds",
                argument="random_state",
                remedy=Remedy("random_state", 0),
            )
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
        if self.template is None:
            template = self._own_template()
        else:
            template = self.template
        data = self.data([template])
        aim = {name: getattr(template, name) for name in _SHARED if hasattr(template, name)}
        folds = self.folds or usual_folds(len(data.rows))
        portfolio = Portfolio(
            rows=len(data.rows),
            training_rows=rows_of_fold_models(len(data.rows), folds, self.test),
            columns=len(columns("X", self.X)),
            folds=folds,
            classes=len(data.problem.scheme.classes),
            aim=aim | {"criterion": data.problem.scheme.criterion},
            numeric_groups=data.problem.numbers is not None,
            strata=self.control_features is not None,
            needs_group=self.search.needs_group,
            saved=self.template is not None,
            by_probabilities=isinstance(self.sensitive_features, GroupProbabilities),
        )
        families, search = portfolio.chosen(
            self.search.families or (), replace(self.search, families=None)
        )
        untried: tuple[str, ...] = ()
        if not self.search.families:
            untried = tuple(name for name in portfolio.families() if name not in families)
        if self.template is not None or not_numbers(self.X):
            families = {
                key: Pipeline([("encoder", TableEncoder()), ("model", item)])
                for key, item in families.items()
            }
        return replace(
            self,
            estimator=families,
            search=search,
            automatic=True,
            untried=untried,
            few_rows=not portfolio.can_train_trees,
        )

    def _own_template(self) -> FairClassifier | FairRegressor:
        """A fair estimator of labels or numbers with the options of the request."""
        is_classifier = self._classes() > 0
        if not is_classifier and self.pos_label is not None:
            raise DataError(
                "applies to labels, and y contains numbers",
                argument="pos_label",
                received=self.pos_label,
            )
        shared: dict[str, Any] = {
            "metric": self.search.metric,
            "penalty": PenaltyOptions(contrast=self.search.contrast),
        }
        if is_classifier:
            return FairClassifier(pos_label=self.pos_label, **shared)
        return FairRegressor(**shared)

    def _classes(self) -> int:
        """The number of classes of "auto"; 0 if numbers are predicted."""
        utility: Any = self.utility
        if isinstance(utility, str):
            utility = UTILITIES.get(utility)
        if isinstance(utility, Utility) and utility.needs == "numbers":
            return 0
        outcome = CodedColumn("y", one_column("y", self.y))
        return len(classes_in("y", outcome.levels()))

    def setting(self, members: Sequence[Any], name: str, default: Any = None) -> Any:
        """A parameter of the first estimator that has it: unfairness is computed in one way for
        all.
        """
        having = (member for member in map(last_step, members) if hasattr(member, name))
        return next((getattr(member, name) for member in having), default)

    def _contrast(self, members: Sequence[Any]) -> Contrast:
        """Which groups the first estimator with a penalty compares."""
        members = [last_step(member) for member in members]
        having = (member for member in members if isinstance(member, HasPenaltyOptions))
        return next((penalty_options(member).contrast for member in having), self.search.contrast)

    def data(self, members: Sequence[Any]) -> DataSet:
        """The checked rows."""
        setting = partial(self.setting, members)
        criterion = self.criterion
        if criterion is None:
            criterion = setting("criterion", "statistical_parity")
        continuous = self.search.continuous
        if continuous is None:
            continuous = setting("continuous", "auto")
        return data_set(
            self.X,
            self.y,
            self.sensitive_features,
            self.control_features,
            regression=is_regressor(members[0]),
            criterion=criterion,
            contrast=self._contrast(members),
            pos_label=setting("pos_label"),
            intersectional=setting("intersectional", False),
            continuous=continuous,
            sample_weight=self.sample_weight,
            clusters=self.clusters,
            held_out=() if self.test is None else (self.test,),
        )

    def chosen_utility(self, classes: Sequence[object]) -> Utility:
        """The measure of quality: by default, of scores the AUC, of decisions the accuracy."""
        is_default = isinstance(self.utility, str) and self.utility == "auto"
        if is_default and classes and self.unfairness_of == "scores":
            return UTILITIES["auc"]
        return as_utility(self.utility, classes=classes)


def usual_folds(rows: int) -> int:
    """The number of folds unless it is given.

    >>> usual_folds(2_000), usual_folds(50_000)
    (5, 3)
    """
    if rows <= _MANY_ROWS:
        return USUAL_FOLDS
    return _FEW_FOLDS


def rows_of_fold_models(rows: int, folds: int, test: float | None) -> int:
    """About the number of rows that train the model of a fold.

    >>> rows_of_fold_models(1_000, 5, None), rows_of_fold_models(1_000, 2, 0.2)
    (800, 400)
    """
    return round(rows * (1 - (test or 0.0)) * (1 - 1 / folds))


def trade_off(request: FrontierRequest) -> TradeOff:
    """Score all rows by models of every strength and seed that were trained without them."""
    request = request.checked()
    families = make_families(request.estimator, request.parameter)
    continuous = request.search.continuous
    if continuous is not None and families is not None:
        families = tuple(family.with_parameter("continuous", continuous) for family in families)
    if families is None:
        members = list(request.estimator)
    else:
        members = [family.estimator for family in families]
    data = request.data(members)
    scheme = data.problem.scheme
    numbers = [item.name for item in scheme.attributes if item.is_number or item.cuts]
    if numbers and families is not None and request.setting(members, "continuous") == "auto":
        # Decided once, by all rows: a subset might be classified differently.
        families = tuple(family.with_parameter("continuous", numbers) for family in families)
    utility = request.chosen_utility(scheme.classes)
    search = _FoldSearch(request, data, utility, families or ())
    with reusing_results():
        if families is None:
            context = search.evaluate_fitted(members)
        else:
            warn_of_unknown_names(data.problem)
            context = search.train()
    notes = [search.rows_note]
    if families is not None:
        notes += repeat_notes(data, search.fold_of_all_rows)
        notes += group_feature_notes(data)
        notes += _families_notes(request, search.families, len(context.families))
    if len(scheme.classes) == 2 and request.setting(members, "pos_label") is None:
        notes.append(positive_label_note(scheme))
    return _trade_off(request, search, context, notes=notes)


def _families_notes(
    request: FrontierRequest, families: Sequence[Family], tried: int
) -> Iterator[FrontierNote]:
    """The families that were tried within the budget; nothing for families of the user without
    a budget.
    """
    if not request.automatic and request.search.budget is None:
        return
    names = [family.name for family in families]
    lacks_trees = request.automatic and not has_lightgbm()
    facts = {
        "tried": names[:tried],
        "untried": [*names[tried:], *request.untried],
        "budget": request.search.budget,
        "trees": not lacks_trees,
        "few_rows": request.few_rows,
    }
    yield FrontierNote("families", facts)


class _PooledFolds(NamedTuple):
    """What the fold models of one family say of all rows."""

    predictions: dict[Job, Predictions | None]
    fits: dict[Job, list[TrainingFit]]
    group_aware: frozenset[Job]


@dataclass(frozen=True, eq=False)
class _FoldSearch:
    """The families to train and the rows; without families, the models were passed fitted."""

    request: FrontierRequest
    data: DataSet
    utility: Utility
    families: tuple[Family, ...]
    jobs: list[Job] = field(default_factory=list)  # in the order in which they were trained

    @cached_property
    def _division(self) -> tuple[RowNumbers, RowNumbers]:
        """The positions of the rows that train or compare models, and of the test rows."""
        positions = np.arange(len(self.data.problem))
        if self.request.test is None:
            return positions, positions[:0]
        return self.data.divide(positions, self.request.test, self.request.random_state)

    @cached_property
    def folds(self) -> list[RowNumbers]:
        """The positions of each fold; none for models that were passed fitted."""
        request = self.request
        positions, _ = self._division
        if not self.families:
            return []
        make = partial(make_folds, self.data, positions, seed=request.random_state)
        if request.folds is not None:
            return make(count=request.folds, argument="folds")
        for count in range(usual_folds(len(positions)), 2, -1):
            try:
                return make(count=count, argument="folds")
            except TooFewSamples:
                continue
        return make(count=2, argument="folds")

    @property
    def fold_of_all_rows(self) -> RowNumbers:
        """The fold of each row; those of test rows have a number of their own."""
        fold = np.full(len(self.data.problem), len(self.folds))
        for number, positions in enumerate(self.folds):
            fold[positions] = number
        return fold

    @cached_property
    def fold(self) -> RowNumbers:
        """The fold of each row that is not a test row; 0 for models that were passed fitted."""
        positions, _ = self._division
        if not self.folds:
            return np.zeros(len(positions), dtype=np.int64)
        return self.fold_of_all_rows[positions]

    @cached_property
    def parts(self) -> list[HeldOut]:
        """The rows that compare models, then the test rows if there are any."""
        return with_common_comparisons(
            *(self.data.held_out(self.data.rows[part]) for part in self._division if len(part))
        )

    @property
    def rows_note(self) -> FrontierNote:
        """How the rows are used."""
        positions, test = self._division
        facts = {"rows": len(positions), "folds": len(self.folds), "test": len(test)}
        return FrontierNote("cross_validation", facts)

    @cached_property
    def table(self) -> RowsToTrain:
        """The rows that train the model that is delivered."""
        request = self.request
        # One weight for all rows changes nothing.
        weight = None
        if not is_number(request.sample_weight):
            weight = request.sample_weight
        positions, _ = self._division
        return RowsToTrain(
            request.X,
            request.y,
            request.sensitive_features,
            request.control_features,
            weight,
            self.data.rows[positions],
            request.clusters,
        )

    def evaluate_fitted(self, members: Sequence[Any]) -> SweepContext:
        """The predictions of fitted models."""
        request = self.request
        if request.folds is not None:
            remedy = Remedy("folds", leave_out=True)
            raise DataError(
                "needs models to train, and these are fitted", argument="folds", remedy=remedy
            )
        parameter, values = fitted_values(members, request.parameter)
        seed = request.search.seed_values[0]
        jobs = [Job(value, seed) for value in values]
        predictions = {
            job: predict(model, self.parts[0]) for job, model in zip(jobs, members, strict=True)
        }
        aware = frozenset(
            job for job, model in zip(jobs, members, strict=True) if needs_group(model)
        )
        context = self._context(_PooledFolds({**predictions}, {}, aware), (), parameter)
        return replace(context, fitted=dict(zip(jobs, members, strict=True)))

    def train(self) -> SweepContext:
        """The out-of-fold predictions of all families."""
        _ = self._resamples  # too few rows are an error before anything is trained
        self._check_limit()
        found = _PooledFolds({}, {}, frozenset())
        families: list[Family] = []
        for family in self._started_families():
            with no_warnings_of_groups():
                new = self._train_family(family)
            found = _PooledFolds(
                found.predictions | new.predictions,
                found.fits | new.fits,
                found.group_aware | new.group_aware,
            )
            families.append(family)
        return self._context(found, tuple(families), "strength")

    def _check_limit(self) -> None:
        """Raise a DataError for a limit that these rows cannot verify, whatever the models say.

        Of decisions, chance depends on how many are positive, which only models say. So it does of
        scores with two values: of families that decide, or of features that tell few rows apart.
        """
        request = self.request
        limit = request.limit
        if limit is None or request.unfairness_of == "decisions":
            return
        estimators = [last_step(family.estimator) for family in self.families]
        if all(isinstance(one, ThresholdPostprocessor) for one in estimators):
            return
        if not _allows_many_scores(request.X):
            return
        noise = noise_of_any_scores(self._sides)
        if limit < noise:
            raise unverifiable_error(limit, noise, len(self.fold))

    def _context(
        self, found: _PooledFolds, families: tuple[Family, ...], parameter: str
    ) -> SweepContext:
        request = self.request
        positions, test = self._division
        usable = {job: item for job, item in found.predictions.items() if item is not None}
        self.jobs.extend(found.predictions)
        thresholds: dict[Job, float] = {}
        if (threshold := request.threshold) is not None:
            problem = self.parts[0].problem
            for job, item in usable.items():
                thresholds[job] = threshold.choose(item.score, problem)
                usable[job] = threshold.out_of_fold(item, problem, self.fold)
        test_rows: tuple[Any, Any] = (None, None)
        if len(test):
            test_rows = (self.parts[1], self.data.rows[test])
        return SweepContext(
            self.parts[0],
            self.data.rows[positions],
            self.fold,
            usable,
            found.fits,
            self.utility,
            request.unfairness_of,
            request.random_state,
            self._resamples,
            families,
            self.table if families else None,
            *test_rows,
            parameter,
            request.search.n_jobs,
            request.search.devices,
            found.group_aware,
            thresholds=thresholds,
        )

    def _started_families(self) -> Iterator[Family]:
        """The families, one after the other until the budget is spent; the progress bar names the
        current one.
        """
        budget = self.request.search.budget
        start = monotonic()
        width = max(len(item.name) for item in self.families)
        bar = None
        if len(self.families) > 1:
            bar = Progress("Training", len(self.families), text="{} families".format)
        with bar or nullcontext():
            for place, family in enumerate(self.families):
                is_late = budget is not None and monotonic() - start > budget
                if place >= ALWAYS_TRIED and is_late:
                    return
                if bar is not None:
                    bar.show(place, f"{family.name:<{width}}")
                yield family

    def _train_family(self, family: Family) -> _PooledFolds:
        """What the fold models of a family say of all rows, at all values and seeds.

        With strengths="auto", some are added where the curve bends.
        """
        request = self.request
        tolerances = request.search.tolerances
        relaxed = family.parameter == "tolerance" and (bool(family.name) or tolerances is not None)
        strengths = request.strengths
        bends = 0
        if isinstance(strengths, str):
            bends = _BENDS
        if request.automatic and (bends or strengths is None):
            strengths = STRENGTHS
            bends = BENDS
        found = self._train_at(family, family.values(tolerances if relaxed else strengths))
        if relaxed or not bends:
            return found
        new = self._train_at(family, self._bends(found.predictions, bends))
        merged = found.predictions | new.predictions
        order = sorted(merged, key=lambda job: (job.seed, job.value))
        return _PooledFolds(
            {job: merged[job] for job in order},
            found.fits | new.fits,
            found.group_aware | new.group_aware,
        )

    def _train_at(self, family: Family, values: Sequence[float]) -> _PooledFolds:
        seeds = self.request.search.seed_values
        jobs = [Job(float(value), seed, family.name) for seed in seeds for value in values]
        by_fold = [self._train_without(fold, family, jobs) for fold in self.folds]
        predictions: dict[Job, Predictions | None] = {}
        fits: dict[Job, list[TrainingFit]] = {}
        for results in zip(*by_fold, strict=True):
            job = results[0].job
            parts = [item.predictions for item in results if item.predictions is not None]
            complete = len(parts) == len(self.folds)
            predictions[job] = None
            if complete:
                predictions[job] = pooled(parts, self.folds)
            fits[job] = [item.fit for item in results if item.fit is not None]
        aware = frozenset(item.job for results in by_fold for item in results if item.needs_group)
        return _PooledFolds(predictions, fits, aware)

    def _train_without(
        self, fold: RowNumbers, family: Family, jobs: Sequence[Job]
    ) -> list[FoldResult]:
        """Models of all rows but a fold and the test rows, by their predictions for the fold."""
        data = self.data
        search = self.request.search
        positions, _ = self._division
        others = np.setdiff1d(positions, fold)
        evaluate = FoldEvaluator(
            data.held_out(data.rows[fold]),
            data.held_out(data.rows[others]),
            self._sides.take(np.searchsorted(positions, others)),
            self.request.unfairness_of,
        )
        rows = replace(self.table, rows=data.rows[others])
        ledger = None
        if search.ledger is not None:
            run = _run_name(family, rows, data, self.request.unfairness_of)
            classes = len(data.problem.scheme.classes)
            ledger = FoldLedger(search.ledger, run, rows=len(fold), classes=classes)
        return sweep(
            family.estimator,
            rows,
            jobs,
            evaluate,
            parameter=family.parameter,
            ledger=ledger,
            n_jobs=search.n_jobs,
            devices=search.devices,
        )

    @cached_property
    def _sides(self) -> FoldSides:
        return self.parts[0].fold_sides(self.fold)

    @cached_property
    def _resamples(self) -> Integers:
        """How often each resample has each row; an error if groups have too few rows."""
        return draw_rows(self._sides, self.request.random_state)

    def _bends(self, predictions: Mapping[Job, Predictions | None], count: int) -> list[float]:
        """Strengths halfway (on a logarithmic scale) between neighbors whose figures lie farthest
        apart.
        """
        part = self.parts[0]
        by_value: dict[float, list[tuple[float, float]]] = {}
        whole = self._sides.take(np.arange(len(self.fold)))
        for job, found in predictions.items():
            estimate = None
            if found is not None:
                estimate = self.utility.of(found, part.problem, part.X)
            if found is None or estimate is None:
                continue
            gap = gap_without_chance(lines(found, part, self.request.unfairness_of), whole)
            by_value.setdefault(job.value, []).append((gap, estimate.value))
        if not by_value:
            return []
        means = {
            value: (fmean(gap for gap, _ in pairs), fmean(quality for _, quality in pairs))
            for value, pairs in by_value.items()
        }
        spans = [
            max(figures) - min(figures) or 1.0 for figures in zip(*means.values(), strict=True)
        ]
        jumps = []
        for low, high in pairwise(sorted(means)):
            jump = hypot(*((means[low][k] - means[high][k]) / spans[k] for k in (0, 1)))
            jumps.append((jump, round(sqrt(low * high) if low > 0 else high / 10, 9)))
        return [middle for _, middle in sorted(jumps, reverse=True)[:count]]


def _allows_many_scores(X: Table) -> bool:
    """Whether some feature has many values, so that scores can have many."""
    found = columns("X", X).items()
    return any(are_many(CodedColumn(name, column).values) for name, column in found)


def _run_name(family: Family, rows: RowsToTrain, data: DataSet, unfairness_of: str) -> str:
    """A name for everything that a run's predictions depend on, except the values and seeds, which
    name its jobs.
    """
    varied = (family.parameter, "random_state", "verbose")
    settings = {
        name: value
        for name, value in sorted(family.estimator.get_params().items())
        if name not in varied
    }
    criterion = data.problem.scheme.criterion
    inputs = [type(family.estimator), family.parameter, criterion, unfairness_of, settings]
    comparisons = [str(comparison) for comparison in data.problem.comparisons]
    return rows.fingerprint(content_text(inputs), *comparisons)


def _trade_off(
    request: FrontierRequest,
    search: _FoldSearch,
    context: SweepContext,
    *,
    notes: Sequence[FrontierNote],
) -> TradeOff:
    """Outcomes and notes; the first ``notes`` are about the rows."""
    data = search.data
    scheme = data.problem.scheme
    part = context.part
    parameters = {family.name: family.parameter for family in context.families}
    outcomes = _outcomes(search, context)
    noise = None
    if context.jobs:
        noise = context.gaps(request.unfairness_of).noise
    all_notes = [
        *notes,
        *_data_notes(search),
        *_chance_notes(part, noise),
        *_overfit_notes(outcomes, context),
        *_constant_notes(context, parameters),
        *_same_decisions_notes(outcomes, search.utility),
    ]
    sizes = {
        name: round(float(member.sum()))
        for groups in part.members.values()
        for name, member in groups.items()
    }
    constant, constant_value = context.constant(search.utility)
    parameter = context.parameter
    if len(parameters) == 1:
        (parameter,) = parameters.values()
    test_rows = 0
    if context.test_rows is not None:
        test_rows = len(context.test_rows)
    record = FrontierRecord(
        unfairness_of=request.unfairness_of,
        accuracy_name="accuracy" if scheme.classes else "R2",
        groups=tuple(sizes),
        sizes=sizes,
        notes=tuple(all_notes),
        parameter=parameter,
        parameters={name: parameter for name, parameter in parameters.items() if name},
        noise=noise,
        constant=constant,
        constant_value=_stored_label(constant_value),
        folds=len(search.folds),
        test_rows=test_rows,
        provenance=data.provenance(request.random_state),
    )
    library = table_library(request.X, request.y, request.sensitive_features)
    return TradeOff(outcomes, record, search.utility, context, library)


def _data_notes(search: _FoldSearch) -> Iterator[FrontierNote]:
    """Notes about weights, clusters and groups."""
    data = search.data
    problem = data.problem
    if problem.weight is not None:
        yield FrontierNote("weighted")
    if problem.clusters is not None:
        clusters = len(np.unique(problem.clusters))
        yield FrontierNote("clusters", {"clusters": clusters, "rows": len(data.rows)})
    yield from group_notes(problem)
    small = small_groups_note(dict(zip(("all", "test"), search.parts, strict=False)))
    if small is not None:
        yield small


def _chance_notes(part: HeldOut, noise: float | None) -> Iterator[FrontierNote]:
    """A note of the gap that chance alone explains."""
    if noise is not None:
        facts = {"unfairness": noise, "comparisons": len(part.comparisons)}
        yield FrontierNote("chance", facts)


def _outcomes(search: _FoldSearch, context: SweepContext) -> list[Outcome]:
    """The configurations with their figures, in the order in which they were trained."""
    against = context.rivals()
    gaps = _gaps_by_name(context)
    shown_seed = search.request.search.seed_values[0]
    places = {job: place for place, job in enumerate(context.jobs)}
    outcomes = []
    for job in search.jobs:
        if job not in places:
            point = Point(job.value, job.seed, 0.0, 1.0, failed=True, family=job.family)
            outcomes.append(Outcome(job, point))
            continue
        predictions = context.predictions[job]
        point = make_point(
            predictions,
            context.part,
            strength=job.value,
            seed=job.seed,
            against=against,
        )
        point = replace(point, family=job.family, needs_group=job in context.group_aware)
        if is_constant(predictions, context.fold):
            # the constants of the folds differ, so that pooled predictions do not show it
            point = replace(point, marks={**point.marks, search.utility.key: CONSTANT})
        point = _as_compared(point, places[job], context, gaps)
        point = replace(point, overfit=_is_overfit(point, places[job], context))
        shown = job.seed == shown_seed
        curves = None
        if shown:
            curves = score_curves(predictions, context.part)
        outcomes.append(with_model(Outcome(job, point, curves), context.fitted.get(job), context))
    return outcomes


def _gaps_by_name(context: SweepContext) -> dict[str, Floats]:
    """The gaps of all configurations that are not compared: of decisions, or of scores."""
    if not context.jobs or context.part.regression:
        return {}
    if context.unfairness_of == "scores":
        return {"decision_unfairness": context.gaps_of_all_rows("decisions")}
    return {"unfairness": context.gaps_of_all_rows("scores")}


def _as_compared(
    point: Point, place: int, context: SweepContext, others: Mapping[str, Floats]
) -> Point:
    """The point with the figures by which configurations are compared: gaps without chance, and
    rankings within folds.
    """
    gaps = context.gaps(context.unfairness_of)
    interval = gaps.interval(place)
    point = with_gap(point, float(gaps.gaps[place]), interval, context.unfairness_of, gaps.noise)
    changed: dict[str, Any] = {name: float(found[place]) for name, found in others.items()}
    point = replace(point, **changed)
    if "auc" not in point.more:
        return point
    auc = UTILITIES["auc"]
    problem = context.part.problem
    predictions = context.predictions[context.jobs[place]]
    estimate = fold_utility(auc, predictions, context.part, context.fold)
    around = None
    if problem.weight is None:
        around = auc.interval(estimate, problem)
    return with_utility(point, estimate.value, around, auc)


_OVERFIT = 3.0  # standard errors


def _is_overfit(point: Point, place: int, context: SweepContext) -> bool:
    """Whether the gap is significantly smaller on the rows that trained a model."""
    fits = context.fits.get(context.jobs[place], ())
    if len(fits) < 2:
        return False
    gaps = context.gaps(context.unfairness_of)
    inside = [fit.gap for fit in fits]
    error = hypot(float(gaps.errors[place]), stdev(inside))
    difference = point.gap(context.unfairness_of) - fmean(inside)
    return difference > max(_OVERFIT * error, gaps.noise)


def group_notes(problem: Problem) -> Iterator[FrontierNote]:
    """Groups that are the label, are missing in some rows, have an unknown name, or have
    probabilities only.
    """
    for name in attributes_equal_to_label(problem):
        yield FrontierNote("label_groups", {"attribute": name})
    if (probabilities := problem.probabilities) is not None:
        r2 = r_squared(overlaps_of_rows(probabilities.values, problem.weight))
        facts = {
            "attribute": probabilities.name,
            "assumption": probabilities.assumption,
            "source": probabilities.source,
            "strata": problem.strata is not None,
            "r2": dict(zip(probabilities.groups, r2.tolist(), strict=True)),
        }
        yield FrontierNote("probabilities", facts)
        return
    for unknown in unknown_name_counts(problem):
        yield FrontierNote("unknown_name", unknown._asdict())
    for missing in missing_groups_in(problem):
        yield FrontierNote("missing_groups", missing._asdict())


def positive_label_note(scheme: Scheme) -> FrontierNote:
    """Which of two labels is positive by default."""
    labels = [_stored_label(label) for label in scheme.classes]
    return FrontierNote("positive_label", {"labels": labels, "positive": scheme.positive})


def _stored_label(label: Any) -> str | float:
    """A label that files can store."""
    if isinstance(label, str | int | float):
        return label
    return str(label)


def _overfit_notes(outcomes: Sequence[Outcome], context: SweepContext) -> Iterator[FrontierNote]:
    """The number of configurations that are significantly less unfair on training rows, and
    figures of the worst.
    """
    overfit = [outcome for outcome in outcomes if outcome.point.overfit]
    if not overfit:
        return

    def training_gap(outcome: Outcome) -> float:
        return fmean(fit.gap for fit in context.fits[outcome.job])

    def gap(outcome: Outcome) -> float:
        return outcome.point.gap(context.unfairness_of)

    worst = max(overfit, key=lambda outcome: gap(outcome) - training_gap(outcome))
    yield FrontierNote(
        "overfit",
        {
            "models": len(overfit),
            "trained": len(outcomes),
            "family": worst.job.family,
            "parameter": context.parameter_of(worst.job),
            "value": worst.job.value,
            "training": training_gap(worst),
            "left_out": gap(worst),
        },
    )


def _constant_notes(context: SweepContext, parameters: Mapping[str, str]) -> Iterator[FrontierNote]:
    """The strengths of each family at which models are constant."""
    for family in (name for name, parameter in parameters.items() if parameter == "strength"):
        found = {job: item for job, item in context.predictions.items() if job.family == family}
        values = {job.value for job in found}
        varied = {job.value for job, item in found.items() if not is_constant(item, context.fold)}
        if constant := values - varied - {0.0}:
            facts = {"family": family, "strengths": sorted(values), "constant": sorted(constant)}
            yield FrontierNote("constant_models", facts)


def _same_decisions_notes(outcomes: Sequence[Outcome], utility: Utility) -> Iterator[FrontierNote]:
    """The number of models with constant decisions whose scores are better than those of a constant
    predictor.
    """
    points = [outcome.point for outcome in outcomes if not outcome.point.failed]
    same = sum(
        point.marks.get("accuracy") == CONSTANT and not point.marks.get(utility.key)
        for point in points
    )
    if same:
        yield FrontierNote("same_decisions", {"models": same, "of": len(points)})
