"""The penalty of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count, pairwise
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.batches.samples import tensor_sides
from metrifair.errors import DataError, Remedy, TooFewSamples
from metrifair.metrics.dependence import with_scales
from metrifair.metrics.namespaces import namespace_for
from metrifair.metrics.pair import Values, at_least_single, is_finite
from metrifair.metrics.registry import (
    PENALTY_ESTIMATES,
    Estimate,
    MetricLike,
    facts_for,
    warn_without_estimate,
)
from metrifair.nn.distributed import (
    Across,
    BatchColumns,
    check_across,
    common_seed,
    find_ranks,
    gather_batch,
)
from metrifair.nn.on_device import DevicePenalty, DrawnBlocks, is_accelerator, is_code
from metrifair.nn.samplers import (
    BatchValues,
    ContinuousColumns,
    StratifiedBatchSampler,
    as_column,
    as_tensor,
    make_scheme,
)
from metrifair.problem.cells import CONTRASTS, Combine, Comparison, Contrast, Dependence, Sides
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.predictions import are_probabilities
from metrifair.problem.problem import Problem, Scheme, read_weights
from metrifair.problem.tables import same_length
from metrifair.support.arrays import Integers
from metrifair.support.checks import check_known, rows_or_none
from metrifair.training.objective import Objective, regression

_RANKED = {"energy": 1.0, "cramer": 0.5}
"""Metrics of ranks, as multiples of the energy distance."""

_WEIGHTED_DRAWS = (
    "the sampler draws rows by their weight; give it sample_weight, and leave weights out here"
)


class _Compiled(NamedTuple):
    """The meaning of groups and labels, and the comparisons."""

    scheme: Scheme
    lookup: CellLookup
    objective: Objective


class UnfairnessPenalty(torch.nn.Module):
    """Distance between the groups' scores in a batch, combined over all comparisons;
    differentiable.

    The penalty learns the groups and labels from the batches, unless ``sampler``, or ``n_groups``
    and ``n_classes``, declare them. A batch that lacks one of them raises an error. If only one of
    two groups, or labels, has been seen, they are assumed to be 0 and 1, or -1 and 1.

    The mean over batches is the distance in the population, if batches are drawn at random or come
    from a ``StratifiedBatchSampler``. Pass that sampler as ``sampler``. Otherwise a group that
    consists of several of its strata (with several attributes, or with each group against the rest)
    has its weight in the batch, not in the data. For many epochs over few rows use
    ``estimate="rows"``: this estimate is never negative.

    On an accelerator, the energy and Cramér distances do not wait for the device if groups and
    labels are integers there, and are declared by ``sampler``, or ``n_groups`` and ``n_classes``.
    After a first call, a step can be compiled as one graph or captured in a CUDA graph. If a batch
    lacks a group, that comparison counts 0, and a later call, or ``check_batches``, raises the
    error.

    Batches that are drawn at random may lack a group. Catch ``TooFewSamples`` to train on their
    risk alone, as the second example does. With one attribute, the estimate of the other batches is
    still unbiased. Its effective strength is lower, by the share of the batches that were skipped.

    If several processes train one model (DDP, FSDP), the penalty is that of the whole batch, over
    all processes. The mean of the gradients over processes is its exact gradient. Every process
    must call the penalty, even if its rows lack a group; errors are raised on all of them.

    Parameters
    ----------
    criterion : str or Criterion, default="statistical_parity"
        Fairness criterion.
    metric : str or callable, default="energy"
        Distance between distributions. ``"total_variation"`` compares shares in 10 bins with
        gradients of a smoothed version, and not the shares of every value, as ``unfairness`` does.
    estimate : {"population", "rows", "batch"}, default="population"
        Distance that the penalty estimates, for energy, cramer and mmd. ``"population"``: the
        distance in the population, without bias. ``"rows"``: the distance between the rows that
        ``sampler`` draws from, without bias. ``"batch"``: the distance within each batch, which is
        biased upwards. All other metrics use ``"batch"``.
    contrast : {"pairs", "rest"}, default="pairs"
        Which groups are compared. ``"pairs"`` compares all pairs of groups, ``"rest"`` each group
        with the rest.
    combine : {"mean", "sum"}, default="mean"
        How comparisons are combined. ``"mean"`` averages over pairs of groups and sums over sets of
        labels and attributes. ``"sum"`` sums over everything.
    continuous : "auto", bool or list of int, default="auto"
        Numeric attributes, such as age: the given columns of ``groups``, all, or none. The penalty
        is then the dependence of the scores on the attribute, in units of the energy distance. A
        batch needs four rows. ``"auto"`` selects columns with numbers that are not integers, in the
        sampler or in the first batch. More than 20 different integers then raise an error, because
        they may be groups or numbers.
    sampler : StratifiedBatchSampler, default=None
        Sampler of the batches. If it draws by ``GroupProbabilities``, ``estimate`` is ``"rows"`` or
        ``"batch"``.
    pos_label : int, default=None
        The positive label; by default the last one.
    n_groups : int, or list of one int for each attribute, default=None
        Number of groups, which are coded from 0 upwards. No attribute is then taken as a number.
    n_classes : int, default=None
        Number of labels, which are coded from 0 upwards.
    slices : int, default=16
        Number of projections of vector scores. Each call draws new ones.
    random_state : int, NumPy generator or None, default=None
        Seed of the projections. None uses the sampler's seed, or draws one. Without a sampler, None
        is 0 if ``torch.distributed`` is initialized: all processes need the same projections.
    across : {"auto"}, process group or None, default="auto"
        Processes to combine: all processes if ``torch.distributed`` is initialized (``"auto"``),
        the processes of a group, or only this one (None). With None, the mean over processes is
        noisier but still unbiased if the estimate is, and every process needs enough rows.

    Examples
    --------
    >>> from metrifair.nn import StratifiedBatchSampler
    >>> torch.manual_seed(0)                                                     # doctest: +ELLIPSIS
    <torch...>
    >>> x, groups = torch.randn(200, 3), torch.arange(200) % 2
    >>> x[:, 0] += groups
    >>> y = (x.sum(1) > 0.5).float()
    >>> sampler = StratifiedBatchSampler(groups, y, batch_size=50, criterion="equal_opportunity")
    >>> model, penalty = torch.nn.Linear(3, 1), UnfairnessPenalty("equal_opportunity", sampler=sampler)
    >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    >>> for rows in [rows for epoch in range(30) for rows in sampler]:
    ...     output = model(x[rows]).squeeze(1)
    ...     bce = torch.nn.functional.binary_cross_entropy_with_logits(output, y[rows], sampler.weights[rows])
    ...     loss = bce + 2.0 * penalty(output.sigmoid(), groups[rows], y[rows])
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    >>> UnfairnessPenalty("equal_opportunity")(model(x).squeeze(1).sigmoid(), groups, y).item() < 0.02
    True

    Random batches, of which some lack a group:

    >>> from metrifair.errors import TooFewSamples
    >>> penalty, skipped = UnfairnessPenalty(n_groups=2), 0
    >>> for rows in torch.randperm(200).split(4):
    ...     output = model(x[rows]).squeeze(1)
    ...     loss = torch.nn.functional.binary_cross_entropy_with_logits(output, y[rows])
    ...     try:
    ...         loss = loss + 2.0 * penalty(output.sigmoid(), groups[rows])
    ...     except TooFewSamples:
    ...         skipped += 1
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    >>> 0 < skipped < 50
    True
    """

    def __init__(
        self,
        criterion: str | Criterion = "statistical_parity",
        metric: MetricLike = "energy",
        estimate: Estimate = "population",
        contrast: Contrast = "pairs",
        *,
        combine: Combine = "mean",
        continuous: ContinuousColumns = "auto",
        sampler: StratifiedBatchSampler | None = None,
        pos_label: Any = None,
        n_groups: int | Sequence[int] | None = None,
        n_classes: int | None = None,
        slices: int = 16,
        random_state: Any = None,
        across: Across = "auto",
    ) -> None:
        super().__init__()
        check_across(across)
        self.criterion = criterion_named(criterion)
        self.metric = metric
        self.estimate = estimate
        self.contrast = contrast
        self.combine = combine
        self.sampler = sampler
        self._check_parameters()
        warn_without_estimate(metric, estimate, default="population")
        if n_groups is not None and continuous == "auto":
            continuous = False
        if sampler is None:
            self.continuous = continuous
        else:
            self.continuous = list(sampler.values.numbers)
        self._scales: dict[str, float] = {}  # of dependences, by name: constants of the first rows
        self.slices = slices
        self.across = across
        self.pos_label = pos_label
        self.n_classes = n_classes
        self.n_groups = None
        if n_groups is not None:
            self.n_groups = np.atleast_1d(n_groups).tolist()
        if random_state is None and sampler is not None:
            random_state = sampler.random_state
        seed = common_seed(random_state, several=find_ranks(across) is not None)
        self.generator = torch.Generator().manual_seed(seed)
        self._known_groups = None
        if self.n_groups is not None:
            self._known_groups = [set(range(count)) for count in self.n_groups]
        if n_classes is None:
            self._known_labels = set[int]()
        else:
            self._known_labels = set(range(n_classes))
        self._declared = n_groups is not None, n_classes is not None
        self._compiled: _Compiled | None = None  # of the groups and labels so far
        # whether two columns are the probabilities of two classes
        self._two_classes: bool | None = None
        self._strata: BatchStrata | None = None
        self._device: DevicePenalty | None = None
        self._device_tried = False
        if sampler is not None:
            self._learn_from(sampler)
        self._number = register_module(self)

    def _check_parameters(self) -> None:
        """Raise a DataError at the first parameter that is not known, or does not match the
        others.
        """
        facts_for(self.metric)  # an error if it is not known
        check_known("estimate", self.estimate, PENALTY_ESTIMATES)
        check_known("contrast", self.contrast, CONTRASTS)
        check_known("combine", self.combine, ("mean", "sum"))
        if self.sampler is not None and not isinstance(self.sampler, StratifiedBatchSampler):
            raise DataError(
                f"sampler must be a StratifiedBatchSampler, got a {type(self.sampler).__name__}"
            )
        if self.sampler is not None and self.sampler.probable is not None:
            self._check_probabilities(self.sampler)
        if self.estimate == "rows" and self.sampler is None:
            raise DataError(
                "estimate='rows' needs to know how many rows of each group there are; pass "
                "sampler=, the "
                "StratifiedBatchSampler that the batches come from, or use estimate='population'"
            )

    def _check_probabilities(self, sampler: StratifiedBatchSampler) -> None:
        """Raise a DataError unless the penalty and the sampler have the same comparisons: a batch
        has no groups for others.
        """
        scheme = sampler.problem.scheme
        uncertain = sampler.probable is not None and sampler.probable.uncertain
        if uncertain and self.estimate == "population":
            wrong = "'population' needs the group of each row, and the sampler has probabilities"
            raise DataError(wrong, argument="estimate", remedy=Remedy("estimate", "rows"))
        for name, value, of_sampler in (
            ("criterion", self.criterion.name, scheme.criterion.name),
            ("contrast", self.contrast, scheme.contrast),
        ):
            if value != of_sampler:
                raise DataError(
                    f"must be that of the sampler, {of_sampler!r}", argument=name, received=value
                )

    def _learn_from(self, sampler: StratifiedBatchSampler) -> None:
        """Take groups, labels, strata and scales from the data set of the sampler."""
        if self.criterion.needs_labels and sampler.values.targets is None:
            drawn = sampler.problem.scheme.criterion.name
            needed = self.criterion.name
            raise DataError(
                f"was made for {drawn} and has no targets, but {needed} compares groups within "
                "labels",
                argument="sampler",
                remedy=f"pass targets and criterion={needed!r} to the sampler",
            )
        values = BatchValues(
            self.criterion, sampler.values.table, sampler.values.targets, self.continuous
        )
        problem = values.problem(self._compiled_with(values).scheme)
        self._strata = BatchStrata(sampler, problem)
        weight = None
        if sampler.sample_weight is not None:
            weight = torch.as_tensor(sampler.sample_weight)
        if problem.attribute_values is not None:
            sides = tensor_sides(problem.comparisons, torch.as_tensor(problem.cell), weight)
            with_scales(sides, torch.as_tensor(problem.attribute_values), self._scales)
        self._declared = True, True  # the data set contains them all

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Register the copy as another module."""
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._number = register_module(self)

    def extra_repr(self) -> str:
        """The parameters, for the module's repr.

        Returns
        -------
        str
            Python code.
        """
        text = f"{self.criterion.name!r}, metric={self.metric!r}, estimate={self.estimate!r}"
        text += f", contrast={self.contrast!r}, combine={self.combine!r}"
        text += (
            "" if self.continuous in ("auto", False, []) else f", continuous={self.continuous!r}"
        )
        text += "" if self.sampler is None else f", sampler={self.sampler!r}"
        if self.across == "auto":
            return text
        return f"{text}, across={self.across!r}"

    def forward(
        self,
        scores: Tensor,
        groups: Tensor | ArrayLike,
        targets: Tensor | ArrayLike | None = None,
        weights: Tensor | ArrayLike | None = None,
    ) -> Tensor:
        """The penalty of a batch.

        Parameters
        ----------
        scores : Tensor of shape (n,) or (n, d)
            Scores to compare: probabilities, outputs, predictions, or, for risk parity, losses.
            They must be finite floating-point numbers (checked on the CPU only). Two columns whose
            rows sum to 1 are the probabilities of two classes, of which the positive one is used.
            Other columns are vector scores. The penalty of scores in half precision is computed in
            single precision, with or without autocast.
        groups : tensor or array-like of shape (n,) or (n, attributes)
            Group of each sample: integers, with -1 for a missing group. For numeric attributes, see
            ``continuous``. If the sampler draws by probabilities: its ``batch_groups``.
        targets : tensor or array-like of shape (n,), default=None
            Labels, or a regression target. Needed if the criterion uses them.
        weights : tensor or array-like of shape (n,), default=None
            Weight of each sample, finite and not negative (checked on the CPU only). Batches of a
            sampler need none, because it draws rows by their weight.

        Returns
        -------
        Tensor
            A scalar.
        """
        compiling = torch.compiler.is_compiling()
        if weights is None and self._stays_on_device(scores, groups, targets):
            if compiling:
                device = self._device
            else:
                device = self._device_penalty()
            # a compiled step cannot send constants to the device
            ready = device is not None and (not compiling or device.is_on(scores.device))
            if ready and device is not None and device.fits(len(scores)):
                return self._penalty_on_device(device, scores, groups, targets)
        if (
            compiling
            and isinstance(groups, Tensor)
            and all(values is None or isinstance(values, Tensor) for values in (targets, weights))
        ):
            return value_and_slopes(self._number, scores, groups, targets, weights)[0]  # type: ignore[no-any-return]
        return self._batch_penalty(scores, groups, targets, weights)

    def check_batches(self) -> None:
        """Raise the error of an earlier batch on an accelerator, such as a group that was missing.

        The penalty does not wait for the device, and raises such errors in a later call. In a
        compiled step or a CUDA graph it cannot raise them: call this once per epoch.
        """
        if self._device is not None:
            self._device.check()

    def _stays_on_device(self, scores: Any, groups: Any, targets: Any) -> bool:
        """Whether the batch is on an accelerator, with integers as codes, and has one score for
        each row.
        """
        if not isinstance(scores, Tensor) or not is_accelerator(scores.device):
            return False
        if not scores.is_floating_point() or not is_code(groups, scores) or groups.ndim > 2:
            return False
        # two columns of probabilities, once that is known
        if scores.ndim != 1 and not (scores.ndim == 2 and self._two_classes):
            return False
        if self.criterion.needs_labels and (not is_code(targets, scores) or targets.ndim != 1):
            return False
        return find_ranks(self.across) is None

    def _device_penalty(self) -> DevicePenalty | None:
        """The penalty on an accelerator; None if groups or labels are not declared, or if only the
        general one can compute it.
        """
        if not self._device_tried:
            self._device_tried = True
            self._device = self._make_device_penalty()
        return self._device

    def _make_device_penalty(self) -> DevicePenalty | None:
        by_label = self.criterion.needs_labels
        declared = self._declared[0] and (self._declared[1] or not by_label)
        if not declared or self.metric not in _RANKED or self.continuous not in (False, []):
            return None
        compiled = self._compiled
        if compiled is None:
            compiled = self._compile([set[int]() for _ in self._known_groups or ()], set(), ())
        table = compiled.lookup.table
        drawn = None
        if table is None or (self._strata is not None and not self._strata.alike):
            return None
        if self._strata is not None:
            drawn = self._strata.drawn_blocks(fresh=self.estimate == "population")
        return DevicePenalty(
            compiled.scheme.comparisons,
            [_RANKED[str(self.metric)] * weight for weight in compiled.objective.weights],
            table if by_label else table[2],  # every row has the label 0
            unbiased=self.estimate != "batch",
            drawn=drawn,
        )

    def _penalty_on_device(
        self, device: DevicePenalty, scores: Tensor, groups: Any, targets: Any
    ) -> Tensor:
        """The penalty of a batch, without waiting for the device."""
        columns = _columns(groups)
        if self.criterion.needs_labels and targets is not None:
            columns = [targets, *columns]
        if len(columns) != len(device.shape):
            received = 1 if groups.ndim == 1 else groups.shape[1]
            raise DataError(
                f"groups must have {len(self._known_groups or ())} column(s), as declared or seen "
                f"before, got {received}"
            )
        if self._compiled is not None:
            scores = self._one_column(scores, self._compiled.scheme)
        if not torch.compiler.is_compiling():
            device.read_alarm()
        tables = device.tables_on(scores.device)
        return device(at_least_single(scores), columns, tables)

    def _batch_penalty(
        self, scores: Tensor, groups: Values, targets: Values | None, weights: Values | None
    ) -> Tensor:
        """The penalty of the batch of all processes."""
        ranks = find_ranks(self.across)
        if ranks is not None:
            device = scores.device if isinstance(scores, Tensor) else torch.device("cpu")
            batch = gather_batch(
                ranks, lambda: _read_columns(scores, groups, targets, weights), device
            )
            self._check_parts(len(batch.scores), ranks.count)
            scores, groups, targets, weights = batch
        _check_scores(scores)
        if scores.ndim == 2:
            # autocast would round projections to half precision
            with namespace_for(scores).full_precision():
                return self._rows_penalty(at_least_single(scores), groups, targets, weights)
        return self._rows_penalty(at_least_single(scores), groups, targets, weights)

    def _rows_penalty(
        self, scores: Tensor, groups: Values, targets: Values | None, weights: Values | None
    ) -> Tensor:
        """The penalty of checked scores."""
        compiled = self._compiled
        sides = None
        numbers = None
        if self._strata is not None and weights is None:
            sides = self._strata.last_sides(scores, groups, targets)
        if compiled is None or sides is None:
            compiled, sides, numbers = self._make_sides(scores, groups, targets, weights)
        scheme = compiled.scheme
        objective = compiled.objective
        if self.generator.device != scores.device:
            objective = self._moved(objective, scores.device)
            self._compiled = compiled._replace(objective=objective)
        try:
            scaled = sides
            if numbers is not None:
                scaled = with_scales(sides, numbers, self._scales)
            scores = self._one_column(scores, scheme)
            return objective.unfairness_of_scores(scores, scaled, numbers, vector=scores.ndim == 2)
        except TooFewSamples as error:
            raise _too_few(scheme.comparisons, sides, error) from error

    def _make_sides(
        self, scores: Tensor, groups: Values, targets: Values | None, weights: Values | None
    ) -> tuple[_Compiled, tuple[Sides, ...], Tensor | None]:
        """The comparisons, the rows of each, and the values of numeric attributes."""
        weight = None
        if weights is not None:
            weight = _batch_weights(weights, scores)
        numbers: Tensor | None = None
        compiled = self._compiled
        cell = None
        if compiled is not None and weight is None:
            cell = compiled.lookup.cells(groups, targets)
        # new values, or wrong ones
        if compiled is None or cell is None or len(cell) != len(scores):
            values = BatchValues(
                self.criterion, groups, targets, self.continuous, scores=scores, weights=weight
            )
            if isinstance(self.continuous, str):
                self.continuous = list(values.numbers)
            compiled = self._compiled_with(values)
            problem = values.problem(compiled.scheme)
            cell = problem.cell
            attributes = problem.attribute_values
            numbers = None
            if attributes is not None:
                numbers = torch.as_tensor(attributes).to(scores.device)
        scheme = compiled.scheme
        if self._strata is None:
            rows = BatchRows(cell, scheme.cells.count if scheme.cells else 1)
            sides = plain_sides(scheme.comparisons, rows, weight, scores.device)
        elif weights is not None:
            raise DataError(_WEIGHTED_DRAWS)
        else:
            sides = self._strata.sides(cell, groups, targets, scheme.comparisons, scores.device)
        return compiled, sides, numbers

    def _check_parts(self, rows: int, ranks: int) -> None:
        """Raise a DataError if every rank has drawn a whole batch, so that each row counts
        several times.
        """
        if (
            self.sampler is not None
            and self.sampler.world_size == 1
            and rows == ranks * self.sampler.size
        ):
            raise DataError(
                f"each of {ranks} ranks drew a whole batch of the sampler; pass rank= and "
                "world_size= to "
                "the sampler, which then deals each batch out"
            )

    def _compiled_with(self, values: BatchValues) -> _Compiled:
        """The meaning of values and the comparisons, with all groups and labels known so far."""
        return self._compile(*values.seen(), values.numbers)

    def _compile(
        self, groups: list[set[int]], labels: set[int], numbers: Sequence[int]
    ) -> _Compiled:
        """The same with these groups of each attribute, labels and numeric attributes."""
        known = self._known_groups or [set[int]() for _ in groups]
        classes = self._known_labels
        if len(known) != len(groups):
            raise DataError(
                f"groups must have {len(known)} column(s), as declared or seen before, got "
                f"{len(groups)}"
            )
        if not self._declared[0]:
            known = [earlier | present for earlier, present in zip(known, groups, strict=True)]
        if not self._declared[1]:
            classes = classes | labels
        if self._compiled is None or (known, classes) != (self._known_groups, self._known_labels):
            scheme = make_scheme(
                self.criterion,
                known,
                classes,
                contrast=self.contrast,
                pos_label=self.pos_label,
                numbers=numbers,
            )
            objective = self._objective(scheme.comparisons)
            # only if the scheme is valid
            self._known_groups = known
            self._known_labels = classes
            self._compiled = _Compiled(scheme, CellLookup(scheme), objective)
        return self._compiled

    def _objective(self, comparisons: tuple[Comparison, ...]) -> Objective:
        return Objective(
            regression(),  # the penalty does not use it
            comparisons,
            self.criterion,
            self.metric,
            estimate=self.estimate,
            combine=self.combine,
            slices=self.slices,
            generator=self.generator,
        )

    def _moved(self, objective: Objective, device: torch.device) -> Objective:
        """The objective with a generator of the same seed on a device."""
        self.generator = torch.Generator(device).manual_seed(self.generator.initial_seed())
        return replace(objective, generator=self.generator)

    def _one_column(self, scores: Tensor, scheme: Scheme) -> Tensor:
        """The probability of the positive class, if two columns are the probabilities of two
        classes.
        """
        if scores.ndim != 2 or scores.shape[1] != 2:
            return scores
        if self._two_classes is None:  # decided once: on another device this waits for it
            self._two_classes = are_probabilities(scores.detach().cpu().numpy(), rounding=1e-3)
        if not self._two_classes:
            return scores
        positive = 1
        if scheme.positive == 0 and len(scheme.classes) == 2:
            positive = 0
        return scores[:, positive].contiguous()


