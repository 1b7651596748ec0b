"""Several processes, one batch: real groups of 2 and 4 gloo processes against one process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rank_work
import torch
from rank_work import CASES, SEX, X, gradient, probability_sampler_of, sampled_gradients, sampler_of

from metrifair.errors import DataError
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty, global_mean

SIZES = (2, 4)
LONGEST = 10.0  # seconds until all ranks have refused; a hang ends after 30


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[dict[str, Any]]]:
    """What each rank of each group found; all cases in one run, since processes are slow to
    begin.
    """
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-W", "error::UserWarning", rank_work.__file__, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return {
        size: [torch.load(folder / f"{size}-{rank}.pt") for rank in range(size)] for size in SIZES
    }


@pytest.mark.extended
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_the_gradient_of_all_ranks_is_that_of_one_process(name: str, size: int, found: Any) -> None:
    """Value of the penalty and gradient of loss + 2 x penalty by the model's parameters, after
    DDP's mean.
    """
    alone = gradient(CASES[name], slice(None))
    precision = 1e-12 if CASES[name].dtype == torch.float64 else 1e-6
    for own in found[size]:
        assert own["gradients"][name] == pytest.approx(alone, abs=precision)
    assert np.abs(alone).min() > 1e-4  # nothing is equal because it is zero


@pytest.mark.parametrize("size", SIZES)
def test_the_ranks_together_see_the_batches_of_one_process(size: int, found: Any) -> None:
    alone = sampler_of()
    batches = [rows for _ in range(3) for rows in alone]
    dealt = list(zip(*(own["rows"] for own in found[size]), strict=True))
    assert [sorted(chain(*parts)) for parts in dealt] == [sorted(rows) for rows in batches]
    assert all(
        sorted(map(len, parts)) == sorted([13 // size + (rank < 13 % size) for rank in range(size)])
        for parts in dealt
    )
    cells = [
        torch.as_tensor(alone.problem.cell)[parts].bincount(minlength=24) for parts in dealt[0]
    ]
    assert int((torch.stack(cells).amax(0) - torch.stack(cells).amin(0)).max()) <= 1


@pytest.mark.parametrize("size", SIZES)
def test_batches_that_were_dealt_out_have_the_gradient_of_one_process(
    size: int, found: Any
) -> None:
    """Strata weighed by the sampler, its loss weights, and batches that the ranks cannot share
    evenly.
    """
    for name, sampler in (
        ("sampled", sampler_of()),
        ("by_probabilities", probability_sampler_of()),
    ):
        alone = sampled_gradients(sampler, lambda model: model)
        for own in found[size]:
            np.testing.assert_allclose(own[name], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "kind", "message", "told"),
    [
        ("a group is missing", "TooFewSamples", "the batch has 0 sample(s) of group '2'", False),
        ("integers", "DataError", "scores must be floating-point numbers", True),
        ("not a number", "DataError", "scores must be finite, got nan", False),
        ("another length", "DataError", "arguments must have the same length", True),
        (
            "another kind",
            "DataError",
            "rank 0 passed torch.float64 scores with 1 attribute(s), and rank 1",
            False,
        ),
        ("another precision", "DataError", "and rank 1 torch.float32 scores with", False),
        (
            "weights on one",
            "DataError",
            "and rank 1 torch.float64 scores with 1 attribute(s), weights",
            False,
        ),
        ("no labels", "DataError", "compares groups within labels; pass the true labels", False),
        ("a mean of losses", "DataError", "of one loss for each row", False),
        ("a mean on one", "DataError", "losses", True),
        ("not dealt", "DataError", "pass rank= and world_size= to the sampler", False),
    ],
)
def test_all_ranks_refuse_together_and_go_on(
    name: str, kind: str, message: str, told: bool, size: int, found: Any
) -> None:
    """Refusals come first in every process: the gradients after them show that nobody was left
    behind.
    """
    for rank, own in enumerate(found[size]):
        raised, text, seconds = own["refusals"][name]
        assert (raised, seconds < LONGEST) == (kind, True), text
        assert message in text
        assert text.startswith("rank 1 could not take part: ") == (told and rank != 1)


def test_a_group_of_processes_is_a_batch_of_its_own(found: Any) -> None:
    alone = gradient(CASES["parity"], slice(None))[0]
    assert [own["of a group"] for own in found[4][:2]] == pytest.approx([alone] * 2, abs=1e-12)
    for outside in found[4][2:]:
        assert outside["of a group"].startswith(
            "across is a process group that this process is not in"
        )


def test_across_none_is_the_batch_of_this_process_alone(found: Any) -> None:
    alone = UnfairnessPenalty(random_state=0)(X[:, 0], SEX).item()
    assert {own["alone"] for own in found[4]} == {alone}


# --- without any process group
# ----------------------------------------------------------------------------------


def test_the_mean_of_losses_wants_one_for_each_row() -> None:
    losses = torch.rand(7, requires_grad=True)
    assert global_mean(losses) == losses.mean()
    with pytest.raises(DataError, match=re.escape("as reduction='none' gives, got the shape ()")):
        global_mean(losses.mean())


@pytest.mark.parametrize("across", ["none", 2, False])
def test_across_is_checked(across: Any) -> None:
    for call in (
        lambda: UnfairnessPenalty(across=across, random_state=0),
        lambda: global_mean(torch.ones(2), across=across),
    ):
        with pytest.raises(
            DataError,
            match=r"across must be 'auto', None or a torch.distributed process group, got",
        ):
            call()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"rank": 2, "world_size": 2},
            "rank must be an integer from 0 to world_size - 1 = 1, got 2",
        ),
        (
            {"rank": -1, "world_size": 2},
            "rank must be an integer from 0 to world_size - 1 = 1, got -1",
        ),
        ({"rank": 1}, "rank and world_size belong together, got 1 and None; give both or neither"),
        ({"rank": 0, "world_size": 0}, "world_size must be an integer from 1 upwards, got 0"),
        (
            {"rank": 0, "world_size": 9},
            "batches of 8 rows leave some of 9 ranks without any; raise batch_size",
        ),
    ],
)
def test_ranks_that_there_are_not_are_refused(given: dict[str, int], message: str) -> None:
    with pytest.raises(DataError) as refusal:
        StratifiedBatchSampler(SEX, batch_size=8, **given)
    assert str(refusal.value) == message


# --- epochs that go on
# ------------------------------------------------------------------------------------------


def test_an_epoch_is_the_same_whenever_it_is_asked_for() -> None:
    sampler = StratifiedBatchSampler(SEX, batch_size=8, random_state=0)
    first, second = list(sampler), list(sampler)
    assert first != second
    sampler.set_epoch(0)
    assert [list(sampler), list(sampler)] == [first, second]
    with pytest.raises(DataError, match="epoch must be an integer from 0 upwards, got -1"):
        sampler.set_epoch(-1)


@pytest.mark.parametrize("taken", range(16))
def test_a_sampler_goes_on_where_its_state_was_saved(taken: int) -> None:
    """After any number of batches: before, within, at the end of and beyond an epoch of 7."""
    whole = StratifiedBatchSampler(SEX, batch_size=8, random_state=0)
    assert len(whole) == 7
    batches = [rows for _ in range(4) for rows in whole]
    one = StratifiedBatchSampler(SEX, batch_size=8, random_state=0)
    endless = (rows for _ in range(4) for rows in one)
    seen = [next(endless) for _ in range(taken)]
    state = one.state_dict()
    assert state == {"epoch": taken // 7, "step": taken % 7}
    other = StratifiedBatchSampler(SEX, batch_size=8, random_state=0)
    other.load_state_dict(state)
    assert other.state_dict() == state
    other.set_epoch(taken // 7)  # as loops that count epochs do
    rest = [rows for _ in range(3) for rows in other]
    assert (seen + rest)[: len(batches)] == batches[: len(seen + rest)]
    ahead = StratifiedBatchSampler(SEX, batch_size=8, random_state=0)
    ahead.load_state_dict({"epoch": 0, "step": taken})  # steps that a loop has counted
    assert ahead.state_dict() == state


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"epoch": 0},
        {"epoch": 0, "step": -1},
        {"epoch": 0, "step": 1.5},
        {"epoch": 0, "step": 0, "more": 0},
    ],
)
def test_states_that_are_none_are_refused(state: Any) -> None:
    with pytest.raises(DataError, match="state must contain the integers 'epoch' and 'step'"):
        StratifiedBatchSampler(SEX, batch_size=8, random_state=0).load_state_dict(state)


# --- alone, each rank is still right in the mean
# ----------------------------------------------------------------


def local_mean(estimate: Any, epochs: int) -> tuple[float, float]:
    """Mean over batches of the mean over 4 ranks of the penalties of their own rows, and its
    standard error.
    """
    ranks = [
        StratifiedBatchSampler(
            SEX, batch_size=20, estimate=estimate, random_state=5, rank=rank, world_size=4
        )
        for rank in range(4)
    ]
    penalties = [UnfairnessPenalty(estimate=estimate, sampler=own, across=None) for own in ranks]
    values = []
    for _ in range(epochs):
        total = 0.0
        for parts in zip(*ranks, strict=True):
            own = [
                penalty(X[rows, 0], SEX[rows]).item()
                for penalty, rows in zip(penalties, parts, strict=True)
            ]
            total += float(np.mean(own))
        values.append(total / len(ranks[0]))
    return float(np.mean(values)), float(np.std(values, ddof=1) / epochs**0.5)


@pytest.mark.extended
def test_penalties_of_single_ranks_are_unbiased_and_the_plain_distance_is_not() -> None:
    """Epochs are independent of each other: z against the distance of all rows."""
    truth = UnfairnessPenalty(estimate="batch", random_state=0)(X[:, 0], SEX).item()
    mean, error = local_mean("rows", 120)
    assert abs(mean - truth) < 4 * error
    biased, error = local_mean("batch", 30)
    assert biased - truth > 8 * error


# --- the examples
# -----------------------------------------------------------------------------------------------

EXAMPLES = Path(__file__).parents[2] / "examples"


def told_by(example: str, processes: int) -> tuple[int, float]:
    """How many processes the example ran in, and the distance that it ended with."""
    command = (
        ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        if processes > 1
        else []
    )
    done = subprocess.run(
        [sys.executable, *command, str(EXAMPLES / example)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "ACCELERATE_USE_CPU": "true"},
    )
    assert done.returncode == 0, done.stderr
    count, distance = re.findall(r"(\d+) process\(es\): energy distance ([\d.]+)", done.stdout)[0]
    return int(count), float(distance)


@pytest.mark.slow
@pytest.mark.parametrize("example", ["ddp.py", "accelerate_ddp.py"])
def test_an_example_ends_at_the_same_model_in_one_process_and_in_two(example: str) -> None:
    if example.startswith("accelerate"):
        pytest.importorskip(
            "accelerate", reason="accelerate is not installed: its example was not run"
        )
    (one, alone), (two, together) = (told_by(example, processes) for processes in (1, 2))
    assert (one, two) == (1, 2)
    assert together == pytest.approx(alone, rel=0.05)  # many steps in single precision
    assert 0 < alone < 0.01
