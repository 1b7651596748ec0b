"""Model cards: heads that YAML readers read whatever things are called, and the figures of
audits and frontiers.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from metrifair import (
    Audit,
    AuditOptions,
    BarycenterPostprocessor,
    DataError,
    FairClassifier,
    FairClassifierCV,
    FairLGBMClassifier,
    FairRegressor,
    Frontier,
    TableEncoder,
    audit,
    frontier,
    load,
    save,
    to_card,
)
from tests.expected_errors import Refusals
from tests.frontier_parts import outcomes_of
from tests.seams.auditing import AuditRecord, ByGroup, GroupFigures, Measure
from tests.seams.estimators import TableModel
from tests.seams.figures import Interval
from tests.seams.saving import fingerprint, make_content
from tests.seams.support import ScoreOrigin, SourceFile
from tests.seams.tradeoff import Goal
from tests.seams.wording import number_text, provenance_lines

RNG = np.random.default_rng(0)
SEX = RNG.integers(2, size=400)
GROUPS = np.where(SEX == 1, "men", "women")
X = RNG.normal(size=(400, 2)) + SEX[:, None]
HIRED = np.where(X.sum(1) + RNG.normal(size=400) > 1, "yes", "no")
HOSTILE = "a|b\n<script>alert(1)</script> *c* [d](http://e.org) `f` www.g.org &amp; $h$ _i_ ~~j~~"
names = st.text(max_size=30) | st.sampled_from(
    ["yes", "1e5", "null", "- a: b", "---\n", '"', "\\", "#", "\x85", HOSTILE]
)


@pytest.fixture(scope="module")
def model() -> FairClassifier:
    fair = FairClassifier(2.0, model="linear", random_state=3)
    return fair.fit(X, HIRED, sensitive_features={"sex": GROUPS})


@pytest.fixture(scope="module")
def audited(model: FairClassifier) -> Audit:
    scores = model.predict_proba(X)[:, 1]
    return audit(
        HIRED,
        scores,
        sensitive_features={"sex": GROUPS},
        random_state=0,
        options=AuditOptions(resamples=50, permutations=20),
    )


@pytest.fixture(scope="module")
def front() -> Frontier:
    """Models of two strengths, of which the one without a penalty is chosen."""
    linear = FairClassifier(model="linear")
    found = frontier(
        linear, X, HIRED, sensitive_features={"sex": GROUPS}, strengths=[0.0, 3.0], random_state=0
    )
    found.select(max_unfairness=1.0)
    return found


def head_of(card: str) -> dict[str, Any]:
    """The head as hubs read it: between the first two lines of three hyphens."""
    found = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)
    assert found
    head = yaml.safe_load(found.group(1))
    assert isinstance(head, dict)
    return head


def tables_of(card: str) -> list[list[list[str]]]:
    """The tables as a reader of Markdown shows them, cell by cell."""
    tables: list[list[list[str]]] = []
    tokens = (
        MarkdownIt("commonmark", {"html": True}).enable("table").parse(card.split("\n---\n", 1)[1])
    )
    for place, token in enumerate(tokens):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type in ("th_open", "td_open"):
            inside = tokens[place + 1].children or []
            assert all(one.type in ("text", "text_special") for one in inside), inside
            tables[-1][-1].append("".join(one.content for one in inside))
    return tables


def test_it_says_what_the_model_was_trained_with(model: FairClassifier) -> None:
    card = to_card(
        model,
        title="Who is hired",
        license="mit",
        language="en",
        datasets=["people"],
        tags=["hiring"],
    )
    assert head_of(card) == {
        "language": "en",
        "license": "mit",
        "library_name": "metrifair",
        "pipeline_tag": "tabular-classification",
        "tags": ["metrifair", "fairness", "tabular", "hiring"],
        "datasets": ["people"],
    }
    facts = dict(tables_of(card)[0])
    assert facts["Model"] == "FairClassifier"
    assert facts["Classes"] == "no, yes"
    assert facts["Positive class"] == "yes"
    assert facts["Sensitive attribute sex"] == "men, women"
    assert (facts["Strength of the penalty"], facts["Seed"]) == ("2.0", "3")
    assert "Not stated. Do not use for decisions." in card
    assert "No audit of this model's scores was given" in card
    assert "Trained for fairness by sex only." in card


def test_figures_by_group_are_those_of_the_audit(model: FairClassifier, audited: Audit) -> None:
    card = to_card(model, audited, intended_use="For *nobody*.", audited_rows="all rows")
    (found,) = [
        table for table in tables_of(card) if table[0][:3] == ["Group", "Rows", "Base rate"]
    ]
    for row, one in zip(found[1:], audited.record.by_group[0].groups, strict=True):
        assert one.auc is not None
        assert one.auc.interval is not None
        low, high = number_text(one.auc.interval.low), number_text(one.auc.interval.high)
        assert row[0] == one.group
        assert row[3] == f"{number_text(one.auc.value)} ({low} to {high})"
    rates = {
        row[0]: row[table[0].index("Selection rate")]
        for table in tables_of(card)
        for row in table
        if "Selection rate" in table[0]
    }
    for rate in audited.decisions[0].rates:
        assert rates[rate.group].startswith(f"{100 * rate.selection_rate:.1f}% (")
    head = head_of(card)
    (result,) = head["model-index"][0]["results"]
    values = {one["name"]: one["value"] for one in result["metrics"]}
    assert values[
        "Kolmogorov distance: men vs women, everyone, statistical parity"
    ] == pytest.approx(audited.worst("kolmogorov", "statistical_parity").value, abs=5e-4)
    assert set(head["metrics"]) == {one["type"] for one in result["metrics"]}
    assert "\nFor *nobody*.\n" in card


def result_of(card: str) -> dict[str, float]:
    """The figures of the first result in the head, by type."""
    (entry,) = head_of(card)["model-index"]
    return {one["type"]: one["value"] for one in entry["results"][0]["metrics"]}


def figures_of(card: str) -> dict[str, str]:
    """The table of a frontier's figures, by name."""
    (found,) = (
        table for table in tables_of(card) if table[0] == ["Figure", "Value (95 % interval)"]
    )
    return dict(found[1:])


