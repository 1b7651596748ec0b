"""Training on attributes that are numbers: what two values show exactly, batches, streams,
mixed attributes, files.
"""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest
import torch

from metrifair import (
    DataError,
    FairClassifier,
    FairRegressor,
    PenaltyOptions,
    SearchOptions,
    load,
    unfairness,
)
from metrifair.errors import MetrifairWarning
from metrifair.metrics import energy_dependence, energy_distance, kolmogorov_distance
from tests.expected_errors import Refusals
from tests.flat_options import with_penalty
from tests.one_split import frontier
from tests.seams.batches import Batch, Samples, layout
from tests.seams.estimators import trainable
from tests.seams.metrics import dependence_value
from tests.seams.problem import Dependence, Inputs, Sides, candidate_cuts, make_problem
from tests.seams.training import Objective, regression


def people(n: int = 240, seed: int = 0):
    generator = np.random.default_rng(seed)
    age, sex = generator.integers(18, 90, n).astype(float), generator.integers(2, size=n)
    X = generator.normal(size=(n, 3))
    X[:, 0] += (age - 50) / 20
    X[:, 1] += sex
    y = (X.sum(1) + generator.normal(size=n) > 0.5).astype(int)
    return X, y, age, sex


SETTINGS = {
    "solver": {"model": "linear"},
    "all rows": {"model": "mlp", "epochs": 15},
}


@pytest.mark.parametrize("criterion", ["statistical_parity", "equalized_odds"])
@pytest.mark.parametrize("setting", ["solver", "all rows"])
def test_a_number_with_two_values_trains_like_two_groups(setting: str, criterion: str) -> None:
    X, y, _, sex = people()
    weight = np.random.default_rng(1).random(len(y)) + 0.5
    options = {"criterion": criterion, "random_state": 0, **SETTINGS[setting]}
    by_groups, by_number = (
        FairClassifier(2.0, continuous=continuous, **with_penalty(**options))
        .fit(X, y, sensitive_features=3.0 + 10 * sex, sample_weight=weight)
        .predict_proba(X)
        for continuous in (False, True)
    )
    # One objective, but two ways to search: the bottom is flat.
    np.testing.assert_allclose(by_number, by_groups, atol=5e-3 if setting == "solver" else 1e-9)


def test_dependence_falls_as_the_strength_rises_and_that_on_other_attributes_stays() -> None:
    X, y, age, sex = people(200)
    found = []
    for strength in (0, 3):
        model = FairClassifier(strength, model="linear", continuous=True).fit(
            X, y, sensitive_features=age
        )
        found.append(energy_dependence(model.predict_proba(X)[:, 1], age))
    assert all(later < 0.8 * earlier for earlier, later in pairwise(found))
    both = FairClassifier(3, model="linear", continuous=["age"])
    score = both.fit(X, y, sensitive_features={"age": age, "sex": sex}).predict_proba(X)[:, 1]
    assert energy_dependence(score, age) < found[0] / 10
    assert energy_distance(score[sex == 0], score[sex == 1]) < 0.03


def test_a_slope_on_age_is_driven_to_zero() -> None:
    generator = np.random.default_rng(0)
    age, x = generator.normal(size=(2, 300))
    X, y = np.stack([x, age], 1), x + age
    slopes = [
        abs(
            FairRegressor(s, model="linear", continuous=True)
            .fit(X, y, sensitive_features=age)
            .coef_.ravel()[1]
        )
        for s in (0, 0.2, 0.5, 1, 2)
    ]
    assert slopes[0] == pytest.approx(1.0, abs=1e-6)
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(slopes))
    assert slopes[-1] < 0.25


def test_stratified_batches_estimate_the_dependence_of_all_rows_whatever_else_they_are_stratified_by() -> (
    None
):
    """Two cells, of 6 and 5 rows, by sex; the dependence on age is that within both together."""
    generator = np.random.default_rng(0)
    table = {"age": generator.normal(size=11).round(1), "sex": np.repeat([0, 1], [6, 5])}
    problem = make_problem(Inputs(sensitive_features=table), continuous=["age"])
    aim = FairClassifier(penalty=PenaltyOptions(estimate="rows"), model="mlp")
    comparisons = trainable(aim, problem).comparisons
    objective = Objective(regression(), comparisons)
    plan = layout([6, 5], comparisons, size=8)
    assert plan.counts == (4, 4)
    output, value = (
        torch.tensor(generator.normal(size=11)),
        torch.as_tensor(problem.attribute_values),
    )
    shares, sizes = torch.tensor([6 / 11, 5 / 11]).double(), torch.tensor([6, 5])
    sides = tuple(plan.sides(one, shares, sizes) for one in comparisons)
    found = []
    for rows in product(combinations(range(6), 4), combinations(range(6, 11), 4)):
        chosen = torch.tensor(sum(rows, ()))
        samples = Samples(torch.zeros(8, 0), output[chosen], chosen, torch.ones(8), value[chosen])
        found.append(float(objective(output[chosen], Batch(samples, sides)).unfairness))
    groups = energy_distance(output[:6].numpy(), output[6:].numpy())
    expected = energy_dependence(output.numpy(), table["age"]) + groups
    assert np.mean(found) == pytest.approx(expected, rel=1e-10)


def test_a_stream_of_nothing_has_no_dependence_on_average_and_the_plug_in_has() -> None:
    generator = torch.Generator().manual_seed(0)
    z, a = (
        torch.randn(4000, 16, generator=generator).double(),
        torch.randn(4000, 16, 1, generator=generator).double(),
    )
    side = Sides(slice(0, 16), (16,), (), dependence=Dependence((0,), scale=1.0))
    of_score = {
        estimate: (found := dependence_value(z, side, values=a, estimate=estimate)).mean()
        / found.std()
        * 4000**0.5
        for estimate in ("population", "batch")
    }
    assert abs(of_score["population"]) < 4
    assert of_score["batch"] > 50


