"""The whole accuracy-fairness trade-off from one training run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import hypot, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import is_regressor

from metrifair.errors import DataError, MetrifairWarning
from metrifair.estimators.settings import check_devices
from metrifair.figures.utility import UTILITIES, Utility, UtilityLike, rivals, utilities_for, utility_of
from metrifair.problem.attributes import Continuous, label_notes
from metrifair.problem.cells import Contrast
from metrifair.problem.criteria import Criterion
from metrifair.problem.tables import Table, library_of
from metrifair.report.frontier.notes import (
    WEIGHTED,
    constant_note,
    floor_note,
    overfit_note,
    same_decisions_note,
    split_note,
)
from metrifair.support.checks import check_known, is_integer, is_number, last_step
from metrifair.support.provenance import call_text, said_of
from metrifair.tradeoff.evaluate import Judge, all_small, small_groups, unfairness_by_chance
from metrifair.tradeoff.figures import Source
from metrifair.tradeoff.folds import cross_sweep, in_folds
from metrifair.tradeoff.ledger import Job, Ledger, Outcome, fingerprint
from metrifair.tradeoff.result import Frontier
from metrifair.tradeoff.split import DataSet, Rows, Split, data_set, judged_alike
from metrifair.tradeoff.sweep import DEFAULT_STRENGTHS, Family, RowsToTrain, families_of, sweep
from metrifair.wording.numbers import positive_text

__all__ = ["DEFAULT_STRENGTHS", "Frontier", "frontier"]

_BENDS = 8  # strengths that a refinement adds
_JUDGING = "judged by all utilities, on training rows too, without small groups"  # figures in older ledgers were not


def frontier(
    estimator: Any,
    X: Table,
    y: Table,
    *,
    sensitive_features: Table,
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    parameter: str | None = None,
    strengths: Sequence[float] | Literal["auto"] | None = None,
    tolerances: Sequence[float] | None = None,
    seeds: int | Sequence[int] = 1,
    validation: float | int = 0.25,
    test: float = 0.25,
    on: Literal["scores", "decisions"] = "scores",
    utility: UtilityLike | None = None,
    criterion: str | Criterion | None = None,
    contrast: Contrast = "pairs",
    continuous: Continuous | None = None,
    ledger: str | Path | None = None,
    n_jobs: int | None = None,
    devices: Sequence[str] | None = None,
    random_state: int = 0,
    title: str | None = None,
    about: Mapping[str, str] | None = None,
) -> Frontier:
    """The trade-off between accuracy and fairness: models of every strength and seed, judged on held-out data.

    One split into training, validation and test rows serves all models; seeds change initial weights and batches
    only. FairClassifier and FairRegressor train all at once; our post-processors fit what they wrap once; any other
    scikit-learn estimator is fitted value by value; fitted models are only judged. A pipeline is swept by its last
    step, which gets the groups; the steps before it are fitted once, to the training rows.

    Parameters
    ----------
    estimator : estimator, list or dict of estimators, or list of fitted models
        What to train, with a parameter that trades accuracy for fairness; several are families, each swept by its own
        parameter, on one frontier, under the names of a dict or of their classes. Or models to judge as they are.
    X : table of shape (n, features)
        Features: an array, a data frame, or whatever the estimator takes.
    y : array of shape (n,)
        Labels, or numbers for a regressor.
    sensitive_features : array of shape (n,), table or dict of columns
        The group of each row; several columns are several attributes. Missing: unknown, counts for accuracy only.
    control_features : array of shape (n,) or table, default=None
        Groups are compared within each of its values.
    sample_weight : array of shape (n,), default=None
        What each row counts, in training and in every figure. Intervals and certificates do not hold for weighted
        samples, and are then left out. Rows of weight 0 are as if they were not there.
    parameter : str, default=None
        The parameter of the estimator, or of a pipeline's last step, that is varied. None: "strength", or "tolerance"
        where there is only that.
    strengths : list of float, "auto" or None, default=None
        Its values. None: 0, 21 from 0.03 to 1,000, and three up to a million, of tolerances 15 from 0 to 1; "auto" adds
        some where the curve bends.
    tolerances : list of float, default=None
        The values for families whose parameter is "tolerance", where others have ``strengths``.
    seeds : int or list of int, default=1
        How many models of each value, or their seeds.
    validation : float or int, default=0.25
        Share of the rows that ``select`` looks at. Or a number of folds, for small data: all rows but those of the test
        are trained on, and ``select`` looks at what models of the other folds say of each. That takes so many trainings
        more; nothing is certified by it.
    test : float, default=0.25
        Share of the rows behind the figures of ``points``.
    on : {"scores", "decisions"}, default="scores"
        Whose distributions unfairness compares.
    utility : str, table of costs or scorer, default=None
        What makes a model good: "accuracy", "balanced_accuracy", "auc", "log_loss", "brier"; of numbers "r2",
        "mean_absolute_error", "mean_squared_error". A table of costs by label and decision, in ascending order of the
        classes, is their expected cost; also a scorer of scikit-learn, or its name. None: accuracy, or R2.
    criterion : str or Criterion, default=None
        What unfairness is measured by. None: the estimator's own, or statistical parity.
    contrast : {"pairs", "rest"}, default="pairs"
        Which groups are compared, for estimators that have no ``contrast`` of their own.
    continuous : "auto", bool or list of str, default=None
        Which sensitive features are numbers, such as ages: training lowers how much scores depend on them, and models
        are judged by up to five bands of them. None: as the estimator says, or "auto".
    ledger : str or Path, default=None
        File in which finished work is kept, so that a run that was stopped goes on.
    n_jobs : int, default=None
        Processes that fit other estimators than ours; None: as joblib is set up. Where joblib is set up for a cluster
        (``with joblib.parallel_config("dask"):``), its workers train, ours as well.
    devices : list of str, default=None
        Devices that share the strengths of FairClassifier and FairRegressor, such as ["cuda:0", "cuda:1"]; None: the
        estimator's own. The models are the same.
    random_state : int, default=0
        Seed of the split.
    title : str, default=None
        What stands on top of the report.
    about : dict of str, default=None
        What is to be known of the data, such as its date and source: part of the report.

    Returns
    -------
    Frontier
        Models and what they reach; the positive class of its figures is the estimator's ``pos_label``, or the last.

    Raises
    ------
    DataError
        If an argument cannot be used, or an estimator lacks the parameter.
    TooFewSamples
        If a group has no row to be judged on; nothing has been trained then.

    See Also
    --------
    Frontier.select : The model that suits best.

    Examples
    --------
    >>> from metrifair import FairClassifier, frontier
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=600)
    >>> X = generator.normal(size=(600, 3)) + a[:, None]
    >>> y = (X.sum(1) + generator.normal(size=600) > 1.5).astype(int)
    >>> front = frontier(FairClassifier(), X, y, sensitive_features=a, strengths=[0, 1, 2, 4])
    >>> len(front.points), front.points[0].unfairness > 0.4
    (4, True)
    >>> model = front.select(max_unfairness=0.6)
    >>> model.strength > 0
    True

    Families that need the group at prediction beside one that does not:

    >>> from metrifair import BarycenterPostprocessor
    >>> linear = FairClassifier(model="linear")
    >>> families = {"linear": linear, "barycenter": BarycenterPostprocessor(linear)}
    >>> front = frontier(families, X, y, sensitive_features=a, strengths=[0, 1, 10], tolerances=[0, 0.5])
    >>> [(point.family, point.strength, point.needs_group) for point in front.points][2:4]
    [('linear', 10.0, False), ('barycenter', 0.0, True)]
    >>> front.select(max_unfairness=0.9, needs_group=False).model
    'linear'
    """
    given = dict(locals())
    said = said_of(title, about)
    check_known("on", on, ("scores", "decisions"))
    check_devices(devices)
    own_seeds = _seeds(seeds)
    families = families_of(estimator, parameter)
    if continuous is not None and families is not None:
        families = tuple(family.told("continuous", continuous) for family in families)
    members = list(estimator) if families is None else [family.estimator for family in families]

    def own(name: str, usual: Any) -> Any:
        """A parameter of the first that has it: what unfairness is measured by is the same for all."""
        return next((getattr(one, name) for one in map(last_step, members) if hasattr(one, name)), usual)

    data = data_set(
        X,
        y,
        sensitive_features,
        control_features,
        regression=is_regressor(members[0]),
        criterion=own("criterion", "statistical_parity") if criterion is None else criterion,
        contrast=own("contrast", contrast),
        pos_label=own("pos_label", None),
        intersectional=own("intersectional", False),
        continuous=own("continuous", "auto") if continuous is None else continuous,
        sample_weight=sample_weight,
        held_out=(validation, test),
    )
    scheme = data.problem.scheme
    numbers = [one.name for one in scheme.attributes if one.is_number or one.cuts]
    if numbers and families is not None and own("continuous", None) == "auto":  # decided once, not by fewer rows again
        families = tuple(family.told("continuous", numbers) for family in families)
    asked = utilities_for(scheme.classes)[0] if utility is None else utility_of(utility, classes=scheme.classes)
    folds: tuple[Rows, ...] = ()
    if is_integer(validation, least=2):
        split, folds = in_folds(data, int(validation), test, random_state, fitted=families is None)
    else:
        split = data.split(validation, test, random_state, train=families is not None)
    way = partial(cross_sweep, parts=[(fold, data.held_out(fold)) for fold in folds]) if folds else sweep
    judge, few = _judge_of(data, split, asked, own_seeds[0], trained=families is not None)
    judge = replace(judge, crossed={}) if folds else judge
    if families is None:
        source, tried = Source(judge, split.test), 0
        outcomes = [judge(model, Job(float(place), own_seeds[0])) for place, model in enumerate(members)]
    else:
        weight = None if is_number(sample_weight) else sample_weight  # one for all weighs nothing
        rows = RowsToTrain(X, y, sensitive_features, control_features, weight, split.train)
        source = Source(judge, split.test, families, replace(rows, rows=data.rows))
        apart = "" if asked.name in UTILITIES else repr(utility)  # all those with names of ours are kept in any case
        outcomes, tried, parts = [], 0, (split.validation, split.test, *folds)
        for family in families:
            run = None if ledger is None else Ledger(ledger, _run_name(family, rows, data, parts, utility=apart))
            swept = partial(way, family.estimator, rows, judge=judge, ledger=run, n_jobs=n_jobs, devices=devices)
            found, candidates = _trained(swept, family, (strengths, tolerances), own_seeds, bends=(on, asked))
            outcomes, tried = [*outcomes, *found], tried + candidates
    used = split_note(len(split.train), len(split.validation), len(split.test), len(folds))
    positive = positive_text(scheme.classes, scheme.positive) if own("pos_label", None) is None else ""
    return replace(
        _frontier_of(outcomes, source, data, asked, on=on, few=few, said=(used, positive)),
        tried=tried if isinstance(strengths, str) else None,
        library=library_of(X, y, sensitive_features),
        provenance=data.provenance(said, call_text(frontier, given), random_state),
    )


def _judge_of(data: DataSet, split: Split, utility: Utility, shown: int, *, trained: bool) -> tuple[Judge, str]:
    """Who judges models, and what to know of small groups among the rows to judge and to choose on."""
    rows = (split.validation, split.test, np.concatenate([split.validation, split.test]), split.train)
    choosing, judging, others, *taught = judged_alike(*map(data.held_out, rows if trained else rows[:3]))
    few = small_groups({"the rows for these figures": judging, "the rows for choosing": choosing})
    training = taught[0] if taught else None
    base = training or choosing
    against = rivals(base.problem, utility, X=base.X)
    return Judge(training, choosing, judging, shown, against, others, unfairness_by_chance(others)), few


def _frontier_of(
    outcomes: Sequence[Outcome],
    source: Source,
    data: DataSet,
    utility: Utility,
    *,
    on: Literal["scores", "decisions"],
    few: str,
    said: Sequence[str],
) -> Frontier:
    """What models reach, and what to know of it: of rows and labels ``said``, of small groups ``few``."""
    scheme, judging = data.problem.scheme, source.judge.judging
    knobs = {family.name: family.parameter for family in source.families}
    floor = unfairness_by_chance(judging, on)
    notes = (
        *said,
        "" if data.problem.weight is None else WEIGHTED,
        *label_notes(data.problem),
        few,
        floor_note(floor, len(judging.compared), on=on),
        overfit_note([(one.training, one.validation, one.test) for one in outcomes], knobs),
        *_constants(outcomes, knobs),
        same_decisions_note([one.test for one in outcomes if not one.test.failed], utility),
    )
    sizes = {name: int(member.sum()) for groups in judging.members.values() for name, member in groups.items()}
    constant, constant_text = source.judge.constant(utility)
    return Frontier(
        outcomes,
        on,
        "accuracy" if scheme.classes else "R2",
        tuple(sizes),
        sizes,
        tuple(filter(None, notes)),
        comparisons=len(source.judge.choosing.compared) * (len(scheme.classes) if len(scheme.classes) > 2 else 1),
        parameter=next(iter(knobs.values())) if len(knobs) == 1 else "strength",
        floor=floor,
        small=few if all_small(judging) else "",
        utility=utility,
        constant=constant,
        constant_text=constant_text,
        source=source,
        knobs={name: knob for name, knob in knobs.items() if name},
    )


def _constants(outcomes: Sequence[Outcome], knobs: Mapping[str, str]) -> Iterator[str]:
    """A note on the strengths of each family at which models of ours predict the same for everyone.

    Where no strength is left at which they do not, a warning too: nothing is then seen of the trade-off.
    """
    for name in (family for family, knob in knobs.items() if knob == "strength"):
        own = [one for one in outcomes if one.job.family == name]
        models = [(one.job.value, getattr(last_step(one.model), "predictor_", None)) for one in own]
        values = {value for value, _ in models}
        found = values - {0.0, *(value for value, model in models if not getattr(model, "is_constant", False))}
        note = constant_note(sorted(values), found, family=name)
        if found and found == values - {0.0}:
            warnings.warn(note.rstrip("."), MetrifairWarning, stacklevel=4)
        yield note


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    """The seeds themselves."""
    if isinstance(seeds, (int, np.integer)):
        listed = list(range(int(seeds)))
    else:
        listed = list(seeds) if isinstance(seeds, Iterable) else []
    if isinstance(seeds, bool) or not listed or not all(is_integer(seed, least=0) for seed in listed):
        raise DataError(f"seeds must be a number from 1 upwards, or a list of seeds from 0 upwards, got {seeds!r}")
    return [int(seed) for seed in listed]


def _trained(
    swept: Callable[..., list[Outcome]],
    family: Family,
    asked: tuple[Sequence[float] | str | None, Sequence[float] | None],
    seeds: Sequence[int],
    *,
    bends: tuple[str, Utility],
) -> tuple[list[Outcome], int]:
    """The models of one family, at all values and seeds, and among how many a choice is made.

    ``asked`` are strengths, or "auto": some are added where the curve bends; and tolerances.
    """
    strengths, tolerances = asked
    relaxed = family.parameter == "tolerance" and (bool(family.name) or tolerances is not None)
    values = family.values(tolerances if relaxed else strengths, "tolerances" if relaxed else "strengths")

    def at(these: Sequence[float]) -> list[Outcome]:
        jobs = [Job(float(value), seed, family.name) for seed in seeds for value in these]
        return swept(jobs=jobs, parameter=family.parameter)

    found = at(values)
    if relaxed or not isinstance(strengths, str):
        return found, len(found)
    found += at(_bends(found, *bends))
    found.sort(key=lambda one: (one.job.seed, one.job.value))
    # Which strengths are added depends on the rows for choosing, so that a certificate on these rows must hold for all
    # that could have been: one between each two neighbours.
    return found, len(seeds) * (2 * len(values) - 1)


def _run_name(family: Family, rows: RowsToTrain, data: DataSet, parts: Sequence[Rows], *, utility: str) -> str:
    """A name for all that a run's figures depend on, except the values and seeds, which name its jobs."""
    estimator, parameter = family.estimator, family.parameter
    named: list[str] = [type(estimator).__qualname__, parameter, repr(data.problem.scheme.criterion), _JUDGING, utility]
    named += [str(comparison) for comparison in data.problem.comparisons]
    arrays: list[NDArray[Any]] = [*parts]
    for name, value in sorted(estimator.get_params().items()):
        if name in (parameter, "random_state", "verbose"):
            continue
        if isinstance(value, torch.nn.Module):
            arrays += [tensor.detach().cpu().numpy() for tensor in value.state_dict().values()]
        if isinstance(value, np.ndarray):
            arrays.append(value)
        else:
            named.append(f"{name}={value!r}")
    return fingerprint([rows.fingerprint(*named), *arrays])


def _bends(outcomes: Sequence[Outcome], on: str, utility: Utility) -> list[float]:
    """Strengths halfway (on a logarithmic scale) between neighbours whose validation points lie farthest apart."""
    means: dict[float, tuple[float, float]] = {}
    for value in {one.job.value for one in outcomes}:
        own = [one.validation for one in outcomes if one.job.value == value and not one.validation.failed]
        if own:
            worth = fmean(point.figure(utility.name) or 0.0 for point in own)
            means[value] = fmean(point.gap(on) for point in own), worth
    if not means:
        return []
    spans = [max(one[k] for one in means.values()) - min(one[k] for one in means.values()) or 1.0 for k in (0, 1)]
    jumps = []
    for low, high in pairwise(sorted(means)):
        jump = hypot(*((means[low][k] - means[high][k]) / spans[k] for k in (0, 1)))
        jumps.append((jump, round(sqrt(low * high) if low > 0 else high / 10, 9)))
    return [middle for _, middle in sorted(jumps, reverse=True)[:_BENDS]]