def text_of(front: Frontier, name: str) -> str:
    """A figure of the chosen model with its interval."""
    assert front.chosen is not None
    value = front.chosen.figure(name)
    interval = front.chosen.intervals[name]
    assert value is not None
    low, high = number_text(interval.low), number_text(interval.high)
    return f"{number_text(value)} ({low} to {high})"


EXPECTED = "Expected on new data, with the choice taken into account, it reaches:"


def test_the_figures_of_the_chosen_model_are_those_expected_of_it(
    front: Frontier, tmp_path: Path
) -> None:
    (outcome,) = (one for one in outcomes_of(front) if front.chosen and one.job == front.chosen.job)
    assert front.chosen is not None
    card = to_card(outcome.model, frontier=front)
    assert f"with strength {outcome.job.value:g} and seed 0. {EXPECTED}" in card
    assert figures_of(card) == {
        "AUC": text_of(front, "auc"),
        "Unfairness": text_of(front, "unfairness"),
    }
    assert result_of(card) == {
        "auc": pytest.approx(front.chosen.figure("auc"), abs=5e-4),
        "unfairness": pytest.approx(front.chosen.unfairness, abs=5e-4),
    }
    assert "In cross-validation, by models that were trained without the rows they score" in card
    assert "Within the limit of 1." in card
    (origin,) = [table for table in map(dict, tables_of(card)[2:]) if "Versions" in table]
    assert origin == dict([("", ""), *provenance_lines(front.record.provenance)])
    save(outcome.model, tmp_path / "model")
    assert to_card(load(tmp_path / "model"), frontier=front) == card
    front.save(tmp_path / "front")
    assert to_card(outcome.model, frontier=cast("Frontier", load(tmp_path / "front"))) == card


def test_a_model_that_was_not_chosen_has_figures_of_the_fold_models(front: Frontier) -> None:
    assert front.chosen is not None
    for model, point in zip(front.models, front.points, strict=True):
        card = to_card(model, frontier=front)
        is_chosen = point.job == front.chosen.job
        assert (EXPECTED in card) is is_chosen
        assert ("model-index" in head_of(card)) is is_chosen
        assert ("does not record how this model was chosen" in card) is not is_chosen
        assert ("These are not figures of this model" in card) is not is_chosen
        if not is_chosen:
            assert "In cross-validation, by which models are compared, they reach:" in card
            assert figures_of(card)["Unfairness"].startswith(number_text(point.unfairness))
            assert "unfairness limit" not in card


