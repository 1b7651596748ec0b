"""The published loop against a plain one, the data with their settings, arrays that travel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from experiments import data, mfl
from experiments.data import Splits, load, read_arrays, source, write_arrays
from experiments.mfl import DECAYING, LINEAR, NETWORK, floored_epochs, sweep, variants
from experiments.settings import CORRECTED, DATA, PUBLISHED, Case, Effort, cases
from metrifair import datasets
from tests.seams.batches import Layout, Samples
from tests.seams.problem import Comparison
from tests.seams.training import Network


def made_up(n: int = 240, seeds: int = 3) -> Splits:
    rng = np.random.default_rng(0)
    a = (rng.random(n) < 0.7).astype(np.int64)
    x = np.column_stack([rng.normal(size=(n, 3)) + a[:, None], a])
    y = (x[:, 0] + rng.normal(size=n) > 0.7).astype(np.float64)
    orders = [np.random.default_rng(seed).permutation(n) for seed in range(seeds)]
    train, test = (
        np.stack([order[part] for order in orders]) for part in (slice(0, 180), slice(180, None))
    )
    return Splits(x, y, a, train, test)


def pairwise(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The unbiased energy distance, over all pairs."""

    def mean(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a[:, None] - b).abs().mean()

    n, m = len(u), len(v)
    return 2 * mean(u, v) - n / (n - 1) * mean(u, u) - m / (m - 1) * mean(v, v)


