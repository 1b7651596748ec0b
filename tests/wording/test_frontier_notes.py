"""Notes of a frontier: each kind has facts that ``tests/approved`` shows as a sentence."""

from __future__ import annotations

import re

import click

from metrifair.cli import main
from tests.seams.tradeoff import FrontierNote
from tests.seams.wording import FRONTIER_NOTES as NOTES
from tests.seams.wording import frontier_note_text as note_text
from tests.surfaces.notes import FRONTIER_NOTES


def test_the_facts_of_every_kind_of_note_are_approved() -> None:
    assert {kind for kind, _ in FRONTIER_NOTES} == set(NOTES)


def test_a_positive_label_that_labels_show_needs_no_note() -> None:
    assert not note_text(FrontierNote("positive_label", {"labels": ["no", "yes"], "positive": 1}))


def test_options_that_notes_name_exist() -> None:
    texts = [note_text(FrontierNote(kind, facts)) for kind, facts in FRONTIER_NOTES]
    named = {option for text in texts for option in re.findall(r"--[a-z-]+", text)}
    train = main.get_command(click.Context(main), "train")
    assert train is not None
    options = {option for param in train.params for option in param.opts}
    assert {"--ignore", "--continuous", "--cluster"} <= named <= options