def test_figures_of_the_chosen_model_on_test_rows_are_of_all_kinds() -> None:
    linear = FairClassifier(model="linear")
    front = frontier(
        linear,
        X,
        HIRED,
        sensitive_features={"sex": GROUPS},
        strengths=[0.0, 3.0],
        random_state=0,
        test=0.25,
    )
    model = front.select(max_unfairness=1.0)
    assert front.chosen is not None
    card = to_card(model, frontier=front)
    assert "On 100 test rows that neither trained nor chose it, it reaches:" in card
    assert result_of(card)["accuracy"] == pytest.approx(front.chosen.accuracy, abs=5e-4)
    (result,) = head_of(card)["model-index"][0]["results"]
    assert result["dataset"]["split"] == "test rows of the frontier"
    assert figures_of(card)["Unfairness"] == text_of(front, "unfairness")
    assert "In cross-validation, by models" not in card
    assert "Within the limit of 1 on the test rows." in card


def test_figures_of_another_model_are_said_to_be_so_or_refused() -> None:
    front = frontier(
        {"parity": FairClassifier(model="linear"), "odds": FairClassifier(model="linear", criterion="equalized_odds")},
        X, HIRED, sensitive_features={"sex": GROUPS}, strengths=[0.0, 3.0], random_state=0,
    )  # fmt: skip
    chosen = front.select(max_unfairness=1.0)
    _ = front.models  # trains those that were not chosen too
    whole = FairClassifier(3, model="linear", criterion="equalized_odds").fit(
        X[:300], HIRED[:300], sensitive_features=SEX[:300]
    )
    card = to_card(whole, frontier=front)
    assert (
        "These are not figures of this model, but of one with the same settings that was trained "
        "on other" in card
    )
    assert "model-index" not in head_of(card)
    assert "it reaches" not in card.replace("that one reaches", "")
    assert "unfairness limit" not in card
    assert "with odds, strength 3 and seed 0." in card
    encoder = TableEncoder().fit({"a": X[:, 0], "b": X[:, 1]})
    card = to_card(TableModel(encoder, chosen), frontier=front)
    assert EXPECTED in card
    assert "Within the limit of 1." in card
    moved = to_card(TableModel(encoder, chosen, threshold=0.9), frontier=front)
    assert "with the same settings that decides by its own threshold" in moved
    assert "model-index" not in head_of(moved)
    for other in (whole.set_params(strength=7.0), LogisticRegression().fit(X, HIRED)):
        with pytest.raises(
            DataError,
            match=f"^model is none of the frontier's: it keeps no {type(other).__name__} ",
        ):
            to_card(other, frontier=front)


def test_each_source_of_figures_is_named_by_itself(front: Frontier, audited: Audit) -> None:
    (chosen,) = (one for one in outcomes_of(front) if front.chosen and one.job == front.chosen.job)
    swept, found = head_of(to_card(chosen.model, audited, front, audited_rows="all rows"))[
        "model-index"
    ][0]["results"]
    assert (swept["dataset"]["split"], found["dataset"]["split"]) == (
        "resampled rows of the frontier",
        "audited rows",
    )
    assert {one["type"] for one in swept["metrics"]} == {"auc", "unfairness"}
    assert "kolmogorov" in {one["type"] for one in found["metrics"]}


def with_facts(front: Frontier, **facts: Any) -> Frontier:
    """The frontier with another record."""
    return Frontier(replace(front._trade_off, record=replace(front.record, **facts)))


def test_an_unfairness_that_could_be_0_is_no_number_in_the_head(front: Frontier) -> None:
    (outcome,) = (one for one in outcomes_of(front) if front.chosen and one.job == front.chosen.job)
    assert front.chosen is not None
    intervals = {**front.chosen.intervals, "unfairness": Interval(0.0, 0.062)}
    chosen = replace(front.chosen, unfairness=0.0, intervals=intervals, is_noise=True)
    quiet = with_facts(front, chosen=chosen)
    card = to_card(outcome.model, frontier=quiet)
    assert figures_of(card)["Unfairness"] == "below 0.062"
    assert set(result_of(card)) == {"auc"}


def test_a_best_effort_is_named_on_the_card(front: Frontier) -> None:
    (outcome,) = (one for one in outcomes_of(front) if front.chosen and one.job == front.chosen.job)
    goal = Goal(max_unfairness=0.2, best_effort=True)
    effort = with_facts(front, is_best_effort=True, goal=goal)
    card = to_card(outcome.model, frontier=effort)
    assert "No model has an unfairness of at most 0.2. The least unfair one is chosen" in card
    assert "Within the limit" not in card


