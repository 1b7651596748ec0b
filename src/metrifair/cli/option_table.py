"""The table of all options in ``options.ini``: by command, in sections of the help, with
placeholders.
"""

from __future__ import annotations

from collections.abc import Mapping
from configparser import ConfigParser
from pathlib import Path

_TABLE = ConfigParser(interpolation=None, delimiters="=", comment_prefixes=";")
_TABLE.read(Path(__file__).with_name("options.ini"), encoding="utf-8")

MAIN_OPTIONS = {
    command: " ".join(names.split()) for command, names in _TABLE["main options"].items()
}
"""The options of each command that its help lists first, at most eight."""
PLACEHOLDERS = {
    name: entry["placeholder"] for name, entry in _TABLE.items() if "placeholder" in entry
}
"""The placeholders of options that have an argument of a Python function."""
RENAMED = {
    argument: name
    for name, entry in _TABLE.items()
    for argument in entry.get("arguments", "").split()
}
"""The options of arguments that have another name; any other option is spelled as its argument."""
SECTIONS: dict[str, str] = {}
"""The options of each section of the help, in their order."""
for _name, _entry in _TABLE.items():
    if "section" in _entry:
        SECTIONS[_entry["section"]] = f"{SECTIONS.get(_entry['section'], '')} {_name}".lstrip()


def command_entries(command: str) -> dict[str, Mapping[str, str]]:
    """The entry of each option of a command.

    >>> list(command_entries("compare"))[:3], command_entries("count")["score"]["metavar"]
    (['cluster', 'title', 'signed-by'], 'COLUMN')
    """
    replaced = {
        name: entry
        for heading, entry in _TABLE.items()
        for name, _, commands in [heading.partition(":")]
        if command in commands.split()
    }
    return {
        name: replaced.get(name, _TABLE[name]) for name in _expanded(_TABLE["commands"][command])
    }


def _expanded(names: str) -> list[str]:
    """The names, with those of bundles in place of +BUNDLE."""
    bundles = _TABLE["bundles"]
    return [
        name
        for listed in names.split()
        for name in (_expanded(bundles[listed[1:]]) if listed.startswith("+") else [listed])
    ]
