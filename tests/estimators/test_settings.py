"""What estimators take and refuse: settings, tables, groups, and the message that says what to
do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrifair import FairLGBMClassifier, FairXGBClassifier, PenaltyOptions
from metrifair.errors import DataError, MetrifairWarning, TooFewSamples
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.training import Schedule
from tests.expected_errors import Refusals
from tests.flat_options import with_penalty
from tests.seams.estimators import as_device, model_for, schedule_for
from tests.seams.problem import Attribute
from tests.seams.support import make_seed
from tests.seams.training import Network, StackedModule

RNG = np.random.default_rng(0)
N = 60
A = np.arange(N) % 2
X = RNG.normal(size=(N, 3)) + A[:, None]
Y = (X[:, 0] + RNG.normal(size=N) > 0.5).astype(int)
NAN = float("nan")


def refusal(kind: type[ValueError | TypeError], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        call()
    assert type(caught.value) is kind
    return str(caught.value)


# --- settings
# ---------------------------------------------------------------------------------------------------

SETTINGS = {
    "strength": ("a finite number from 0 upwards", [-1, -1e-9, NAN, math.inf, True, "1", None, 1j]),
    "learning_rate": ("'auto' or a positive number", [0, -0.1, NAN, math.inf, True, "fast"]),
    "learning_rate_decay": (
        "'auto' or a number above 0, at most 1",
        [0, 1.01, NAN, -1, True, "linear"],
    ),
    "early_stopping": (
        "True, False, or the share of rows to judge by, between 0 and 1",
        [0, 1, 1.5, NAN, -0.1, "yes", None],
    ),
    "weight_decay": ("a number from 0 upwards", [-1e-3, NAN, math.inf, None]),
    "epochs": ("'auto' or an integer from 1 upwards", [0, -3, 2.5, True, "all", None]),
    "batch_size": ("'auto' or an integer from 1 upwards", [0, -3, 2.5, True, "all", None]),
}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("name", "wanted", "value"),
    [(name, wanted, value) for name, (wanted, values) in SETTINGS.items() for value in values],
)
def test_a_setting_out_of_its_range_is_refused(
    name: str, wanted: str, value: object, method: str
) -> None:
    model = FairClassifier(**with_penalty(**{"epochs": 1, name: value}))
    message = refusal(DataError, lambda: getattr(model, method)(X, Y, sensitive_features=A))
    assert message == f"{name} must be {wanted}, got {value!r}"


SWITCHES = ("intersectional", "standardize", "verbose")


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("value", ["no", "True", None, [], 0.0, np.nan])
@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_a_switch_is_on_or_off(
    kind: type[FairClassifier | FairRegressor], name: str, value: object, method: str
) -> None:
    model = kind(**with_penalty(**{name: value}))
    message = refusal(DataError, lambda: getattr(model, method)(X, Y, sensitive_features=A))
    assert message == f"{name} must be True or False, got {value!r}"


@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_every_switch_is_in_the_table(kind: type[FairClassifier | FairRegressor]) -> None:
    assert {name for name, value in kind().get_params().items() if isinstance(value, bool)} == {
        *set(SWITCHES) - {"standardize"},  # of PenaltyOptions
        "early_stopping",  # or a share
    }


@pytest.mark.parametrize(
    "settings",
    [
        {"strength": np.float32(0.5), "epochs": np.int64(1)},
        {"strength": 1, "batch_size": np.int32(30), "epochs": 1},
        {"learning_rate_decay": 1, "weight_decay": 0, "epochs": 1},
    ],
)
def test_numbers_of_every_kind_are_taken(settings: dict[str, Any]) -> None:
    model = FairClassifier(**with_penalty(**settings, model="mlp"))
    assert model.fit(X, Y, sensitive_features=A).n_iter_ == 1


NAMES = {
    "criterion": (
        "statistic_parity",
        (
            "'statistical_parity', 'equal_opportunity', 'predictive_equality', 'equalized_odds', "
            "'risk_parity', "
            "'conditional_statistical_parity' or a Criterion"
        ),
        "; did you mean 'statistical_parity'?",
    ),
    "metric": (
        "enrgy",
        (
            "'energy', 'kolmogorov', 'wasserstein', 'cramer', 'lp', 'mmd', 'total_variation' or a "
            "function"
        ),
        "; did you mean 'energy'?",
    ),
    "model": ("forest", "'linear', 'mlp' or a torch.nn.Module", ""),
    "penalize": ("predictions", "'prediction', 'output'", "; did you mean 'prediction'?"),
    "contrast": ("pair", "'pairs', 'rest'", "; did you mean 'pairs'?"),
    "loss": (
        "square_error",
        "'squared_error', 'absolute_error', 'huber'",
        "; did you mean 'squared_error'?",
    ),
}


@pytest.mark.parametrize(
    ("name", "value", "known", "hint"), [(name, *row) for name, row in NAMES.items()]
)
def test_unknown_names_are_refused_with_the_known_ones(
    name: str, value: str, known: str, hint: str
) -> None:
    kind = FairRegressor if name == "loss" else FairClassifier
    message = refusal(
        DataError,
        lambda: kind(**with_penalty(**{name: value}), epochs=1).fit(X, Y, sensitive_features=A),
    )
    assert message == f"{name} must be one of {known}, got {value!r}{hint}"


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        (
            {"criterion": "risk_parity", "penalize": "output"},
            Y,
            (
                "penalize='output' applies where the score is the prediction; risk_parity compares "
                "loss: leave "
                "penalize as it is"
            ),
        ),
        ({"pos_label": 2}, Y, "pos_label must be one of the classes [0, 1], got 2"),
        (
            {"pos_label": "yes"},
            np.where(Y, "Yes", "No"),
            "pos_label must be one of the classes ['No', 'Yes'], got 'yes'",
        ),
        ({}, 0 * Y, "y must contain at least two classes, got 1 class: [0]"),
        (
            {"random_state": "x"},
            Y,
            "random_state must be None, an integer or a NumPy generator, got 'x'",
        ),
        ({"hidden": 16}, Y, "hidden must be a list of integers from 1 upwards, got 16"),
        ({"hidden": (-1,)}, Y, "hidden must be a list of integers from 1 upwards, got (-1,)"),
        ({"device": "gpu"}, Y, "device must be 'auto', 'cpu' or 'cuda', got 'gpu'"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    settings: dict[str, Any], y: np.ndarray, message: str
) -> None:
    assert (
        refusal(
            DataError,
            lambda: FairClassifier(**with_penalty(**settings), epochs=1).fit(
                X, y, sensitive_features=A
            ),
        )
        == message
    )


def test_labels_of_a_regression_need_bins(refused: Refusals) -> None:
    model = FairRegressor(criterion="equalized_odds", epochs=1, model="mlp")
    refused.said(refusal(DataError, lambda: model.fit(X, X[:, 0], sensitive_features=A)))


# --- groups
# -----------------------------------------------------------------------------------------------------

GROUPS = {
    "missing": (
        None,
        (
            "strength=1.0 requires groups; pass sensitive_features, one value per sample, or set "
            "strength=0"
        ),
    ),
    "short": (A[:-1], "arguments must have the same length, got X 60, y 60, sensitive_features 59"),
    "one group": (
        0 * A,
        "sensitive_features has 1 group(s): [0]; fairness between groups needs at least two",
    ),
    "all unknown": (
        [None] * N,
        "sensitive_features has 0 group(s): []; fairness between groups needs at least two",
    ),
    "mixed": (
        [1, "f"] * (N // 2),
        "sensitive_features mixes values that cannot be ordered (int, str); make them one type",
    ),
    "cube": (
        np.zeros((N, 2, 2)),
        (
            "sensitive_features must be a column or a table of columns, got an array of shape (60, "
            "2, "
            "2)"
        ),
    ),
}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("groups", "message"), GROUPS.values(), ids=GROUPS)
def test_groups_that_cannot_be_compared_are_refused(
    groups: Any, message: str, method: str, refused: Refusals
) -> None:
    model = FairClassifier(epochs=1, model="mlp")
    found = refusal(DataError, lambda: getattr(model, method)(X, Y, sensitive_features=groups))
    if method == "partial_fit" and "needs at least two" in message:
        refused.said(found)
    else:
        assert found == message


SEX = np.array(["f", "m"])[A]
RARE = np.where(A == 1, np.arange(N) == 1, np.arange(N) // 2 % 2)  # one man with label 1


@pytest.mark.parametrize("estimate", ["rows", "population", "batch"])
@pytest.mark.parametrize("size", ["auto", 30])
def test_a_group_of_one_is_left_out_of_the_penalty_and_named(size: Any, estimate: Any) -> None:
    """With it the odds of label 1 are equalized for nobody, those of label 0 as if it had never
    been there.
    """
    settings: dict[str, Any] = {
        "estimate": estimate,
        "batch_size": size,
        "epochs": 8,
        "model": "mlp",
        "random_state": 0,
    }
    model = FairClassifier(criterion="equalized_odds", **with_penalty(**settings))
    with pytest.warns(MetrifairWarning) as caught:
        model.fit(X, RARE, sensitive_features={"sex": SEX})
    assert model.left_out_ == ("sex 'm', label=1 (1 row)",)
    (told,) = caught
    assert str(told.message) == (
        "left out of the penalty, as too small to train on: sex 'm', label=1 (1 row); their rows "
        "still count for the "
        "risk. Merge small groups to include them"
    )
    # the same rows, of groups that are not known where the label is 1
    unknown = np.where(RARE == 1, None, SEX)
    same = FairClassifier(criterion="predictive_equality", **with_penalty(**settings)).fit(
        X, RARE, sensitive_features={"sex": unknown}
    )
    assert same.left_out_ == ()
    if size == "auto":  # else rows are dealt out in another order
        np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("criterion", ["equalized_odds", "equal_opportunity"])
def test_a_group_of_one_is_refused_where_that_is_asked_for_or_nothing_is_left(
    criterion: str,
) -> None:
    asked: dict[str, Any] = {"small_groups": "error"} if criterion == "equalized_odds" else {}
    model = FairClassifier(criterion=criterion, epochs=1, **with_penalty(**asked))
    told = refusal(TooFewSamples, lambda: model.fit(X, RARE, sensitive_features={"sex": SEX}))
    more = ", or leave them out of the penalty with small_groups='leave_out'" if asked else ""
    assert told == (
        "too small to train on: sex 'm', label=1 (1 row); merge small groups, mark them as "
        f"missing{more}"
    )


@pytest.mark.parametrize("estimate", ["rows", "population", "batch"])
def test_a_crossing_of_one_row_does_not_stop_the_training(estimate: Any) -> None:
    """Of the population nothing can be said from one row, which is left out; of the rows it is
    one.
    """
    race = np.where(
        np.arange(N) == 1, "b", np.where(A == 1, "a", np.array(["a", "b"])[np.arange(N) // 2 % 2])
    )
    model = FairClassifier(
        penalty=PenaltyOptions(estimate=estimate), batch_size=30, epochs=1, model="mlp"
    )
    both = {"sex": SEX, "race": race}  # one man is of race b
    if estimate != "population":
        assert model.fit(X, Y, sensitive_features=both).left_out_ == ()
        return
    with pytest.warns(MetrifairWarning, match="each alone of its kind"):
        model.fit(X, Y, sensitive_features=both)
    men, others = (A == 1).sum(), (race == "b").sum()
    assert model.left_out_ == (
        f"1 of {men} rows of sex 'm', each alone of its kind",
        f"1 of {others} rows of race 'b', each alone of its kind",
    )


WORDS = {
    "small_groups": "'leave_out', 'error'",
    "estimate": "'rows', 'population', 'batch'",
    "combine": "'mean', 'sum'",
    "contrast": "'pairs', 'rest'",
}


@pytest.mark.parametrize(("name", "known"), WORDS.items())
def test_a_word_that_is_not_known_is_told(name: str, known: str) -> None:
    model = FairClassifier(epochs=1, **with_penalty(**{name: "other"}))
    message = refusal(DataError, lambda: model.fit(X, Y, sensitive_features=A))
    assert message == f"{name} must be one of {known}, got 'other'"


def test_an_estimate_that_a_metric_does_not_have_is_told() -> None:
    model = FairClassifier(
        metric="wasserstein", penalty=PenaltyOptions(estimate="population"), epochs=1, model="mlp"
    )
    with pytest.warns(MetrifairWarning) as caught:
        model.fit(X, Y, sensitive_features=A)
    (told,) = caught
    assert str(told.message) == (
        "estimate='population' has no effect: wasserstein can only be measured within each batch "
        "(estimate='batch'), "
        "which is biased; energy, cramer, mmd have estimates without bias"
    )
    model.set_params(penalty__estimate="rows").fit(
        X, Y, sensitive_features=A
    )  # nothing was asked for


def test_conditional_parity_needs_strata(refused: Refusals) -> None:
    model = FairClassifier(criterion="conditional_statistical_parity", epochs=1, model="mlp")
    refused.said(refusal(DataError, lambda: model.fit(X, Y, sensitive_features=A)))
    refused.said(
        refusal(DataError, lambda: model.fit(X, Y, sensitive_features=A, control_features=A[:5]))
    )


def test_groups_of_every_kind_are_taken() -> None:
    """Numbers, booleans, text, categories, dates: what matters is who shares a value."""
    base = (
        FairClassifier(random_state=0, epochs=3, model="mlp")
        .fit(X, Y, sensitive_features=A)
        .decision_function(X)
    )
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")[A]
    for groups in (
        A.astype(bool),
        A + 0.5,
        np.array(["f", "m"])[A],
        pd.Series(A).astype("category"),
        dates,
        A.tolist(),
    ):
        same = FairClassifier(random_state=0, epochs=3, model="mlp").fit(
            X, Y, sensitive_features=groups
        )
        np.testing.assert_array_equal(same.decision_function(X), base)


# --- tables
# -----------------------------------------------------------------------------------------------------


def holed(values: np.ndarray, value: float = NAN) -> np.ndarray:
    copy = values.astype(float)
    copy.flat[4] = value
    return copy


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": holed(X)}, "X contains missing values (NaN); encode it first"),
        (
            {"X": holed(X, math.inf)},
            "Input X contains infinity or a value too large for dtype('float64').",
        ),
        ({"y": holed(Y)}, "Input y contains NaN."),
        ({"y": Y[:-1]}, "Found input variables with inconsistent numbers of samples: [60, 59]"),
        (
            {"sample_weight": np.ones(59)},
            (
                "arguments must have the same length, got X 60, y 60, sensitive_features 60, "
                "sample_weight "
                "59"
            ),
        ),
        ({"sample_weight": holed(np.ones(N))}, "sample_weight must be finite and not negative"),
        ({"sample_weight": -np.ones(N)}, "sample_weight must be finite and not negative"),
        ({"X": X[:, 0]}, "Expected 2D array, got 1D array instead"),
    ],
    ids=[
        "NaN in X",
        "infinity in X",
        "NaN in y",
        "short y",
        "short weights",
        "NaN in weights",
        "negative",
        "1D",
    ],
)
def test_tables_that_cannot_be_used_are_refused_in_scikit_learn_s_words(
    kind: type[FairClassifier | FairRegressor], method: str, change: dict[str, Any], message: str
) -> None:
    given = {"X": X, "y": Y, "sensitive_features": A} | change
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        getattr(kind(epochs=1), method)(**given)
    assert str(caught.value).startswith(message)


def test_sparse_tables_are_refused_with_the_way_out() -> None:
    for table in (scipy.sparse.csr_array(X), scipy.sparse.csr_matrix(X)):
        with pytest.raises(DataError) as caught:
            FairClassifier(epochs=1, model="mlp").fit(table, Y, sensitive_features=A)
        assert (
            str(caught.value) == "X is a sparse matrix, which is not taken here; pass X.toarray()"
        )


def test_a_classifier_takes_no_continuous_target() -> None:
    with pytest.raises(DataError, match="use FairRegressor"):
        FairClassifier(0.0, epochs=1, model="mlp").fit(X, X[:, 0])


# --- what is left to us
# -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 50, 1_000, 1_001, 5_000, 100_000])
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_small_data_sets_are_used_whole_and_large_ones_in_bounded_batches(
    n: int, model: str
) -> None:
    schedule = schedule_for(FairClassifier(model=model), n)
    assert schedule.batch_size == n if n <= 1_000 else 256 <= schedule.batch_size <= 2_048
    # steps: neither none nor for ever
    assert 50 <= schedule.epochs * max(1, n // schedule.batch_size) <= 2_500


def test_what_the_user_sets_is_left_alone() -> None:
    model = FairClassifier(
        batch_size=7,
        epochs=3,
        learning_rate=0.5,
        penalty=PenaltyOptions(learning_rate_decay=0.9),
        weight_decay=0.1,
        model="mlp",
    )
    schedule = schedule_for(model, 100)
    assert schedule == Schedule(7, 3, 0.5, 0.9, 0.1, from_constant=True)


def test_models_by_name_and_by_module() -> None:
    assert model_for(FairClassifier(model="linear", hidden=(9,)), 4, 1) == Network(4, (), 1)
    assert model_for(FairClassifier(hidden=[9, 5], model="mlp"), 4, 3) == Network(4, (9, 5), 3)
    module = torch.nn.Linear(4, 1)
    found = model_for(FairClassifier(model=module), 4, 1)
    assert isinstance(found, StackedModule)
    assert found.module is not module  # whose mode and buffers are the user's own
    assert torch.equal(found.module.weight, module.weight)


def test_seeds() -> None:
    assert make_seed(5) == make_seed(np.int64(5)) == 5
    assert make_seed(np.random.RandomState(3)) == make_seed(np.random.RandomState(3))
    generator = np.random.default_rng(3)
    assert make_seed(generator) != make_seed(generator)
    assert make_seed(None) != make_seed(None)


def test_devices() -> None:
    assert as_device("cpu") == torch.device("cpu")
    assert as_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


# --- rows of weight zero
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
@pytest.mark.parametrize("size", ["auto", 30], ids=["full batch", "minibatch"])
def test_rows_of_weight_zero_are_rows_that_are_not_there(
    kind: type[FairClassifier | FairRegressor], size: Any
) -> None:
    rng = np.random.default_rng(1)
    weight = np.where(np.arange(N) % 4 == 3, 0.0, rng.uniform(0.5, 2, N))
    kept = weight > 0
    strange = np.where(kept[:, None], X, 1e6 * X)  # would change units and loss if they counted
    settings: dict[str, Any] = {
        "strength": 1.0,
        "batch_size": size,
        "epochs": 20,
        "model": "mlp",
        "random_state": 0,
    }
    with_zeros = kind(**with_penalty(**settings)).fit(
        strange, Y, sensitive_features=A, sample_weight=weight
    )
    without = kind(**with_penalty(**settings)).fit(
        X[kept], Y[kept], sensitive_features=A[kept], sample_weight=weight[kept]
    )
    np.testing.assert_allclose(with_zeros.predict(X), without.predict(X), rtol=1e-12)


def test_a_group_whose_rows_have_no_weight_is_not_there() -> None:
    groups = np.where(np.arange(N) < 4, "ghost", np.array(["f", "m"])[A])
    weight = (np.arange(N) >= 4) * 1.0
    model = FairClassifier(epochs=2, random_state=0, model="mlp").fit(
        X, Y, sensitive_features=groups, sample_weight=weight
    )
    assert model.scheme_.attributes == (Attribute("sensitive_features", ("f", "m")),)


def test_code_and_texts_agree_on_the_share_of_steps_in_which_the_strength_grows() -> None:
    assert schedule_for(FairClassifier(model="mlp"), 5_000).growth == 0.5
    words = [" ".join(str(text).split()) for text in (PenaltyOptions.__doc__, schedule_for.__doc__)]
    assert "over the first half of the steps" in words[0]
    assert "over the first half of them" in words[1]
    docs = Path(__file__).parents[2] / "docs"
    for page in (docs / "defaults.md", docs / "results" / "defaults.md"):
        assert "every step of the first half" in " ".join(page.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("kind", [FairClassifier, FairLGBMClassifier, FairXGBClassifier])
def test_searches_and_clones_reach_the_fields_of_the_penalty(kind: Any, refused: Refusals) -> None:
    rest = PenaltyOptions(contrast="rest")
    model = kind(penalty=rest)
    changed = clone(model).set_params(penalty__combine="sum", strength=3.0)
    assert changed.penalty == PenaltyOptions(contrast="rest", combine="sum")
    assert changed.strength == 3
    assert model.penalty == rest  # a value that is shared is not changed
    assert clone(changed).penalty == changed.penalty
    plain = kind().set_params(penalty__contrast="rest")
    assert plain.penalty == rest
    assert kind().penalty is None
    pipeline = make_pipeline(StandardScaler(), kind())
    name = pipeline.steps[-1][0]
    pipeline.set_params(**{f"{name}__penalty__estimate": "batch"})
    assert pipeline[-1].penalty.estimate == "batch"
    with refused(DataError):
        kind().set_params(penalty__contrasts="rest")


def test_a_grid_search_chooses_a_field_of_the_penalty() -> None:
    model = FairClassifier(0.0, model="linear")
    search = GridSearchCV(model, {"penalty__standardize": [True, False]}, cv=2).fit(X, Y)
    assert {entry["penalty__standardize"] for entry in search.cv_results_["params"]} == {
        True,
        False,
    }
    assert search.best_estimator_.penalty.standardize in (True, False)


@pytest.mark.parametrize("kind", [FairClassifier, FairLGBMClassifier])
def test_a_penalty_of_another_type_is_refused(kind: Any, refused: Refusals) -> None:
    model = kind(penalty={"contrast": "rest"})
    with refused(DataError):
        model.fit(X, Y, sensitive_features=A)


@pytest.mark.parametrize("kind", [FairClassifier, FairRegressor])
def test_an_estimator_has_at_most_18_parameters(kind: Any) -> None:
    assert len(kind().get_params()) <= 18