def test_only_the_criterion_is_called_by_its_name(model: FairClassifier) -> None:
    encoder = TableEncoder().fit({"statistical_parity": X[:, 0], "b": X[:, 1]})
    facts = dict(tables_of(to_card(TableModel(encoder, model, "equal_opportunity")))[0])
    assert (facts["Criterion"], facts["Predicts"]) == ("Statistical parity", "equal_opportunity")


def test_of_a_pipeline_the_last_step_is_described() -> None:
    table = {"a": X[:, 0], "b": X[:, 1]}
    steps = [("encode", TableEncoder()), ("model", FairClassifier(2.0, model="linear"))]
    card = to_card(Pipeline(steps).fit(table, HIRED, model__sensitive_features={"sex": GROUPS}))
    facts = dict(tables_of(card)[0])
    assert (facts["Model"], facts["Steps"]) == ("FairClassifier", "TableEncoder, FairClassifier")
    assert (facts["Criterion"], facts["Strength of the penalty"]) == ("Statistical parity", "2.0")
    assert (facts["Sensitive attribute sex"], facts["Features"]) == ("men, women", "2: a, b")
    assert facts["Needs the group to predict"] == "no"
    assert "metrifair.load(" in card
    post = BarycenterPostprocessor(FairClassifier(0.0, model="linear"), folds=1)
    card = to_card(
        Pipeline([("none", "passthrough"), ("post", post)]).fit(
            X, HIRED, post__sensitive_features=SEX
        )
    )
    assert dict(tables_of(card)[0])["Needs the group to predict"] == "yes"
    assert "metrifair.load(" in card
    assert "model.predict(rows, sensitive_features=groups)" in card


def test_an_audit_of_arrays_is_the_models_only_if_the_author_states_it(
    model: FairClassifier, audited: Audit
) -> None:
    card, stated = (
        to_card(model, audited),
        to_card(model, audited, audited_rows="applications of 2025"),
    )
    assert "## An audit of other scores" in card
    assert "No audit of this model's scores was given" in card
    assert "model-index" not in head_of(card)
    assert "## An audit of other scores" not in stated
    assert "Audited, as the author of this card states: applications of 2025." in stated
    assert head_of(stated)["model-index"][0]["results"][0]["dataset"]["name"] == "audited rows"


@pytest.mark.extended
@settings(max_examples=30, deadline=None)
@given(title=names, tag=names, group=names)
def test_any_name_gives_a_head_that_yaml_reads_and_tables_that_hold(
    title: str, tag: str, group: str
) -> None:
    line = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    figures = GroupFigures(group, 9, Measure(0.5), accuracy=Measure(0.25))
    found = Audit(
        AuditRecord(9, 0, (0, 1), 0.95, [], by_group=[ByGroup(tag or "a", "everyone", [figures])])
    )
    card = to_card(line, found, title=title or None, tags=[tag], audited_rows="all rows")
    head = head_of(card)
    assert head["model-index"][0]["name"] == (title or "LogisticRegression")
    assert head["library_name"] == "sklearn"
    assert "metrifair.load" not in card
    assert tag in head["tags"]
    assert (
        head["model-index"][0]["results"][0]["metrics"][0]["name"]
        == f"Accuracy of {group} ({tag or 'a'}, everyone)"
    )
    (shown,) = [one for one in tables_of(card) if one[0][0] == "Group"]
    name = group if group == group.strip() else f"“{group}”"  # so that blanks at an end are visible
    # Readers of Markdown show the character 0 as the replacement character.
    assert shown[1][0].split() == name.replace("\0", "\ufffd").split()
    assert shown[1][1] == "9"


def test_names_of_the_data_are_text_wherever_they_stand() -> None:
    sex = np.where(SEX == 1, HOSTILE, "b")
    fair = FairClassifier(1.0, model="linear").fit(X, HIRED, sensitive_features={HOSTILE: sex})
    found = audit(
        HIRED,
        fair.predict_proba(X)[:, 1],
        sensitive_features={HOSTILE: sex},
        random_state=0,
        options=AuditOptions(resamples=20),
    )
    card = to_card(fair, found, title=HOSTILE)
    page = (
        MarkdownIt("commonmark", {"html": True}).enable("table").render(card.split("\n---\n", 1)[1])
    )
    assert "<script>" not in page
    assert 'e.org"' not in page
    assert "<em>" not in page


