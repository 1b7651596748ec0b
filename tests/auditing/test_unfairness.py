"""The one number of ``unfairness`` against SciPy and fairlearn, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import fairlearn.metrics
import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import special, stats
from scipy.spatial.distance import cdist
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer

from metrifair import audit, unfairness
from metrifair.criteria import EQUALIZED_ODDS, Criterion
from metrifair.errors import DataError, TooFewSamples
from tests.flat_options import flat

RANDOM = np.random.default_rng(21)
N = 240
GROUP = RANDOM.integers(0, 4, N)
LABEL = RANDOM.integers(0, 2, N)
KIND = RANDOM.integers(0, 3, N)
PREDICTION = np.round(special.expit(RANDOM.normal(size=N) + 0.5 * GROUP + LABEL), 2)  # with ties
SHARES = special.softmax(RANDOM.normal(size=(N, 3)) + 0.4 * GROUP[:, None] * [0, 1, -1], -1)
WEIGHT = RANDOM.uniform(0.2, 2.0, N)
REGION = RANDOM.choice(["north", "south"], N)


def kolmogorov(u: np.ndarray, v: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    grid = np.concatenate([u, v])
    return max(abs((a * (u <= t)).sum() / a.sum() - (b * (v <= t)).sum() / b.sum()) for t in grid)


Distance = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], float]
DISTANCES: dict[str, Distance] = {
    "kolmogorov": kolmogorov,
    "wasserstein": stats.wasserstein_distance,
    "energy": lambda *pair: stats.energy_distance(*pair) ** 2,
    "cramer": lambda *pair: stats.energy_distance(*pair) ** 2 / 2,
    "lp": lambda *pair: stats.energy_distance(*pair) / np.sqrt(2),
}


def each(
    distance: Distance,
    score: np.ndarray,
    group: np.ndarray,
    sets: list[np.ndarray],
    weight: np.ndarray | None = None,
    contrast: str = "pairs",
) -> list[float]:
    """The distance for every comparison, straight from the definition."""
    weight = np.ones(len(score)) if weight is None else weight
    known = np.unique(group[group >= 0])
    if contrast == "pairs":
        opponents = [(group == g, group == h) for g, h in combinations(known, 2)]
    else:
        opponents = [(group == g, (group >= 0) & (group != g)) for g in known]
    sides = [(left & inside, right & inside) for inside in sets for left, right in opponents]
    return [
        distance(score[left], score[right], weight[left], weight[right]) for left, right in sides
    ]


EVERYONE = [np.ones(N, dtype=bool)]
REDUCED = {"max": max, "sum": sum}


@pytest.mark.parametrize("reduce", REDUCED)
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("metric", DISTANCES)
@pytest.mark.parametrize("groups", [2, 3, 4])
def test_values_are_those_of_scipy(
    groups: int, metric: str, weight: np.ndarray | None, reduce: str
) -> None:
    group = GROUP % groups
    found = unfairness(
        None,
        PREDICTION,
        sensitive_features=group,
        metric=metric,
        sample_weight=weight,
        reduce=reduce,
    )
    expected = REDUCED[reduce](each(DISTANCES[metric], PREDICTION, group, EVERYONE, weight))
    assert isinstance(found, float)
    assert found == pytest.approx(expected, rel=1e-9)


SETS = {
    "statistical_parity": EVERYONE,
    "equal_opportunity": [LABEL == 1],
    "predictive_equality": [LABEL == 0],
    "equalized_odds": [LABEL == 0, LABEL == 1],
}
CONTROLS = {
    "a column": (REGION, [REGION == "north", REGION == "south"]),
    "booleans": (REGION == "north", [REGION == "north", REGION != "north"]),
    "two columns of booleans": (
        np.stack([REGION == "north", KIND > 0], 1),
        [
            (north == (REGION == "north")) & (some == (KIND > 0))
            for north in (False, True)
            for some in (False, True)
        ],
    ),
    "two columns": (
        {"region": REGION, "kind": KIND},
        [(r == REGION) & (k == KIND) for r in ("north", "south") for k in range(3)],
    ),
}


@pytest.mark.parametrize("contrast", ["pairs", "rest"])
@pytest.mark.parametrize("reduce", REDUCED)
@pytest.mark.parametrize("criterion", SETS)
def test_criteria_compare_within_their_sets(criterion: str, reduce: str, contrast: str) -> None:
    group = GROUP % 3
    options = {
        "criterion": criterion,
        "reduce": reduce,
        "contrast": contrast,
        "metric": "wasserstein",
    }
    found = unfairness(LABEL, PREDICTION, sensitive_features=group, **options)
    expected = each(DISTANCES["wasserstein"], PREDICTION, group, SETS[criterion], contrast=contrast)
    assert found == pytest.approx(REDUCED[reduce](expected))


@pytest.mark.parametrize(
    "criterion", ["conditional_statistical_parity", "statistical_parity", "equalized_odds"]
)
@pytest.mark.parametrize("control", CONTROLS)
def test_control_features_cut_the_sets(control: str, criterion: str) -> None:
    given, strata = CONTROLS[control]
    group = GROUP % 2
    sets = [first & second for first in SETS.get(criterion, EVERYONE) for second in strata]
    options = {
        "criterion": criterion,
        "control_features": given,
        "metric": "energy",
        "reduce": "sum",
    }
    found = unfairness(LABEL, PREDICTION, sensitive_features=group, sample_weight=WEIGHT, **options)
    assert found == pytest.approx(sum(each(DISTANCES["energy"], PREDICTION, group, sets, WEIGHT)))


def test_samples_without_group_or_stratum_count_nowhere() -> None:
    group = np.where(np.arange(N) % 5 == 0, -1, GROUP % 3)
    named = [None if g < 0 else f"group {g}" for g in group]
    region = [None if k % 7 == 0 else r for k, r in enumerate(REGION)]
    known = np.array([r is not None for r in region])
    assert unfairness(None, PREDICTION, sensitive_features=named) == pytest.approx(
        max(each(kolmogorov, PREDICTION, group, EVERYONE))
    )
    found = unfairness(
        None, PREDICTION, sensitive_features=named, control_features=region, reduce="sum"
    )
    strata = [known & (REGION == "north"), known & (REGION == "south")]
    assert found == pytest.approx(sum(each(kolmogorov, PREDICTION, group, strata)))


def test_several_attributes_are_compared_each_or_crossed() -> None:
    table = {"first": GROUP % 2, "second": KIND}
    apart = each(kolmogorov, PREDICTION, GROUP % 2, EVERYONE) + each(
        kolmogorov, PREDICTION, KIND, EVERYONE
    )
    crossed = each(kolmogorov, PREDICTION, 3 * (GROUP % 2) + KIND, EVERYONE)
    for reduce, function in REDUCED.items():
        assert unfairness(
            None, PREDICTION, sensitive_features=table, reduce=reduce
        ) == pytest.approx(function(apart))
        found = unfairness(
            None, PREDICTION, sensitive_features=table, reduce=reduce, intersectional=True
        )
        assert found == pytest.approx(function(crossed))


@pytest.mark.parametrize("positive", ["no", "yes"])
@pytest.mark.parametrize(
    ("criterion", "same"), [("equal_opportunity", True), ("predictive_equality", False)]
)
def test_labels_may_be_strings_and_the_positive_one_is_chosen(
    criterion: str, same: bool, positive: str
) -> None:
    label = np.where(LABEL == 1, "yes", "no")
    found = unfairness(
        label,
        PREDICTION,
        sensitive_features=GROUP,
        criterion=criterion,
        pos_label=positive,
        metric="wasserstein",
    )
    expected = each(DISTANCES["wasserstein"], PREDICTION, GROUP, [(label == positive) == same])
    assert found == pytest.approx(max(expected))
    if positive == "yes":  # the later one is the default
        default = unfairness(
            list(label),
            PREDICTION,
            sensitive_features=GROUP,
            criterion=criterion,
            metric="wasserstein",
        )
        assert default == found


def test_labels_may_be_many() -> None:
    options = {"sensitive_features": GROUP % 2, "metric": "wasserstein", "reduce": "sum"}
    distance = DISTANCES["wasserstein"]
    found = unfairness(KIND, PREDICTION, criterion="equalized_odds", **options)
    assert found == pytest.approx(
        sum(each(distance, PREDICTION, GROUP % 2, [k == KIND for k in range(3)]))
    )
    found = unfairness(KIND, PREDICTION, criterion="predictive_equality", pos_label=2, **options)
    assert found == pytest.approx(sum(each(distance, PREDICTION, GROUP % 2, [KIND != 2])))


@pytest.mark.parametrize("criterion", ["statistical_parity", "equalized_odds"])
def test_class_probabilities_are_compared_as_vectors_or_class_by_class(criterion: str) -> None:
    sets = EVERYONE if criterion == "statistical_parity" else [k == KIND for k in range(3)]
    options = {"sensitive_features": GROUP % 2, "criterion": criterion}

    def energy(u: np.ndarray, v: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
        a, b = a / a.sum(), b / b.sum()
        return 2 * a @ cdist(u, v) @ b - a @ cdist(u, u) @ a - b @ cdist(v, v) @ b

    for weight in (None, WEIGHT):
        found = unfairness(KIND, SHARES, metric="energy", sample_weight=weight, **options)
        assert found == pytest.approx(max(each(energy, SHARES, GROUP % 2, sets, weight)))
        apart = [
            value
            for k in range(3)
            for value in each(kolmogorov, SHARES[:, k], GROUP % 2, sets, weight)
        ]
        for reduce, function in REDUCED.items():
            found = unfairness(KIND, SHARES, sample_weight=weight, reduce=reduce, **options)
            assert found == pytest.approx(function(apart))


BINS = Criterion("binned", labels="every", bins=(-0.5, 0.5))
OVERLAP = Criterion(
    "overlap", sets=lambda y: np.stack([y > -0.5, y < 0.5], 1), set_names=("high", "low")
)
TARGET = RANDOM.normal(size=N)


@pytest.mark.parametrize(
    ("criterion", "sets"),
    [
        (BINS, [TARGET < -0.5, (TARGET >= -0.5) & (TARGET < 0.5), TARGET >= 0.5]),
        (OVERLAP, [TARGET > -0.5, TARGET < 0.5]),
    ],
)
def test_sets_of_a_regression_target(criterion: Criterion, sets: list[np.ndarray]) -> None:
    found = unfairness(
        TARGET, PREDICTION, sensitive_features=GROUP % 2, criterion=criterion, reduce="sum"
    )
    assert found == pytest.approx(sum(each(kolmogorov, PREDICTION, GROUP % 2, sets)))


LOSSES = {
    "squared_error": (TARGET, (PREDICTION - TARGET) ** 2),
    "absolute_error": (TARGET, np.abs(PREDICTION - TARGET)),
    "huber": (TARGET, special.huber(1.0, PREDICTION - TARGET)),
    "log_loss": (LABEL, -np.log(np.where(LABEL == 1, PREDICTION, 1 - PREDICTION))),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_risk_parity_compares_losses(loss: str) -> None:
    y, expected = LOSSES[loss]
    options = {"criterion": "risk_parity", "loss": loss, "metric": "wasserstein"}
    found = unfairness(y, PREDICTION, sensitive_features=GROUP, **options)
    assert found == pytest.approx(max(each(DISTANCES["wasserstein"], expected, GROUP, EVERYONE)))


def test_risk_parity_of_class_probabilities() -> None:
    loss = -np.log(SHARES[np.arange(N), KIND])
    options = {"criterion": "risk_parity", "loss": "log_loss", "metric": "energy"}
    found = unfairness(KIND, SHARES, sensitive_features=GROUP, **options)
    assert found == pytest.approx(max(each(DISTANCES["energy"], loss, GROUP, EVERYONE)))


def test_scores_may_be_functions_and_logarithms() -> None:
    logs = Criterion("logs", score="log_prediction")
    found = unfairness(
        None, PREDICTION, sensitive_features=GROUP, criterion=logs, metric="wasserstein"
    )
    assert found == pytest.approx(
        max(each(DISTANCES["wasserstein"], np.log(PREDICTION), GROUP, EVERYONE))
    )
    squares = Criterion("squares", score=lambda prediction, y: prediction**2, labels="every")
    found = unfairness(
        LABEL, PREDICTION, sensitive_features=GROUP, criterion=squares, metric="wasserstein"
    )
    sets = [LABEL == 0, LABEL == 1]
    assert found == pytest.approx(max(each(DISTANCES["wasserstein"], PREDICTION**2, GROUP, sets)))


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_a_metric_may_be_a_function(weight: np.ndarray | None) -> None:
    def gap(
        u: torch.Tensor, v: torch.Tensor, u_weights: object = None, v_weights: object = None
    ) -> torch.Tensor:
        a, b = (torch.ones_like(s) if w is None else w for s, w in ((u, u_weights), (v, v_weights)))
        return ((u * a).sum() / a.sum() - (v * b).sum() / b.sum()).abs()

    found = unfairness(None, PREDICTION, sensitive_features=GROUP, metric=gap, sample_weight=weight)
    expected = each(
        lambda u, v, a, b: abs(a @ u / a.sum() - b @ v / b.sum()),
        PREDICTION,
        GROUP,
        EVERYONE,
        weight,
    )
    assert found == pytest.approx(max(expected))


FAIRLEARN = [
    ("statistical_parity", fairlearn.metrics.demographic_parity_difference),
    ("equal_opportunity", fairlearn.metrics.equal_opportunity_difference),
    ("equalized_odds", fairlearn.metrics.equalized_odds_difference),
    ("predictive_equality", fairlearn.metrics.false_positive_rate_difference),
]


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize(("criterion", "difference"), FAIRLEARN)
def test_for_decisions_the_kolmogorov_distance_is_fairlearns_difference_of_rates(
    criterion: str, difference: Callable[..., float], groups: int, weight: np.ndarray | None
) -> None:
    decision, group = (PREDICTION > 0.6).astype(int), GROUP % groups
    options = {"sensitive_features": group, "sample_weight": weight}
    assert unfairness(LABEL, decision, criterion=criterion, **options) == pytest.approx(
        difference(LABEL, decision, **options)
    )


MAKERS = {
    "lists": list,
    "arrays": np.asarray,
    "pandas": pd.Series,
    "pandas frames": lambda values: pd.DataFrame({"column": values}),
    "polars": lambda values: pl.Series("column", values),
    "tensors": lambda values: torch.as_tensor(np.asarray(values)),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_the_make_of_the_arguments_does_not_matter(maker: str) -> None:
    y, prediction, group = (MAKERS[maker](values.tolist()) for values in (LABEL, PREDICTION, GROUP))
    found = unfairness(y, prediction, sensitive_features=group, criterion="equalized_odds")
    assert found == pytest.approx(max(each(kolmogorov, PREDICTION, GROUP, SETS["equalized_odds"])))


@pytest.fixture
def torch_warns_every_time() -> Iterator[None]:
    """Or what it warned of before in this process would go unseen."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.usefixtures("torch_warns_every_time")
