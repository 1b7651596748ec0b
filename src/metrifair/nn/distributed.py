"""One batch over all processes that train a model together: gathered with its gradient, refused together."""

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
"""Over which processes a batch reaches: all, those of a group, or this one alone."""

_PRECISIONS = (torch.float64, torch.float32)  # in which scores travel


class BatchColumns(NamedTuple):
    """A batch, or one process's rows of it: scores, and the data that belong to them in double precision."""

    scores: Tensor  # (n,) or (n, d)
    groups: Tensor  # (n, attributes)
    targets: Tensor | None = None  # (n,)
    weights: Tensor | None = None  # (n,)


@dataclass(frozen=True)
class Ranks:
    """The processes of a group, and which of them this one is."""

    group: Any  # None: all
    rank: int
    count: int

    def device_for(self, device: torch.device) -> torch.device:
        """The device on which the group exchanges tensors: this one, unless its backend needs the CPU."""
        listed = str(distributed.get_backend_config(self.group)).split(",")
        backends = dict(entry.split(":", 1) for entry in listed)
        if backends.get(device.type, "gloo") != "gloo":
            return device
        if "cpu" in backends:
            return torch.device("cpu")
        other = next(iter(backends))
        return torch.device(other, torch.get_device_module(other).current_device())

    def numbers(self, own: Sequence[int], device: torch.device) -> list[list[int]]:
        """These integers of every rank."""
        sent = torch.tensor(own, device=self.device_for(device))
        received = [torch.empty_like(sent) for _ in range(self.count)]
        distributed.all_gather(received, sent, group=self.group)
        return [tensor.tolist() for tensor in received]

    def rows(self, own: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows of all ranks, one rank after the other; all send as many as the largest has."""
        sent = own.new_zeros((max(counts), *own.shape[1:]), device=self.device_for(own.device))
        sent[: len(own)] = own
        received = [torch.empty_like(sent) for _ in range(self.count)]
        distributed.all_gather(received, sent, group=self.group)
        return torch.cat([tensor[:count] for tensor, count in zip(received, counts, strict=True)]).to(own.device)

    def sum(self, own: Tensor) -> Tensor:
        """The sum over all ranks."""
        total = own.to(self.device_for(own.device), copy=True).contiguous()
        distributed.all_reduce(total, group=self.group)
        return total.to(own.device)


def find_ranks(across: Across) -> Ranks | None:
    """Who takes part; None if this process is alone."""
    if across is None or not (distributed.is_available() and distributed.is_initialized()):
        return None
    group = None if isinstance(across, str) else across
    count = distributed.get_world_size(group)
    return Ranks(group, distributed.get_rank(group), count) if count > 1 else None


def common_seed(random_state: Any, *, several: bool) -> int:
    """The seed of a random state; None is 0 with ``several`` processes, which must agree, and else drawn.

    >>> common_seed(7, several=True), common_seed(None, several=True)
    (7, 0)
    """
    return 0 if random_state is None and several else make_seed(random_state)


def check_across(across: object) -> None:
    """Raise a DataError unless it is "auto", None or a process group."""
    if across is None or (isinstance(across, str) and across == "auto"):
        return
    if distributed.is_available() and isinstance(across, distributed.ProcessGroup):
        return
    if distributed.is_available() and across == distributed.GroupMember.NON_GROUP_MEMBER:  # as new_group returns
        raise DataError("across is a process group that this process is not in; pass the one that it trains in")
    raise DataError(f"across must be 'auto', None or a torch.distributed process group, got {across!r}")


def gathered(ranks: Ranks, prepare: Callable[[], BatchColumns], device: torch.device) -> BatchColumns:
    """The batch of all ranks; its scores pass gradients on to those of each rank.

    ``prepare`` makes this rank's part. Where it raises, or the parts do not go together, all ranks raise: one that
    stayed away would leave the others waiting for it.
    """
    own, failure = None, None
    try:
        own = prepare()
    except Exception as error:  # raised below, after the other processes were notified
        failure = error
    headers = ranks.numbers([0] * 7 if own is None else [1, *_kind(own), len(own.scores)], device)
    if own is None or not all(header[0] for header in headers):
        reasons: list[str | None] = [None] * ranks.count
        distributed.all_gather_object(reasons, None if failure is None else str(failure), group=ranks.group)
        first = next(rank for rank, text in enumerate(reasons) if text is not None)
        raise failure or DataError(f"rank {first} could not take part: {reasons[first]}")
    kinds, counts = [header[1:-1] for header in headers], [header[-1] for header in headers]
    for rank, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise DataError(
                f"all ranks must pass batches of one kind; rank 0 passed {_described(kinds[0])}, and rank {rank} "
                f"{_described(kind)}"
            )
    more = [own.groups, *(one.unsqueeze(1) for one in (own.targets, own.weights) if one is not None)]
    beside = ranks.rows(torch.cat([one.double().cpu() for one in more], 1).to(ranks.device_for(device)), counts)
    parts = list(beside.split([one.shape[1] for one in more], 1))
    groups, targets = parts.pop(0), None if own.targets is None else parts.pop(0).squeeze(1)
    weights = None if own.weights is None else parts.pop(0).squeeze(1)
    scores: Tensor = _Gathered.apply(own.scores, ranks, counts)  # type: ignore[no-untyped-call]
    return BatchColumns(scores, groups, targets, weights)


class _Gathered(torch.autograd.Function):
    """The rows of all ranks.

    Every rank computes the penalty P of the whole batch, so that the sum of what arrives here is R times the slope of P
    by this rank's rows; DDP's mean over R ranks makes that the slope of P, and no factor is left.
    """

    @staticmethod
    def forward(ctx: Any, own: Tensor, ranks: Ranks, counts: list[int]) -> Tensor:
        ctx.ranks, ctx.counts = ranks, counts
        return ranks.rows(own, counts)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
        start = sum(ctx.counts[: ctx.ranks.rank])
        return ctx.ranks.sum(slope)[start : start + ctx.counts[ctx.ranks.rank]], None, None


def _kind(own: BatchColumns) -> list[int]:
    """The values that must be equal on all ranks, as integers: precision and columns of scores and their data."""
    vectors = own.scores.shape[1] if own.scores.ndim == 2 else 0
    beside = [own.groups.shape[1], int(own.targets is not None), int(own.weights is not None)]
    return [_PRECISIONS.index(own.scores.dtype), vectors, *beside]


def _described(kind: Sequence[int]) -> str:
    precision, vectors, attributes, targets, weights = kind
    scores = f"{_PRECISIONS[precision]} scores" + (f" in {vectors} columns" if vectors else "")
    with_them = [f"{attributes} attribute(s)", *["targets"] * targets, *["weights"] * weights]
    return f"{scores} with {', '.join(with_them)}"


def global_mean(losses: Tensor, *, across: Across = "auto") -> Tensor:
    """The mean loss, scaled such that the mean over processes is that of all rows of all processes.

    DDP averages gradients over processes. If these have unequal numbers of rows, as with batches that do not divide
    by the number of processes, the mean of their means is not the mean of all rows; this is, exactly. Every process
    must call it. Alone, it is ``losses.mean()``.

    Parameters
    ----------
    losses : Tensor of shape (n,)
        The loss of each row (``reduction="none"``), times its weight if rows have weights.
    across : {"auto"}, process group or None, default="auto"
        Processes to combine: all processes if a process group is initialized (``"auto"``), the processes of a group, or
        only this one (None).

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
    ranks, wrong = find_ranks(across), None
    if not isinstance(losses, Tensor) or losses.ndim != 1:
        given = f"the shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else type(losses).__name__
        wrong = DataError(
            f"losses must be a tensor (n,) of one loss for each row, as reduction='none' gives, got {given}"
        )
    if ranks is None:
        if wrong is not None:
            raise wrong
        return losses.mean()
    # A rank that raised without a word would leave the others waiting for its count.
    device = losses.device if isinstance(losses, Tensor) else torch.device("cpu")
    counts = [count for (count,) in ranks.numbers([len(losses) if wrong is None else -1], device)]
    if min(counts) < 0:
        raise wrong or DataError(f"rank {counts.index(-1)} could not take part: its losses are not a tensor (n,)")
    return losses.sum() * (ranks.count / max(1, sum(counts)))
