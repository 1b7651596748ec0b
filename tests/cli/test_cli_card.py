"""`metrifair card`: a model's file, an audit and a frontier as one description."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.stats
import yaml
from click.testing import CliRunner, Result

from metrifair import AuditOptions, FairClassifier, audit, load
from metrifair.cli import main
from tests.one_split import frontier

RNG = np.random.default_rng(1)
SEX = RNG.integers(2, size=300)
X = RNG.normal(size=(300, 2)) + SEX[:, None]
Y = (X.sum(1) + RNG.normal(size=300) > 1).astype(int)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A frontier, the model that was chosen from it, and its audit, each in a file."""
    found = tmp_path_factory.mktemp("card")
    front = frontier(
        FairClassifier(model="linear"), X, Y, sensitive_features={"sex": SEX}, strengths=[0.0, 2.0]
    )
    model = front.select(max_unfairness=1.0)
    model.save(found / "a.metrifair")
    front.save(found / "front.metrifair")
    scores = model.predict_proba(X)[:, 1]
    audit(
        Y,
        scores,
        sensitive_features={"sex": SEX},
        options=AuditOptions(resamples=20, permutations=10),
    ).to_json(found / "a.json")
    return found


def test_a_card_is_written_or_printed(call: Any, folder: Path) -> None:
    parts = [
        "--audit",
        folder / "a.json",
        "--frontier",
        folder / "front.metrifair",
        "--license",
        "mit",
        "--title",
        "Loans",
    ]
    printed = call("card", folder / "a.metrifair", *parts)
    assert printed.exit_code == 0, printed.output
    # audited as arrays
    assert "does not record that this model computed its scores" in printed.stderr
    head = yaml.safe_load(printed.stdout.split("---\n")[1])
    assert (head["license"], head["model-index"][0]["name"]) == ("mit", "Loans")
    strength = load(folder / "a.metrifair").strength
    assert f"with strength {strength:g} and seed 0" in printed.output  # found by its content
    said = call("card", folder / "a.metrifair", *parts, "--output", folder / "README.md")
    assert said.stdout == f"Model card: {folder / 'README.md'}\n"
    assert (folder / "README.md").read_text() == printed.stdout