@pytest.mark.parametrize(
    "maker", ["lists", "arrays", pytest.param("pandas"), pytest.param("polars")]
)
def test_the_make_of_the_weights_does_not_matter(maker: str) -> None:
    weight = MAKERS[maker](WEIGHT.tolist())
    found = unfairness(None, PREDICTION, sensitive_features=GROUP, sample_weight=weight)
    assert found == pytest.approx(max(each(kolmogorov, PREDICTION, GROUP, EVERYONE, WEIGHT)))


def test_whole_weights_count_like_repetitions_and_zeros_like_absence() -> None:
    rng = np.random.default_rng(99)
    times = rng.integers(0, 4, N)
    repeated = [np.repeat(values, times) for values in (LABEL, PREDICTION, GROUP)]
    options = {"criterion": "equalized_odds", "metric": "energy"}
    assert unfairness(
        LABEL, PREDICTION, sensitive_features=GROUP, sample_weight=times, **options
    ) == pytest.approx(
        unfairness(repeated[0], repeated[1], sensitive_features=repeated[2], **options)
    )


@pytest.mark.parametrize("response", ["predict", "predict_proba"])
def test_it_is_a_metric_for_scikit_learn(response: str) -> None:
    X, y = make_classification(200, random_state=0)
    group = (X[:, 0] > 0.3).astype(int)
    model = LogisticRegression().fit(X, y)
    prediction = model.predict(X) if response == "predict" else model.predict_proba(X)[:, 1]
    for criterion in ("statistical_parity", "equalized_odds"):
        options = {"sensitive_features": group, "criterion": criterion}
        scorer = make_scorer(
            unfairness, response_method=response, greater_is_better=False, **options
        )
        assert scorer(model, X, y) == -unfairness(y, prediction, **options) < 0