def kinds() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        line = FairRegressor(1.0, model="linear").fit(X, X[:, 0], sensitive_features=SEX)
        moved = BarycenterPostprocessor(LogisticRegression()).fit(X, SEX, sensitive_features=SEX)
        encoder = TableEncoder().fit({"a": X[:, 0], "b": X[:, 1]})
        steps = [
            ("encode", TableEncoder()),
            ("model", FairLGBMClassifier(1.0, n_estimators=3, verbose=-1)),
        ]
        joined = Pipeline(steps).fit(
            {"a": X[:, 0], "b": X[:, 1]}, HIRED, model__sensitive_features=SEX
        )
        raw = FairClassifier(0.0, model="linear").fit(
            encoder.transform({"a": X[:, 0], "b": X[:, 1]}), HIRED
        )
    return {
        "FairRegressor": line, "FairLGBMClassifier": joined, "BarycenterPostprocessor": moved,
        "FairClassifier": TableModel(encoder, raw, "hired"),
    }  # fmt: skip


def test_every_kind_of_model_has_one() -> None:
    for name, own in kinds().items():
        card = to_card(own)
        facts = dict(tables_of(card)[0])
        assert facts["Model"] == name
        assert (
            head_of(card)["pipeline_tag"]
            == f"tabular-{'regression' if name == 'FairRegressor' else 'classification'}"
        )
        if name == "FairClassifier":
            assert (facts["Predicts"], facts["Features"]) == ("hired", "2: a, b")
            assert "Trained for fairness" not in card  # its strength is 0
        elif name == "BarycenterPostprocessor":
            assert "metrifair.load" not in card  # its base is not ours, so that no file holds it
            assert "model.predict(rows, sensitive_features=groups)" in card
            assert facts["Needs the group to predict"] == "yes"
            assert "needs each person's group" in card
        elif name == "FairRegressor":
            assert len([one for one in facts if one.startswith("Sensitive attribute")]) == 1
        else:
            assert facts["Strength of the penalty"] == "1.0"
            assert facts["Features"] == "2: a, b"  # of the pipeline, not of its last step


