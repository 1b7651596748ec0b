"""Names that are almost right: commands, options, utilities, models and estimators name what
was probably meant.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
import polars as pl
import pytest
from refusals import refusal
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrifair import BarycenterPostprocessor, DataError, FairClassifier, frontier
from metrifair.cli import main

COMMANDS = main.list_commands(click.Context(main))
GENERATOR = np.random.default_rng(0)
A = GENERATOR.integers(2, size=400)
X = GENERATOR.normal(size=(400, 3))
Y = (X[:, 0] + GENERATOR.normal(size=400) > 0).astype(int)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_with_a_letter_too_many_or_too_few_is_recognized(name: str, call: Any) -> None:
    for wrong in (name[:-1] + name[-1] * 2, name[:2] + name[3:], name.upper()):
        if wrong in COMMANDS:
            continue
        done = call(wrong, "x.csv")
        assert done.exit_code == 2
        assert f"Did you mean {name}?" in done.output, wrong


def test_a_command_that_is_like_no_other_gets_no_hint(call: Any) -> None:
    done = call("plot", "x.csv")
    assert done.exit_code == 2
    assert "No such command 'plot'." in done.output
    assert "Did you mean" not in done.output


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("--groups", "--group"),
        ("--Group", "--group"),
        ("--scores", "--score"),
        ("--labels", "--label"),
    ],
)
def test_the_plural_of_an_option_is_that_option(wrong: str, meant: str, call: Any) -> None:
    done = call("audit", "x.csv", wrong, "sex")
    assert done.exit_code == 2
    assert f"Did you mean {meant}?" in done.output


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("F1", "f1"), ("AUC", "auc"), ("Accuracy", "accuracy"), ("ROC_AUC", "roc_auc")],
)
def test_a_utility_is_found_whatever_its_capitals(
    wrong: str, meant: str, call: Any, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=f"did you mean '{meant}'"):
        frontier(FairClassifier(model="mlp"), X, Y, sensitive_features=A, utility=wrong)
    table = pl.DataFrame({"x": X[:, 0], "y": Y, "g": A})
    table.write_csv(tmp_path / "t.csv")
    done = call("frontier", tmp_path / "t.csv", "--label", "y", "--group", "g", "--utility", wrong)
    assert f"'{meant}'" in refusal(done)


def test_a_logistic_model_is_linear(call: Any) -> None:
    with pytest.raises(DataError, match="did you mean 'linear'"):
        FairClassifier(model="logistic").fit(X, Y, sensitive_features=A)
    asked = ["train", "x.csv", "--label", "y", "--group", "g", "--output", "m.metrifair"]
    for wrong, meant in (("logistic", "linear"), ("lightgmb", "lightgbm")):
        done = call(*asked, "--model", wrong)
        assert done.exit_code == 2
        assert f"did you mean '{meant}'?" in done.output


@pytest.mark.parametrize(
    ("estimator", "fair"),
    [
        (LogisticRegression(), "FairClassifier()"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "FairClassifier()"),
        (LinearRegression(), "FairRegressor()"),
    ],
)
def test_an_estimator_without_a_penalty_names_ours_and_the_wrapper(
    estimator: Any, fair: str
) -> None:
    name = type(estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator).__name__
    with pytest.raises(DataError) as caught:
        frontier(estimator, X, Y, sensitive_features=A)
    message = str(caught.value)
    assert f"pass {fair}" in message
    assert f"BarycenterPostprocessor({name}())" in message


def test_the_wrapper_that_the_message_names_works() -> None:
    front = frontier(
        BarycenterPostprocessor(LogisticRegression()),
        X,
        Y,
        sensitive_features=A,
        strengths=[0.0, 1.0],
    )
    assert len(front.points) == 2