# What is refused. The base case works; each row spoils one thing.

GOOD = {
    "y_true": [0, 1, 0, 1, 0, 1],
    "y_pred": [0.1, 0.9, 0.4, 0.6, 0.2, 0.5],
    "sensitive_features": ["a", "a", "b", "b", "b", "a"],
}
ODDS = {"criterion": "equalized_odds"}
CRITERION_NAMES = (
    "'statistical_parity', 'equal_opportunity', 'predictive_equality', 'equalized_odds', "
    "'risk_parity', "
    "'conditional_statistical_parity'"
)
METRIC_NAMES = "'energy', 'kolmogorov', 'wasserstein', 'cramer', 'lp', 'mmd', 'total_variation'"
MANY = [
    (
        {"y_pred": [0.1, 0.2]},
        "arguments must have the same length, got y_pred 2, y_true 6, sensitive_features 6",
    ),
    (
        {"y_true": [0, 1]},
        "arguments must have the same length, got y_pred 6, y_true 2, sensitive_features 6",
    ),
    (
        {"sensitive_features": ["a", "b"], "control_features": [1] * 5, "sample_weight": [1] * 4},
        (
            "arguments must have the same length, got y_pred 6, y_true 6, sensitive_features 2, "
            "control_features 5, "
            "sample_weight 4"
        ),
    ),
    (
        {"y_pred": []},
        "arguments must have the same length, got y_pred 0, y_true 6, sensitive_features 6",
    ),
    (
        {"y_pred": [0.1, np.nan, 0.4, 0.6, 0.2, 0.5]},
        "y_pred contains NaN or infinite values; remove or replace them",
    ),
    (
        {"y_pred": [0.1, None, 0.4, 0.6, 0.2, 0.5]},
        "y_pred contains NaN or infinite values; remove or replace them",
    ),
    (
        {"y_pred": [0.1, np.inf, 0.4, 0.6, 0.2, 0.5]},
        "y_pred contains NaN or infinite values; remove or replace them",
    ),
    (
        {"y_pred": list("yesyes")},
        (
            "y_pred must contain numbers; its values are 'y' (2), 'e' (2), 's' (2); write the "
            "favorable decision as 1 "
            "and others as 0, or pass favorable_decision=... to audit"
        ),
    ),
    (
        {"y_pred": np.zeros((6, 2, 2))},
        "y_pred must be a column or a table of columns, got an array of shape (6, 2, 2)",
    ),
    (
        {"sensitive_features": ["a"] * 6},
        "sensitive_features has 1 group(s): ['a']; fairness between groups needs at least two",
    ),
    (
        {"sensitive_features": [None] * 6},
        "sensitive_features has 0 group(s): []; fairness between groups needs at least two",
    ),
    (
        {"sensitive_features": None},
        "sensitive_features is missing; pass the group of each sample",
    ),
    (
        {"sensitive_features": ["a", 1, "a", 1, "a", 1]},
        "sensitive_features mixes values that cannot be ordered (int, str); make them one type",
    ),
    (
        {"criterion": "equal_odds"},
        (
            f"criterion must be one of {CRITERION_NAMES} or a Criterion, got 'equal_odds'; "
            "did you mean 'equalized_odds'?"
        ),
    ),
    (
        {"metric": "wasserstien"},
        (
            f"metric must be one of {METRIC_NAMES} or a function, got 'wasserstien'; did you mean "
            "'wasserstein'?"
        ),
    ),
    ({"contrast": "all"}, "contrast must be one of 'pairs', 'rest', got 'all'"),
    (
        {"criterion": "risk_parity", "loss": "absolute"},
        (
            "loss must be one of 'squared_error', 'absolute_error', 'huber', got 'absolute'; "
            "did you mean 'absolute_error'?"
        ),
    ),
    (
        {"criterion": "risk_parity"},
        (
            "risk_parity compares losses; pass loss=...: 'log_loss' for probabilities, or "
            "'squared_error', "
            "'absolute_error', 'huber'"
        ),
    ),
    (
        {"y_true": [np.inf] * 6, "criterion": "risk_parity", "loss": "huber"},
        "y_true contains infinite values; leave those samples out",
    ),
    ({"y_true": None, **ODDS}, "equalized_odds needs the true labels; pass y_true=..."),
    (
        {"y_true": None, "criterion": "risk_parity", "loss": "huber"},
        "risk_parity needs the true labels; pass y_true=...",
    ),
    (
        {"y_true": None, "criterion": Criterion("mine", score=lambda p, y: p)},
        "mine needs the true labels; pass y_true=...",
    ),
    ({"y_true": np.zeros((6, 2)), **ODDS}, "y_true must be one column, got 2"),
    ({"pos_label": "yes", **ODDS}, "pos_label must be one of the classes [0, 1], got 'yes'"),
    (
        {"y_true": ["low"] * 6, "criterion": EQUALIZED_ODDS},
        (
            "equalized_odds compares groups within labels, and there are 1 classes; for a "
            "regression target cut it "
            "with bins, as in dataclasses.replace(EQUALIZED_ODDS, bins=(...))"
        ),
    ),
    (
        {"y_true": list("nynyny"), "criterion": BINS},
        "y_true must contain numbers, got text such as 'n'",
    ),
    (
        {"criterion": "conditional_statistical_parity"},
        "conditional_statistical_parity needs control_features; pass the stratum of each row",
    ),
    (
        {"sample_weight": [0, 0, 1, 1, 1, 0]},  # whoever has no weight is not there
        "sensitive_features has 1 group(s): ['b']; fairness between groups needs at least two",
    ),
    ({"sample_weight": [0] * 6}, "sample_weight is zero for every sample; at least one must count"),
    ({"sample_weight": [1, 1, 1, 1, 1, -1]}, "sample_weight must be finite and not negative"),
    ({"sample_weight": [1, 1, 1, 1, 1, np.nan]}, "sample_weight must be finite and not negative"),
    ({"sample_weight": [1, 1, 1, 1, 1, np.inf]}, "sample_weight must be finite and not negative"),
]
LACKING = [
    (
        {"control_features": ["n", "s", "n", "n", "n", "n"]},
        (
            "comparing sensitive_features 'a' against 'b', control_features=s: group 'b' has no "
            "sample there; "
            "leave it out"
        ),
    ),
    (
        {"y_true": [1, 1, 0, 1, 0, 1], **ODDS},
        (
            "comparing sensitive_features 'a' against 'b', label=0: group 'a' has no sample there; "
            "leave it out"
        ),
    ),
]


