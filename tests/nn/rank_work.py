"""What every process of a group does in test_distributed.py: run as `python rank_work.py
FOLDER`, it forks them.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel

from metrifair import GroupProbabilities
from metrifair.nn import (
    StratifiedBatchSampler,
    UnfairnessPenalty,
    global_mean,
)

N, FEATURES = 60, 3
PATIENCE = 30.0  # seconds; gloo's own would be half an hour
GENERATOR = torch.Generator().manual_seed(0)
SEX = torch.arange(N) % 2
RACE = torch.arange(N) // 2 % 3
BOTH = torch.stack([SEX, RACE], 1)
Y = torch.randint(2, (N,), generator=GENERATOR)
X = (
    torch.randn(N, FEATURES, generator=GENERATOR, dtype=torch.float64)
    + 0.4 * SEX[:, None]
    + 0.2 * RACE[:, None]
)
WEIGHTS = torch.rand(N, generator=GENERATOR, dtype=torch.float64) + 0.5


class Case(NamedTuple):
    """A batch of all rows, cut in pieces, and a penalty of it."""

    penalty: dict[str, Any]
    groups: Tensor = SEX
    weights: Tensor | None = None
    outputs: int = 1
    uneven: bool = True
    dtype: torch.dtype = torch.float64


CASES = {
    "parity, even pieces": Case({}, uneven=False),
    "parity": Case({}),
    "three groups": Case({"metric": "mmd"}, RACE),
    "several attributes": Case({"combine": "sum"}, BOTH),
    "equalized odds": Case({"criterion": "equalized_odds"}, RACE),
    "weights": Case({"criterion": "equal_opportunity"}, SEX, WEIGHTS),
    "each against the rest": Case({"contrast": "rest", "estimate": "batch"}, BOTH),
    "unknown groups": Case({}, torch.where(torch.arange(N) % 7 == 0, -1, SEX)),
    "another metric": Case({"metric": "wasserstein", "estimate": "batch"}),
    "two columns of probabilities": Case({}, RACE, outputs=2),
    "vector scores": Case({}, SEX, outputs=3),
    "single precision": Case({}, dtype=torch.float32),
}


def pieces(count: int, uneven: bool) -> list[slice]:
    """Consecutive rows of every rank; the last but one may have none."""
    shares = [1.0] * count if not uneven else [0.2, 0.8] if count == 2 else [0.4, 0.05, 0.0, 0.55]
    ends = [round(N * sum(shares[: k + 1]) / sum(shares)) for k in range(count)]
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def gradient(
    case: Case,
    rows: slice,
    wrap: Callable[[torch.nn.Module], torch.nn.Module] = lambda model: model,
) -> Any:
    """That of loss + 2 x penalty by the parameters of a model, and the penalty."""
    torch.manual_seed(0)
    model = torch.nn.Linear(FEATURES, case.outputs).to(case.dtype)
    wrapped, penalty = wrap(model), UnfairnessPenalty(random_state=0, **case.penalty)
    output = wrapped(X[rows].to(case.dtype))
    scores = output.squeeze(1).sigmoid() if case.outputs == 1 else output.softmax(1)
    weights = None if case.weights is None else case.weights[rows]
    losses = torch.nn.functional.binary_cross_entropy_with_logits(
        output[:, 0], Y[rows].to(case.dtype), reduction="none"
    )
    found = penalty(scores, case.groups[rows], Y[rows], weights)
    (global_mean(losses, across=case.penalty.get("across", "auto")) + 2.0 * found).backward()
    return [
        found.item(),
        *torch.cat([value.grad.reshape(-1) for value in model.parameters()]).tolist(),
    ]


def sampler_of(rank: int | None = 0, count: int | None = 1) -> StratifiedBatchSampler:
    """Batches of 13 rows, which no number of ranks divides."""
    return StratifiedBatchSampler(
        BOTH,
        Y,
        batch_size=13,
        criterion="equalized_odds",
        contrast="rest",
        estimate="batch",
        rank=rank,
        world_size=count,
        random_state=0,
    )


def probability_sampler_of(rank: int | None = 0, count: int | None = 1) -> StratifiedBatchSampler:
    """The same without known groups."""
    chance = X[:, 0].sigmoid()
    groups = GroupProbabilities({"a": chance, "b": 1 - chance}, attribute="sex")
    return StratifiedBatchSampler(
        groups, batch_size=13, rank=rank, world_size=count, random_state=0
    )


def sampled_gradients(sampler: Any, wrap: Callable[[torch.nn.Module], torch.nn.Module]) -> Any:
    """The gradient of every batch of two epochs, with the sampler's weights."""
    torch.manual_seed(0)
    model = torch.nn.Linear(FEATURES, 1).double()
    wrapped = wrap(model)
    drawn_for = sampler.batch_groups
    aim = (
        {"estimate": "rows"}
        if drawn_for is not None
        else {"estimate": "batch", "criterion": "equalized_odds", "contrast": "rest"}
    )
    penalty = UnfairnessPenalty(**aim, sampler=sampler)
    found = []
    for rows in [rows for _ in range(2) for rows in sampler]:
        output = wrapped(X[rows]).squeeze(1)
        losses = torch.nn.functional.binary_cross_entropy_with_logits(
            output, Y[rows].double(), reduction="none"
        )
        (
            global_mean(sampler.weights[rows] * losses)
            + 2.0
            * penalty(output.sigmoid(), BOTH[rows] if drawn_for is None else drawn_for, Y[rows])
        ).backward()
        found.append(torch.cat([value.grad.reshape(-1) for value in model.parameters()]).tolist())
        model.zero_grad()
    return found