def test_it_is_written_to_a_path_as_it_is_returned(model: FairClassifier, tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    assert to_card(model, path=path) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"model": "path.model"}, "model must be a fitted model, got str"),
        (
            {"model": FairClassifier(model="mlp")},
            "model must be a fitted model, got FairClassifier",
        ),
        ({"audit": {}}, "audit must be an Audit, got dict"),
        ({"frontier": []}, "frontier must be a Frontier, got list"),
        *(
            ({name: 5}, f"{name} must be text, got 5")
            for name in ("title", "license", "language", "intended_use")
        ),
        ({"license": {"a": "b"}}, "license must be text, got {'a': 'b'}"),
        *(
            (
                {name: value},
                (
                    f"{name} must be a list of names, such as \\['adult'\\], got "
                    f"{re.escape(repr(value))}"
                ),
            )
            for name in ("datasets", "tags")
            for value in ("adult", None, [["a"]])
        ),
    ],
)
def test_what_cannot_be_used_is_named(
    model: FairClassifier, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(DataError, match=f"^{said}$"):
        to_card(**({"model": model} | arguments))


def test_a_hub_reads_it(model: FairClassifier, audited: Audit) -> None:
    hub = pytest.importorskip(
        "huggingface_hub", reason="huggingface_hub is not installed: its reader was not asked"
    )
    card = hub.ModelCard(
        to_card(model, audited, title="Hired", license="mit", audited_rows="all rows")
    )
    assert card.data.license == "mit"
    assert {one.dataset_name for one in card.data.eval_results} == {"held-out rows"}
    assert {one.metric_type for one in card.data.eval_results} >= {"accuracy", "auc", "kolmogorov"}


def test_a_frontier_of_fitted_models_does_not_record_their_training_rows() -> None:
    fitted = [
        FairClassifier(value, model="linear").fit(X, HIRED, sensitive_features=SEX)
        for value in (0.0, 3.0)
    ]
    front = frontier(fitted, X, HIRED, sensitive_features=SEX, random_state=0)
    cards = [to_card(model, frontier=front) for model in fitted]
    chosen = front.select(max_unfairness=1.0)
    for card in (*cards, to_card(chosen, frontier=front)):
        assert "neither trained" not in card
        assert "Expected on new data" not in card
        assert "does not record the training rows of a fitted model" in card
        assert "model-index" in head_of(card)
    assert "On the rows by which models are compared, it reaches:" in cards[1]
    assert figures_of(cards[1])["Unfairness"].startswith(number_text(front.points[1].unfairness))
    card = to_card(chosen, frontier=front)
    assert "With the choice repeated on resamples of the rows, it reaches:" in card
    assert figures_of(card)["Unfairness"] == text_of(front, "unfairness")


ORIGINS = {  # the model and the refit that an audit records; whether its figures are the model's
    "no record": (None, None),
    "this model": (("this", None), True),
    "another model": (("other", None), False),
    "folds of another": ((None, "other"), False),
    "folds of this": ((None, "this"), False),
}


@pytest.mark.parametrize("stated", [None, "held-out rows"])
@pytest.mark.parametrize("name", ORIGINS)
def test_no_statement_overrules_the_record_of_an_audit(
    model: FairClassifier, audited: Audit, name: str, stated: str | None
) -> None:
    recorded, of_model = ORIGINS[name]
    prints = {"this": fingerprint(make_content(model)), "other": "f" * 64, None: None}
    origin = None
    if recorded is not None:
        scorer, refit = recorded
        origin = ScoreOrigin(
            "a" * 64, ["probability"], prints[scorer], "held_out", refit=prints[refit]
        )
    provenance = replace(audited.provenance, score_origin=origin)
    found = replace(audited, record=replace(audited.record, provenance=provenance))
    card = to_card(model, found, audited_rows=stated)
    expected = (stated is not None) if of_model is None else of_model
    assert ("model-index" in head_of(card)) is expected
    assert ("as the author of this card states" in card) is (
        recorded is None and stated is not None
    )
    of_others = name in ("another model", "folds of another") or (
        recorded is None and stated is None
    )
    assert ("## An audit of other scores" in card) is of_others
    if of_others and recorded is not None:
        assert "Its record names them: held-out rows, scored" in card
        assert ("description of these rows is left out" in card) is (stated is not None)
    assert ("it was chosen by these rows too" in card) is (name == "folds of this")


def test_a_statement_on_rows_is_shown_beside_the_record_of_the_training_file(
    model: FairClassifier, audited: Audit
) -> None:
    encoder = TableEncoder().fit({"a": X[:, 0], "b": X[:, 1]})
    hashes = {"loans.csv": "1" * 64, "later.csv": "2" * 64}
    whole = TableModel(encoder, model, training_files=(hashes["loans.csv"],))
    for name, sha256 in hashes.items():
        provenance = replace(audited.provenance, files=[SourceFile(name, 9, sha256)])
        found = replace(audited, record=replace(audited.record, provenance=provenance))
        card = to_card(whole, found, audited_rows="rows that were not used for training")
        assert ("The audited file is the training file of this model." in card) is (
            name == "loans.csv"
        )


def test_a_card_of_cross_validation_describes_the_chosen_model(refused: Refusals) -> None:
    given = {"sensitive_features": {"sex": GROUPS}}
    model = FairClassifierCV(max_unfairness=0.4, families=["linear"], random_state=0)
    with refused(DataError):
        to_card(model)
    model.fit(X, HIRED, **given)
    card = to_card(model)
    assert card == to_card(model.estimator_, frontier=model.frontier_)
    assert f"| Strength of the penalty | {model.estimator_.strength} |" in card
    assert "Expected on new data" in card
    piped = Pipeline([("scaled", StandardScaler()), ("fair", clone(model))])
    with refused(DataError):
        to_card(Pipeline([("scaled", StandardScaler().fit(X)), ("fair", clone(model))]))
    of_pipeline = to_card(piped.fit(X, HIRED, fair__sensitive_features=GROUPS))
    assert "# FairClassifier\n" in of_pipeline
    assert "| Steps | StandardScaler, FairClassifierCV |" in of_pipeline
    assert "Expected on new data" in of_pipeline
    table = pd.DataFrame({"x": X[:, 0], "text": np.where(X[:, 1] > 0, "a", "b")})
    encoding = Pipeline([("same", FunctionTransformer()), ("fair", clone(model))])
    of_table = to_card(encoding.fit(table, HIRED, fair__sensitive_features=GROUPS))
    assert "# FairClassifier\n" in of_table