def test_the_base_case_is_good() -> None:
    assert unfairness(**GOOD) == pytest.approx(1 / 3)
    assert unfairness(**GOOD, **ODDS) == pytest.approx(1)


@pytest.mark.parametrize(("spoilt", "message"), MANY)
def test_bad_input_says_what_is_wrong(spoilt: dict, message: str) -> None:
    with pytest.raises(DataError) as caught:
        unfairness(**{**GOOD, **spoilt})
    assert str(caught.value) == message


@pytest.mark.parametrize(("spoilt", "message"), LACKING)
def test_a_comparison_without_samples_is_named_and_never_skipped(
    spoilt: dict, message: str
) -> None:
    with pytest.raises(TooFewSamples) as caught:
        unfairness(**{**GOOD, **spoilt})
    assert str(caught.value) == message


REFUSED = [
    pytest.param({"reduce": "mean"}, id="an unknown reduction is taken for the sum"),
    pytest.param(
        {"y_true": [0, 1, 0, 1, 0, None], **ODDS}, id="a missing label is taken for the last class"
    ),
    pytest.param(
        {"y_true": [0, 1, 0, 1, 0, np.nan], "criterion": BINS},
        id="a missing target is in the last bin",
    ),
    pytest.param(
        {"y_true": [0, 1, 0, 1, 0, None], "criterion": "risk_parity", "loss": "log_loss"},
        id="a missing label has a loss",
    ),
    pytest.param({"control_features": [None] * 6}, id="strata all missing: a ValueError of NumPy"),
]


