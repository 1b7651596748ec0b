"""Two values mean the same in every type to everything that trains: methods of other authors,
stacks, searches, the command line, and batches of PyTorch.

`test_spelled_values` has the audits, our models and frontiers. Here too, outputs are equal to those
of the integers 0 and 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from click.testing import CliRunner
from sklearn.linear_model import LinearRegression, LogisticRegression

from metrifair import DataError, FairClassifierCV, FairRegressorCV, baselines
from metrifair.cli import main
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty, covering
from metrifair.stacking import FairStackingClassifier, FairStackingRegressor
from tests.expected_errors import Refusals

N = 240
RANDOM = np.random.default_rng(51)
PERSON = np.arange(N) // 4
COLUMNS = {
    "group": RANDOM.random(N) < 0.5,
    "stratum": RANDOM.random(N) < 0.5,
}
COLUMNS["label"] = RANDOM.random(N) < 0.3 + 0.3 * COLUMNS["group"]
NUMBER = 0.55 * COLUMNS["group"] + 0.35 * RANDOM.random(N) + 0.05 * COLUMNS["label"]
FEATURES = np.column_stack([NUMBER, RANDOM.normal(size=N), RANDOM.normal(size=N)])

Spelling = Callable[[np.ndarray], Any]
SPELLINGS: dict[str, Spelling] = {
    "booleans": lambda flags: flags,
    "a list of booleans": lambda flags: flags.tolist(),
    "booleans of NumPy as objects": lambda flags: np.array(list(flags), dtype=object),
    "booleans of pandas": lambda flags: pd.Series(flags, dtype="boolean"),
    "booleans of polars": pl.Series,
    "text of booleans": lambda flags: np.where(flags, "True", "False"),
    "words": lambda flags: np.where(flags, "yes", "no"),
    "short integers": lambda flags: flags.astype(np.uint8),
}
TEXTS = ("text of booleans", "words")


def spelled(role: str, spelling: str) -> dict[str, Any]:
    """The columns as integers, but for one role, or all of them."""
    return {
        name: SPELLINGS[spelling](flags) if role in (name, "all") else flags.astype(int)
        for name, flags in COLUMNS.items()
    }


INTEGERS = spelled("none", "words")

# --- methods of other authors, and stacks

QUICK: dict[str, Any] = {"epochs": 10, "learning_rate": 0.1, "random_state": 0}
STACK: dict[str, Any] = {
    "group_models": [LogisticRegression()],
    "folds": 2,
    "epochs": 20,
    "random_state": 0,
}
LEARNERS: dict[str, Callable[[], Any]] = {
    "BerkRegressor": lambda: baselines.BerkRegressor(0.1, penalty="group"),
    "ChzhenPostprocessor": lambda: baselines.ChzhenPostprocessor(LinearRegression()),
    "FairBatchClassifier": lambda: baselines.FairBatchClassifier(**QUICK),
    "FairKDEClassifier": lambda: baselines.FairKDEClassifier(strength=0.1, **QUICK),
    "LabelBiasClassifier": lambda: baselines.LabelBiasClassifier(LogisticRegression(), rounds=2),
    "MassagingClassifier": lambda: baselines.MassagingClassifier(LogisticRegression()),
    "ReweighingClassifier": lambda: baselines.ReweighingClassifier(LogisticRegression()),
    "SinkhornClassifier": lambda: baselines.SinkhornClassifier(strength=0.1, **QUICK),
    "XianPostprocessor": lambda: baselines.XianPostprocessor(LogisticRegression()),
    "ZafarClassifier": lambda: baselines.ZafarClassifier(gamma=0.01),
    "FairStackingClassifier": lambda: FairStackingClassifier(
        0.05, outcome_models=[LogisticRegression()], **STACK
    ),
    "FairStackingRegressor": lambda: FairStackingRegressor(
        0.05, outcome_models=[LinearRegression()], **STACK
    ),
}
OF_NUMBERS = ("BerkRegressor", "ChzhenPostprocessor", "FairStackingRegressor")
NEEDS_GROUPS = ("ChzhenPostprocessor", "XianPostprocessor")
OF_ANY_WORDS = ("ReweighingClassifier", "XianPostprocessor", "FairStackingClassifier")
"""Classifiers that accept any two labels: they do not ask which one is positive."""


def test_every_method_of_another_author_is_tried() -> None:
    assert set(baselines.__all__) <= set(LEARNERS)


def outputs(learner: str, given: dict[str, Any]) -> np.ndarray:
    """Probabilities or predictions; classes by their place in ascending order."""
    target = NUMBER if learner in OF_NUMBERS else given["label"]
    model = LEARNERS[learner]().fit(FEATURES, target, sensitive_features=given["group"])
    if learner in NEEDS_GROUPS:
        predicted = model.predict(FEATURES, sensitive_features=given["group"])
    elif hasattr(model, "predict_proba"):
        predicted = model.predict_proba(FEATURES)
    else:
        predicted = model.predict(FEATURES)
    if learner in OF_NUMBERS or predicted.ndim == 2:
        return np.asarray(predicted)
    return np.unique(predicted, return_inverse=True)[1]


@pytest.mark.parametrize("role", ["group", "label"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_of_all_spellings_predict_the_same(
    learner: str, role: str, refused: Refusals
) -> None:
    if (role, learner in OF_NUMBERS) == ("label", True):
        pytest.skip("its target is a number")
    expected = outputs(learner, INTEGERS)
    assert len(np.unique(expected)) > 1
    for spelling in SPELLINGS:
        given = spelled(role, spelling)
        if role == "label" and spelling in TEXTS and learner not in OF_ANY_WORDS:
            with refused(DataError):
                outputs(learner, given)
        else:
            assert np.array_equal(outputs(learner, given), expected), spelling


@pytest.mark.parametrize("role", ["stratum", "cluster"])
def test_stacks_of_all_spellings_of_strata_and_clusters_predict_the_same(role: str) -> None:
    def predicted(stratum: Any, clusters: Any) -> np.ndarray:
        model = LEARNERS["FairStackingClassifier"]()
        model.set_params(criterion="conditional_statistical_parity")
        return model.fit(
            FEATURES,
            INTEGERS["label"],
            sensitive_features=INTEGERS["group"],
            control_features=stratum,
            clusters=clusters,
        ).predict_proba(FEATURES)

    halves = PERSON % 16 < 8
    for spelling in SPELLINGS.values():
        strata = spelling(COLUMNS["stratum"]) if role == "stratum" else INTEGERS["stratum"]
        clusters = spelling(halves) if role == "cluster" else halves.astype(int)
        expected = predicted(INTEGERS["stratum"], halves.astype(int))
        assert np.array_equal(predicted(strata, clusters), expected)


# --- searches: every column in one spelling at once, because a search takes seconds


@pytest.mark.extended
@pytest.mark.parametrize("search", [FairClassifierCV, FairRegressorCV])
def test_searches_of_all_spellings_choose_the_same_model(search: type[Any]) -> None:
    """Persons have 60 names, of which each spelling has its own."""
    models = []
    for spelling, persons in (
        ("short integers", PERSON),
        ("booleans", [f"person {number}" for number in PERSON]),
        ("words", PERSON.astype(str)),
    ):
        given = spelled("all", spelling)
        model = search(
            max_unfairness=1,
            families=["linear"],
            criterion="conditional_statistical_parity",
            folds=2,
            random_state=0,
        )
        target = given["label"] if search is FairClassifierCV else NUMBER
        model.fit(
            FEATURES,
            target,
            sensitive_features=given["group"],
            control_features=given["stratum"],
            clusters=persons,
        )
        models.append(model)
    figures = [
        [(point.unfairness, point.more) for point in model.frontier_.points] for model in models
    ]
    assert len(figures[0]) > 2
    assert figures[1] == figures[0]
    assert figures[2] == figures[0]
    chosen = [model.estimator_ for model in models]
    for other in chosen[1:]:
        assert np.array_equal(other.coef_, chosen[0].coef_)


# --- the command line

OF_FILES: dict[str, tuple[Spelling, str]] = {
    "integers": (lambda flags: flags.astype(int), "1"),
    "booleans": (lambda flags: flags, "true"),
    "text of booleans": (SPELLINGS["text of booleans"], "True"),
    "words": (SPELLINGS["words"], "yes"),
}
"""How columns of a file are spelled, and the positive label."""


def by_command(command: str, spelling: str, folder: Path, positive: bool) -> list[Any]:
    """The figures of the models that a command trains on a file in this spelling."""
    spell, yes = OF_FILES[spelling]
    table = {name: spell(flags).tolist() for name, flags in COLUMNS.items()}
    persons = PERSON.tolist() if spelling == "integers" else [f"{spelling} {k}" for k in PERSON]
    features = {f"x{place}": column.round(6) for place, column in enumerate(FEATURES.T)}
    rows = folder / f"{spelling}.csv"
    page = folder / f"{spelling}.json"
    pl.DataFrame({**features, **table, "person": persons}).write_csv(rows)
    options = ["--label", "label", "--group", "group", "--control", "stratum"]
    options += ["--criterion", "conditional_statistical_parity", "--cluster", "person"]
    options += ["--model", "linear", "--seed", "0", "--folds", "2", "--json", str(page)]
    options += ["--positive", yes] if positive else []
    options += ["--strengths", "0,5"] if command == "frontier" else []
    done = CliRunner().invoke(main, [command, str(rows), *options])
    assert done.exit_code == 0, done.output
    return [
        [point[name] for name in ("unfairness", "decision_unfairness", "accuracy")]
        for point in json.loads(page.read_text())["points"]
    ]


@pytest.mark.extended
@pytest.mark.parametrize("positive", [True, False], ids=["stated", "by order"])
@pytest.mark.parametrize("command", ["train", "frontier"])
def test_commands_of_all_spellings_train_the_same_models(
    command: str, positive: bool, tmp_path: Path
) -> None:
    expected = by_command(command, "integers", tmp_path, positive)
    assert expected
    for spelling in ("booleans", "text of booleans", "words"):
        assert by_command(command, spelling, tmp_path, positive) == expected, spelling


# --- batches of PyTorch: numbers and booleans; text has no tensors, and is refused with a remedy

SCORE = torch.from_numpy(NUMBER)


def penalty_of(given: dict[str, Any]) -> float:
    penalty = UnfairnessPenalty("equalized_odds", estimate="batch", random_state=0)
    return penalty(SCORE, given["group"], given["label"]).item()


def batches_of(given: dict[str, Any]) -> list[Any]:
    sampler = StratifiedBatchSampler(
        given["group"], given["label"], criterion="equalized_odds", batch_size=32, random_state=0
    )
    return [list(batch) for batch in sampler]


def stream_of(given: dict[str, Any]) -> list[Any]:
    labels, groups = (np.asarray(given[role]).tolist() for role in ("label", "group"))
    rows = zip(SCORE, labels, groups, strict=True)
    batches = covering(rows, batch_size=32, criterion="equalized_odds")
    return [batch.group.tolist() for batch in batches]


BATCHES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "penalty": penalty_of,
    "sampler": batches_of,
    "stream": stream_of,
}


@pytest.mark.parametrize("role", ["group", "label"])
@pytest.mark.parametrize("entry", BATCHES)
def test_batches_of_numbers_and_booleans_are_the_same_and_text_is_refused(
    entry: str, role: str
) -> None:
    expected = BATCHES[entry](INTEGERS)
    for spelling in SPELLINGS:
        given = spelled(role, spelling)
        if spelling in TEXTS:
            with pytest.raises(DataError, match=r"numpy.unique\(..., return_inverse=True\)"):
                BATCHES[entry](given)
            given[role] = np.unique(given[role], return_inverse=True)[1]
        assert BATCHES[entry](given) == expected, spelling
