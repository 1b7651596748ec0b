"""One batch over all processes that train a model: gathered with its gradient; errors are
raised on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, distributed
from torch.autograd.function import once_differentiable

from metrifair.errors import DataError
from metrifair.support.checks import make_seed

Across: TypeAlias = 'Literal["auto"] | torch.distributed.ProcessGroup | None'
"""The processes that share a batch: all, those of a group, or only this one."""

_PRECISIONS = (torch.float64, torch.float32)  # of scores that are sent


class BatchColumns(NamedTuple):
    """A batch, or one process's rows of it: scores, and their groups, targets and weights in
    double precision.
    """

    scores: Tensor  # (n,) or (n, d)
    groups: Tensor  # (n, attributes)
    targets: Tensor | None = None  # (n,)
    weights: Tensor | None = None  # (n,)


@dataclass(frozen=True)
class Ranks:
    """The processes of a group, and the rank of this one."""

    group: Any  # None: all
    rank: int
    count: int

    def device_for(self, device: torch.device) -> torch.device:
        """The device on which the group exchanges tensors: this one, unless its backend needs
        the CPU.
        """
        listed = str(distributed.get_backend_config(self.group)).split(",")
        backends = dict(entry.split(":", 1) for entry in listed)
        if backends.get(device.type, "gloo") != "gloo":
            return device
        if "cpu" in backends:
            return torch.device("cpu")
        other = next(iter(backends))
        return torch.device(other, torch.get_device_module(other).current_device())

    def numbers(self, local: Sequence[int], device: torch.device) -> list[list[int]]:
        """These integers of every rank."""
        sent = torch.tensor(local, device=self.device_for(device))
        received = [torch.empty_like(sent) for _ in range(self.count)]
        distributed.all_gather(received, sent, group=self.group)
        return [tensor.tolist() for tensor in received]

    def rows(self, local: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all ranks, one rank after the other; each rank sends as many as the
        largest.
        """
        sent = local.new_zeros(
            (max(counts), *local.shape[1:]), device=self.device_for(local.device)
        )
        sent[: len(local)] = local
        received = [torch.empty_like(sent) for _ in range(self.count)]
        distributed.all_gather(received, sent, group=self.group)
        return torch.cat(
            [tensor[:count] for tensor, count in zip(received, counts, strict=True)]
        ).to(local.device)

    def sum(self, local: Tensor) -> Tensor:
        """The sum over all ranks."""
        total = local.to(self.device_for(local.device), copy=True).contiguous()
        distributed.all_reduce(total, group=self.group)
        return total.to(local.device)


def find_ranks(across: Across) -> Ranks | None:
    """The processes that share a batch; None if this process is alone."""
    if across is None or not (distributed.is_available() and distributed.is_initialized()):
        return None
    group = None
    if not isinstance(across, str):
        group = across
    count = distributed.get_world_size(group)
    if count > 1:
        return Ranks(group, distributed.get_rank(group), count)
    return None


def common_seed(random_state: Any, *, several: bool) -> int:
    """The seed of a random state; None is 0 with ``several`` processes, which must agree, and else
    drawn.

    >>> common_seed(7, several=True), common_seed(None, several=True)
    (7, 0)
    """
    if random_state is None and several:
        return 0
    return make_seed(random_state)


def check_across(across: object) -> None:
    """Raise a DataError unless it is "auto", None or a process group."""
    if across is None or (isinstance(across, str) and across == "auto"):
        return
    if distributed.is_available() and isinstance(across, distributed.ProcessGroup):
        return
    # as new_group returns
    if distributed.is_available() and across == distributed.GroupMember.NON_GROUP_MEMBER:
        raise DataError(
            "across is a process group that this process is not in; pass the one that it trains in"
        )
    raise DataError(
        f"across must be 'auto', None or a torch.distributed process group, got {across!r}"
    )


