"""train: what it writes of held-out rows, what it says of its model, and thresholds that predict
keeps.
"""

from __future__ import annotations

import json
import re
import shlex
from functools import partialmethod, wraps
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import left_behind, refusal
from sklearn.metrics import r2_score
from sklearn.pipeline import Pipeline
from test_cli_training import TRAIN, shorten

import metrifair
from metrifair import TableEncoder, load
from metrifair.criteria import STATISTICAL_PARITY
from tests.seams.estimators import TableModel, choose_threshold
from tests.seams.tradeoff import data_set


@pytest.fixture(autouse=True)
def _few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (metrifair.FairClassifier, metrifair.FairRegressor):
        monkeypatch.setattr(kind, "__init__", shorten(kind.__init__))


def figures_of(done: Any) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def all_rows(people: pl.DataFrame) -> Any:
    return data_set(
        people,
        people["hired"],
        people["sex"],
        None,
        regression=False,
        criterion=STATISTICAL_PARITY,
        contrast="pairs",
    )


def held_out_rows(people: pl.DataFrame) -> Any:
    data = all_rows(people)
    return data.divide(data.rows, 0.25, 0)[1]


def with_test_rows(*more: Any) -> tuple[Any, ...]:
    return (*TRAIN, "--test", "0.25", *more)


# --- held-out predictions
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_held_out_predictions_are_those_of_rows_the_model_never_saw(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any, ending: str
) -> None:
    written = tmp_path / f"held.{ending}"
    done = call(
        "train",
        csv,
        *with_test_rows("--output", tmp_path / "m", "--held-out", written, "--json", "-"),
    )
    figures, found = figures_of(done)["chosen"], getattr(pl, f"read_{ending}")(written)
    assert found.columns == ["number", "sex", "hired", "prediction", "probability"]
    own = people[held_out_rows(people)]
    for name in ("number", "sex", "hired"):
        assert found[name].to_list() == own[name].to_list()
    model = load(tmp_path / "m")
    np.testing.assert_allclose(found["probability"], model.predict_proba(own)[:, 1], rtol=1e-12)
    assert (found["prediction"] == found["hired"]).mean() == pytest.approx(figures["accuracy"])