def test_files_of_another_kind_are_refused(call: Any, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "b.metrifair").write_bytes((folder / "a.metrifair").read_bytes())
    done = call("card", folder / "a.metrifair", "--frontier", tmp_path / "b.metrifair")
    assert done.exit_code == 2
    assert "contains a FairClassifier, not a frontier; pass a file of Frontier.save" in done.output
    done = call("card", folder / "front.metrifair")
    assert done.exit_code == 2
    assert "model must be a fitted model, got Frontier" in done.output


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a file with a constant column, its held-out rows, and predictions of other
    files, with all audits.
    """
    found = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(5)
    sex = rng.integers(2, size=400)
    x = rng.normal(size=400) + sex
    paid = np.where(x + rng.normal(size=400) > 0.5, "yes", "no")
    table = pl.DataFrame(
        {
            "sex": np.where(sex == 1, "men", "women"),
            "x": x,
            "limit": rng.random(400),
            "country": "DE",
            "paid": paid,
        }
    )
    table.write_csv(found / "loans.csv")
    table.with_columns(pl.col("x") + 0.01).write_csv(found / "later.csv")
    columns = ["--label", "paid", "--group", "sex"]
    learn = ["train", found / "loans.csv", *columns, "--model", "linear", "--ignore", "limit"]
    run(
        *learn,
        "--folds",
        "3",
        "--output",
        found / "folds.m",
        "--held-out",
        found / "folds.csv",
    )
    learn += ["--test", "0.25"]
    run(*learn, "--output", found / "m", "--held-out", found / "held.csv")
    run(*learn, "--strength", "3", "--output", found / "other.m", "--held-out", found / "other.csv")
    for name in ("loans", "later"):
        rest = ["--keep", "sex,paid", "--keep", "limit", "--output", found / f"{name}-scores.csv"]
        run("predict", found / "m", found / f"{name}.csv", *rest)
    shutil.copy(found / "held.csv", found / "edited.csv")
    shutil.copy(found / "held.csv.origin.json", found / "edited.csv.origin.json")
    pl.read_csv(found / "edited.csv").with_columns(probability=pl.col("probability") / 2).write_csv(
        found / "edited.csv"
    )
    audits = {
        name: [f"{name}.csv", "--score", "probability"]
        for name in ("held", "folds", "other", "loans-scores", "later-scores", "edited")
    }
    audits["kept"] = ["later-scores.csv", "--score", "limit"]
    audits["replaced"] = ["held.csv", "--score", "probability", "--replace", "men=man"]
    audits["decisions"] = ["held.csv", "--score", "prediction", "--favorable-decision", "yes"]
    for name, (file, *rest) in audits.items():
        run("audit", found / file, *rest, *columns, "--json", found / f"{name}.json")
    return found


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done


OTHER = "This audit does not record that this model computed the scores."
FOLDS = (
    "These are not figures of this model, but of models with the same settings that were trained "
    "without the rows that they score."
)
CARDS = [  # model, audit, sentence of the card, whether the figures are listed as the model's
    ("m", "held", "Audited: held-out rows of loans.csv", True),
    ("m", "decisions", "Audited: held-out rows of loans.csv", True),
    ("m", "loans-scores", "Audited: rows of the training file: loans.csv", True),
    ("m", "later-scores", "Audited: rows of another file than the training file: later.csv", True),
    ("folds.m", "folds", FOLDS, False),
    ("m", "folds", OTHER, False),
    ("m", "other", OTHER, False),
    ("m", "kept", OTHER, False),
    ("m", "edited", OTHER, False),
    ("m", "replaced", OTHER, False),
    ("other.m", "held", OTHER, False),
]


@pytest.mark.extended
@pytest.mark.parametrize(("model", "audited", "sentence", "of_model"), CARDS)
def test_an_audit_is_the_models_only_where_it_records_who_computed_the_scores(
    trained: Path, call: Any, model: str, audited: str, sentence: str, of_model: bool
) -> None:
    done = call("card", trained / model, "--audit", trained / f"{audited}.json")
    assert done.exit_code == 0, done.output
    assert sentence in done.stdout
    assert ("model-index" in yaml.safe_load(done.stdout.split("---\n")[1])) is of_model
    assert ("## An audit of other scores" in done.stdout) is (sentence == OTHER)
    assert ("does not record that this model computed its scores" in done.stderr) is (
        sentence == OTHER
    )
    assert ("No audit of this model's scores was given" in done.stdout) is (sentence == OTHER)


@pytest.mark.parametrize("audited", ["held", "folds", "later-scores"])
def test_a_card_shows_fingerprints_of_models_only(trained: Path, call: Any, audited: str) -> None:
    model = "folds.m" if audited == "folds" else "m"
    card = call("card", trained / model, "--audit", trained / f"{audited}.json").stdout
    shown = re.findall(r"scored by the model with fingerprint (.*?)\.\n", card)
    assert len(shown) == (audited != "folds")
    assert all(re.fullmatch("[0-9a-f]{16}", text) for text in shown)
    assert ("scored by models that were trained without them" in card) is (audited == "folds")


def test_the_head_has_the_figure_of_the_audited_rows(trained: Path, call: Any) -> None:
    rows = pl.read_csv(trained / "held.csv")
    men, women = (rows.filter(sex=name)["probability"].to_numpy() for name in ("men", "women"))
    expected = scipy.stats.ks_2samp(men, women).statistic
    done = call("card", trained / "m", "--audit", trained / "held.json")
    (result,) = yaml.safe_load(done.stdout.split("---\n")[1])["model-index"][0]["results"]
    values = {
        one["type"]: one["value"]
        for one in result["metrics"]
        if one["name"].endswith("statistical parity")
    }
    assert values["kolmogorov"] == pytest.approx(expected, abs=5e-4)


def test_a_card_lists_the_features_that_train_used(trained: Path, call: Any) -> None:
    card = call("card", trained / "m").stdout
    assert "| Features | 1: x |" in card  # country is constant


def test_predict_warns_of_the_training_file_and_keeps_columns(
    trained: Path, call: Any, tmp_path: Path
) -> None:
    done = call("predict", trained / "m", trained / "loans.csv", "--output", tmp_path / "p.csv")
    assert "holds the training rows" in done.stderr
    done = call(
        "predict",
        trained / "m",
        trained / "later.csv",
        "--output",
        tmp_path / "p.csv",
        "--keep",
        "sex",
    )
    assert "training rows" not in done.stderr
    kept = pl.read_csv(trained / "later-scores.csv")
    assert kept.columns == ["row", "sex", "paid", "limit", "prediction", "probability"]
    later = pl.read_csv(trained / "later.csv")
    assert kept.select("sex", "paid", "limit").equals(later.select("sex", "paid", "limit"))
    model = load(trained / "m")
    assert kept["probability"].to_list() == pytest.approx(model.predict_proba(later)[:, 1].tolist())
    done = call(
        "predict",
        trained / "m",
        trained / "later.csv",
        "--output",
        tmp_path / "p.csv",
        "--keep",
        "sex,town",
    )
    assert done.exit_code == 2
    assert "has no column 'town'" in done.stderr
