"""How the command line names arguments in messages: by its options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from metrifair.errors import ArgumentNames

# The options of the command line that stand for arguments, by the placeholder of their value.
_OPTIONS = {
    "": "day-first intersectional no-header",
    "CATEGORY": "reference",
    "CLASS": "positive",
    "COLUMN": "continuous control group keep label score weight",
    "COLUMN=NUMBERS": "cuts",
    "KEY=VALUE": "about",
    "LOW HIGH": "score-range",
    "NAME": "combine contrast criterion encoding estimate format loss metric model sheet standard table utility",
    "NUMBER": "folds test-folds min-group-size max-unfairness max-groups seed seeds precision threshold vc-dimension",
    "NUMBERS": "strengths",
    "OLD=NEW": "replace",
    "SHARE": "confidence min-group-share",
    "SIGN": "decimal separator",
    "SQL": "query",
    "TEXT": "title",
    "VALUE": "favorable-decision missing",
    "high|low": "favorable",
    "scores|decisions": "unfairness-of",
}
_PLACEHOLDERS = {option: placeholder for placeholder, options in _OPTIONS.items() for option in options.split()}
# Arguments whose option has another name; any other option is spelled as its argument.
_RENAMED = {
    "control_features": "control",
    "criteria": "criterion",
    "header": "no-header",
    "metrics": "metric",
    "pos_label": "positive",
    "random_state": "seed",
    "sample_weight": "weight",
    "sensitive_features": "group",
    "y": "label",
    "y_pred": "score",
    "y_true": "label",
}


class OptionNames(ArgumentNames):
    """Arguments as the options of the command line; those without an option as in Python."""

    verb = "use"

    def argument(self, argument: str) -> str:
        """The option of an argument.

        >>> OPTION_NAMES.argument("y_true"), OPTION_NAMES.argument("gamma")
        ('--label', 'gamma')
        """
        option = _RENAMED.get(argument, argument.replace("_", "-"))
        return f"--{option}" if option in _PLACEHOLDERS else argument

    def value(self, argument: str, value: object) -> str:
        """An option with its value, as people type it in a shell.

        >>> OPTION_NAMES.value("continuous", False), OPTION_NAMES.value("replace", {"Approved": ...})
        ('--continuous none', '--replace Approved=NEW')
        """
        option = self.argument(argument)
        if not option.startswith("--"):
            return super().value(argument, value)
        placeholder = _PLACEHOLDERS[option.removeprefix("--")]
        if value is ...:
            words = [placeholder]
        elif isinstance(value, bool):
            words = ["none" if argument == "continuous" and not value else ""]
        elif isinstance(value, Mapping):
            open_value = placeholder.rpartition("=")[2]
            words = [shlex.quote(f"{key}={open_value if new is ... else new}") for key, new in value.items()]
        else:
            texts = map(str, value if isinstance(value, list | tuple) else [value])
            words = [
                shlex.quote(text) if text.isprintable() else repr(text) for text in texts
            ]  # a tab is typed as '\\t'
        return " ".join(f"{option} {word}".rstrip() for word in words)


OPTION_NAMES = OptionNames()
