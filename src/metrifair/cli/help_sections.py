"""Options in named sections: how ``--help`` lists them, the most important ones of each command
first.
"""

from __future__ import annotations

import re

import click

from metrifair.cli.option_table import MAIN_OPTIONS, SECTIONS

MAIN = "Main options"
ADVANCED = "Advanced"
_OPTION = re.compile(r"--[a-z-]+")
_UNBROKEN = "\N{NON-BREAKING HYPHEN}"


class WholeNames(click.HelpFormatter):
    """Help whose lines never end in the middle of an option's name."""

    def write(self, string: str) -> None:
        """Add text that is wrapped already."""
        super().write(string.replace(_UNBROKEN, "-"))

    def write_text(self, text: str) -> None:
        """Add a paragraph."""
        super().write_text(unbroken(text))


def unbroken(text: str) -> str:
    """The text with names of options that no line break can divide.

    >>> unbroken("a-b --fail-worse").encode("ascii", "replace")
    b'a-b ??fail?worse'
    """
    return _OPTION.sub(lambda name: name[0].replace("-", _UNBROKEN), text)


class SectionedCommand(click.Command):
    """A command whose help lists its options in sections."""

    def get_help(self, ctx: click.Context) -> str:
        """The help, with whole names of options."""
        ctx.formatter_class = WholeNames
        return super().get_help(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections that have options of this command.

        Those in no section are advanced.
        """
        options = {
            option_name(option): option
            for option in self.get_params(ctx)
            if isinstance(option, click.Option)
        }
        main = MAIN_OPTIONS.get(ctx.info_name or "", "")
        listed = {MAIN: f"{main} help", **SECTIONS}
        listed[ADVANCED] += " " + " ".join(
            sorted(options.keys() - set(" ".join(listed.values()).split()))
        )
        for section, names in listed.items():
            shown = [options.pop(name) for name in names.split() if name in options]
            records = [
                record for option in shown if (record := option.get_help_record(ctx)) is not None
            ]
            if records:
                with formatter.section(section):
                    formatter.write_dl([(name, unbroken(text)) for name, text in records])


def option_name(option: click.Parameter) -> str:
    """The long name of an option, by which the table lists it.

    >>> option_name(click.Option(["-h", "--help/--no-help", "other"]))
    'help'
    """
    return max(option.opts, key=len).lstrip("-")
