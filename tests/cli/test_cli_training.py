"""train, frontier and predict on raw files: what they write, what they say, what they refuse."""

from __future__ import annotations

import functools
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import left_behind, refusal
from rich.console import Console

import metrifair
from metrifair import Frontier, TableEncoder, load
from metrifair.criteria import CRITERIA, OTHER_NAMES, STATISTICAL_PARITY
from tests.expected_errors import Refusals
from tests.seams.cli import show_frontier
from tests.seams.estimators import TableModel
from tests.seams.metrics import METRICS
from tests.seams.tradeoff import FrontierRecord, Goal, Job, Outcome, Point, TradeOff, data_set
from tests.seams.tradeoff import frontier as sweeping

TRAIN = (
    "--label",
    "hired",
    "--group",
    "sex",
    "--id",
    "number",
    "--ignore",
    "wage",
    "--model",
    "linear",
)
WRITERS: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "csv": lambda frame, path: frame.write_csv(path),
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "parquet": lambda frame, path: frame.write_parquet(path),
    "arrow": lambda frame, path: frame.write_ipc(path),
    "ndjson": lambda frame, path: frame.write_ndjson(path),
}


def shorten(whole: Any) -> Any:
    @functools.wraps(whole)
    def short(self: Any, *args: Any, epochs: Any = 30, **named: Any) -> None:
        whole(self, *args, epochs=epochs, **named)

    return short