def test_the_command_that_train_prints_audits_the_figures_that_it_printed(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    done = call(
        "train",
        csv,
        *with_test_rows("--positive", "no", "--threshold", "0.4"),
        "--held-out",
        tmp_path / "held out.csv",
        "--json",
        tmp_path / "f.json",
    )
    assert done.exit_code == 0, done.output
    (line,) = [
        line for line in done.stdout.splitlines() if line.startswith("Audit them: metrifair ")
    ]
    done = call(*shlex.split(line.removeprefix("Audit them: metrifair ")), "--json", "-")
    audited, figures = figures_of(done), json.loads((tmp_path / "f.json").read_text())
    assert audited["rows"] == figures["test_rows"] == 60
    assert figures["threshold"] == 0.4
    figures = figures["chosen"]
    assert audited["decisions"][0]["threshold"] == 0.4
    assert audited["decisions"][0]["selection_ratio"] == pytest.approx(
        figures["more"]["four_fifths"]
    )
    assert audited["decisions"][0]["selection_difference"] == pytest.approx(
        figures["decision_unfairness"]
    )


def test_without_an_id_rows_have_their_number_in_the_file(
    people: pl.DataFrame, tmp_path: Path, call: Any
) -> None:
    """Rows without a label are left out, and count all the same; a column of that name keeps
    its name.
    """
    gaps = people.with_columns(
        hired=pl.when(pl.int_range(len(people)) < 20).then(None).otherwise("hired")
    )
    gaps.rename({"sex": "row"}).write_csv(tmp_path / "people.csv")
    asked = (
        "--label",
        "hired",
        "--group",
        "row",
        "--ignore",
        "wage",
        "--ignore",
        "number",
        "--model",
        "linear",
    )
    done = call("train", tmp_path / "people.csv", *asked, "--held-out", tmp_path / "held.csv")
    assert done.exit_code == 0, done.output
    found = pl.read_csv(tmp_path / "held.csv")
    assert found.columns == ["row'", "row", "hired", "prediction", "probability"]
    assert found["row'"].min() > 20
    own = people[(found["row'"] - 1).to_list()]
    assert found["row"].to_list() == own["sex"].to_list()
    assert found["hired"].to_list() == own["hired"].to_list()


@pytest.mark.parametrize("command", ["train", "frontier"])
def test_ids_are_written_as_they_stand_in_the_file(
    command: str, people: pl.DataFrame, tmp_path: Path, call: Any
) -> None:
    """As floats, every second of these would be another one's."""
    ids = [str(9_007_199_254_740_993 + 2 * at) for at in range(len(people))]
    people.with_columns(number=pl.Series(ids)).write_csv(tmp_path / "people.csv")
    more = ("--max-unfairness", "1", "--strengths", "0,1") if command == "frontier" else ()
    done = call(
        command, tmp_path / "people.csv", *TRAIN, *more, "--held-out", tmp_path / "held.csv"
    )
    assert done.exit_code == 0, done.output
    written = pl.read_csv(tmp_path / "held.csv", schema_overrides={"number": pl.String})[
        "number"
    ].to_list()
    assert len(set(written)) == len(written) > 50
    assert set(written) <= set(ids)


def test_labels_are_written_as_the_model_names_them(
    people: pl.DataFrame, tmp_path: Path, call: Any
) -> None:
    people.with_columns(hired=(pl.col("hired") == "yes").cast(pl.Int8)).write_csv(
        tmp_path / "people.csv"
    )
    asked = ("--weight", "wage", "--control", "code", "--group", "member")
    plain = [part for part in TRAIN if part not in ("--ignore", "wage")]
    done = call(
        "train", tmp_path / "people.csv", *plain, *asked, "--held-out", tmp_path / "held.ndjson"
    )
    assert done.exit_code == 0, done.output
    found = pl.read_ndjson(tmp_path / "held.ndjson")
    assert found.columns == [
        "number",
        "sex",
        "member",
        "code",
        "wage",
        "hired",
        "prediction",
        "probability",
    ]
    assert found["hired"].dtype == found["prediction"].dtype == pl.Int64
    assert "--group sex --group member --control code --weight wage --label hired" in done.stdout


@pytest.mark.parametrize("label", ["wage", "rank"])
def test_held_out_numbers_and_several_classes(
    people: pl.DataFrame, tmp_path: Path, call: Any, label: str
) -> None:
    rank = np.array(["low", "middle", "top"])[
        np.digitize(people["wage"], people["wage"].quantile([1 / 3, 2 / 3]))
    ]
    people.with_columns(rank=pl.Series(rank)).write_csv(tmp_path / "people.csv")
    other = {"wage": "rank", "rank": "wage"}[label]
    asked = (
        "--label",
        label,
        "--group",
        "sex",
        "--id",
        "number",
        "--ignore",
        other,
        "--model",
        "linear",
    )
    done = call(
        "train", tmp_path / "people.csv", *asked, "--held-out", tmp_path / "held.csv", "--json", "-"
    )
    figures, found = figures_of(done), pl.read_csv(tmp_path / "held.csv")
    assert len(found) == len(people)
    if label == "wage":
        assert found.columns == ["number", "sex", "wage", "prediction"]
        right, said = found["wage"].to_numpy(), found["prediction"].to_numpy()
        (point,) = figures["points"]
        assert point["accuracy"] == pytest.approx(r2_score(right, said))
        assert "--score prediction --group sex --label wage" in done.stderr
    else:
        assert found.columns[2:4] == ["rank", "prediction"]
        command = re.search(
            r"Audit them \(and the other classes likewise\): metrifair (audit .*)", done.stderr
        )
        assert command is not None
        assert command[1].endswith(
            "--score 'probability of top' --group sex --label rank --positive top"
        )
        assert call(*shlex.split(command[1])).exit_code == 0


@pytest.mark.extended
def test_the_recipe_of_the_docs_audits_rows_that_the_model_never_saw(
    tmp_path: Path, call: Any
) -> None:
    """Trees know their own rows by heart: the old recipe (train, predict, audit) audits mostly
    those.
    """
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    group, noise = rng.integers(2, size=600), rng.normal(size=(600, 6))
    label = (rng.normal(1.5 * group - 0.75 + 0.5 * noise[:, 0]) > 0).astype(int)
    columns = {f"x{k}": noise[:, k] for k in range(6)} | {"near": group + rng.normal(0, 0.6, 600)}
    pl.DataFrame(columns | {"sex": np.array(["f", "m"])[group], "label": label}).write_csv(
        tmp_path / "people.csv"
    )
    asked = ("--label", "label", "--group", "sex", "--model", "lightgbm", "--strength", "5")
    kept = ("--test", "0.25", "--output", tmp_path / "m", "--held-out", tmp_path / "held.csv")
    trained = call("train", tmp_path / "people.csv", *asked, *kept)
    assert trained.exit_code == 0, trained.output
    audit = ("--score", "probability", "--group", "sex", "--label", "label", "--json", "-")
    held = call("audit", tmp_path / "held.csv", *audit)
    assert held.exit_code == 0, held.output
    old = (
        "predict",
        tmp_path / "m",
        tmp_path / "people.csv",
        "--id",
        "sex",
        "--id",
        "label",
        "--output",
    )
    assert call(*old, tmp_path / "all.csv").exit_code == 0
    values = []
    for done in (call("audit", tmp_path / "all.csv", *audit), held):
        findings = json.loads(done.stdout)["findings"]
        values.append(
            max(one["value"] for one in findings if one["criterion"] == "statistical_parity")
        )
    assert values[1] > values[0] + 0.1


def test_parts_have_the_same_mix_of_groups_and_labels(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any
) -> None:
    done = call("train", csv, *TRAIN, "--test", "0.3", "--held-out", tmp_path / "h.csv")
    assert done.exit_code == 0, done.output
    counts = people.group_by("sex", "hired").len().sort("sex", "hired")["len"].to_numpy()
    kept = (
        pl.read_csv(tmp_path / "h.csv")
        .group_by("sex", "hired")
        .len()
        .sort("sex", "hired")["len"]
        .to_numpy()
    )
    assert np.abs(kept - 0.3 * counts).max() <= 1


def test_the_saved_model_is_trained_on_all_rows_that_are_not_test_rows(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any
) -> None:
    kept = {"all": (), "rest": ("--test", "0.25")}
    for name, more in kept.items():
        done = call("train", csv, *TRAIN, *more, "--output", tmp_path / name)
        assert done.exit_code == 0, done.output
    rows = {"all": np.arange(240), "rest": np.setdiff1d(np.arange(240), held_out_rows(people))}
    for name, own in rows.items():
        alone = TableEncoder().fit(people[own].drop("number", "sex", "hired", "wage"))
        assert load(tmp_path / name).encoder.coders_ == alone.coders_


def test_train_is_a_frontier_of_one_strength(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any
) -> None:
    """By the command line and in Python, to the last digit; with test rows and without."""
    for test in ((), ("--test", "0.25")):
        one = figures_of(call("train", csv, *TRAIN, "--strength", "2", *test, "--json", "-"))
        many = ("--strengths", "2", "--max-unfairness", "1")
        other = figures_of(call("frontier", csv, *TRAIN, *many, *test, "--json", "-"))
        own = ("goal", "summary", "provenance")
        assert {**one, **dict.fromkeys(own)} == {**other, **dict.fromkeys(own)}
        model = metrifair.FairClassifier(model="linear", pos_label="yes", continuous=False)
        front = metrifair.frontier(
            Pipeline([("encoder", TableEncoder()), ("model", model)]),
            people.drop("number", "sex", "hired", "wage"),
            people["hired"],
            sensitive_features={"sex": people["sex"]},
            strengths=[2],
            test=float(test[1]) if test else None,
            random_state=0,
        )
        front.select(max_unfairness=1.0)
        again = json.loads(front.to_json())
        for name in ("points", "chosen", "constant", "noise", "sizes", "folds", "area", "change"):
            assert again[name] == one[name], name


# --- what is said of the model
# ------------------------------------------------------------------------


def test_the_answer_comes_first_and_belongs_to_the_delivered_model(csv: Path, call: Any) -> None:
    done = call("train", csv, *TRAIN)
    assert done.exit_code == 0, done.output
    first = done.stdout.splitlines()[0]
    assert re.match(r"Trained: strength 1\. Expected on new data: AUC 0\.\d{3} \(", first)
    first = call("train", csv, *with_test_rows()).stdout.splitlines()[0]
    assert re.match(r"Trained: strength 1\. On 60 test rows: AUC 0\.\d{3} \(", first)


def useless(rows: int, tmp_path: Path) -> Path:
    """Nearly everyone is a yes, and nothing in the file tells who is not: the planted fault."""
    rng = np.random.default_rng(5)
    path = tmp_path / "rare.csv"
    pl.DataFrame(
        {
            **{f"x{k}": rng.normal(size=rows) for k in range(4)},
            "sex": np.array(["f", "m"])[rng.integers(2, size=rows)],
            "y": np.where(rng.random(rows) < 0.93, "yes", "no"),
        }
    ).write_csv(path)
    return path


def test_a_very_high_base_rate_does_not_read_as_success(tmp_path: Path, call: Any) -> None:
    """Decision gap 0.000, four-fifths 1.000, accuracy 0.93: of a model of AUC near one half
    that says yes to all.
    """
    asked = ("--label", "y", "--group", "sex", "--model", "linear")
    rare, model = useless(8000, tmp_path), tmp_path / "m"
    done = call("train", rare, *asked, "--output", model, "--json", tmp_path / "f.json")
    assert done.exit_code == 0, done.output
    figures = json.loads((tmp_path / "f.json").read_text())["chosen"]
    assert figures["decision_unfairness"] < 0.02
    assert figures["more"]["four_fifths"] > 0.98
    assert 0.4 < figures["more"]["auc"] < 0.6
    assert done.stdout.startswith("Trained: strength 1, a constant predictor. Expected on new")
    decisions = figures_of(call("train", rare, *asked, "--utility", "accuracy", "--json", "-"))
    assert decisions["chosen"]["marks"]["accuracy"] == "constant"
    done = call("predict", model, rare, "--output", tmp_path / "p.csv")
    predicted = pl.read_csv(tmp_path / "p.csv")["prediction"]
    assert predicted.n_unique() == 1
    assert (
        "Warning: the model decides the same for everyone in this file: all 8,000 predictions are "
        "yes." in done.stderr
    )


def test_a_useful_model_with_a_bad_threshold_is_told_to_move_it(
    tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # few epochs would end at the constant
    rng = np.random.default_rng(1)
    x, sex = rng.normal(size=6000), rng.integers(2, size=6000)
    y = rng.random(6000) < 1 / (1 + np.exp(-(x + 4)))  # nearly all
    table = pl.DataFrame({"x": x, "sex": np.array(["f", "m"])[sex], "y": np.where(y, "yes", "no")})
    table.write_csv(tmp_path / "people.csv")
    asked = ("--label", "y", "--group", "sex", "--model", "linear", "--json", "-")
    told = call("train", tmp_path / "people.csv", *asked)
    assert figures_of(told)["utility"] == "auc"
    advice = "Choose another threshold (metrifair train --choose-threshold)"
    assert advice in told.stderr
    # moved, it is judged by what it was moved for, and not told to move it again
    moved = call("train", tmp_path / "people.csv", *asked, "--choose-threshold", "parity")
    figures = figures_of(moved)
    assert figures["utility"] == "balanced_accuracy"
    assert figures["chosen"]["more"]["balanced_accuracy"] > 0.6
    assert advice not in moved.stderr
    assert "constant predictor; 1 of 1" not in moved.stderr


@pytest.mark.extended
@pytest.mark.parametrize(("epochs", "finished"), [(2, False), (300, True)])
def test_training_that_has_not_converged_is_warned_of(
    csv: Path,
    tmp_path: Path,
    call: Any,
    monkeypatch: pytest.MonkeyPatch,
    epochs: int,
    *,
    finished: bool,
) -> None:
    whole = metrifair.FairClassifier.__init__
    monkeypatch.setattr(
        metrifair.FairClassifier, "__init__", wraps(whole)(partialmethod(whole, epochs=epochs))
    )
    done = call(
        "train", csv, *TRAIN, "--model", "mlp", "--strength", "0.1", "--json", tmp_path / "f.json"
    )
    assert done.exit_code == 0, done.output
    assert (
        "Warning: training has not converged: rescaling the outputs would lower" in done.stdout
    ) is not finished


# --- thresholds
# -------------------------------------------------------------------------------------------------


def test_a_threshold_is_kept_in_the_model_and_decides_in_predict(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    done = call("train", csv, *TRAIN, "--threshold", "0.8", "--output", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert (
        "Decisions: “yes” at a probability of at least 0.8, as requested; predict uses it too."
        in done.stdout
    )
    done = call("predict", tmp_path / "m", csv, "--output", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output
    assert "which is the prediction from 0.8 on (audit: --threshold 0.8)" in done.stderr
    found = pl.read_csv(tmp_path / "p.csv")
    assert ((found["probability"] >= 0.8) == (found["prediction"] == "yes")).all()
    assert ((found["probability"] >= 0.5) != (found["prediction"] == "yes")).any()


@pytest.mark.parametrize(
    ("rule", "more"),
    [("accuracy", ()), ("parity", ()), ("cost", ("--cost", "0,8;1,0"))],
)
def test_a_threshold_is_chosen_on_rows_that_neither_teach_nor_measure(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any, rule: str, more: Any
) -> None:
    """It is chosen by scores out of fold, and test rows have no part in it."""
    costs = [[0, 8], [1, 0]] if rule == "cost" else None
    asked = ("--choose-threshold", rule, *more)
    written = {}
    for name, test in {"folds": (), "test": ("--test", "0.25")}.items():
        files = ("--held-out", tmp_path / f"{name}.csv", "--output", tmp_path / f"{name}.metrifair")
        found = figures_of(call("train", csv, *TRAIN, *asked, *test, *files, "--json", "-"))
        model = load(tmp_path / f"{name}.metrifair")
        assert isinstance(model, TableModel)
        assert model.threshold == found["threshold"]
        written[name] = (found, pl.read_csv(tmp_path / f"{name}.csv"), model)
    found, rows, model = written["folds"]
    problem = all_rows(people).problem
    score = rows["probability"].to_numpy()
    again = choose_threshold(score, problem, rule=rule, costs=costs)
    assert again.threshold == pytest.approx(model.threshold, abs=1e-9)
    # the decisions are those of other thresholds, one for each fold
    (point,) = found["points"]
    right = (rows["prediction"] == rows["hired"]).mean()
    assert point["accuracy"] == pytest.approx(right)
    found, rows, model = written["test"]
    assert rows["number"].to_list() == people[held_out_rows(people)]["number"].to_list()
    selected = rows["probability"].to_numpy() >= model.threshold
    assert (selected == (rows["prediction"] == "yes").to_numpy()).all()
    assert found["chosen"]["accuracy"] == pytest.approx(
        (rows["prediction"] == rows["hired"]).mean()
    )
    if rule == "cost":
        assert found["threshold"] > 0.5  # a wrong yes is dear
        wrong = rows.filter(pl.col("prediction") != pl.col("hired"))["prediction"]
        cost = ((wrong == "yes").sum() * 8 + (wrong == "no").sum()) / 60
        assert found["chosen"]["more"]["expected_cost"] == pytest.approx(cost)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--test", "0"], "'--test': 0.0 is not in the range 0<x<1"),
        (
            ["--threshold", "0.4", "--choose-threshold", "parity"],
            "--threshold and --choose-threshold exclude each other",
        ),
        (["--choose-threshold", "cost"], "--cost and --choose-threshold cost must be combined"),
        (["--cost", "0,1;1,0"], "--cost and --choose-threshold cost must be combined"),
        (
            ["--choose-threshold", "cost", "--cost", "0,1"],
            "'0,1' is not a square of numbers such as '0,1;5,0'",
        ),
        (["--choose-threshold", "cost", "--cost", "0,nan;1,0"], "is not a square of numbers"),
        (
            ["--choose-threshold", "cost", "--cost", "0,1,2;1,0,2;1,1,0"],
            "--cost must be 2 rows of 2 costs",
        ),
        (["--choose-threshold", "best"], "'best' is not one of 'accuracy', 'cost', 'parity'"),
        (["--threshold", "1.5"], "'--threshold': 1.5 is not in the range 0<=x<=1"),
        (
            ["--choose-threshold", "cost", "--cost", "0,1;1,0", "--utility", "auc"],
            "--cost is a utility of its own; leave --utility out",
        ),
        (
            ["--label", "wage", "--threshold", "0.5"],
            "a threshold decides between two classes, which 'wage' does not have",
        ),
        (["--held-out", "h.xlsx"], "'h.xlsx' must end in .csv"),
    ],
)
def test_options_that_contradict_each_other_are_refused_and_leave_nothing(
    csv: Path,
    tmp_path: Path,
    call: Any,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for kind in (metrifair.FairClassifier, metrifair.FairRegressor):
        monkeypatch.setattr(kind, "fit", lambda *_, **__: pytest.fail("it was trained"))
    given = [
        part
        for part in TRAIN
        if "--label" not in arguments or part not in ("--label", "hired", "--ignore", "wage")
    ]
    assert words in refusal(call("train", csv, *given, *arguments))
    assert left_behind(tmp_path) == ["people.csv"]