def test_a_stream_learns_from_numbers_however_it_is_cut_and_goes_on_from_a_file(tmp_path) -> None:
    X, y, age, sex = people(300)

    def learnt(size: int, rows: slice = slice(None)) -> FairClassifier:
        model = FairClassifier(
            3.0,
            hidden=(4,),
            random_state=0,
            continuous=["age"],
            criterion="equal_opportunity",
            model="mlp",
        )
        for start in range(*rows.indices(300))[::size]:
            part = slice(start, min(start + size, rows.indices(300)[1]))
            table = {"age": age[part], "sex": sex[part]}
            model.partial_fit(
                X[part], y[part], sensitive_features=table, classes=[0, 1], groups={"sex": [0, 1]}
            )
        return model

    one, many = learnt(300), learnt(7)
    assert one.n_updates_ == many.n_updates_ > 5
    np.testing.assert_allclose(one.predict_proba(X), many.predict_proba(X), atol=1e-12)
    assert set(one.learner_.scales) == {"age, label=1"}
    half = learnt(7, slice(0, 140))
    half.save(tmp_path / "half")
    again = load(tmp_path / "half")
    rest = {"sensitive_features": {"age": age[140:], "sex": sex[140:]}}
    again.partial_fit(X[140:], y[140:], **rest)
    # The file has no samples that wait and no moments of the optimizer: the stream goes on nearby.
    assert set(again.learner_.scales) == {"age, label=1"}
    assert again.n_updates_ > half.n_updates_
    after = np.abs(again.predict_proba(X) - one.predict_proba(X)).max()
    assert after < np.abs(half.predict_proba(X) - one.predict_proba(X)).max()
    assert after < 0.02


def test_batches_of_four_will_do() -> None:
    X, y, age, _ = people(40)
    model = FairClassifier(1.0, batch_size=4, random_state=0, continuous=True, model="mlp")
    model.partial_fit(X, y, sensitive_features=age)
    assert model.n_updates_ == 10


def test_vector_scores_are_projected() -> None:
    X, _, age, _ = people(120)
    y = np.digitize(X.sum(1), [-0.5, 1.0])
    found = []
    for strength in (0, 10):
        model = FairClassifier(
            strength, epochs=40, random_state=0, continuous=True, model="mlp"
        ).fit(X, y, sensitive_features=age)
        found.append(sum(energy_dependence(column, age) for column in model.predict_proba(X).T))
    assert found[1] < found[0] / 3


def test_unfairness_of_a_number_is_the_dependence_or_the_worst_cut() -> None:
    X, _, age, sex = people()
    assert unfairness(
        None, X[:, 0], sensitive_features=age, continuous=True, metric="energy"
    ) == pytest.approx(energy_dependence(X[:, 0], age), rel=1e-12)
    worst = max(
        kolmogorov_distance(X[age <= cut, 0], X[age > cut, 0]) for cut in candidate_cuts(age)
    )
    assert unfairness(None, X[:, 0], sensitive_features=age, continuous=True) == pytest.approx(
        worst, abs=1e-12
    )
    table = {"age": age, "sex": sex}
    both = unfairness(None, X[:, 0], sensitive_features=table, continuous=["age"], reduce="sum")
    assert both == pytest.approx(
        worst + kolmogorov_distance(X[sex == 0, 0], X[sex == 1, 0]), abs=1e-12
    )
    with pytest.warns(MetrifairWarning, match="'age' .70 different values. is taken as a number"):
        unfairness(None, X[:, 0], sensitive_features=table)


def test_a_frontier_is_judged_by_bands_of_the_number() -> None:
    X, y, age, _ = people(500)
    estimator = FairClassifier(model="linear", continuous=["sensitive_features"])
    front = frontier(estimator, X, y, sensitive_features=age, strengths=[0, 10], random_state=0)
    assert front.points[1].unfairness < front.points[0].unfairness / 1.5
    told = frontier(
        FairClassifier(model="linear"),
        X,
        y,
        sensitive_features=age,
        strengths=[0, 10],
        random_state=0,
        search=SearchOptions(continuous=True),
    )
    assert told.points == front.points


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metric": "mmd"},
            (
                "how much scores depend on sensitive_features is measured by metric='energy' only, "
                "got "
                "'mmd'"
            ),
        ),
        (
            {"continuous": ["income"]},
            "continuous names 'income', which is none of the sensitive features",
        ),
    ],
)
def test_what_cannot_be_trained_is_said(options, message: str) -> None:
    X, y, age, _ = people(40)
    with pytest.raises(DataError) as error:
        FairClassifier(**with_penalty(**{"continuous": True, **options})).fit(
            X, y, sensitive_features=age
        )
    assert message in str(error.value)


def test_a_number_with_one_value_is_left_out_or_refused(refused: Refusals) -> None:
    X, y, _, sex = people(40)
    table = {"age": np.full(40, 30.0), "sex": sex}
    with pytest.warns(MetrifairWarning, match="age .all values are equal."):
        model = FairClassifier(1.0, model="linear", continuous=["age"]).fit(
            X, y, sensitive_features=table
        )
    assert model.left_out_ == ("age (all values are equal)",)
    with refused(DataError):
        FairClassifier(1.0, continuous=True, model="mlp").fit(
            X, y, sensitive_features={"age": table["age"]}
        )
