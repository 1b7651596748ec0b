"""Work that is kept on one thread: what is asked of torch there, before, after, meanwhile, and
by others.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from metrifair import FairClassifier
from tests.seams.training import Adam, loop, one_thread, solver

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def threads_elsewhere() -> int:
    """Of a thread that is started now, after it has worked."""
    found: list[int] = []

    def work() -> None:
        torch.ones(100_000).exp().sum()
        found.append(torch.get_num_threads())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.usefixtures("three_threads")
def test_one_thread_is_a_matter_of_the_calling_thread_alone() -> None:
    with one_thread():
        torch.ones(100_000).exp().sum()
        assert (torch.get_num_threads(), threads_elsewhere()) == (1, 3)
    assert (torch.get_num_threads(), threads_elsewhere()) == (3, 3)
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize(("most", "threads"), [(loop._MOST_ON_ONE_THREAD, 1), (0, 3)])
def test_small_stacks_train_on_one_thread_and_large_ones_on_as_many_as_the_user_set(
    monkeypatch: pytest.MonkeyPatch, most: int, threads: int
) -> None:
    seen: set[int] = set()
    step = Adam.step
    monkeypatch.setattr(
        Adam, "step", lambda adam: (seen.add(torch.get_num_threads()), step(adam))[1]
    )
    monkeypatch.setattr(loop, "_MOST_ON_ONE_THREAD", most)
    generator = np.random.default_rng(0)
    x, group = generator.normal(size=(60, 2)), np.arange(60) % 2
    FairClassifier(epochs=2, random_state=0, model="mlp").fit(
        x, x[:, 0] > 0, sensitive_features=group
    )
    assert seen == {threads}
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize(("most", "threads"), [(loop._MOST_ON_ONE_THREAD, 1), (0, 3)])
def test_small_linear_models_are_solved_on_one_thread(
    monkeypatch: pytest.MonkeyPatch, most: int, threads: int
) -> None:
    seen: set[int] = set()
    minimize = solver.minimize

    def watched(*arguments: Any, **named: Any) -> Any:
        seen.add(torch.get_num_threads())
        return minimize(*arguments, **named)

    monkeypatch.setattr(solver, "minimize", watched)
    monkeypatch.setattr(loop, "_MOST_ON_ONE_THREAD", most)
    generator = np.random.default_rng(0)
    x, group = generator.normal(size=(60, 2)), np.arange(60) % 2
    fair = FairClassifier(model="linear", weight_decay=0.1)
    fair.fit(x, x[:, 0] > 0, sensitive_features=group)
    assert seen == {threads}
    assert torch.get_num_threads() == 3
