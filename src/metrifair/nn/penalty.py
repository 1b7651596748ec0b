"""The penalty of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.checks import check_known, check_switches
from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics.registry import MetricLike, facts
from metrifair.nn.given import check_below, check_lengths, class_count, codes_of, integer_cells, label_codes, numbers
from metrifair.problem.cells import Cells, Contrast, Integers
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.samples import Comparison, Sides, sides_of
from metrifair.training.objective import penalty


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
    >>> from metrifair.nn import StratifiedBatchSampler
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
        codes, labels = codes_of(groups), label_codes(targets)
        weights = None if weights is None else numbers("weights", weights).to(scores.device)
        check_lengths("a batch", scores=scores, groups=codes, targets=labels, weights=weights)
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
            check_below("group", groups, seen)
        else:
            self.n_groups = groups = [max(pair) for pair in zip(groups, seen, strict=True)]
        classes, shown = self.n_classes or 2, class_count(self.criterion, labels)
        if self._declared[1]:
            check_below("label", [classes], [shown])
        elif shown > classes:
            self.n_classes = classes = shown
        if self._compiled is None or self._compiled[0] != [*groups, classes]:
            self._compiled = [*groups, classes], integer_cells(self.criterion, groups, classes, self.contrast)
        return self._compiled[1]


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
