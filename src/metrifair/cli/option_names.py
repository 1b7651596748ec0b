"""How the command line names arguments in messages: by its options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from metrifair.cli.option_table import PLACEHOLDERS, RENAMED
from metrifair.errors import ArgumentNames


class OptionNames(ArgumentNames):
    """Arguments as the options of the command line; those without an option as in Python."""

    verb = "use"

    def argument(self, argument: str) -> str:
        """The option of an argument.

        >>> OPTION_NAMES.argument("y_true"), OPTION_NAMES.argument("gamma")
        ('--label', 'gamma')
        """
        option = RENAMED.get(argument, argument.replace("_", "-"))
        return f"--{option}" if option in PLACEHOLDERS else argument

    def value(self, argument: str, value: object) -> str:
        """An option with its value, as people type it in a shell.

        >>> OPTION_NAMES.value("continuous", False), OPTION_NAMES.value("replace", {"Approved": ...})
        ('--continuous none', '--replace Approved=NEW')
        """
        option = self.argument(argument)
        if not option.startswith("--"):
            return super().value(argument, value)
        placeholder = PLACEHOLDERS[option.removeprefix("--")]
        if value is ...:
            words = [placeholder]
        elif isinstance(value, bool):
            words = ["none" if argument == "continuous" and not value else ""]
        elif isinstance(value, Mapping):
            open_value = placeholder.rpartition("=")[2]
            given = {key: open_value if new is ... else new for key, new in value.items()}
            words = [shlex.quote(f"{key}={new}") for key, new in given.items()]
        else:
            texts = map(str, value if isinstance(value, list | tuple) else [value])
            words = [
                shlex.quote(text) if text.isprintable() else repr(text) for text in texts
            ]  # a tab is typed as '\\t'
        return " ".join(f"{option} {word}".rstrip() for word in words)


OPTION_NAMES = OptionNames()
