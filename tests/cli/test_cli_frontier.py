"""`metrifair frontier`: utilities, held-out predictions, one number, training on all rows."""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import refusal
from sklearn.metrics import roc_auc_score

from metrifair import FairClassifier, FairRegressor, audit, load
from tests.cli.conftest import texts_of
from tests.expected_errors import Refusals
from tests.seams.tradeoff import Portfolio

TRAIN = ["--label", "hired", "--group", "sex"]


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    """800 people; who is hired depends on skill, and skill a little on sex."""
    generator = np.random.default_rng(3)
    sex = generator.integers(2, size=800)
    skill = generator.normal(size=800) + 0.4 * sex
    hired = skill + 0.6 * generator.normal(size=800) > -0.8
    table = {
        "number": [f"p{at:04d}" for at in range(800)],
        "sex": np.where(sex, "men", "women"),
        "skill": skill.round(5),
        "other": generator.normal(size=800).round(5),
        "hired": np.where(hired, "yes", "no"),
    }
    pl.DataFrame(table).write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


def test_held_out_predictions_hold_what_an_audit_asks_for(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    more = [
        "--id",
        "number",
        "--strengths",
        "0,1",
        "--max-unfairness",
        "1",
        "--test",
        "0.25",
        "--model",
        "linear",
        "--json",
        tmp_path / "f.json",
    ]
    done = call("frontier", csv, *TRAIN, *more, "--held-out", tmp_path / "h.csv")
    assert done.exit_code == 0, done.output
    table, figures = pl.read_csv(tmp_path / "h.csv"), json.loads((tmp_path / "f.json").read_text())
    assert table.columns == ["number", "sex", "hired", "prediction", "probability"]
    assert len(table) == 200
    everyone = pl.read_csv(csv)
    joined = table.join(everyone, on="number", how="left", suffix=" there")
    assert (joined["sex"] == joined["sex there"]).all()
    assert (joined["hired"] == joined["hired there"]).all()
    point = figures["chosen"]
    assert (table["hired"] == table["prediction"]).mean() == pytest.approx(point["accuracy"])
    assert roc_auc_score(table["hired"] == "yes", table["probability"]) == pytest.approx(
        point["more"]["auc"]
    )
    found = audit(
        None, table["probability"], sensitive_features=table["sex"], metrics=["kolmogorov"]
    )
    # The audit's distance contains what chance adds to it.
    by_chance = math.pi**2 / 12 * sum(1 / size for size in table["sex"].value_counts()["count"])
    gap = math.sqrt(max(0.0, found.findings[0].value ** 2 - by_chance))
    assert gap == pytest.approx(point["unfairness"], abs=0.005)
    assert "(200 rows that the model has not seen)" in done.output
    assert "Audit them: metrifair audit" in done.output


def test_without_test_rows_held_out_predictions_are_of_all_rows_out_of_fold(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    more = ["--model", "linear", "--strengths", "0", "--max-unfairness", "1", "--id", "number"]
    files = ["--held-out", tmp_path / "h.csv", "--output", tmp_path / "m"]
    done = call("frontier", csv, *TRAIN, *more, *files)
    assert done.exit_code == 0, done.output
    assert "(800 rows by models that have not seen them)" in done.output
    table, everyone = pl.read_csv(tmp_path / "h.csv"), pl.read_csv(csv)
    assert table["number"].to_list() == everyone["number"].to_list()
    own = load(tmp_path / "m").predict_proba(everyone)[:, 1]
    assert np.abs(own - table["probability"].to_numpy()).max() > 1e-3


def test_the_chosen_model_has_one_number_everywhere(csv: Path, tmp_path: Path, call: Any) -> None:
    more = ["--model", "linear", "--strengths", "0,1,10", "--max-unfairness", "0.3"]
    files = ["--json", tmp_path / "f.json", "--html", tmp_path / "r.html"]
    done = call("frontier", csv, *TRAIN, *more, *files)
    assert done.exit_code == 0, done.output
    chosen = json.loads((tmp_path / "f.json").read_text())["chosen"]
    auc, gap = chosen["more"]["auc"], chosen["unfairness"]
    (row,) = (line for line in done.output.splitlines() if "(chosen)" in line)
    assert [f"{auc:.3f}", f"{gap:.3f}"] == [row.split()[2], row.split()[4]]
    assert f"AUC {auc:.3f} (" in done.output
    assert f"unfairness {gap:.3f} (" in done.output
    page = (tmp_path / "r.html").read_text()
    (content,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL
    )
    tiles = json.loads(content)["highlights"]
    (tile,) = [tile for tile in tiles if "chosen" in tile["heading"].lower()]
    texts = [text.split(" (")[0] for _, text in tile["figures"]]
    assert f"{auc:.3f}" in texts
    assert f"{gap:.3f}" in texts


@pytest.mark.extended
@pytest.mark.parametrize("test", [[], ["--test", "0.25"]])
def test_the_chosen_model_is_trained_on_all_rows_but_the_test_rows(
    csv: Path, tmp_path: Path, call: Any, test: list[str]
) -> None:
    more = ["--strengths", "0.1", "--max-unfairness", "1", "--seed", "4", "--id", "number"]
    files = ["--output", tmp_path / "chosen", "--held-out", tmp_path / "h.csv"]
    done = call("frontier", csv, *TRAIN, *more, *test, *files)
    assert done.exit_code == 0, done.output
    rows = pl.read_csv(csv)
    if test:
        assert "trained on the 600 rows that are not test rows." in done.output
        rows = rows.join(pl.read_csv(tmp_path / "h.csv"), on="number", how="anti")
    else:
        assert "The saved model was trained on all 800 rows." in done.output
    rows.write_csv(tmp_path / "rows.csv")
    # the seed of the only model is 0
    alone = ["--strength", "0.1", "--seed", "0", "--id", "number"]
    train = call("train", tmp_path / "rows.csv", *TRAIN, *alone, "--output", tmp_path / "alone")
    assert train.exit_code == 0, train.output
    chosen, same = (
        load(tmp_path / name).predict_proba(pl.read_csv(csv))[:, 1] for name in ("chosen", "alone")
    )
    assert chosen == pytest.approx(same, abs=1e-6)


def test_a_confidence_is_part_of_the_goal(csv: Path, tmp_path: Path, call: Any) -> None:
    more = ["--model", "linear", "--strengths", "0,10", "--max-unfairness", "0.5"]
    done = call(
        "frontier", csv, *TRAIN, *more, "--confidence", "0.9", "--json", tmp_path / "f.json"
    )
    assert done.exit_code == 0, done.output
    figures = json.loads((tmp_path / "f.json").read_text())
    assert (figures["goal"]["max_unfairness"], figures["goal"]["confidence"]) == (0.5, 0.9)
    assert not figures["is_best_effort"]


@pytest.mark.parametrize(
    ("command", "families"),
    [
        pytest.param("train", ["--families", "auto,linear"], marks=pytest.mark.extended),
        ("frontier", ["--model", "linear", "--strengths", "0"]),
    ],
)
def test_the_least_unfair_model_is_kept_by_best_effort_only(
    csv: Path, tmp_path: Path, call: Any, command: str, families: list[str], refused: Refusals
) -> None:
    more = [*families, "--max-unfairness", "0.01", "--json", tmp_path / "f.json"]
    more += ["--output", tmp_path / "m"]
    said = refusal(call(command, csv, *TRAIN, *more))
    refused.said(said)
    assert "or use about " in said
    assert "use --best-effort" in said
    assert not (tmp_path / "m").exists()
    done = call(command, csv, *TRAIN, *more, "--best-effort")
    assert done.exit_code == 0, done.output
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["is_best_effort"]
    assert len(load(tmp_path / "m").predict(pl.read_csv(csv))) == 800


def test_folds_and_decisions_are_asked_for_by_options(csv: Path, tmp_path: Path, call: Any) -> None:
    more = [
        "--model",
        "linear",
        "--strengths",
        "0,10",
        "--max-unfairness",
        "1",
        "--json",
        tmp_path / "f.json",
    ]
    done = call("frontier", csv, *TRAIN, *more, "--folds", "3", "--unfairness-of", "decisions")
    assert done.exit_code == 0, done.output
    assert "3-fold cross-validation of 800 rows" in done.output
    figures = json.loads((tmp_path / "f.json").read_text())
    assert (figures["unfairness_of"], figures["folds"]) == ("decisions", 3)
    assert figures["utility"] == "accuracy"
    done = call("frontier", csv, *TRAIN, *more, "--folds", "300")
    assert done.exit_code == 2
    assert "--folds must be at most" in done.output


@pytest.mark.extended
@pytest.mark.parametrize(
    ("asked", "name", "label"),
    [
        (["--utility", "auc"], "auc", "AUC"),
        (["--utility", "balanced_accuracy"], "balanced_accuracy", "Balanced accuracy"),
        (["--cost", "0,1;5,0"], "expected_cost", "Expected cost"),
        (["--utility", "matthews_corrcoef"], "matthews_corrcoef", "Matthews corrcoef"),
    ],
)
def test_models_are_good_by_a_utility(
    csv: Path, tmp_path: Path, call: Any, asked: list[str], name: str, label: str
) -> None:
    more = ["--strengths", "0,1,100", "--max-unfairness", "1", "--html", tmp_path / "r.html"]
    more += ["--model", "linear"]
    done = call("frontier", csv, *TRAIN, *more, *asked, "--json", tmp_path / "f.json")
    assert done.exit_code == 0, done.output
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["utility"] == name
    assert all(name in point["more"] for point in [*figures["points"], figures["constant"]])
    assert label in done.output
    assert label in (tmp_path / "r.html").read_text()
    assert "constant" in done.output


def test_a_model_that_is_no_better_than_a_constant_is_named(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    """The wrong choice of before: accuracy at the base rate, and no word about it."""
    more = ["--strengths", "100,1000", "--max-unfairness", "1", "--html", tmp_path / "r.html"]
    more += ["--utility", "accuracy", "--model", "linear"]
    done = call("frontier", csv, *TRAIN, *more, "--json", tmp_path / "f.json")
    assert done.exit_code == 0, done.output
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["chosen"]["marks"]["accuracy"] in ("constant", "not_significantly_better")
    assert "The chosen model " in done.output
    assert (
        " not significantly better than a constant predictor" in done.output
        or "decides the same for everyone" in done.output
    )
    assert "Least unfair" not in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--held-out", "h.csv"], "--held-out needs --max-unfairness"),
        (["--best-effort"], "--best-effort needs --max-unfairness"),
        (["--confidence", "0.9"], "--confidence needs --max-unfairness"),
        (["--test", "1"], "'--test': 1.0 is not in the range 0<x<1"),
        (["--utility", "auc", "--cost", "0,1;1,0"], "--cost is a utility of its own"),
        (["--utility", "auk"], "utility must be one of 'accuracy'"),
        (["--utility", "r2"], "utility 'r2' is of numbers, and classes are predicted here"),
        (["--cost", "0,1,2;1,0,2;1,2,0"], "utility must be 2 rows of 2 finite costs"),
    ],
)
def test_wishes_that_contradict_each_other_are_refused(
    csv: Path, call: Any, arguments: list[str], words: str
) -> None:
    assert words in refusal(call("frontier", csv, *TRAIN, *arguments))


def _check_origin(csv: Path, made: dict[str, Any], page: str) -> None:
    """The file, its hash, rows and columns, the command as one types it, versions and time; no
    folders.
    """
    digest = hashlib.sha256(csv.read_bytes()).hexdigest()
    assert made["files"] == [{"name": csv.name, "size": csv.stat().st_size, "sha256": digest}]
    assert (made["title"], made["about"], made["rows_read"], made["seed"]) == (
        "Loans <2026>",
        {"source": "payroll"},
        800,
        0,
    )
    assert made["columns"]["label"] == [TRAIN[TRAIN.index("--label") + 1]]
    assert made["columns"]["id"] == ["number"]
    assert not set(made["columns"]["feature"]) & {
        "number",
        *made["columns"]["label"],
        *made["columns"]["group"],
    }
    options = (
        "--families linear,barycenter,thresholds",
        "--strengths 0,10",
        "--title 'Loans <2026>'",
    )
    assert all(option in made["call"] for option in options)
    assert str(csv.parent) not in page + made["call"]
    shown = (
        digest,
        "payroll",
        f"metrifair frontier {csv.name}",
        made["time"],
        '<h1 id="title">Loans &lt;2026&gt;',
    )
    assert all(text in page for text in shown)


@pytest.mark.extended
def test_families_share_a_frontier_and_a_model_that_needs_the_group_gets_it_from_the_file(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    families = [
        "--families",
        "linear,barycenter,thresholds",
        "--model",
        "linear",
        "--strengths",
        "0,10",
    ]
    written = [
        "--json",
        tmp_path / "f.json",
        "--held-out",
        tmp_path / "h.csv",
        "--output",
        tmp_path / "model",
    ]
    said = [
        "--title",
        "Loans <2026>",
        "--about",
        "source=payroll",
        "--html",
        tmp_path / "r.html",
    ]
    done = call(
        "frontier",
        csv,
        *TRAIN,
        *families,
        "--id",
        "number",
        "--max-unfairness",
        "0.15",
        *written,
        *said,
    )
    assert done.exit_code == 0, done.output
    figures = json.loads((tmp_path / "f.json").read_text())
    _check_origin(csv, figures["provenance"], (tmp_path / "r.html").read_text())
    found = {(point["family"], point["needs_group"]) for point in figures["points"]}
    assert found == {("linear", False), ("barycenter", True), ("thresholds", True)}
    assert "thresholds (21 models; needs the group of each row at prediction)." in done.output
    model = load(tmp_path / "model")
    assert model.needs_group == figures["chosen"]["needs_group"]
    told = call("predict", tmp_path / "model", csv, "--output", tmp_path / "p.csv")
    assert told.exit_code == 0, told.output
    people = pl.read_csv(csv)
    assert len(pl.read_csv(tmp_path / "p.csv")) == 800
    assert len(model.predict(people)) == 800
    free = call(
        "frontier",
        csv,
        *TRAIN,
        *families,
        "--max-unfairness",
        "0.5",
        "--without-group",
        "--json",
        tmp_path / "g",
    )
    assert free.exit_code == 0, free.output
    assert json.loads((tmp_path / "g").read_text())["chosen"]["family"] == "linear"


@pytest.mark.extended
def test_a_table_without_the_groups_that_a_model_needs_is_refused(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    alone = [
        "--families",
        "barycenter",
        "--model",
        "linear",
        "--max-unfairness",
        "1",
        "--output",
        tmp_path / "model",
    ]
    done = call("frontier", csv, *TRAIN, *alone, "--id", "number")
    assert done.exit_code == 0, done.output
    assert "(new rows need their groups: 'sex')" in done.output
    people = pl.read_csv(csv)
    model = load(tmp_path / "model")
    assert model.predict_proba(people).shape == (800, 2)
    people.drop("sex").write_csv(tmp_path / "nobody.csv")
    refused = call(
        "predict", tmp_path / "model", tmp_path / "nobody.csv", "--output", tmp_path / "p.csv"
    )
    assert refused.exit_code != 0
    assert "sex" in refused.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--families", "linear,forest"], "--families"),
        (
            ["--families", "barycenter", "--criterion", "equal_opportunity"],
            "use thresholds instead",
        ),
        (["--without-group"], "--without-group needs --max-unfairness"),
    ],
)
def test_families_that_cannot_be(csv: Path, call: Any, arguments: list[str], words: str) -> None:
    done = call("frontier", csv, *TRAIN, *arguments)
    assert done.exit_code != 0
    assert words in done.output + str(done.exception)


@pytest.mark.extended
def test_families_of_auto_are_tried_by_name_and_saved(csv: Path, tmp_path: Path, call: Any) -> None:
    more = [
        "--families",
        "auto,linear,stack",
        "--strengths",
        "0,1",
        "--max-unfairness",
        "1",
        "--json",
        tmp_path / "f.json",
    ]
    done = call("frontier", csv, *TRAIN, *more, "--output", tmp_path / "m.metrifair")
    assert done.exit_code == 0, done.output
    figures = json.loads((tmp_path / "f.json").read_text())
    assert [point["family"] for point in figures["points"]] == [
        "linear",
        "linear",
        "stack",
        "stack",
    ]
    kept = load(tmp_path / "m.metrifair")
    assert len(kept.predict(pl.read_csv(csv))) == 800


@pytest.fixture
def two_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """A portfolio of two linear models, one by the name of a network."""
    kinds = FairClassifier, FairRegressor
    monkeypatch.setattr(
        Portfolio,
        "families",
        lambda own: {name: own._ours(*kinds, model="linear") for name in ("linear", "network")},
    )


@pytest.mark.usefixtures("two_families")
@pytest.mark.parametrize(
    ("options", "families"),
    [
        ([], {"linear", "network"}),
        pytest.param(["--model", "linear"], {""}, marks=pytest.mark.extended),
        (["--strengths", "0,1", "--model", "linear"], {""}),
    ],
)
def test_without_a_model_the_families_are_automatic(
    csv: Path, tmp_path: Path, call: Any, options: list[str], families: set[str]
) -> None:
    more = ["--max-unfairness", "1", "--folds", "2", "--json", tmp_path / "f.json"]
    done = call("frontier", csv, *TRAIN, *options, *more)
    assert done.exit_code == 0, done.output
    figures = json.loads((tmp_path / "f.json").read_text())
    assert {point["family"] for point in figures["points"]} == families
    heading = next(
        words for line in done.output.splitlines() if "Accuracy" in (words := line.split())
    )
    assert "group" not in heading  # no model needs it
    assert ("Families tried, in this order: linear; network." in " ".join(texts_of(figures))) == (
        len(families) == 2
    )


@pytest.mark.extended
@pytest.mark.usefixtures("two_families")
def test_train_with_a_limit_keeps_the_model_that_a_frontier_chooses(
    csv: Path, tmp_path: Path, call: Any
) -> None:
    limit = [
        "--max-unfairness",
        "0.2",
        "--folds",
        "2",
        "--families",
        "auto,network",
        "--utility",
        "auc",
    ]
    for command in ("train", "frontier"):
        written = ["--output", tmp_path / command, "--json", tmp_path / f"{command}.json"]
        done = call(command, csv, *TRAIN, *limit, *written)
        assert done.exit_code == 0, done.output
    train, sweep = (
        json.loads((tmp_path / f"{command}.json").read_text()) for command in ("train", "frontier")
    )
    assert train["chosen"] == sweep["chosen"]
    assert {point["family"] for point in train["points"]} == {"network"}
    assert train["utility"] == "auc"
    assert train["provenance"]["call"].startswith("metrifair train people.csv")
    kept = [
        load(tmp_path / command).predict_proba(pl.read_csv(csv))
        for command in ("train", "frontier")
    ]
    assert np.array_equal(*kept)


@pytest.mark.parametrize(
    "options",
    [
        ["--strength", "1"],
        ["--threshold", "0.5"],
        ["--choose-threshold", "accuracy"],
        ["--choose-threshold", "cost", "--cost", "0,1;1,0"],
    ],
)
def test_train_with_a_limit_takes_no_option_of_one_model(
    csv: Path, call: Any, options: list[str]
) -> None:
    said = refusal(call("train", csv, *TRAIN, "--max-unfairness", "0.2", *options))
    assert f"--max-unfairness chooses among many models; leave {options[0]} out" in said


@pytest.mark.parametrize(
    "options",
    [
        ["--families", "auto"],
        ["--budget", "60"],
        ["--confidence", "0.9"],
        ["--best-effort"],
    ],
)
def test_train_without_a_limit_takes_no_option_of_a_choice(
    csv: Path, call: Any, options: list[str]
) -> None:
    said = refusal(call("train", csv, *TRAIN, *options))
    assert f"{options[0]} needs --max-unfairness, by which a model is chosen" in said


def test_a_family_that_auto_does_not_have_is_refused(csv: Path, call: Any) -> None:
    done = call("frontier", csv, *TRAIN, "--families", "auto,oracle")
    assert done.exit_code == 2
    assert "stack_with_features" in done.output
    done = call("frontier", csv, *TRAIN, "--families", "linear,auto")
    assert done.exit_code == 2
    assert "'auto' must come first" in done.output