@pytest.fixture(autouse=True)
def _few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough to learn something, no more."""
    for kind in (metrifair.FairClassifier, metrifair.FairRegressor):
        monkeypatch.setattr(kind, "__init__", shorten(kind.__init__))


# --- the way from a raw file to predictions
# ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", WRITERS)
def test_a_file_of_any_format_trains_a_model_that_predicts_it(
    people: pl.DataFrame, tmp_path: Path, call: Any, kind: str
) -> None:
    source, model, predictions = (
        tmp_path / f"people.{kind}",
        tmp_path / "m.metrifair",
        tmp_path / f"p.{kind}",
    )
    WRITERS[kind](people, source)
    done = call("train", source, *TRAIN, "--strength", "0.1", "--output", model)
    assert done.exit_code == 0, done.output
    assert "Learned 'hired': no, yes (groups: sex: men, women)." in done.stdout
    assert done.stdout.startswith("Trained: strength 0.1. Expected on new data: AUC 0.")
    done = call("predict", model, source, "--output", predictions)
    assert done.exit_code == 0, done.output
    assert "240 predictions of 'hired', with the probability of yes:" in done.stderr
    readers = {
        "csv": pl.read_csv,
        "tsv": lambda path: pl.read_csv(path, separator="\t"),
        "parquet": pl.read_parquet,
        "arrow": pl.read_ipc,
        "ndjson": pl.read_ndjson,
    }
    found = readers[kind](predictions)
    assert found.columns == ["number", "prediction", "probability"]
    assert found["number"].to_list() == people["number"].to_list()
    loaded = load(model)
    assert isinstance(loaded, TableModel)
    np.testing.assert_allclose(found["probability"], loaded.predict_proba(people)[:, 1], rtol=1e-12)
    assert ((found["probability"] > 0.5) == (found["prediction"] == "yes")).all()
    assert (found["prediction"] == people["hired"]).mean() > 0.7


@pytest.mark.parametrize("positive", ["no", "yes"])
def test_train_predict_and_audit_speak_of_the_same_class(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any, positive: str
) -> None:
    """The ratio of ``train``, the probability of ``predict`` and the decisions of ``audit`` are
    about one label.
    """
    chosen = ("--positive", positive)
    asked = (*chosen, "--strength", "0", "--test", "0.25", "--output", tmp_path / "m")
    done = call("train", csv, *TRAIN, *asked, "--json", "-")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)["chosen"]
    done = call(
        "predict",
        tmp_path / "m",
        csv,
        "--id",
        "sex",
        "--id",
        "hired",
        "--output",
        tmp_path / "p.csv",
    )
    hint = "" if positive == "yes" else " (audit them with --positive no)"
    assert f"with the probability of {positive}{hint}: " in done.stderr
    found = pl.read_csv(tmp_path / "p.csv")
    assert ((found["probability"] > 0.5) == (found["prediction"] == positive)).all()
    data = data_set(
        people,
        people["hired"],
        people["sex"],
        None,
        regression=False,
        criterion=STATISTICAL_PARITY,
        contrast="pairs",
    )
    found[data.divide(data.rows, 0.25, 0)[1]].write_csv(tmp_path / "test.csv")
    asked = ("--score", "probability", "--group", "sex", "--label", "hired", *chosen)
    done = call("audit", tmp_path / "test.csv", *asked, "--json", "-")
    assert done.exit_code == 0, done.output
    audited = json.loads(done.stdout)
    assert figures["more"]["four_fifths"] == pytest.approx(
        audited["decisions"][0]["selection_ratio"]
    )
    assert not any("lower" in note["text"] for note in audited["notes"])


def test_weights_are_not_a_feature_and_count_in_every_figure(
    people: pl.DataFrame, tmp_path: Path, call: Any
) -> None:
    weight = 1 + np.random.default_rng(0).integers(3, size=len(people))
    people.with_columns(weight=weight).write_csv(tmp_path / "people.csv")
    done = call(
        "train",
        tmp_path / "people.csv",
        *TRAIN,
        "--weight",
        "weight",
        "--test",
        "0.25",
        "--output",
        tmp_path / "m",
        "--json",
        "-",
    )
    assert done.exit_code == 0, done.output
    figures, model = json.loads(done.stdout), load(tmp_path / "m")
    assert "weight" not in {*model.encoder.coders_, *model.encoder.dropped_}
    (point,) = figures["points"]
    assert set(point["intervals"]) == {"unfairness"}  # by resampling
    assert "Rows count by their sample weights." in done.stderr
    data = data_set(
        people,
        people["hired"],
        people["sex"],
        None,
        regression=False,
        criterion=STATISTICAL_PARITY,
        contrast="pairs",
    )
    test = data.divide(data.rows, 0.25, 0)[1]
    right = model.predict(people[test]) == people["hired"].to_numpy()[test]
    assert figures["chosen"]["accuracy"] == pytest.approx(np.average(right, weights=weight[test]))


def with_a_lonely_tribe(people: pl.DataFrame, path: Path) -> Path:
    lonely = pl.when(pl.int_range(len(people)) == 7).then(pl.lit("one")).otherwise(pl.lit("many"))
    people.with_columns(tribe=lonely).write_csv(path)
    return path


def test_rows_that_lack_a_group_are_refused_before_anything_is_trained(
    people: pl.DataFrame, tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        metrifair.FairClassifier, "fit", lambda *_, **__: pytest.fail("it was trained")
    )
    lonely = with_a_lonely_tribe(people, tmp_path / "people.csv")
    said = refusal(call("train", lonely, *TRAIN[:2], "--group", "tribe", *TRAIN[4:]))
    assert "merge small groups" in said


@pytest.mark.parametrize("model", ["linear", "lightgbm"])
def test_a_group_of_one_among_several_attributes_is_left_out_and_said(
    people: pl.DataFrame, tmp_path: Path, call: Any, model: str
) -> None:
    lonely, figures = (
        with_a_lonely_tribe(people, tmp_path / "people.csv"),
        tmp_path / "figures.json",
    )
    # every fold has several large groups beside it
    rows = pl.read_csv(lonely).with_columns(
        tribe=pl.when(pl.col("tribe") == "one").then("tribe").otherwise("code")
    )
    rows.write_csv(lonely)
    done = call("train", lonely, *TRAIN[:-1], model, "--group", "tribe", "--json", figures)
    assert done.exit_code == 0, done.output
    notes = [note["text"] for note in json.loads(figures.read_text())["notes"]]
    left_out = "Left out of the penalty, as too small to train on: tribe 'one' (1 row); "
    assert [note for note in notes if note.startswith(left_out)]
    assert [note for note in notes if "“one” of tribe (1 row)" in note]


def test_a_frontier_is_judged_without_a_group_that_the_held_out_rows_lack(
    people: pl.DataFrame, tmp_path: Path, call: Any
) -> None:
    rows, figures = pl.int_range(len(people)), tmp_path / "figures.json"
    tribe = (
        pl.when(rows == 7)
        .then(pl.lit("one"))
        .when(rows % 2 == 0)
        .then(pl.lit("p"))
        .otherwise(pl.lit("q"))
    )
    people.with_columns(tribe=tribe).write_csv(tmp_path / "people.csv")
    asked = ("--group", "tribe", "--strengths", "0,1", "--json", figures)
    done = call("frontier", tmp_path / "people.csv", *TRAIN, *asked)
    assert done.exit_code == 0, done.output
    notes = json.loads(figures.read_text())["notes"]
    assert "“one” of tribe (1 row)" in " ".join(note["text"] for note in notes)


def test_an_id_that_is_also_a_feature_is_read_as_the_model_needs_it(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    done = call("train", csv, *TRAIN, "--output", tmp_path / "m")
    assert done.exit_code == 0, done.output
    done = call("predict", tmp_path / "m", csv, "--id", "income", "--output", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output
    assert pl.read_csv(tmp_path / "p.csv").columns == ["income", "prediction", "probability"]


def test_the_sensitive_column_is_a_feature_only_where_asked(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    for flag, used in ((), False), (("--use-group",), True):
        done = call("train", csv, *TRAIN, *flag, "--output", tmp_path / "m")
        assert done.exit_code == 0, done.output
        model = load(tmp_path / "m")
        assert ("sex" in model.encoder.coders_) is used
        assert not {"hired", "number", "wage"} & {*model.encoder.coders_, *model.encoder.dropped_}


def test_codes_with_a_leading_zero_and_towns_with_odd_names_are_text(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    assert call("train", csv, *TRAIN, "--output", tmp_path / "m").exit_code == 0
    coders = load(tmp_path / "m").encoder.coders_
    assert coders["code"].levels == ("00", "01", "02", "03")
    assert coders["town"].levels == ("<b>west</b>", "=east", "north", "south")
    assert (coders["income"].kind, coders["income"].flagged, coders["member"].kind) == (
        "number",
        True,
        "boolean",
    )
    # a file in which the codes look like numbers is read as the model needs it
    later = tmp_path / "later.csv"
    pl.read_csv(csv, infer_schema=False).with_columns(code=pl.lit("7"), income=pl.lit("?")).head(
        3
    ).write_csv(later)
    done = call("predict", tmp_path / "m", later, "--output", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output


def test_a_number_is_regressed(csv: Path, tmp_path: Path, call: Any) -> None:
    arguments = ["--label", "wage", "--group", "sex", "--ignore", "hired", "--ignore", "number"]
    done = call(
        "train", csv, *arguments, "--strength", "0", "--output", tmp_path / "m", "--json", "-"
    )
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert figures["chosen"]["accuracy"] > 0.2
    assert figures["folds"] == 5
    assert "Learned the number 'wage'" in done.stderr
    done = call("predict", tmp_path / "m", csv, "--output", "-")
    assert done.exit_code == 0, done.output
    header, first, *_ = done.stdout.splitlines()
    assert header == "row,prediction"
    assert first.startswith("1,")
    assert "240 predictions of 'wage': standard output" in done.stderr


def test_several_attributes_controls_and_classes(
    people: pl.DataFrame, tmp_path: Path, call: Any
) -> None:
    source = tmp_path / "people.parquet"
    ranks = np.array(["low", "middle", "top"])[
        np.digitize(people["wage"], people["wage"].quantile([1 / 3, 2 / 3]))
    ]
    people.with_columns(rank=pl.Series(ranks, dtype=pl.Categorical)).write_parquet(source)
    arguments = ["--label", "rank", "--group", "sex", "--group", "member", "--ignore", "wage"]
    done = call("train", source, *arguments, "--control", "hired", "--output", tmp_path / "m")
    assert done.exit_code == 0, done.output
    assert "(groups: sex: men, women; member: False, True)" in done.stdout
    assert (
        "Left out: column 'number' contains a different value in every row, none of them 10 times."
        in done.stdout
    )
    done = call(
        "predict",
        tmp_path / "m",
        source,
        "--id",
        "number",
        "--id",
        "sex",
        "--output",
        tmp_path / "p.ndjson",
    )
    assert done.exit_code == 0, done.output
    found = pl.read_ndjson(tmp_path / "p.ndjson")
    classes = ["probability of low", "probability of middle", "probability of top"]
    assert found.columns == ["number", "sex", "prediction", *classes]
    np.testing.assert_allclose(found.select(pl.sum_horizontal(classes)).to_series(), 1.0)


def test_rows_without_a_target_are_left_out_and_said(
    people: pl.DataFrame, tmp_path: Path, call: Any
) -> None:
    source = tmp_path / "people.csv"
    people.with_columns(
        hired=pl.when(pl.int_range(len(people)) < 20).then(None).otherwise("hired")
    ).write_csv(source)
    done = call("train", source, *TRAIN)
    assert done.exit_code == 0, done.output
    assert "Left out: 20 rows without a label." in done.stdout


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_target_that_says_it_is_missing_is_no_class(
    people: pl.DataFrame, tmp_path: Path, call: Any, ending: str
) -> None:
    word = pl.Series(["NA", "?", " n/a "] * (len(people) // 3))
    table = people.with_columns(
        hired=pl.when(pl.int_range(len(people)) < 21).then(word).otherwise("hired")
    )
    getattr(table, f"write_{ending}")(tmp_path / f"people.{ending}")
    done = call("train", tmp_path / f"people.{ending}", *TRAIN)
    assert done.exit_code == 0, done.output
    assert "Left out: 21 rows without a label." in done.stdout
    assert "'hired': no, yes" in done.stdout


def test_the_same_seed_writes_the_same_bytes(csv: Path, tmp_path: Path, call: Any) -> None:
    found = {}
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        model, figures = tmp_path / name, tmp_path / f"{name}.json"
        files = ("--output", model, "--json", figures)
        assert call("train", csv, *TRAIN, "--seed", seed, *files).exit_code == 0
        found[name] = (model.read_bytes(), json.loads(figures.read_text())["points"])
    assert found["a"] == found["b"]
    assert found["a"][1] != found["c"][1]


@pytest.mark.parametrize(("model", "module"), [("lightgbm", "lightgbm"), ("xgboost", "xgboost")])
def test_boosted_trees_are_trained_saved_and_applied(
    people: pl.DataFrame, tmp_path: Path, call: Any, model: str, module: str
) -> None:
    pytest.importorskip(module)
    source = tmp_path / "people.csv"
    people.with_columns(hired=(pl.col("hired") == "yes").cast(pl.Int8)).write_csv(source)
    done = call(
        "train",
        source,
        *TRAIN,
        "--model",
        model,
        "--strength",
        "0.5",
        "--output",
        tmp_path / "m",
        "--json",
        "-",
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["chosen"]["accuracy"] > 0.5
    done = call("predict", tmp_path / "m", source, "--output", tmp_path / "p.parquet")
    assert done.exit_code == 0, done.output
    found = pl.read_parquet(tmp_path / "p.parquet")
    assert ((found["probability"] > 0.5) == (found["prediction"] == 1)).all()


def test_what_a_booster_refuses_is_one_line(
    csv: Path, tmp_path: Path, call: Any, refused: Refusals
) -> None:
    pytest.importorskip("xgboost")
    words = refusal(call("train", csv, *TRAIN, "--model", "xgboost", "--output", tmp_path / "m"))
    refused.said(words)


def test_a_frontier_shows_chooses_and_writes(csv: Path, tmp_path: Path, call: Any) -> None:
    arguments = [
        "--strengths",
        "10,0,1",
        "--seeds",
        "2",
        "--max-unfairness",
        "1",
        "--html",
        tmp_path / "r.html",
    ]
    done = call("frontier", csv, *TRAIN, *arguments, "--json", "-", "--output", tmp_path / "m")
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert [(point["strength"], point["seed"]) for point in figures["points"]] == [
        (strength, seed) for seed in (0, 1) for strength in (0.0, 1.0, 10.0)
    ]
    point = figures["chosen"]
    assert (point["strength"], point["seed"]) in {
        (own["strength"], own["seed"]) for own in figures["points"]
    }
    assert "5-fold cross-validation of 240 rows" in done.stderr
    assert f"Chosen: strength {point['strength']:g}" in done.stderr
    assert f"AUC {point['more']['auc']:.3f} (" in done.stderr
    assert f"unfairness {point['unfairness']:.3f} (" in done.stderr
    assert f"{point['strength']:g} (chosen)" in done.stderr
    assert "misses" not in done.stderr
    page = (tmp_path / "r.html").read_text()
    assert "hired by sex" in page
    done = call("predict", tmp_path / "m", csv, "--output", tmp_path / "p.csv")
    assert done.exit_code == 0, done.output


def frontier_of(strengths: int, chosen: int, reached: float) -> Frontier:
    """The chosen model is this unfair on test rows."""
    points = [
        Point(float(place), 0, 0.9, reached if place == chosen else 0.5)
        for place in range(strengths)
    ]
    outcomes = [Outcome(Job(point.strength, 0), point) for point in points]
    record = FrontierRecord(chosen=points[chosen], goal=Goal(0.15))
    return Frontier(TradeOff(outcomes, record))


@pytest.mark.parametrize(("reached", "missed"), [(0.15, False), (0.18, True)])
def test_the_chosen_model_is_always_in_the_table_and_a_missed_limit_is_said(
    reached: float, *, missed: bool
) -> None:
    out = Console(file=io.StringIO(), width=120)
    front = frontier_of(25, 13, reached)
    show_frontier(out, front)
    said = out.file.getvalue()  # type: ignore[attr-defined]
    assert "13 (chosen)" in said
    assert "Shown: 10 of 25 strengths." in said
    assert f"Expected on new data: accuracy 0.900, unfairness {reached:.3f}." in said
    assert ("is expected to exceed it" in said) is missed


def test_a_small_group_is_named_by_train(people: pl.DataFrame, tmp_path: Path, call: Any) -> None:
    tribe = (
        pl.when(pl.int_range(len(people)) % 24 == 0).then(pl.lit("few")).otherwise(pl.lit("many"))
    )
    people.with_columns(tribe=tribe).write_csv(tmp_path / "people.csv")
    done = call(
        "train", tmp_path / "people.csv", *TRAIN, "--group", "tribe", "--json", tmp_path / "f.json"
    )
    assert done.exit_code == 0, done.output
    notes = [note["text"] for note in json.loads((tmp_path / "f.json").read_text())["notes"]]
    (note,) = (note for note in notes if "“few” of tribe (" in note)
    assert note.endswith("Merge small groups, or mark them as missing.")
    assert note in done.stdout
    assert "Unfairness is the largest difference between the groups' shares" in done.stdout


def into_a_closed_pipe(arguments: list[str], folder: Path) -> tuple[int, str]:
    """The exit code and standard error of a command whose output nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "metrifair", *arguments],
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=folder,
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", [["datasets"], ["train", "--help"]])
def test_a_closed_pipe_ends_quietly_and_not_as_unfair(arguments: list[str], tmp_path: Path) -> None:
    assert into_a_closed_pipe(arguments, tmp_path) == (141, "")


