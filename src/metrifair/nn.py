"""The penalty and the batches for anyone's own PyTorch loop."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.batches import Coverage, cut, layout, stratified_pass
from metrifair.cells import Attribute, Cells, Contrast, Integers, compiled
from metrifair.choices import check_known, check_switches
from metrifair.criteria import Criterion, criterion_named
from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics.catalog import MetricLike, facts
from metrifair.objective import penalty
from metrifair.samples import Comparison, Samples, Sides, joined, rows_by_cell, sides_of
from metrifair.tables import UNKNOWN

__all__ = ["CoveringBatch", "StratifiedBatchSampler", "UnfairnessPenalty", "covering"]


def __dir__() -> list[str]:
    return __all__


class UnfairnessPenalty(torch.nn.Module):
    """Distance between the groups' scores in a batch, summed over all comparisons; differentiable.

    ``scores`` are what is to be distributed alike: probabilities, outputs, predictions, or, for risk parity, losses;
    (n,), or (n, d) for vector scores; a floating-point tensor, and finite (looked at on the CPU only). ``groups`` are
    integers (n,), or (n, attributes), -1 where the group is not known. ``targets`` are label codes, needed by the
    criteria that look at them (the last label is the positive one).

    Which groups and labels there are is learnt from the batches unless ``n_groups`` (one number, or one for each
    attribute) and ``n_classes`` say so; a batch that lacks one of them raises an error.

    Examples
    --------
    >>> torch.manual_seed(0)                                                     # doctest: +ELLIPSIS
    <torch...>
    >>> x, groups = torch.randn(200, 3), torch.arange(200) % 2
    >>> x[:, 0] += groups
    >>> y = (x.sum(1) > 0.5).float()
    >>> model, penalty = torch.nn.Linear(3, 1), UnfairnessPenalty("equal_opportunity")
    >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    >>> sampler = StratifiedBatchSampler(groups, y, batch_size=50, criterion="equal_opportunity")
    >>> for rows in [rows for epoch in range(30) for rows in sampler]:
    ...     output = model(x[rows]).squeeze(1)
    ...     bce = torch.nn.functional.binary_cross_entropy_with_logits(output, y[rows], sampler.weights[rows])
    ...     loss = bce + 2.0 * penalty(output.sigmoid(), groups[rows], y[rows])
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    >>> penalty(model(x).squeeze(1).sigmoid(), groups, y).item() < 0.02
    True
    """

    def __init__(
        self,
        criterion: str | Criterion = "statistical_parity",
        metric: MetricLike = "energy",
        unbiased: bool = True,
        contrast: Contrast = "pairs",
        *,
        n_groups: int | Sequence[int] | None = None,
        n_classes: int | None = None,
        slices: int = 16,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.criterion = criterion_named(criterion)
        if not callable(metric):
            facts(metric)
        check_switches(unbiased=unbiased)
        check_known("contrast", contrast, ("pairs", "rest"))
        self.metric, self.unbiased, self.contrast, self.slices = metric, unbiased, contrast, slices
        self.n_groups = None if n_groups is None else np.atleast_1d(n_groups).tolist()
        self.n_classes = n_classes
        self.generator = torch.Generator().manual_seed(seed)
        self._declared = n_groups is not None, n_classes is not None
        self._compiled: tuple[list[int], Cells] | None = None  # for so many groups and classes

    def forward(
        self,
        scores: Tensor,
        groups: Tensor | ArrayLike,
        targets: Tensor | ArrayLike | None = None,
        weights: Tensor | ArrayLike | None = None,
    ) -> Tensor:
        """The penalty of a batch, a scalar."""
        _check_scores(scores)
        codes, labels = _codes(groups), _labels(targets)
        weights = None if weights is None else _tensor("weights", weights).to(scores.device)
        _check_lengths("a batch", scores=scores, groups=codes, targets=labels, weights=weights)
        cells = self._cells(codes, labels)
        cell = torch.as_tensor(cells.of(codes, labels=labels))
        sides = sides_of(cells.comparisons, cell.to(scores.device), weights)
        if self.generator.device != scores.device:
            self.generator = torch.Generator(scores.device).manual_seed(self.generator.initial_seed())
        try:
            return penalty(
                scores,
                sides,
                metric=self.metric,
                unbiased=self.unbiased,
                vector=scores.ndim == 2,
                slices=self.slices,
                generator=self.generator,
            )
        except TooFewSamples as error:
            raise _too_few(cells.comparisons, sides, error) from error

    def _cells(self, codes: Integers, labels: NDArray[Any] | None) -> Cells:
        """Cells for all groups and labels known so far."""
        seen = (codes.max(0, initial=-1) + 1).tolist()
        groups = self.n_groups or [2] * len(seen)
        if len(seen) != len(groups):
            raise DataError(f"groups must have {len(groups)} column(s), as declared or seen before, got {len(seen)}")
        if self._declared[0]:
            _check_below("group", groups, seen)
        else:
            self.n_groups = groups = [max(pair) for pair in zip(groups, seen, strict=True)]
        classes, shown = self.n_classes or 2, _classes(self.criterion, labels)
        if self._declared[1]:
            _check_below("label", [classes], [shown])
        elif shown > classes:
            self.n_classes = classes = shown
        if self._compiled is None or self._compiled[0] != [*groups, classes]:
            self._compiled = [*groups, classes], _integer_cells(self.criterion, groups, classes, self.contrast)
        return self._compiled[1]


def _integer_cells(criterion: Criterion, groups: Sequence[int], classes: int, contrast: Contrast = "pairs") -> Cells:
    names = ["group"] if len(groups) == 1 else [f"group {k}" for k in range(len(groups))]
    attributes = [Attribute(name, tuple(range(count))) for name, count in zip(names, groups, strict=True)]
    return compiled(criterion, attributes, classes=range(classes), positive=classes - 1, contrast=contrast)


def _too_few(comparisons: Sequence[Comparison], sides: Sequence[Sides], error: TooFewSamples) -> TooFewSamples:
    """The error with the group that the batch has the fewest samples of."""
    one, side = min(zip(comparisons, sides, strict=True), key=lambda pair: min(pair[1].counts))
    group = one.groups[side.counts.index(min(side.counts))]
    return TooFewSamples(
        f"the batch has {min(side.counts)} sample(s) of group {group!r} (comparing {one}): {error}; "
        "the batches of StratifiedBatchSampler hold enough of every group"
    )


def _check_scores(scores: Tensor) -> None:
    if not isinstance(scores, Tensor):
        raise DataError(f"scores must be a tensor, as the model returns it, got {type(scores).__name__}")
    if not scores.is_floating_point():
        raise DataError(f"scores must be floating-point numbers, which have gradients, got {scores.dtype}")
    if scores.ndim not in (1, 2):
        raise DataError(f"scores must be (n,), or (n, d) for vector scores, got the shape {tuple(scores.shape)}")
    if scores.ndim == 2 and scores.shape[0] == 1 < scores.shape[1]:
        raise DataError(
            f"scores must be those of several rows, got the shape {tuple(scores.shape)}; if the batch comes from a "
            "DataLoader, pass StratifiedBatchSampler as batch_sampler=, not as sampler="
        )
    # On another device this would wait for all work that is under way there.
    if scores.device.type == "cpu" and not bool(scores.isfinite().all()):
        found = scores[~scores.isfinite()][0]
        raise DataError(f"scores must be finite, got {found}; has the training diverged, or is an input missing?")


def _check_lengths(what: str, **parts: Any) -> None:
    lengths = {name: len(part) for name, part in parts.items() if part is not None}
    if len(set(lengths.values())) > 1:
        raise DataError(f"{what} must have one length, got {lengths}")


def _tensor(name: str, given: Tensor | ArrayLike) -> Tensor:
    """Numbers as a tensor, whatever holds them."""
    if isinstance(given, Tensor):
        return given
    values = np.array(given)
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"{name} must be numbers, got {values.ravel()[:1].tolist()} and the like; "
            "numpy.unique(..., return_inverse=True) numbers other values from 0 upwards"
        )
    return torch.as_tensor(values)


def _labels(targets: Tensor | ArrayLike | None) -> NDArray[Any] | None:
    return None if targets is None else _tensor("targets", targets).detach().cpu().numpy()


def _codes(groups: Tensor | ArrayLike) -> Integers:
    """Group numbers (n, attributes)."""
    given = _tensor("groups", groups).detach().cpu()
    if given.ndim not in (1, 2):
        raise DataError(f"groups must be (n,) or (n, attributes), got the shape {tuple(given.shape)}")
    codes: Integers = given.long().numpy()
    _check_whole("groups", given.numpy())
    if codes.min(initial=0) < UNKNOWN:
        raise DataError(f"groups must be numbers from 0 upwards, or {UNKNOWN} where not known, got {codes.min()}")
    return codes[:, None] if codes.ndim == 1 else codes


def _classes(criterion: Criterion, labels: NDArray[Any] | None) -> int:
    """How many labels there are, two at least; targets that a criterion puts into bins or sets are no labels."""
    if labels is None or not criterion.needs_labels or criterion.bins is not None or criterion.sets is not None:
        return 2
    _check_whole("targets", labels)
    return int(labels.max(initial=1)) + 1


def _check_whole(name: str, given: NDArray[Any]) -> None:
    if given.dtype.kind != "f":
        return
    whole = np.isfinite(given) & (np.rint(given) == given)
    if not whole.all():
        raise DataError(f"{name} must be whole numbers, got {given[~whole][0]}")


def _check_below(what: str, limits: Sequence[int], seen: Sequence[int]) -> None:
    if any(count > limit for count, limit in zip(seen, limits, strict=True)):
        raise DataError(f"{what} numbers must be below {list(limits)}, got {[count - 1 for count in seen]}")


class StratifiedBatchSampler(torch.utils.data.Sampler[list[int]]):
    """Row numbers of batches that hold a fixed number of every group (in every set of the criterion).

    For ``DataLoader(batch_sampler=...)`` (not ``sampler=``, which would take a batch for one row) or a plain loop.
    ``weights`` is the loss weight of each row of the data set: ``mean(weights[rows] * loss)`` over a batch is an
    unbiased estimate of the mean loss, whatever rounding did to the group counts. Each iteration is another epoch,
    reproducible from the seed. A batch is larger than ``batch_size``, with a warning, where that is too small for two
    rows (one, if not ``unbiased``) of every group.

    >>> sampler = StratifiedBatchSampler([0, 0, 0, 0, 0, 0, 1, 1, 1], batch_size=4)
    >>> [len(rows) for rows in sampler], sampler.weights[[0, 8]]
    ([4, 4], tensor([1.3333, 0.6667]))
    """

    def __init__(
        self,
        groups: Tensor | ArrayLike,
        targets: Tensor | ArrayLike | None = None,
        *,
        batch_size: int,
        criterion: str | Criterion = "statistical_parity",
        unbiased: bool = True,
        seed: int = 0,
    ) -> None:
        codes, labels = _codes(groups), _labels(targets)
        _check_lengths("groups and targets", groups=codes, targets=labels)
        kind = criterion_named(criterion)
        cells = _integer_cells(kind, (codes.max(0, initial=-1) + 1).tolist(), _classes(kind, labels))
        self.rows = rows_by_cell(torch.as_tensor(cells.of(codes, labels=labels)), cells.count)
        sizes = torch.tensor([len(own) for own in self.rows])
        self.layout = layout(sizes.tolist(), cells.comparisons, size=batch_size, least=2 if unbiased else 1)
        if self.layout.size > batch_size:
            warnings.warn(
                f"batch_size={batch_size} is too small to hold enough of every group: batches have "
                f"{self.layout.size} rows",
                UserWarning,
                stacklevel=2,
            )
        self.seed, self.epoch = seed, 0
        per_cell = sizes / sizes.sum() * self.layout.size / torch.tensor(self.layout.counts).clamp_min(1)
        self.weights = torch.empty(len(codes))
        for own, weight in zip(self.rows, per_cell, strict=True):
            self.weights[own] = weight

    def __len__(self) -> int:
        return len(self.weights) // self.layout.size

    def __iter__(self) -> Iterator[list[int]]:
        seed = int(np.random.SeedSequence([self.seed, self.epoch]).generate_state(1)[0])
        generator = torch.Generator().manual_seed(seed)
        self.epoch += 1
        yield from stratified_pass(self.rows, self.layout, len(self), generator).tolist()


class CoveringBatch(NamedTuple):
    """A batch of a stream in which every group is seen often enough; ``mean(weight * loss)`` estimates the risk."""

    x: Tensor
    y: Tensor
    group: Tensor
    weight: Tensor


def covering(
    stream: Iterable[tuple[Tensor, Tensor | float, int]],
    *,
    size: int,
    criterion: str | Criterion = "statistical_parity",
    groups: int = 2,
    classes: int = 2,
    least: int = 2,
) -> Iterator[CoveringBatch]:
    """Batches of an endless stream of (x, y, group): at least ``size`` samples, and ``least`` of every group.

    (In every set of the criterion.) The loss weights undo the bias that waiting for the last sample brings. Group -1
    is unknown: it counts for the risk only.

    >>> stream = ((torch.zeros(2), 1.0, group) for group in (0, 0, 0, 0, 1, 1, 0, 1, 0, 1))
    >>> [batch.group.tolist() for batch in covering(stream, size=4)]
    [[0, 0, 0, 0, 1, 1], [0, 1, 0, 1]]
    """
    cells = _integer_cells(criterion_named(criterion), [groups], classes)
    rule = Coverage(cells.comparisons, size=size, least=least)
    pending: list[tuple[Tensor, Tensor, Tensor]] = []
    waiting: Samples | None = None
    for x, y, group in stream:
        pending.append((torch.as_tensor(x), _tensor("y", y), _tensor("group", group)))
        target = pending[-1][1].reshape(1)
        codes = _codes(pending[-1][2].reshape(1, 1))
        _check_below("group", [groups], (codes[0] + 1).tolist())
        cell = cells.of(codes, labels=target.numpy())
        one = Samples(torch.empty(1, 0), target, torch.as_tensor(cell), torch.ones(1))
        waiting = one if waiting is None else joined([waiting, one])
        if (found := cut(waiting, rule)) is not None:
            batch, waiting = found
            count = len(batch.samples)
            features, targets, own = (torch.stack(part) for part in zip(*pending[:count], strict=True))
            pending = pending[count:]
            yield CoveringBatch(features, targets, own, batch.samples.weight)