def _too_few(
    comparisons: Sequence[Comparison], sides: Sequence[Sides], error: TooFewSamples
) -> TooFewSamples:
    """The error with the group that the batch has the fewest samples of."""
    comparison, side = min(
        zip(comparisons, sides, strict=True), key=lambda pair: min(pair[1].counts)
    )
    group = comparison.groups[side.counts.index(min(side.counts))]
    return TooFewSamples(
        f"the batch has {min(side.counts)} sample(s) of group {group!r} (comparing {comparison}): "
        f"{error}; "
        "the batches of StratifiedBatchSampler contain enough of every group"
    )


def _read_columns(scores: Any, groups: Any, targets: Any, weights: Any) -> BatchColumns:
    """This process's rows as they are sent; they are validated after gathering."""
    _check_kind(scores)
    columns = {
        name: as_column(name, values)
        for name, values in {"targets": targets, "weights": weights}.items()
        if values is not None
    }
    if groups is None:
        raise DataError("groups is missing; pass the group of each row")
    table = as_tensor("groups", groups).detach()
    if table.ndim not in (1, 2):
        raise DataError(
            f"groups must have one entry for each row, got the shape {tuple(table.shape)}"
        )
    same_length(scores=scores, groups=table, **columns)
    # Half precision would be added up over ranks in half precision.
    precise = at_least_single(scores)
    if table.ndim != 2:
        table = table.unsqueeze(1)
    return BatchColumns(precise, table, columns.get("targets"), columns.get("weights"))