def test_a_closed_pipe_loses_no_file(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("p,sex\n" + "0.2,f\n0.7,m\n0.9,f\n0.1,m\n" * 50)
    files = ["--html=a.html", "--json=a.json", "--output=a.csv"]
    for limit, code in (("0.9", 141), ("0.01", 1)):  # a broken limit is what the exit code says
        command = [
            "audit",
            "scores.csv",
            "--score=p",
            "--group=sex",
            *files,
            "--fail-above",
            f"kolmogorov={limit}",
        ]
        assert into_a_closed_pipe(command, tmp_path) == (code, "")
        for option in files:
            (tmp_path / option.partition("=")[2]).unlink()


def test_no_row_that_was_held_out_taught_the_model_or_its_encoder(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any
) -> None:
    """The split is found again: the encoder knows the training rows only, the figures are those
    of the test rows.
    """
    data = data_set(
        people,
        people["hired"],
        people["sex"],
        None,
        regression=False,
        criterion=STATISTICAL_PARITY,
        contrast="pairs",
    )
    limit = ("--strengths", "0.5", "--max-unfairness", "1")
    trained, test = data.divide(data.rows, 0.25, 0)
    files = ("--json", tmp_path / "f.json", "--output", tmp_path / "m")
    for command, more in {"train": (), "frontier": limit}.items():
        done = call(command, csv, *TRAIN, *more, "--test", "0.25", *files)
        assert done.exit_code == 0, done.output
        model, figures = load(tmp_path / "m"), json.loads((tmp_path / "f.json").read_text())
        alone = TableEncoder().fit(people[trained].drop("number", "sex", "hired", "wage"))
        assert model.encoder.coders_ == alone.coders_
        right = model.predict(people[test]) == people["hired"].to_numpy()[test]
        assert figures["chosen"]["accuracy"] == right.mean()


# --- refusals
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--label", "hird", "--group", "sex"],
            "has no column 'hird' (given as label); its columns are 'number',",
        ),
        (["--label", "hired", "--group", "gender"], "has no column 'gender' (given as group)"),
        (
            ["--label", "hired", "--group", "sex", "--ignore", "x"],
            "has no column 'x' (given as ignore)",
        ),
        (["--label", "hired", "--group", "hired"], "--label and --group both name 'hired'"),
        (
            ["--label", "hired", "--group", "wage", "--continuous", "none"],
            "--group 'wage' takes 240 values, more than 50; cut a number with --cuts",
        ),
        (
            ["--label", "hired", "--group", "sex", "--regression"],
            "--label 'hired' is not a number, but contains",
        ),
        (
            ["--label", "wage", "--group", "sex", "--classification"],
            "--label 'wage' takes 240 values, too many",
        ),
        (
            ["--label", "hired", "--group", "sex", "--positive", "si"],
            "--positive must be one of 'no', 'yes'",
        ),
        (["--label", "hired", "--group", "sex", "--metric", "enery"], "did you mean 'energy'?"),
        (
            ["--label", "hired", "--group", "sex", "--criterion", "parity"],
            "--criterion must be one of",
        ),
        (
            ["--label", "hired", "--group", "sex", "--strength", "-1"],
            "'--strength': -1.0 is not in the range",
        ),
        (
            ["--label", "hired", "--group", "sex", "--strength", "nan"],
            "'--strength': 'nan' is not a finite number",
        ),
        (
            ["--label", "hired", "--group", "sex", "--test", "1"],
            "'--test': 1.0 is not in the range 0<x<1",
        ),
        (["--label", "hired"], "Missing option '--group'"),
        (
            ["--label", "hired", "--group", "sex", "--weight", "hired"],
            "--label and --weight both name 'hired'",
        ),
        (
            ["--label", "hired", "--group", "sex", "--weight", "town"],
            "--weight 'town' must contain a number from 0 upwards",
        ),
        (
            ["--label", "hired", "--group", "sex", "--weight", "income"],
            "--weight 'income' must contain a number from 0",
        ),
        (
            [
                "--label",
                "hired",
                "--group",
                "sex",
                *(
                    part
                    for name in ("number", "income", "town", "code", "member", "wage")
                    for part in ("--ignore", name)
                ),
            ],
            "no column is left as a feature",
        ),
    ],
)
def test_what_cannot_be_learned_is_one_line(
    csv: Path, tmp_path: Path, call: Any, arguments: Any, words: str
) -> None:
    done = call("train", csv, *arguments, "--output", tmp_path / "m")
    assert words in refusal(done)
    assert left_behind(tmp_path) == ["people.csv"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "people.csv is empty"),
        (b"number,sex,hired\n", "has no rows below its header"),
        (b"\x00\x01\x02\xff" * 50, "is not text"),
        (
            b"number;income;sex;hired\n1;2;f;yes\n",
            "use --separator ';' if that separates its columns",
        ),
        ("number,sex,hired\n1,f\xfcr,yes\n".encode("latin-1") * 3, "is not UTF-8 text"),
        (b"number,sex,hired\n1,f,yes,more\n", "more fields than its header"),
        (b"number,sex,hired\n1,f,yes\n2,f,no\n3,f,yes\n4,f,no\n", "sex"),
    ],
)
def test_a_file_that_is_no_table_is_one_line(
    tmp_path: Path, call: Any, content: bytes, words: str
) -> None:
    (tmp_path / "people.csv").write_bytes(content)
    done = call(
        "train",
        tmp_path / "people.csv",
        "--label",
        "hired",
        "--group",
        "sex",
        "--output",
        tmp_path / "m",
    )
    assert words in refusal(done)
    assert left_behind(tmp_path) == ["people.csv"]


