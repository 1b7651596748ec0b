"""People whose group is not known by its name: a group with its rate, never the reference or
the headline.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from metrifair import (
    Audit,
    AuditOptions,
    AuditState,
    DataError,
    FairClassifier,
    audit,
    audit_file,
    audit_table,
    compare,
    frontier,
    monitor,
    unfairness,
)
from metrifair.cli import main
from metrifair.errors import MetrifairWarning
from metrifair.evidence import verify
from tests.expected_errors import Refusals
from tests.seams.wording import audit_summary, note_text, note_texts

OPTIONS = {"resamples": 60, "permutations": 99}
LISTED = [
    *(
        "Decline to state",
        "Decline to answer",
        "Prefer not to say",
        "Prefer not to answer",
        "Prefer not to disclose",
    ),
    *(
        "I choose not to disclose",
        "Undisclosed",
        "Not disclosed",
        "No answer",
        "Not provided",
        "Unspecified",
        "?",
    ),
    *("unknown", "missing", "N/A", "NA", "not stated"),
]
VARIANTS: list[Callable[[str], str]] = [
    str,
    str.upper,
    str.lower,
    str.title,
    lambda name: f" {name} ",
    lambda name: f"{name}.",
    lambda name: name.replace(" ", "-"),
    lambda name: name.replace(" ", "_"),
    lambda name: f"({name})",
]
# 1,200 men of whom 600 are selected, 1,080 women (465), and 64 people who decline to state (37):
# 2,344 rows.
COUNTS = {"male": (1200, 600), "female": (1080, 465), "Decline to state": (64, 37)}


def table(name: str = "Decline to state") -> tuple[np.ndarray, np.ndarray]:
    """The decisions and the sexes of these people; the name of the last group is the argument."""
    decisions, sexes = [], []
    for sex, (rows, selected) in COUNTS.items():
        decisions += [1] * selected + [0] * (rows - selected)
        sexes += [name if sex == "Decline to state" else sex] * rows
    order = np.random.default_rng(0).permutation(len(decisions))
    return np.array(decisions)[order], np.array(sexes, dtype=object)[order]


def audited(name: str = "Decline to state", **options: Any) -> Audit:
    decisions, sex = table(name)
    return audit(
        None,
        decisions,
        sensitive_features={"sex": sex},
        random_state=0,
        options=AuditOptions(**OPTIONS | options),
    )


def check_headlines(found: Audit, name: str = "Decline to state") -> None:
    """The group is in the tables, and in no headline."""
    assert found.headline is None or name not in found.headline.groups
    assert name not in found.worst().groups
    assert name not in " ".join(audit_summary(found.record))
    rates = {rate.group: rate for rate in found.record.decisions[0].rates}
    assert set(rates) == {"male", "female", name}
    assert (rates[name].size, rates[name].selection_rate) == (64, 37 / 64)
    assert (rates[name].ratio, rates[name].left_out) == (None, "unknown_name")
    assert found.record.decisions[0].reference == "male"
    assert round(found.record.decisions[0].selection_ratio or 0, 3) == 0.861
    assert {
        frozenset(finding.groups) for finding in found.findings if not finding.unknown_name
    } == {frozenset(("male", "female"))}
    assert any(name in finding.groups for finding in found.findings)
    (note,) = (note for note in found.record.notes if note.kind == "unknown_name")
    assert (note.facts["group"], note.facts["rows"], note.facts["of"]) == (name, 64, 2344)


def test_women_are_compared_with_men_and_not_with_those_who_decline(tmp_path: Path) -> None:
    found = audited()
    check_headlines(found)
    assert round(465 / 1080 / (37 / 64), 2) == 0.74  # the ratio to those who decline
    (note,) = (text for text in map(note_text, found.record.notes) if "Decline to state" in text)
    assert "64 of 2,344 rows" in note
    assert "known_names" in note
    found.to_html(tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text()
    assert "group not known" in page
    assert "Decline to state" in page


def test_a_known_name_is_a_group_like_any_other() -> None:
    found = audited(known_names=["decline-to-state"])
    assert found.record.decisions[0].reference == "Decline to state"
    assert round(found.record.decisions[0].selection_ratio or 0, 3) == round(
        465 / 1080 / (37 / 64), 3
    )
    assert not any(finding.unknown_name for finding in found.findings)
    assert not any(note.kind == "unknown_name" for note in found.record.notes)
    assert found.record.settings.known_names == ("decline-to-state",)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", LISTED)
def test_every_listed_name_is_unknown_in_any_spelling(
    name: str, variant: Callable[[str], str]
) -> None:
    spelled = variant(name)
    decisions, sex = table(spelled)
    found = audit(
        None,
        decisions,
        sensitive_features=sex,
        options=AuditOptions(resamples=0, permutations=0),
        random_state=0,
    )
    assert found.record.decisions[0].reference == "male"
    assert {finding.unknown_name for finding in found.findings if spelled in finding.groups} == {
        True
    }


@pytest.mark.parametrize(
    "name", ["Other", "Non-binary", "X", "0", "Unknown tribe", "No", "+", "Nonesuch", "Nana"]
)
def test_other_names_are_groups(name: str) -> None:
    assert audited(name, resamples=0, permutations=0).record.decisions[0].reference == name


def test_a_minus_beside_a_plus_is_a_group() -> None:
    decisions, sex = table()
    sign = np.where(sex == "male", "-", "+").astype(object)
    found = audit(
        None, decisions, sensitive_features=sign, random_state=0, options=AuditOptions(**OPTIONS)
    )
    assert found.record.decisions[0].reference == "-"


def test_files_tables_and_states_agree_in_memory_and_beyond(tmp_path: Path) -> None:
    decisions, sex = table()
    path = tmp_path / "people.csv"
    frame = pl.DataFrame({"p": decisions, "sex": sex.tolist()})
    frame.write_csv(path)
    state = AuditState(score_range=(0, 1))
    state.add(None, decisions, sensitive_features={"sex": sex})
    half = len(decisions) // 2
    parts = []
    for rows in (slice(None, half), slice(half, None)):
        part = AuditState(score_range=(0, 1))
        part.add(None, decisions[rows], sensitive_features={"sex": sex[rows]})
        parts.append(part)
    options = AuditOptions(**OPTIONS)
    beyond = AuditOptions(in_memory_rows=0, **OPTIONS)
    asked: dict[str, Any] = {"score": "p", "group": "sex", "random_state": 0}
    for found in (
        audit_file(path, **asked, options=options),
        audit_file(path, **asked, options=beyond),
        audit_table(frame, **asked, options=options),
        audit_table(frame, **asked, options=beyond),
        state.audit(random_state=0, options=options),
        parts[0].merge(parts[1]).audit(random_state=0, options=options),
    ):
        check_headlines(found)


@pytest.mark.parametrize("standard", ["ll144", "four-fifths", "credit"])
def test_tables_of_a_standard_count_them_with_the_missing(standard: Any) -> None:
    decisions, sex = table()
    sex[np.flatnonzero(sex == "male")[:5]] = None
    race = np.where(np.arange(len(sex)) % 3 == 0, "Black", "White").astype(object)
    race[:40] = "Undisclosed"
    found = audit(
        None,
        decisions,
        sensitive_features={"sex": sex, "race": race},
        random_state=0,
        options=AuditOptions(resamples=0, permutations=0),
    )
    reference: Any = {"sex": "male", "race": "White"} if standard == "credit" else "highest"
    rates = found.rates(standard, reference=reference)
    declined, without_race = sex == "Decline to state", race == "Undisclosed"
    missing = np.array([value is None for value in sex])
    expected = {
        "sex": declined | missing,
        "race": without_race,
        "sex x race": declined | missing | without_race,
    }
    for rated in rates.tables:
        assert not any(
            "Decline" in rate.group or "Undisclosed" in rate.group for rate in rated.rates
        )
        assert rated.unknown is not None
        rows = expected[rated.attribute]
        assert rated.unknown.size == rows.sum()
        assert rated.unknown.selected == decisions[rows].sum()
        assert sum(rate.size for rate in rated.rates) == (~rows).sum()
    assert {rated.attribute for rated in rates.tables} >= {"sex", "race"}
    assert ("sex x race" in {rated.attribute for rated in rates.tables}) == (standard == "ll144")
    text = " ".join(map(note_text, rates.audit.record.notes))
    assert "count it separately" in text
    assert "never the reference group" not in text


def test_a_standard_says_why_there_is_no_ratio() -> None:
    decisions, sex = table()
    sex[sex == "male"] = "Not disclosed"
    found = audit(
        None, decisions, sensitive_features=sex, random_state=0, options=AuditOptions(**OPTIONS)
    )
    assert "fewer than two groups are known" not in found.summary
    assert "a name that says it is not known" in found.summary.splitlines()[0]
    assert found.record.decisions[0].selection_difference is None
    assert found.record.decisions[0].selection_ratio is None
    with pytest.raises(DataError, match="known_names"):
        found.worst()
    (rated,) = found.rates("four-fifths").tables
    assert [rate.group for rate in rated.rates] == ["female"]
    assert rated.unknown is not None
    assert rated.unknown.size == 1264


def test_an_unknown_group_is_no_named_reference(refused: Refusals) -> None:
    with refused(DataError):
        audited().rates(reference="Decline to state")
    known = audited(known_names="Decline to state").rates(reference="Decline to state")
    assert known.tables[0].reference == "Decline to state"


@pytest.mark.oracle("Finding.unknown_name")
def test_intersections_with_an_unknown_part_are_no_headline() -> None:
    decisions, sex = table()
    race = np.where(np.arange(len(sex)) % 3 == 0, "Black", "White").astype(object)
    found = audit(
        None,
        decisions,
        sensitive_features={"sex": sex, "race": race},
        intersectional=True,
        random_state=0,
        options=AuditOptions(**OPTIONS, min_group_size=10),
    )
    for finding in found.findings:
        assert finding.unknown_name == any("Decline" in group for group in finding.groups)
    (note,) = (note for note in found.record.notes if note.kind == "unknown_name")
    assert note.facts == {
        "attribute": "sex",
        "group": "Decline to state",
        "rows": 64,
        "of": 2344,
        "in_tables": True,
    }


def test_groups_against_the_rest_never_name_them() -> None:
    decisions, sex = table()
    options = AuditOptions(contrast="rest", **OPTIONS)  # type: ignore[arg-type]
    found = audit(None, decisions, sensitive_features=sex, random_state=0, options=options)
    assert "Decline to state" not in found.worst().groups
    assert "Decline to state" not in " ".join(audit_summary(found.record))
    named = [finding for finding in found.findings if "Decline to state" in finding.groups]
    assert named
    assert all(finding.unknown_name and finding.significant is None for finding in named)


def test_known_groups_have_the_figures_that_they_have_alone() -> None:
    """The joint intervals, tests and ratios of known groups are those of an audit without the
    others.
    """
    decisions, sex = table()
    rows = sex != "Decline to state"
    options = AuditOptions(resamples=0, permutations=0)
    both = audit(None, decisions, sensitive_features=sex, random_state=0, options=options)
    alone = audit(
        None, decisions[rows], sensitive_features=sex[rows], random_state=0, options=options
    )
    (first,) = [one for one in both.findings if one.metric == "kolmogorov" and not one.unknown_name]
    (second,) = [one for one in alone.findings if one.metric == "kolmogorov"]
    assert (first.joint_interval, first.significant) == (second.joint_interval, second.significant)
    assert (
        both.record.decisions[0].selection_ratio_interval
        == alone.record.decisions[0].selection_ratio_interval
    )
    assert (
        both.record.decisions[0].selection_difference
        == alone.record.decisions[0].selection_difference
    )


def test_figures_by_group_compare_known_groups() -> None:
    _, sex = table()
    labels = (np.random.default_rng(1).random(len(sex)) < 0.5).astype(int)
    labels[sex == "Decline to state"] = 1
    scores = np.random.default_rng(2).random(len(sex))
    found = audit(
        labels,
        scores,
        sensitive_features=sex,
        random_state=0,
        options=AuditOptions(resamples=0, permutations=0),
    )
    (by_group,) = found.record.by_group
    known = [
        group.base_rate.value for group in by_group.groups if group.group != "Decline to state"
    ]
    assert by_group.gaps["base_rate"].value == max(known) - min(known)
    measures = {
        one.attribute: one for one in found.by_group().record if "base_rate" in one.differences
    }
    assert measures["sensitive_features"].differences["base_rate"] == max(known) - min(known)
    assert "Decline to state" not in repr(found.by_group())
    mean = found.by_group({"mean": lambda y, p: float(np.mean(y))}).record[0]
    assert mean.differences["mean"] == max(known) - min(known)


def test_limits_and_the_option_of_the_command_line(tmp_path: Path) -> None:
    decisions, sex = table()
    path, written = tmp_path / "people.csv", tmp_path / "audit.json"
    pl.DataFrame({"p": decisions, "sex": sex.tolist()}).write_csv(path)
    command = ["audit", str(path), "--score", "p", "--group", "sex", "--json", str(written)]
    gap = abs(600 / 1200 - 465 / 1080)
    limit = ["--fail-above", f"kolmogorov={gap + 0.001}", "--fail-below", "selection_ratio=0.86"]
    runner = CliRunner()
    passed = runner.invoke(main, [*command, *limit])
    assert passed.exit_code == 0, passed.output
    assert "--known-name 'Decline to state'" in " ".join(passed.output.split())
    failed = runner.invoke(main, [*command, *limit, "--known-name", "Decline to state"])
    assert failed.exit_code == 1, failed.output
    assert json.loads(written.read_text())["settings"]["known_names"] == ["Decline to state"]
    assert runner.invoke(main, [*command, "--known-name", "men"]).exit_code == 2


def test_evidence_is_verified(tmp_path: Path) -> None:
    decisions, sex = table()
    for known in ((), ("Decline to state",)):
        found = audit(
            None,
            decisions,
            sensitive_features={"sex": sex},
            random_state=0,
            options=AuditOptions(**OPTIONS, known_names=known),
        )
        folder = tmp_path / f"evidence {len(known)}"
        found.to_evidence(folder, pdf=False)
        published = json.loads((folder / "audit.json").read_text())
        assert published["decisions"][0]["reference"] == ("Decline to state" if known else "male")
        assert verify(folder).agrees


@pytest.mark.oracle("Baseline.unknown_name")
def test_comparisons_and_series_do_not_test_them() -> None:
    first, second = audited(), audited()
    compared = compare(first, second, paired=False)
    for difference in compared.differences:
        assert ("Decline to state" in difference.groups) <= (difference.verdict == "not_tested")
    assert any("Decline to state" in difference.groups for difference in compared.differences)
    with pytest.raises(DataError, match="known_names"):
        compare(first, audited(known_names="Decline to state"))
    series = monitor({"one": first, "two": second, "three": audited()})
    looks = [look for look in series.record.series if "Decline to state" in look.groups]
    assert looks
    assert all(look.level is None and look.alarm == "not_tested" for look in looks)
    assert "Not tested, because the name of a group" in series.summary
    for baseline in series.record.baselines:
        assert baseline.unknown_name == ("Decline to state" in baseline.groups)
    others = [
        look
        for look in series.record.series
        if "Decline to state" not in look.groups and look.look != "one"
    ]
    assert all(look.level is not None for look in others)


def rows_to_train(rows: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    x = generator.normal(size=(rows, 2))
    y = (x[:, 0] + generator.normal(size=rows) > 0).astype(int)
    sex = np.where(np.arange(rows) % 2, "female", "male").astype(object)
    sex[:40] = "Prefer not to say"
    return x, y, sex


def test_training_and_unfairness_keep_the_group_and_warn() -> None:
    x, y, sex = rows_to_train()
    expected = "40 of 400 rows are named 'Prefer not to say'"
    with pytest.warns(MetrifairWarning, match=expected):
        model = FairClassifier(strength=1, random_state=0, model="mlp").fit(
            x, y, sensitive_features=sex
        )
    assert {
        group for comparison in model.scheme_.comparisons for group in comparison.groups
    } == set(sex)
    scores = model.predict_proba(x)[:, 1]
    with pytest.warns(MetrifairWarning, match=expected):
        largest = unfairness(None, scores, sensitive_features=sex)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = unfairness(None, scores[40:], sensitive_features=sex[40:])
        assert largest == unfairness(
            None, scores, sensitive_features=np.where(sex == "Prefer not to say", "x", sex)
        )
    assert largest >= known


def test_a_frontier_keeps_the_group_and_notes_it() -> None:
    x, y, sex = rows_to_train()
    with pytest.warns(MetrifairWarning, match="are named 'Prefer not to say'"):
        front = frontier(
            FairClassifier(model="linear"),
            x,
            y,
            sensitive_features=sex,
            strengths=[0, 1],
            random_state=0,
        )
    (note,) = (text for text in note_texts(front.record) if "Prefer not to say" in text)
    assert "40 of 400 rows are named" in note
    assert "Prefer not to say" in front.record.sizes