@pytest.mark.parametrize("spoilt", REFUSED)
def test_other_bad_input_is_refused(spoilt: dict) -> None:
    with pytest.raises(DataError) as caught:
        unfairness(**{**GOOD, **spoilt})
    assert type(caught.value) is DataError


def test_a_function_as_score_sees_the_labels() -> None:
    residual = Criterion("residual", score=lambda prediction, y: prediction - y)
    found = unfairness(
        LABEL, PREDICTION, sensitive_features=GROUP, criterion=residual, metric="wasserstein"
    )
    assert found == pytest.approx(
        max(each(DISTANCES["wasserstein"], PREDICTION - LABEL, GROUP, EVERYONE))
    )


def test_pos_label_does_no_harm_where_labels_do_not_matter() -> None:
    assert unfairness(**GOOD, pos_label=1) == unfairness(**GOOD)


def test_the_log_loss_is_of_the_positive_label() -> None:
    # predictions are those of "good", which comes first
    label = np.where(LABEL == 1, "good", "poor")
    loss = LOSSES["log_loss"][1]
    options = {
        "criterion": "risk_parity",
        "loss": "log_loss",
        "metric": "wasserstein",
        "pos_label": "good",
    }
    found = unfairness(label, PREDICTION, sensitive_features=GROUP, **options)
    assert found == pytest.approx(max(each(DISTANCES["wasserstein"], loss, GROUP, EVERYONE)))