def test_another_separator_can_be_named(people: pl.DataFrame, tmp_path: Path, call: Any) -> None:
    people.write_csv(tmp_path / "people.csv", separator=";")
    assert call("train", tmp_path / "people.csv", *TRAIN, "--separator", ";").exit_code == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda frame: frame.drop("town"),
            "has no column 'town' (given as feature); its columns are",
        ),
        (
            lambda frame: frame.with_columns(income=pl.lit("much")),
            "column 'income' contained numbers at fit, and contains text now: 'much'; pass numbers",
        ),
        (
            lambda frame: frame.with_columns(member=pl.lit(3)),
            "column 'member' contained booleans at fit, and contains",
        ),
        (lambda frame: frame.head(0), "has no rows below its header"),
        (
            lambda frame: frame.with_columns(income=pl.lit("inf")),
            "column 'income' contains inf, which is too large",
        ),
    ],
)
def test_a_file_that_lacks_or_retypes_a_column_is_refused_by_name(
    people: pl.DataFrame, csv: Path, tmp_path: Path, call: Any, change: Any, words: str
) -> None:
    assert call("train", csv, *TRAIN, "--output", tmp_path / "m").exit_code == 0
    change(people).write_csv(tmp_path / "later.csv")
    done = call("predict", tmp_path / "m", tmp_path / "later.csv", "--output", tmp_path / "p.csv")
    assert words in refusal(done)
    assert left_behind(tmp_path) == ["later.csv", "m", "people.csv"]


