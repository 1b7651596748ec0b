"""Adding a metric is one function and one row: everything that works with metrics then works
with it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from metrifair import FairClassifier, audit, audit_file, unfairness
from metrifair.errors import DataError
from metrifair.metrics import distances, witness
from metrifair.nn import UnfairnessPenalty
from tests.expected_errors import Refusals
from tests.flat_options import flat
from tests.seams.figures import certified_distance, dkw_radius
from tests.seams.metrics import METRICS, Integral, MetricFacts, Pair, line, vector_metric
from tests.seams.wording import METRIC_WORDS, MetricWords, finding_meaning

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

QUICK: dict[str, Any] = {"resamples": 40, "permutations": 19, "random_state": 0}
RANDOM = np.random.default_rng(5)
GROUP = np.repeat(["a", "b"], [90, 110])
SCORE = RANDOM.beta(np.where(GROUP == "a", 3.0, 2.0), 3.0)
LABEL = (RANDOM.random(200) < SCORE).astype(int)


def cubic(both: line.Merged) -> Any:
    """L^3 norm of the difference of the distribution functions."""
    return (abs(both.difference[..., :-1]) ** 3 * both.gaps).sum(-1) ** (1 / 3)


ROW = MetricFacts(
    lambda pair: cubic(line.merged(pair)),
    of_merged=cubic,
    degree=1 / 3,
    bracket=Integral(lambda gap: np.abs(gap) ** 3, power=1 / 3),
    certificate=line.norm_bound(3),
    witness=partial(line.slope_utility, p=3.0),
)
WORDS = MetricWords(
    "Cubic distance",
    "The third root of the cubed difference between the shares below a score, added up over all "
    "scores.",
    "The cubed gap between {first} and {second} adds up to the cube of {value}.",
)

BARE = MetricFacts(lambda pair: cubic(line.merged(pair)))


@pytest.fixture(autouse=True)
def _rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METRICS, "cubic", ROW)
    monkeypatch.setitem(METRICS, "bare", BARE)
    monkeypatch.setitem(METRIC_WORDS, "cubic", WORDS)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    lines = [f"{p!r},{g},{y}" for p, g, y in zip(SCORE.tolist(), GROUP, LABEL, strict=True)]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(["p,sex,y", *lines]))
    return path


def expected() -> float:
    at = np.sort(SCORE)
    below = [(SCORE[one == GROUP] <= at[:, None]).mean(1) for one in ("a", "b")]
    return float((np.abs(below[0] - below[1])[:-1] ** 3 * np.diff(at)).sum() ** (1 / 3))


@pytest.mark.parametrize("metric", ["cubic", "bare"])
def test_it_is_measured(metric: str) -> None:
    assert unfairness(None, SCORE, sensitive_features=GROUP, metric=metric) == pytest.approx(
        expected()
    )
    u, v = SCORE[GROUP == "a"], SCORE[GROUP == "b"]
    assert distances(u, v, [metric]) == {metric: pytest.approx(expected())}


@pytest.mark.parametrize("metric", ["cubic", "bare"])
def test_it_is_trained_on(metric: str) -> None:
    rng = np.random.default_rng(99)
    X = np.column_stack([SCORE, rng.normal(size=200)])
    gaps = []
    for strength in (0.0, 30.0):
        model = FairClassifier(strength, metric=metric, model="linear", epochs=30, random_state=0)
        model.fit(X, LABEL, sensitive_features=GROUP)
        gaps.append(
            unfairness(None, model.predict_proba(X)[:, 1], sensitive_features=GROUP, metric=metric)
        )
    assert gaps[1] < gaps[0]
    scores = torch.tensor(SCORE, requires_grad=True)
    penalty = UnfairnessPenalty(metric=metric, random_state=0)(scores, (GROUP == "b").astype(int))
    penalty.backward()
    assert penalty.item() == pytest.approx(expected())
    assert scores.grad is not None
    assert scores.grad.abs().sum() > 0


@pytest.mark.parametrize("metric", ["cubic", "bare"])
def test_it_is_audited_and_reported(metric: str, tmp_path: Path) -> None:
    found = audit(LABEL, SCORE, sensitive_features=GROUP, metrics=metric, **flat(**QUICK))
    finding = found.worst(metric, criterion="statistical_parity")
    assert finding.value == pytest.approx(expected())
    assert finding.unbiased is None
    assert 0 < finding.p_value <= 1
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    if metric == "bare":  # what its row lacks has its one consequence each
        assert finding.interval is finding.certified is finding.witness is None
        assert finding_meaning(finding) == ""
        assert "bare" in page
        return
    assert finding.interval.low <= finding.value <= finding.interval.high
    assert finding.witness is not None
    assert finding_meaning(finding).startswith(
        "The cubed gap between “a” and “b” adds up to the cube of 0."
    )
    assert WORDS.about in page


def test_it_is_certified() -> None:
    finding = audit(None, SCORE, sensitive_features=GROUP, metrics="cubic", **flat(**QUICK)).worst(
        "cubic"
    )
    radius = dkw_radius(90) + dkw_radius(110)
    assert finding.certified == certified_distance("cubic", finding.value, radius, width=1.0)
    assert finding.certified == pytest.approx(expected() + radius)
    assert certified_distance("bare", finding.value, radius, width=1.0) is None


def test_it_is_streamed(file: Path) -> None:
    found = audit_file(
        file, score="p", group="sex", metrics="cubic", **flat(in_memory_rows=20, **QUICK)
    )
    finding = found.worst("cubic")
    # added up in another order
    assert finding.bracket.low - 1e-12 <= expected() <= finding.bracket.high + 1e-12
    assert finding.bracket.high - finding.bracket.low <= 1e-6
    assert finding.certified is not None


def test_without_brackets_a_large_file_is_refused(file: Path, refused: Refusals) -> None:
    held = audit_file(file, score="p", group="sex", metrics="bare", **flat(**QUICK))
    assert held.worst("bare").value == pytest.approx(expected())
    with refused(DataError):
        audit_file(file, score="p", group="sex", metrics="bare", **flat(in_memory_rows=20, **QUICK))


def test_its_witness_shows_it(refused: Refusals) -> None:
    u, v = SCORE[GROUP == "a"], SCORE[GROUP == "b"]
    assert witness(u, v, metric="cubic").gap == pytest.approx(expected())
    with refused(DataError):
        witness(u, v, metric="bare")


def test_vectors_are_taken_one_coordinate_at_a_time() -> None:
    rng = np.random.default_rng(99)
    probabilities = np.column_stack([SCORE, rng.random(200)])
    groups = (GROUP == "b").astype(int)
    each = [
        unfairness(None, column, sensitive_features=GROUP, metric="cubic")
        for column in probabilities.T
    ]
    summed = UnfairnessPenalty(metric="cubic", random_state=0)(
        torch.tensor(probabilities), groups
    ).item()
    assert summed == pytest.approx(sum(each))
    assert vector_metric("cubic", estimate="rows", slices=2, generator=torch.Generator()) is None
    assert ROW.plug_in(Pair(torch.tensor([0.0, 2.0]), (1,), (1,))).item() == pytest.approx(
        2 ** (1 / 3)
    )
