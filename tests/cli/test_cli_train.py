"""train: what it writes of rows kept apart, what it says of them, thresholds that predict
keeps, models of all rows.
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
from sklearn.metrics import roc_auc_score
from test_cli_training import TRAIN, shorten

import metrifair
from metrifair import TableEncoder, load
from metrifair.estimators.table_model import TableModel
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.tradeoff.split import data_set


@pytest.fixture(autouse=True)
def _few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (metrifair.FairClassifier, metrifair.FairRegressor):
        monkeypatch.setattr(kind, "__init__", shorten(kind.__init__))


def figures_of(done: Any) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def held_out_rows(people: pl.DataFrame) -> Any:
    data = data_set(
        people,
        people["hired"],
        people["sex"],
        None,
        regression=False,
        criterion=STATISTICAL_PARITY,
        contrast="pairs",
    )
    return data.split(0.75, 0.25, 0, train=False).test


# --- held-out predictions
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_held_out_predictions_are_those_of_rows_the_model_never_saw(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any, ending: str
) -> None:
    written = tmp_path / f"held.{ending}"
    done = call(
        "train", csv, *TRAIN, "--output", tmp_path / "m", "--held-out", written, "--json", "-"
    )
    figures, found = figures_of(done), getattr(pl, f"read_{ending}")(written)
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
        "train", csv, *TRAIN, "--positive", "no", "--threshold", "0.4", "--held-out", tmp_path / "held out.csv",
        "--json", tmp_path / "f.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    (line,) = [
        line for line in done.stdout.splitlines() if line.startswith("Audit them: metrifair ")
    ]
    done = call(*shlex.split(line.removeprefix("Audit them: metrifair ")), "--json", "-")
    audited, figures = figures_of(done), json.loads((tmp_path / "f.json").read_text())
    assert audited["rows"] == figures["rows"]["test"]
    worst = max(
        one["value"]
        for one in audited["findings"]
        if (one["metric"], one["criterion"]) == ("kolmogorov", "statistical_parity")
    )
    assert worst == pytest.approx(figures["unfairness"])
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
    groups, found = figures_of(done)["groups"], pl.read_csv(tmp_path / "held.csv")
    if label == "wage":
        assert found.columns == ["number", "sex", "wage", "prediction"]
        own = found.filter(pl.col("sex") == "men")
        men = next(one for one in groups if one["group"] == "men")
        assert men["figures"]["mean_prediction"] == pytest.approx(own["prediction"].mean())
        assert men["figures"]["mean_outcome"] == pytest.approx(own["wage"].mean())
        assert "--score prediction --group sex --label wage" in done.stderr
    else:
        assert found.columns[2:4] == ["rank", "prediction"]
        assert list(groups[0]["figures"]) == ["accuracy", "auc"]
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
    kept = ("--output", tmp_path / "m", "--held-out", tmp_path / "held.csv")
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
    said = " ".join(trained.stdout.split())
    assert "Warning: unfairness is 0." in said
    assert "a significant difference: the model is overfit." in said


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


# --- models of all rows, and of no held-out rows
# ----------------------------------------------------------------


def test_refit_keeps_a_model_of_all_rows_and_the_figures_of_the_held_out_fit(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any
) -> None:
    plain, again = (
        figures_of(call("train", csv, *TRAIN, *more, "--output", tmp_path / name, "--json", "-"))
        for name, more in (("plain", ()), ("again", ("--refit",)))
    )
    assert again["refit"] == 240
    assert plain["refit"] is None
    told, told_again = plain.pop("provenance"), again.pop("provenance")
    assert told["files"] == told_again["files"]
    assert plain | {"refit": 240} == again
    model = load(tmp_path / "again")
    assert (
        model.encoder.coders_
        == TableEncoder().fit(people.drop("number", "sex", "hired", "wage")).coders_
    )
    assert model.encoder.coders_ != load(tmp_path / "plain").encoder.coders_
    done = call(
        "train",
        csv,
        *TRAIN,
        "--refit",
        "--output",
        tmp_path / "m",
        "--held-out",
        tmp_path / "h.csv",
    )
    assert (
        "The saved model was trained again on all 240 rows (--refit): the figures above are"
        in done.stdout
    )
    # what is written is what the model without these rows says of them
    held = pl.read_csv(tmp_path / "h.csv")
    own = people[held_out_rows(people)]
    np.testing.assert_allclose(
        held["probability"], load(tmp_path / "plain").predict_proba(own)[:, 1], rtol=1e-12
    )
    assert not np.allclose(held["probability"], model.predict_proba(own)[:, 1])


def test_a_model_of_all_rows_without_figures(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any
) -> None:
    done = call(
        "train",
        csv,
        *TRAIN,
        "--test",
        "0",
        "--output",
        tmp_path / "m",
        "--json",
        tmp_path / "f.json",
    )
    assert done.exit_code == 0, done.output
    assert (
        "Trained on 240 rows with strength 1. No rows were held out (--test 0), so the model has "
        "no figures." in done.stdout
    )
    assert "on held-out rows" not in done.stdout
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["rows"] == {"train": 240, "test": 0}
    assert "accuracy" not in figures
    alone = TableEncoder().fit(people.drop("number", "sex", "hired", "wage"))
    assert load(tmp_path / "m").encoder.coders_ == alone.coders_


# --- what is said of the rows kept apart
# ------------------------------------------------------------------------


def test_figures_by_group_the_noise_floor_and_training_rows_are_told(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any
) -> None:
    done = call(
        "train",
        csv,
        *TRAIN,
        "--held-out",
        tmp_path / "h.csv",
        "--json",
        tmp_path / "f.json",
        "--output",
        tmp_path / "m",
    )
    assert done.exit_code == 0, done.output
    found, figures = pl.read_csv(tmp_path / "h.csv"), json.loads((tmp_path / "f.json").read_text())
    for one in figures["groups"]:
        own = found.filter(pl.col("sex") == one["group"])
        right = own["hired"] == "yes"
        assert one["rows"] == len(own)
        assert one["figures"] == pytest.approx(
            {
                "base_rate": right.mean(),
                "mean_score": own["probability"].mean(),
                "decision_rate": (own["prediction"] == "yes").mean(),
                "accuracy": (own["prediction"] == own["hired"]).mean(),
                "auc": roc_auc_score(right, own["probability"]),
            }
        )
        assert f"sex: {one['group']}" in done.stdout
    for heading in ("base rate", "mean score", "decision rate", "AUC", "on training rows"):
        assert heading in done.stdout
    assert f"an unfairness below {figures['chance']:.3f} can be chance" in done.stdout
    taught = people[np.setdiff1d(np.arange(240), held_out_rows(people))]
    right = load(tmp_path / "m").predict(taught) == taught["hired"].to_numpy()
    assert figures["training"]["accuracy"] == pytest.approx(right.mean())
    assert figures["warnings"] == []


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
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["decision_unfairness"] < 0.02
    assert figures["more"]["four_fifths"] > 0.98
    assert 0.4 < figures["more"]["auc"] < 0.6
    said = figures["warnings"]
    assert any(
        "deciding the same for everyone" in text or "decides the same for everyone" in text
        for text in said
    )
    assert any(
        text.startswith("its scores rank people no better than chance (AUC 0.") for text in said
    )
    for text in said:
        assert f"Warning: {text}" in done.stdout
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
    y = rng.random(6000) < 1 / (1 + np.exp(-(x + 3)))  # nine of ten
    table = pl.DataFrame({"x": x, "sex": np.array(["f", "m"])[sex], "y": np.where(y, "yes", "no")})
    table.write_csv(tmp_path / "people.csv")
    asked = ("--label", "y", "--group", "sex", "--model", "linear", "--json", "-")
    said = figures_of(call("train", tmp_path / "people.csv", *asked))["warnings"]
    assert any("not significantly better than a constant predictor" in text for text in said)
    assert any("its scores do rank people (AUC 0." in text for text in said)
    # moved, it is judged by what it was moved for, and not told to move it again
    moved = figures_of(
        call("train", tmp_path / "people.csv", *asked, "--choose-threshold", "parity")
    )
    bad = ("the same for everyone", "a constant predictor", "choose another threshold")
    assert not any(words in text for words in bad for text in moved["warnings"])


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
    said = [
        text
        for text in json.loads((tmp_path / "f.json").read_text())["warnings"]
        if "converged" in text
    ]
    assert len(said) == (0 if finished else 1)
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
    asked = (
        "--choose-threshold",
        rule,
        *more,
        "--held-out",
        tmp_path / "h.csv",
        "--output",
        tmp_path / "m",
    )
    figures = figures_of(call("train", csv, *TRAIN, *asked, "--json", "-"))
    assert figures["rows"] == {"train": 120, "validation": 60, "test": 60}
    data = data_set(
        people,
        people["hired"],
        people["sex"],
        None,
        regression=False,
        criterion=STATISTICAL_PARITY,
        contrast="pairs",
    )
    train, validation, test = data.split(0.25, 0.25, 0)
    model = load(tmp_path / "m")
    assert isinstance(model, TableModel)
    assert model.threshold == figures["threshold"]
    assert (
        model.encoder.coders_
        == TableEncoder().fit(people[train].drop("number", "sex", "hired", "wage")).coders_
    )
    costs = [[0, 8], [1, 0]] if rule == "cost" else None
    own = people[validation]
    again = model.choose_threshold(
        own, own["hired"], rule=rule, costs=costs, sensitive_features=own["sex"]
    )
    assert again.threshold == model.threshold
    found = pl.read_csv(tmp_path / "h.csv")
    assert found["number"].to_list() == people[test]["number"].to_list()
    assert (found["prediction"] == found["hired"]).mean() == pytest.approx(figures["accuracy"])
    if rule == "cost":
        assert figures["threshold"] > 0.5  # a wrong yes is dear
        wrong = found.filter(pl.col("prediction") != pl.col("hired"))["prediction"]
        assert figures["more"]["expected_cost"] == pytest.approx(
            ((wrong == "yes").sum() * 8 + (wrong == "no").sum()) / 60
        )


def test_a_threshold_can_be_chosen_where_no_row_is_measured(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    asked = (
        "--test",
        "0",
        "--choose-threshold",
        "accuracy",
        "--validation",
        "0.5",
        "--refit",
        "--output",
        tmp_path / "m",
    )
    done = call("train", csv, *TRAIN, *asked, "--json", tmp_path / "f.json")
    assert done.exit_code == 0, done.output
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["rows"] == {"train": 120, "validation": 120, "test": 0}
    assert load(tmp_path / "m").threshold == figures["threshold"]
    assert "The saved model was trained again on all 240 rows (--refit).\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--test", "0", "--held-out", "h.csv"],
            "--held-out needs held-out rows; leave --test 0 out",
        ),
        (["--refit"], "--refit trains the model that is saved: name a file with --output"),
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
            ["--choose-threshold", "parity", "--test", "0.6", "--validation", "0.4"],
            "leave no rows to train on",
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