def test_what_is_no_model_for_raw_tables_is_refused(
    csv: Path, tmp_path: Path, call: Any, refused: Refusals
) -> None:
    (tmp_path / "junk").write_bytes(b"\x80\x04junk" * 9)
    refused.said(refusal(call("predict", tmp_path / "junk", csv, "--output", tmp_path / "p.csv")))
    assert "there is no file" in refusal(
        call("predict", tmp_path / "none", csv, "--output", tmp_path / "p.csv")
    )
    metrifair.FairRegressor(0.0, model="mlp").fit([[0.0], [1.0]], [0.0, 1.0]).save(
        tmp_path / "numbers"
    )
    words = refusal(call("predict", tmp_path / "numbers", csv, "--output", tmp_path / "p.csv"))
    refused.said(words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--strengths", "0,-1"], "'0,-1' is not a list of numbers from 0 upwards"),
        (["--strengths", "0,nan"], "'0,nan' is not a list of numbers"),
        (["--strengths", "many"], "'many' is not a list of numbers"),
        (["--output", "m"], "--output needs --max-unfairness"),
        (["--html", "report.pdf"], "'report.pdf' must end in .html, .htm"),
        (["--html", "-"], "standard output is not possible here"),
        (["--json", "no/such/folder/f.json"], "the folder 'no/such/folder' does not exist"),
    ],
)
def test_options_of_a_frontier_that_mean_nothing_are_refused_before_any_work(
    csv: Path, call: Any, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.setattr(metrifair, "frontier", lambda *_, **__: pytest.fail("it went on"))
    assert words in refusal(call("frontier", csv, *TRAIN, *arguments))


def test_a_limit_that_no_model_keeps_is_refused_but_the_report_is_written(
    csv: Path, tmp_path: Path, call: Any, refused: Refusals
) -> None:
    arguments = [
        "--strengths",
        "0",
        "--max-unfairness",
        "0",
        "--html",
        tmp_path / "r.html",
        "--output",
        tmp_path / "m",
    ]
    words = refusal(call("frontier", csv, *TRAIN, *arguments))
    assert "must be at least" in words
    refused.said(words)
    assert left_behind(tmp_path) == ["people.csv", "r.html"]


@pytest.mark.parametrize(
    "command", [["train"], ["frontier"], ["train", "--html", "r.html", "--json", "r.json"]]
)
def test_a_limit_that_no_rows_verify_is_refused_before_training(
    csv: Path, tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweeping, "sweep", lambda *_, **__: pytest.fail("it trained"))
    columns = TRAIN[: TRAIN.index("--model")]
    output = tmp_path / "m"
    limited = (*columns, "--max-unfairness", 0.001, "--output", output)
    words = refusal(call(command[0], csv, *limited, *command[1:]))
    assert "--max-unfairness must be at least" in words
    assert "to be verified with these 240 rows" in words
    assert left_behind(tmp_path) == ["people.csv"]


# --- help
# -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "names"),
    [("--criterion", {*CRITERIA, *OTHER_NAMES.values()}), ("--metric", {*METRICS})],
)
def test_the_help_names_every_criterion_and_metric(call: Any, option: str, names: set[str]) -> None:
    _, _, text = call("audit", "--help").output.partition(f"\n  {option} ")
    assert names <= set(re.findall(r"\w+", text.partition("Repeatable.")[0]))


