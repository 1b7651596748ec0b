"""Every kind of note has a topic, facts that ``tests/approved`` shows, and options of commands."""

import inspect
import re

import pytest

from tests.seams.auditing import Note, notes
from tests.seams.cli import OPTION_NAMES
from tests.seams.metrics import METRICS
from tests.seams.wording import CRITERION_MEANINGS, METRIC_WORDS, NOTES, TOPICS, note_text
from tests.surfaces.notes import AUDIT_NOTES

KINDS = {kind for kind, _ in AUDIT_NOTES}


def test_each_kind_of_note_has_a_topic() -> None:
    assert {template.topic for template in NOTES.values()} == set(TOPICS)


def test_audits_make_no_other_kinds() -> None:
    source = inspect.getsource(notes)
    made = {name for name in KINDS if f'"{name}"' in source}
    assert made == set(NOTES) == KINDS


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("undecided", ["--threshold NUMBER"]),
        ("same_decision", ["--threshold NUMBER"]),
        ("positive_label", ["--positive CLASS"]),
        ("unknown_name", ["--known-name NA", "--missing NA"]),
    ],
)
def test_the_command_line_names_options(kind: str, options: list[str]) -> None:
    text = note_text(Note(kind, dict(AUDIT_NOTES)[kind]), OPTION_NAMES)
    assert re.findall(r"--[a-z-]+ [A-Z]+", text) == options


def test_every_metric_and_criterion_has_words() -> None:
    assert set(METRIC_WORDS) == set(METRICS)
    for words in METRIC_WORDS.values():
        assert words.about.endswith(".")
        assert words.meaning.endswith(".")
    assert all(text.endswith(".") for text in CRITERION_MEANINGS.values())
