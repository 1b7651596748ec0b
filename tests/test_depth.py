"""How far a reader has to follow `fit`, `audit` and `frontier`: the modules of ours that run,
counted.

Depth is a cost: a call that begins to run through more rooms than these is either simplified, or
its limit is raised here on purpose.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import metrifair
from metrifair import FairClassifier, audit, frontier
from tests.flat_options import flat

ROOT = str(Path(metrifair.__file__).parent)
GENERATOR = np.random.default_rng(0)
A = GENERATOR.integers(2, size=1_500)
X = GENERATOR.normal(size=(1_500, 3)) + A[:, None]
Y = (X.sum(1) > 1.5).astype(int)
QUICK = {"resamples": 20, "permutations": 5, "random_state": 0}

CALLS: dict[str, tuple[int, Callable[[], Any]]] = {
    # Of these one reads names of unknown groups, and 5 let audits do without torch: where tensors
    # begin (samples, objective), and the namespaces, NumPy's among them, whose steps cost a
    # fraction of torch's on batches. One more came with the entries of group probabilities, and one
    # with the warning of rows without a group.
    "fit": (
        24,
        lambda: FairClassifier(epochs=2, random_state=0, model="mlp").fit(
            X, Y, sensitive_features=A
        ),
    ),
    # Of these 4 are figures by group (AUC, calibration), their intervals and quantiles, 2
    # namespaces, 1 provenance, 1 the gap that the rows could have shown, and 3 what concerns many
    # audits: names of unknown groups, group probabilities, and how findings are resampled. 10 came
    # when files of auditing with two or three subjects became one file for each subject, and one with
    # warnings that name the user's line.
    "audit": (45, lambda: audit(Y, X[:, 0], sensitive_features=A, **flat(**QUICK))),
    # Of these 4 are utilities and quantiles, 3 families and where they run, one is how to search,
    # one where all comes from, one is about rows that repeat others, one about families that suit
    # the data, one shares fits, one reads names of unknown groups, and one ids that repeat. 5 came
    # with the choice by cross-validation: folds, configurations, resamples, gaps and the rule; 2
    # with the notes on features that show the group and on rows without one; one with warnings
    # that name the user's line.
    "frontier": (
        49,
        lambda: frontier(
            FairClassifier(epochs=2, model="mlp"),
            X,
            Y,
            sensitive_features=A,
            strengths=[0, 1],
            test=0.25,
            random_state=0,
        ),
    ),
}


def modules_run(call: Callable[[], Any]) -> set[str]:
    found: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name != "<module>":
            found.add(code.co_filename.removeprefix(ROOT))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_call_runs_through_few_modules(name: str) -> None:
    limit, call = CALLS[name]
    found = modules_run(call)
    assert len(found) <= limit, sorted(found)
    assert len(found) > 5  # the count itself works