@pytest.mark.parametrize("model", ["linear", "lightgbm"])
def test_what_the_penalty_is_can_be_said(csv: Path, tmp_path: Path, call: Any, model: str) -> None:
    output = tmp_path / "m.metrifair"
    words = ("--estimate", "population", "--combine", "sum", "--contrast", "rest")
    done = call("train", csv, *TRAIN[:-1], model, *words, "--output", output)
    assert done.exit_code == 0, done.output
    found = load(output).estimator.penalty
    assert (found.estimate, found.combine, found.contrast) == ("population", "sum", "rest")
    refused = call("frontier", csv, *TRAIN[:-1], model, "--estimate", "unbiased")
    assert refused.exit_code == 2
    assert "'rows', 'population', 'batch'" in refused.output


@pytest.mark.parametrize(
    ("values", "learned"), [(15, "Learned 'y': 0, 1, 2"), (21, "Learned the number 'y'")]
)
def test_as_many_integers_are_classes_as_in_an_audit(
    tmp_path: Path, call: Any, values: int, learned: str
) -> None:
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(values), 20)
    table = pl.DataFrame(
        {
            "x": label + rng.normal(size=len(label)),
            "sex": rng.choice(["f", "m"], len(label)),
            "y": label,
        }
    )
    table.write_csv(tmp_path / "p.csv")
    asked = [
        "--label",
        "y",
        "--group",
        "sex",
        "--model",
        "linear",
        "--strength",
        "0",
        "--regression",
    ]
    assert "Learned the number 'y'" in call("train", tmp_path / "p.csv", *asked).stdout
    assert learned in call("train", tmp_path / "p.csv", *asked[:-1]).stdout