def _check_kind(scores: Tensor) -> None:
    if not isinstance(scores, Tensor):
        raise DataError(
            f"scores must be a tensor, as the model returns it, got {type(scores).__name__}"
        )
    if not scores.is_floating_point():
        raise DataError(
            f"scores must be floating-point numbers, which have gradients, got {scores.dtype}"
        )
    if scores.ndim not in (1, 2):
        raise DataError(
            f"scores must be (n,), or (n, d) for vector scores, got the shape {tuple(scores.shape)}"
        )


def _check_scores(scores: Tensor) -> None:
    _check_kind(scores)
    if scores.ndim == 2 and scores.shape[0] == 1 < scores.shape[1]:
        raise DataError(
            f"scores must be those of several rows, got the shape {tuple(scores.shape)}; if the "
            "batch comes from a "
            "DataLoader, pass StratifiedBatchSampler as batch_sampler=, not as sampler="
        )
    # On another device this would wait for all its work.
    if namespace_for(scores).is_host and not is_finite(scores):
        wrong = scores[~scores.isfinite()][0]
        raise DataError(
            f"scores must be finite, got {wrong}; has the training diverged, or is an input "
            "missing?"
        )


def _batch_weights(weights: Values, scores: Tensor) -> Tensor:
    """The weights of a batch on the device of its scores, checked if they come from the CPU."""
    column = as_column("weights", weights)
    if namespace_for(column).is_host:
        read_weights("weights", column.double().numpy(), len(scores))
    return column.to(scores.device)


