"""The table of options: every entry describes an option that a command has, with keys and types
that are read.
"""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

import click
import pytest

from metrifair import cli
from metrifair.cli import main
from tests.seams.cli import command_entries, option_name

KEYS = {
    *(
        "section",
        "placeholder",
        "arguments",
        "type",
        "choices",
        "endings",
        "stdout",
        "range",
        "count",
        "repeat",
    ),
    *("required", "default", "metavar", "spelling", "parameter", "help", "otherwise"),
}
TYPES = {
    *("flag", "switch", "integer", "number", "number or median", "output", "pdf", "table"),
    *("folder", "folder or archive"),
    *(
        "costs",
        "criterion",
        "cuts",
        "fact",
        "families",
        "metric",
        "probabilities",
        "replacement",
        "strengths",
    ),
}
LISTS = {"commands", "bundles", "main options"}
CONTEXT = click.Context(main)
COMMANDS = {
    name: command
    for name in main.list_commands(CONTEXT)
    if (command := main.get_command(CONTEXT, name))
}


def read_table() -> ConfigParser:
    table = ConfigParser(interpolation=None, delimiters="=", comment_prefixes=";")
    table.read(Path(cli.__file__).with_name("options.ini"), encoding="utf-8")
    return table


def test_every_entry_has_known_keys_and_types_and_belongs_to_a_command() -> None:
    table = read_table()
    assert set(table["commands"]) == set(COMMANDS)
    used = {name: set(command_entries(name)) for name in COMMANDS}
    for heading in set(table.sections()) - LISTS:
        name, _, commands = heading.partition(":")
        assert set(table[heading]) <= KEYS, heading
        assert table[heading].get("type", "flag") in TYPES, heading
        assert set(commands.split()) <= {
            command for command, names in used.items() if name in names
        }, heading
        # rules.py makes these, of which there are four
        limit = name.startswith("fail-") and name != "fail-worse"
        assert limit or any(name in names for names in used.values()), heading


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_the_options_of_its_entries(name: str) -> None:
    options = {
        option_name(one): one for one in COMMANDS[name].params if isinstance(one, click.Option)
    }
    entries = command_entries(name)
    assert set(entries) == {
        one for one in options if not re.fullmatch("fail-(certain-)?(above|below)", one)
    }
    for option, entry in entries.items():
        assert options[option].multiple == ("repeat" in entry)
        assert options[option].required == ("required" in entry)
        assert options[option].is_flag == (entry.get("type") in ("flag", "switch"))
        if "choices" in entry:
            assert list(options[option].type.choices) == entry["choices"].split()  # type: ignore[attr-defined]