def test_class_probabilities_may_be_a_frame() -> None:
    found = unfairness(KIND, pd.DataFrame(SHARES), sensitive_features=GROUP)
    assert found == unfairness(KIND, SHARES, sensitive_features=GROUP)


def test_log_loss_with_a_class_that_does_not_occur_is_refused() -> None:
    absent = np.where(KIND == 1, 2, KIND)  # 0 and 2 get the codes 0 and 1, and so the wrong columns
    with pytest.raises(DataError):
        unfairness(
            absent, SHARES, sensitive_features=GROUP, criterion="risk_parity", loss="log_loss"
        )


def test_crossing_attributes_is_on_or_off() -> None:
    with pytest.raises(DataError) as caught:
        unfairness(None, PREDICTION, sensitive_features=GROUP, intersectional="no")  # type: ignore[arg-type]
    assert str(caught.value) == "intersectional must be True or False, got 'no'"


def test_scores_may_have_a_gradient() -> None:
    score, sex = torch.linspace(0, 1, 8, requires_grad=True), torch.arange(8) % 2
    plain = score.detach().numpy()
    assert unfairness(sex, score, sensitive_features=sex) == unfairness(
        sex, plain, sensitive_features=sex
    )
    quick = {"sensitive_features": sex, "resamples": 0, "permutations": 0, "random_state": 0}
    assert (
        audit(None, score, **flat(**quick)).worst().value
        == audit(None, plain, **flat(**quick)).worst().value
    )