def gather_batch(
    ranks: Ranks, prepare: Callable[[], BatchColumns], device: torch.device
) -> BatchColumns:
    """The batch of all ranks; gradients of its scores reach the scores of each rank.

    ``prepare`` makes this rank's part. If it raises, or the parts do not match, all ranks raise an
    error: otherwise they would wait for each other.
    """
    local = None
    failure = None
    try:
        local = prepare()
    except Exception as error:  # raised below, after the other processes were notified
        failure = error
    headers = ranks.numbers(
        [0] * 7 if local is None else [1, *_kind(local), len(local.scores)], device
    )
    if local is None or not all(header[0] for header in headers):
        reasons: list[str | None] = [None] * ranks.count
        distributed.all_gather_object(
            reasons, None if failure is None else str(failure), group=ranks.group
        )
        first = next(rank for rank, text in enumerate(reasons) if text is not None)
        raise failure or DataError(f"rank {first} could not take part: {reasons[first]}")
    kinds = [header[1:-1] for header in headers]
    counts = [header[-1] for header in headers]
    for rank, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise DataError(
                f"all ranks must pass batches of one kind; rank 0 passed {_describe(kinds[0])}, "
                f"and rank {rank} "
                f"{_describe(kind)}"
            )
    columns = [
        local.groups,
        *(part.unsqueeze(1) for part in (local.targets, local.weights) if part is not None),
    ]
    table = ranks.rows(
        torch.cat([part.double().cpu() for part in columns], 1).to(ranks.device_for(device)), counts
    )
    parts = list(table.split([part.shape[1] for part in columns], 1))
    groups = parts.pop(0)
    targets = None
    if local.targets is not None:
        targets = parts.pop(0).squeeze(1)
    weights = None
    if local.weights is not None:
        weights = parts.pop(0).squeeze(1)
    scores: Tensor = _GatherRows.apply(local.scores, ranks, counts)  # type: ignore[no-untyped-call]
    return BatchColumns(scores, groups, targets, weights)


class _GatherRows(torch.autograd.Function):
    """The rows of all ranks.

    Each of R ranks computes the penalty P of the whole batch. The sum of their slopes is R times
    the slope of P by this rank's rows, and DDP's mean over R ranks makes it the slope of P.
    """

    @staticmethod
    def forward(ctx: Any, local: Tensor, ranks: Ranks, counts: list[int]) -> Tensor:
        ctx.ranks = ranks
        ctx.counts = counts
        return ranks.rows(local, counts)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
        start = sum(ctx.counts[: ctx.ranks.rank])
        return ctx.ranks.sum(slope)[start : start + ctx.counts[ctx.ranks.rank]], None, None


def _kind(batch: BatchColumns) -> list[int]:
    """The values that must be equal on all ranks, as integers: precision and columns of scores,
    and other columns.
    """
    vectors = 0
    if batch.scores.ndim == 2:
        vectors = batch.scores.shape[1]
    columns = [
        batch.groups.shape[1],
        int(batch.targets is not None),
        int(batch.weights is not None),
    ]
    return [_PRECISIONS.index(batch.scores.dtype), vectors, *columns]


def _describe(kind: Sequence[int]) -> str:
    precision, vectors, attributes, targets, weights = kind
    scores = f"{_PRECISIONS[precision]} scores" + (f" in {vectors} columns" if vectors else "")
    columns = [f"{attributes} attribute(s)", *["targets"] * targets, *["weights"] * weights]
    return f"{scores} with {', '.join(columns)}"


def global_mean(losses: Tensor, *, across: Across = "auto") -> Tensor:
    """The mean loss, scaled such that the mean over processes is that of all rows of all processes.

    DDP averages gradients over processes. If these have unequal numbers of rows, as with batches
    that do not divide by the number of processes, the mean of their means is not the mean of all
    rows; this is, exactly. Every process must call it. Alone, it is ``losses.mean()``.

    Parameters
    ----------
    losses : Tensor of shape (n,)
        The loss of each row (``reduction="none"``), times its weight if rows have weights.
    across : {"auto"}, process group or None, default="auto"
        Processes to combine: all processes if a process group is initialized (``"auto"``), the
        processes of a group, or only this one (None).

    Returns
    -------
    Tensor
        A scalar: the number of processes x the sum here / the number of rows everywhere.

    Examples
    --------
    >>> global_mean(torch.tensor([1.0, 2.0, 6.0]))
    tensor(3.)
    """
    check_across(across)
    ranks = find_ranks(across)
    error = None
    if not isinstance(losses, Tensor) or losses.ndim != 1:
        received = type(losses).__name__
        if isinstance(losses, Tensor):
            received = f"the shape {tuple(losses.shape)}"
        error = DataError(
            "losses must be a tensor (n,) of one loss for each row, as reduction='none' gives, "
            f"got {received}"
        )
    if ranks is None:
        if error is not None:
            raise error
        return losses.mean()
    # A rank that raised before this exchange would leave the others waiting for its count.
    device = torch.device("cpu")
    if isinstance(losses, Tensor):
        device = losses.device
    counts = [count for (count,) in ranks.numbers([len(losses) if error is None else -1], device)]
    if min(counts) < 0:
        raise error or DataError(
            f"rank {counts.index(-1)} could not take part: its losses are not a tensor (n,)"
        )
    return losses.sum() * (ranks.count / max(1, sum(counts)))