def authors_loop(
    splits: Splits,
    seed: int,
    strength: float,
    *,
    batch_size: int,
    epochs: int,
    rate: float,
    hidden: int,
) -> np.ndarray[Any, Any]:
    """Scores of the test rows after a plain loop: fixed counts, equal weights, unscaled inputs,
    penalty on logits.

    Weights and the order of the rows begin as ours do; all else is written out. ``hidden`` 0: a
    linear model.
    """
    group, rows = torch.as_tensor(splits.a), torch.as_tensor(splits.train[seed])
    x, y = torch.as_tensor(splits.x).float(), torch.as_tensor(splits.y).float()
    counts = [int(batch_size * (splits.a[splits.train[seed]] == code).mean()) for code in (0, 1)]
    samples = Samples(x.double(), y.double(), group, torch.ones(len(group)))
    source = floored_epochs(samples, [rows], Layout(tuple(counts)), (Comparison((0,), (1,)),))
    generator = torch.Generator().manual_seed(seed)
    start = Network(x.shape[1], (hidden,) if hidden else ()).initial(seed)
    layers = [
        [start[f"{kind}{at}"].float().requires_grad_() for kind in ("weight", "bias")]
        for at in range(1 + (hidden > 0))
    ]
    optimizer = torch.optim.Adam([part for layer in layers for part in layer], lr=rate)

    def forward(some: torch.Tensor) -> torch.Tensor:
        for at, (weight, bias) in enumerate(layers):
            some = (some.relu() if at else some) @ weight.T + bias.T
        return some.squeeze(1)

    for _ in range(epochs):
        dealt = source.draw([generator], lambda: torch.empty(0)).rows[0]
        assert dealt.shape == (len(rows) // sum(counts), sum(counts))  # leftovers are dropped
        assert len(dealt.unique()) == dealt.numel()  # without replacement within an epoch
        assert set(dealt.flatten().tolist()) <= set(rows.tolist())
        for chosen in dealt:
            assert torch.bincount(group[chosen]).tolist() == counts
            output = forward(x[chosen])
            risk = torch.nn.functional.binary_cross_entropy_with_logits(output, y[chosen])
            optimizer.zero_grad()
            (risk + strength * pairwise(output[: counts[0]], output[counts[0] :])).backward()
            optimizer.step()
    with torch.no_grad():
        return forward(x[torch.as_tensor(splits.test[seed])]).sigmoid().double().numpy()


def scores_of(
    case: Case,
    splits: Splits,
    variant: mfl.Variant,
    strengths: list[float],
    seed: int,
    monkeypatch: Any,
) -> np.ndarray[Any, Any]:
    """What the experiment measures: the scores (strengths, n) of a seed's test rows."""
    measured: list[Any] = []
    monkeypatch.setattr(
        mfl, "results_of", lambda *_, scores, **__: measured.append(np.stack(scores)) or []
    )
    sweep(case, splits, variant=variant, strengths=strengths, seeds=[seed], device="cpu")
    (found,) = measured
    return found


@pytest.mark.parametrize(("variant", "hidden"), [(LINEAR, 0), (NETWORK, 16)])
def test_the_published_case_follows_a_plain_pytorch_loop(
    variant: mfl.Variant, hidden: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the paper's learning rate, and what the published penalty acts on; only batches are
    smaller.
    """
    (case,) = [
        one for one in cases("classification", PUBLISHED, Effort.of(10)) if one.name == "drug"
    ]
    case = replace(case, data=replace(case.data, batch_size=32, epochs=30))
    found = scores_of(case, made_up(), variant, [0.3, 10.0], 1, monkeypatch)
    for strength, own in zip((0.3, 10.0), found, strict=True):
        loop = authors_loop(
            made_up(), 1, strength, batch_size=32, epochs=30, rate=5e-4, hidden=hidden
        )
        np.testing.assert_allclose(own, loop, atol=1e-4)
    others = [
        replace(case, protocol=replace(PUBLISHED, penalize="prediction")),
        replace(case, data=replace(case.data, learning_rate=6e-4)),
        replace(case, protocol=replace(PUBLISHED, floored=False)),
    ]
    for other in others:  # what would be another experiment gives other scores
        different = scores_of(other, made_up(), variant, [0.3, 10.0], 1, monkeypatch)
        assert np.abs(different - found).max() > 5e-4


def test_a_seed_does_not_depend_on_those_trained_beside_it() -> None:
    splits = made_up()
    case = Case(
        "classification", PUBLISHED, "raw", "drug", replace(DATA["drug"], batch_size=32, epochs=2)
    )

    def figures(seeds: list[int]) -> dict[tuple[int, float], float]:
        results = sweep(
            case, splits, variant=NETWORK, strengths=[0.0, 1.0], seeds=seeds, device="cpu"
        )
        return {(one.seed, one.strength): one.kolmogorov for one in results}

    together = figures([0, 1, 2])
    assert len(together) == 6
    assert together == pytest.approx(figures([0]) | figures([1]) | figures([2]), abs=0.03)


def test_cases_of_the_tables() -> None:
    effort = Effort.of(10)
    assert [case.name for case in cases("regression", PUBLISHED, effort)] == [
        "student-math", "student-portuguese", "communities-regression",
    ]  # fmt: skip
    corrected = cases("classification", CORRECTED, effort)
    assert [(case.input, case.name) for case in corrected][4:6] == [
        ("raw", "drug-heroin"),
        ("standard", "drug"),
    ]
    assert all(
        case.criterion.labels == "positive"
        for case in cases("equal-opportunity", PUBLISHED, effort)
    )
    assert variants(cases("classification", PUBLISHED, effort)[0]) == (LINEAR, NETWORK, *DECAYING)
    assert [(one.method, one.network, one.decay) for one in DECAYING] == [
        ("mfl-linear-decay", False, 0.99), ("mfl-nn-decay", True, 0.99),
    ]  # fmt: skip
    assert variants(corrected[0]) == (LINEAR, NETWORK)


def test_arrays_travel_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = made_up()
    monkeypatch.setattr(
        data,
        "load",
        lambda name, inputs, **_: one if inputs == "raw" else replace(one, y=1 - one.y),
    )
    write_arrays(tmp_path / "arrays.npz", seeds=3)
    back = read_arrays(tmp_path / "arrays.npz")
    assert back.keys() == {(name, inputs) for name in DATA for inputs in ("raw", "standard")}
    assert (
        back["drug", "raw"].fingerprint([0, 2])
        == one.fingerprint([0, 2])
        != one.fingerprint([0, 1])
    )
    assert (back["drug", "standard"].y == 1 - one.y).all()
    assert one.without_group.shape == (240, 3)
    assert not one.prescribed
    assert replace(one, train=one.train[:1]).prescribed


@pytest.mark.parametrize("name", DATA)
def test_the_data_are_the_paper_s(name: str, raw_data: Path) -> None:
    about, splits = DATA[name], load(name, "raw", seeds=2)
    known = datasets.load(about.source, **about.options)
    assert known.task == about.task
    train, test = known.split(1)
    np.testing.assert_array_equal(splits.train[1], train)
    np.testing.assert_array_equal(splits.test[1], test)
    share = 1.0 if known.prescribed else len(test) / len(known.y)
    rows = test if known.prescribed else np.arange(len(known.y))
    group, y = splits.a[rows], splits.y[rows]
    assert (
        tuple(round(float((group == code).sum()) * share) for code in (0, 1)) == about.test_groups
    )
    if about.test_positives:
        counts = tuple(round(float(((group == code) & (y == 1)).sum()) * share) for code in (0, 1))
        assert counts == about.test_positives


def test_adult_is_one_hot_where_it_is_standardized(raw_data: Path) -> None:
    few = source(Effort.of(1, quick=True))
    assert few("adult", "standard").x.shape[1] == 90
    assert few("adult", "raw").x.shape[1] == 12
    assert few("adult", "raw").train.shape == few("adult", "raw").test.shape == (1, 600)


# --- the authors' own loop, as it was measured: accuracy, gap of labels, Kolmogorov distance of
# scores, seed 0 --------

MEASURED = {
    "network": {
        0.01: (0.835, 0.274, 0.302),
        0.1: (0.833, 0.099, 0.235),
        1.0: (0.818, 0.021, 0.173),
    },
    "linear": {0.01: (0.820, 0.287, 0.313), 0.1: (0.814, 0.205, 0.230), 1.0: (0.820, 0.136, 0.162)},
}
# Ours: means over ten draws of weights and batches on that split. One draw differs from the next by
# 0.02 to 0.04 in the gap of labels (41 test rows are in group 0), so a single one, theirs or ours,
# shows little.
OURS = {
    "network": {
        0.01: (0.831, 0.271, 0.297),
        0.1: (0.824, 0.143, 0.222),
        1.0: (0.824, 0.086, 0.196),
    },
    "linear": {0.01: (0.822, 0.307, 0.323), 0.1: (0.815, 0.195, 0.239), 1.0: (0.815, 0.106, 0.149)},
}


@pytest.mark.parametrize(("variant", "hidden"), [(LINEAR, 0), (NETWORK, 16)])
def test_drug_follows_a_plain_loop_on_the_published_batches(
    variant: mfl.Variant, hidden: int, raw_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case("classification", PUBLISHED, "raw", "drug", replace(DATA["drug"], epochs=20))
    splits = load("drug", "raw", seeds=1)
    (found,) = scores_of(case, splits, variant, [1.0], 0, monkeypatch)
    loop = authors_loop(splits, 0, 1.0, batch_size=128, epochs=20, rate=5e-4, hidden=hidden)
    np.testing.assert_allclose(found, loop, atol=1e-4)


@pytest.mark.slow(rotate=False)
@pytest.mark.parametrize("model", ["network", "linear"])
def test_drug_as_the_authors_own_loop_has_it(model: str, raw_data: Path) -> None:
    """Theirs is a draw from where ours are (four standard deviations), and our means stay where
    they are.
    """
    case = Case("classification", PUBLISHED, "raw", "drug", DATA["drug"])
    first = load("drug", "raw", seeds=1)
    splits = replace(first, train=first.train.repeat(10, 0), test=first.test.repeat(10, 0))
    variant = NETWORK if model == "network" else LINEAR
    results = sweep(
        case, splits, variant=variant, strengths=list(OURS[model]), seeds=range(10), device="cpu"
    )
    for strength, ours in OURS[model].items():
        found = np.array(
            [
                (one.accuracy, one.label_gap, one.kolmogorov)
                for one in results
                if one.strength == strength
            ]
        )
        assert found.shape == (10, 3)
        assert (np.abs(found.mean(0) - ours) < (0.01, 0.03, 0.02)).all()
        spread = np.maximum(found.std(0, ddof=1), (0.003, 0.015, 0.01))
        assert (np.abs(found.mean(0) - MEASURED[model][strength]) < 4 * spread).all()