def refusals(rank: int, rows: slice) -> dict[str, tuple[str, str, float]]:
    """What every rank says where one of them has something wrong, and how long it took."""
    scores, odd = X[rows, 0], rank == 1
    whole = sampler_of()
    calls: dict[str, Callable[[], Any]] = {
        "a group is missing": lambda: UnfairnessPenalty(n_groups=3, random_state=0)(
            scores, SEX[rows]
        ),
        "integers": lambda: UnfairnessPenalty(random_state=0)(
            scores.long() if odd else scores, SEX[rows]
        ),
        "not a number": lambda: UnfairnessPenalty(random_state=0)(
            scores * float("nan") if odd else scores, SEX[rows]
        ),
        "another length": lambda: UnfairnessPenalty(random_state=0)(
            scores, SEX[rows][1:] if odd else SEX[rows]
        ),
        "another kind": lambda: UnfairnessPenalty(random_state=0)(
            scores, (BOTH if odd else SEX)[rows]
        ),
        "another precision": lambda: UnfairnessPenalty(random_state=0)(
            scores.float() if odd else scores, SEX[rows]
        ),
        "weights on one": lambda: UnfairnessPenalty(random_state=0)(
            scores, SEX[rows], None, WEIGHTS[rows] if odd else None
        ),
        "no labels": lambda: UnfairnessPenalty("equalized_odds", random_state=0)(scores, SEX[rows]),
        "a mean of losses": lambda: global_mean(scores.mean()),
        "a mean on one": lambda: global_mean(scores.mean() if odd else scores),
        "not dealt": lambda: UnfairnessPenalty(
            "equalized_odds", contrast="rest", estimate="batch", sampler=whole
        )(*(part[next(iter(sampler_of()))] for part in (X[:, 0], BOTH, Y))),
    }
    told = {}
    for name, call in calls.items():
        start = time.perf_counter()
        try:
            told[name] = ("none", repr(call()), 0.0)
        except Exception as error:
            told[name] = (type(error).__name__, str(error), time.perf_counter() - start)
    return told


def work(rank: int, count: int, folder: Path) -> None:
    """All cases of one process, written to a file."""
    distributed.init_process_group(
        "gloo",
        f"file://{folder}/meeting-{count}",
        timeout=timedelta(seconds=PATIENCE),
        rank=rank,
        world_size=count,
    )
    own = sampler_of(None, None)  # dealt as the process group says
    found: dict[str, Any] = {"refusals": refusals(rank, pieces(count, uneven=False)[rank])}
    found["gradients"] = {
        name: gradient(case, pieces(count, case.uneven)[rank], DistributedDataParallel)
        for name, case in CASES.items()
    }
    found["rows"] = [rows for _ in range(3) for rows in own]
    own.set_epoch(0)
    found["sampled"] = sampled_gradients(own, DistributedDataParallel)
    found["by_probabilities"] = sampled_gradients(
        probability_sampler_of(None, None), DistributedDataParallel
    )
    half = distributed.new_group([0, 1])
    if rank < 2:
        wrapped = gradient(
            Case({"across": half}),
            pieces(2, uneven=True)[rank],
            lambda model: DistributedDataParallel(model, process_group=half),
        )
        found["of a group"] = wrapped[0]
    else:
        try:
            UnfairnessPenalty(across=half, random_state=0)(X[:, 0], SEX)
        except ValueError as error:
            found["of a group"] = str(error)
    found["alone"] = UnfairnessPenalty(across=None, random_state=0)(X[:, 0], SEX).item()
    torch.save(found, folder / f"{count}-{rank}.pt")
    distributed.destroy_process_group()


if __name__ == "__main__":
    _ = torch._dynamo  # which DDP would load in every process, for seconds
    for size in (2, 4):
        children = []
        for place in range(size):
            # nothing has been computed yet, and no thread started: cheaper than starting anew
            child = os.fork()
            if not child:
                work(place, size, Path(sys.argv[1]))
                os._exit(0)
            children.append(child)
        codes = [os.waitpid(child, 0)[1] for child in children]
        if any(codes):
            sys.exit(f"{size} processes ended with {codes}")