PenaltyFunction: TypeAlias = Callable[[Tensor, Tensor, Tensor | None, Tensor | None], Tensor]

_thread = ThreadPoolExecutor(1, "metrifair-penalty")
_numbers = count(1)
_modules: WeakValueDictionary[int, Any] = WeakValueDictionary()


def register_module(module: torch.nn.Module) -> int:
    """A number by which the operation finds the module, as long as it exists."""
    number = next(_numbers)
    _modules[number] = module
    return number


@torch.library.custom_op("metrifair::penalty", mutates_args=())
def value_and_slopes(
    number: int, scores: Tensor, groups: Tensor, targets: Tensor | None, weights: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The penalty of a batch, and its derivative by each score."""
    module: PenaltyFunction = _modules[number]

    def compute() -> tuple[Tensor, Tensor]:
        leaf = scores.detach().requires_grad_()
        value = module(leaf, groups, targets, weights)
        (slopes,) = torch.autograd.grad(value, leaf)
        return value.detach().clone(), slopes.clone()

    return _thread.submit(compute).result()  # within an operation this thread has no autograd


@value_and_slopes.register_fake
def _(number: int, scores: Tensor, *others: Tensor | None) -> tuple[Tensor, Tensor]:  # noqa: ARG001
    return at_least_single(scores.new_empty(())), torch.empty_like(scores)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:  # noqa: ARG001
    ctx.save_for_backward(output[1])


def _back(ctx: Any, of_value: Tensor, of_slopes: Tensor) -> tuple[None, Tensor, None, None, None]:  # noqa: ARG001
    (slopes,) = ctx.saved_tensors
    return None, of_value * slopes, None, None, None


value_and_slopes.register_autograd(_back, setup_context=_keep)


_HIGHEST = 100  # group or label in the table
_LARGEST = 100_000  # entries of the table


class CellLookup:
    """Map known groups (and labels) to cells, without compiling or checking anything again.

    >>> from metrifair.nn.samplers import make_scheme
    >>> from metrifair.problem.criteria import STATISTICAL_PARITY
    >>> scheme = make_scheme(STATISTICAL_PARITY, [{0, 1}], (), contrast="pairs", pos_label=None)
    >>> CellLookup(scheme).cells(torch.tensor([1, 0, -1]), None)             # -1: missing
    array([1, 0, 2])
    >>> CellLookup(scheme).cells(torch.tensor([1, 0, 2]), None) is None      # 2 is new
    True
    """

    def __init__(self, scheme: Scheme) -> None:
        # by label and group of each attribute, from -2 upwards; -1: a new value
        self.table: Integers | None = None
        self.by_label = scheme.criterion.needs_labels
        labels = [*scheme.classes] if self.by_label else [0]
        groups = [list(attribute.groups) for attribute in scheme.attributes]
        small = all(-1 <= value <= _HIGHEST for values in (labels, *groups) for value in values)  # type: ignore[operator]
        by_value = scheme.criterion.bins is not None or scheme.criterion.sets is not None
        if scheme.cells is None or scheme.strata is not None or by_value or not labels or not small:
            return
        # which needs the values
        if any(isinstance(comparison, Dependence) for comparison in scheme.comparisons):
            return
        shape = [4 + max(values) for values in (labels, *groups)]  # type: ignore[type-var, operator]
        if np.prod(shape) > _LARGEST:
            return
        places = [
            [2 + label for label in labels],  # type: ignore[operator]
            # The last one is "missing".
            *([2 + group for group in part] + [1] for part in groups),  # type: ignore[operator]
        ]
        codes = [range(len(labels)), *(range(len(part) + 1) for part in groups)]
        self.table = np.full(shape, -1, dtype=np.int64)
        self.table[np.ix_(*places)] = scheme.cells.table[:, 0][np.ix_(*codes)]

    def cells(self, groups: Any, targets: Any) -> Integers | None:
        """The cell of each sample; None if a value needs a full check."""
        if self.table is None or not isinstance(groups, Tensor) or groups.ndim not in (1, 2):
            return None
        if self.by_label and not isinstance(targets, Tensor):
            return None
        columns = _columns(groups)
        if self.by_label:
            columns.insert(0, targets)
            table = self.table
        else:
            table = self.table[2]  # every row has the label 0
        if len(columns) != table.ndim or (self.by_label and targets.shape != groups.shape[:1]):
            return None
        places = []
        for column, length in zip(columns, table.shape, strict=True):
            place = _places(column.detach().cpu().numpy(), length)
            if place is None:
                return None
            places.append(place)
        cell = _clipped(table, places)
        if not len(cell) or cell.min() < 0:
            return None
        return cell


def _clipped(table: Integers, places: Sequence[Integers]) -> Integers:
    """The table's values; both of its ends are new values, and represent all beyond them."""
    if table.ndim == 1:
        cell: Integers = table.take(places[0], mode="clip")
    else:
        within = [
            np.minimum(np.maximum(place, 0), length - 1)
            for place, length in zip(places, table.shape, strict=True)
        ]
        cell = table[tuple(within)]
    return cell


def _places(values: NDArray[Any], length: int) -> Integers | None:
    """Values + 2; None if they are no integers."""
    if values.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # of NaN
            integers = values.astype(np.int64)
        if not (integers == values).all():
            return None
        values = integers
    # A short type would overflow: 255 + 2 is 1 among integers of 8 bits. Very large ones are new
    # values.
    if values.dtype.kind == "u":
        values = np.minimum(values, length)
    return values.astype(np.int64, copy=False) + 2


def _columns(groups: Tensor) -> list[Tensor]:
    """The groups of each attribute."""
    if groups.ndim == 1:
        return [groups]
    return list(groups.unbind(1))


class BatchRows:
    """The rows of a batch by cell (or by any other number): a slice if the batch is ordered by
    it.
    """

    def __init__(self, cell: Integers, cells: int) -> None:
        self.counts = np.bincount(cell, minlength=cells)
        self.starts = np.cumsum(self.counts) - self.counts
        self.order = None
        if not (cell[1:] >= cell[:-1]).all():
            self.order = np.argsort(cell, kind="stable")

    def select(self, cells: Sequence[int], device: torch.device) -> Tensor | slice:
        """The rows of these cells, one after the other."""
        ends = [
            (int(self.starts[cell]), int(self.starts[cell] + self.counts[cell])) for cell in cells
        ]
        if self.order is None:
            if all(end == start for (_, end), (start, _) in pairwise(ends)):
                return slice(ends[0][0], ends[-1][1])
            return torch.from_numpy(np.concatenate([np.arange(*piece) for piece in ends])).to(
                device
            )
        return torch.from_numpy(np.concatenate([self.order[slice(*piece)] for piece in ends])).to(
            device
        )


def plain_sides(
    comparisons: Sequence[Comparison], rows: BatchRows, weights: Tensor | None, device: torch.device
) -> tuple[Sides, ...]:
    """The sides of every comparison without strata; ``weights`` is one number per sample."""
    sides = []
    for comparison in comparisons:
        both = rows.select(comparison.left + comparison.right, device)
        weight = rows_or_none(weights, both)
        sizes = [
            (int(rows.counts[list(side)].sum()),) for side in (comparison.left, comparison.right)
        ]
        if weight is not None and namespace_for(weight).is_host:
            parts = weight.split([size for (size,) in sizes if size])
            if not all(bool(part.any()) for part in parts):
                raise TooFewSamples(
                    f"comparing {comparison}: weights are 0 for all samples of one group in the "
                    "batch"
                )
        if isinstance(comparison, Dependence):
            sides.append(Sides(both, sizes[0], (), weight, dependence=comparison))
        else:
            sides.append(Sides(both, sizes[0], sizes[1], weight))
    return tuple(sides)


class _Layout(NamedTuple):
    """The groups and labels of a batch, and the sides of its comparisons."""

    groups: Tensor
    targets: Tensor | None  # None: not used
    device: torch.device  # of the scores
    sides: tuple[Sides, ...]


def _are_equal(earlier: Tensor, values: Any) -> bool:
    return (
        isinstance(values, Tensor)
        and earlier.device == values.device
        and torch.equal(earlier, values)
    )


class BatchStrata:
    """The strata that a sampler draws batches from, and their shares in the sides of each
    comparison.
    """

    def __init__(self, sampler: StratifiedBatchSampler, problem: Problem) -> None:
        self.scheme = sampler.problem.scheme
        self.continuous = list(sampler.values.numbers)
        self.by_label = any(
            scheme.criterion.needs_labels for scheme in (self.scheme, problem.scheme)
        )
        self._last: _Layout | None = None
        cells = problem.scheme.cells
        strata = self.scheme.cells
        self.cells = cells.count if cells else 1
        # Most samplers draw by the cells that are compared, which are then computed once.
        self.alike = bool(cells and strata and np.array_equal(cells.table, strata.table))
        weight = sampler.sample_weight
        if weight is None:
            weight = np.ones(len(problem))
        block = sampler.problem.cell * self.cells + problem.cell
        # of each stratum of the batches within each cell that is compared
        blocks = self.cells * (strata.count if strata else 1)
        self.mass = np.bincount(block, weight, minlength=blocks)
        # Number of rows that batches are drawn from; with weights, with replacement, as from
        # infinitely many.
        counts = np.bincount(block, weight > 0, minlength=blocks).astype(np.float64)
        self.drawn_from = counts
        if sampler.sample_weight is not None:
            self.drawn_from = np.where(counts == 1, 1.0, np.inf)
        self.present = np.flatnonzero(self.mass).tolist()

    def drawn_blocks(self, *, fresh: bool) -> DrawnBlocks:
        """The weight and the rows of each cell, where strata are cells; ``fresh`` rows are drawn
        from infinitely many.
        """
        diagonal = np.arange(self.cells) * (self.cells + 1)
        rows = np.asarray(self.drawn_from[diagonal], dtype=np.float64)
        mass = np.asarray(self.mass[diagonal], dtype=np.float64)
        return DrawnBlocks(mass, np.full_like(rows, np.inf) if fresh else rows)

    def last_sides(self, scores: Tensor, groups: Any, targets: Any) -> tuple[Sides, ...] | None:
        """The sides of the last batch, if this one has the same groups and labels, as those of
        a sampler.
        """
        last = self._last
        if last is None or last.groups.shape[0] != scores.shape[0] or last.device != scores.device:
            return None
        alike = _are_equal(last.groups, groups) and (
            last.targets is None or _are_equal(last.targets, targets)
        )
        if alike:
            return last.sides
        return None

    def sides(
        self,
        cell: Integers,
        groups: Values,
        targets: Values | None,
        comparisons: Sequence[Comparison],
        device: torch.device,
    ) -> tuple[Sides, ...]:
        """The rows of each comparison, block by block, with weights if a side consists of
        several.
        """
        stratum = cell
        if not self.alike:
            stratum = (
                BatchValues(self.scheme.criterion, groups, targets, self.continuous)
                .problem(self.scheme)
                .cell
            )
        rows = BatchRows(stratum * self.cells + cell, len(self.mass))
        sides = tuple(self._make_sides(comparison, rows, device) for comparison in comparisons)
        labels = None
        if self.by_label:
            labels = targets
        if (
            isinstance(groups, Tensor)
            and (labels is None or isinstance(labels, Tensor))
            and not self.continuous
        ):
            self._last = _Layout(
                groups.clone(), None if labels is None else labels.clone(), device, sides
            )
        return sides

    def _make_sides(self, comparison: Comparison, rows: BatchRows, device: torch.device) -> Sides:
        """The blocks of rows of either side."""
        counts = rows.counts
        left, right = (
            [block for block in self.present if block % self.cells in side]
            for side in (comparison.left, comparison.right)
        )
        for blocks in (left, right):
            if len(blocks) > 1 and not counts[blocks].all():
                raise TooFewSamples(
                    f"comparing {comparison}: the batch lacks one of the {len(blocks)} kinds of "
                    "rows that make up a "
                    "side; pass batches of the sampler"
                )
        blocks = left + right
        sizes = [tuple(counts[side].tolist()) for side in (left, right)]
        weights = None
        if max(len(left), len(right)) > 1:
            share = self.mass[blocks] / np.maximum(1, counts[blocks])
            weights = torch.as_tensor(np.repeat(share, counts[blocks])).to(device)
        fraction = torch.as_tensor(counts[blocks] / self.drawn_from[blocks]).to(device)
        dependence = None
        if isinstance(comparison, Dependence):
            dependence = comparison
        return Sides(rows.select(blocks, device), sizes[0], sizes[1], weights, fraction, dependence)
