"""All commands together: each is loaded when it is called, and its typed errors print as one
line.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from metrifair.cli.closed_pipe import discard_output, is_discarding
from metrifair.cli.option_names import OPTION_NAMES
from metrifair.errors import DataError, MissingExtra, Remedies, Remedy
from metrifair.support.checks import nearest_names
from metrifair.support.lazy import missing_extra

_COMMANDS = {  # and the module of each
    "columns": "columns",
    "audit": "audit",
    "find-groups": "find_groups",
    "compare": "compare",
    "count": "counts",
    "merge": "counts",
    "monitor": "compare",
    "evidence": "evidence",
    "verify": "evidence",
    "plan": "evidence",
    "train": "train",
    "frontier": "train",
    "predict": "models",
    "card": "models",
    "export": "models",
    "datasets": "datasets",
    "demo": "datasets",
    "studio": "studio",
}
_INTERRUPTED = 130  # as a shell reports it; 1 would read as "unfair"
_PIPE_CLOSED = 141  # the same
_OF_COUNTS = ("count", "merge", "evidence")  # commands whose figures come from counts of scores
_SIMILAR = 0.75  # of two spellings: --sensitive does not mean --positive


class _Refusal(click.ClickException):
    """One clear line and exit code 2, for input that cannot be used."""

    exit_code = 2


class _Commands(click.Group):
    """Commands by name; their typed errors reach the user as one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"metrifair.cli.{_COMMANDS[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = args[0] in _COMMANDS or args[0].startswith("-")
        if not known and not ctx.resilient_parsing:
            near = nearest_names(args[0], list(_COMMANDS), cutoff=_SIMILAR)
            if near:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(near)}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
        except click.NoSuchOption as error:
            raise _unknown_option(error) from None
        except ModuleNotFoundError as error:
            missing = missing_extra(error, "this command")
            if missing is None:
                raise
            raise _Refusal(str(missing)) from error
        except BrokenPipeError:  # the reader of the output has closed it
            discard_output(ctx)
        # OSError: of standard output; files have their own errors. EOFError: click would exit with
        # 1, as if unfair.
        except (DataError, MissingExtra, OSError, EOFError) as error:
            raise _Refusal(self._line(ctx, error)) from error
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(_INTERRUPTED)
        if is_discarding(ctx):
            ctx.exit(_PIPE_CLOSED)
        return result

    def _line(self, ctx: click.Context, error: Exception) -> str:
        """The message of an error on one line, without characters that could steer a terminal."""
        message = str(error)
        if isinstance(error, DataError):
            error.remedy = self._possible_remedies(ctx, error.remedy)
            message = error.text(OPTION_NAMES)
        words = " ".join([message, *getattr(error, "__notes__", [])]).split()
        return "".join(sign if sign.isprintable() else "?" for sign in " ".join(words))

    def _possible_remedies(self, ctx: click.Context, remedy: Remedies | None) -> Remedies | None:
        """The alternatives without options that only other commands have, if any is left."""
        command = self.get_command(ctx, ctx.invoked_subcommand or "")
        if command is None or remedy is None or isinstance(remedy, str | Remedy):
            return remedy
        options = {option for parameter in command.params for option in parameter.opts}
        possible = []
        for alternative in remedy:
            name = ""
            if isinstance(alternative, Remedy):
                name = OPTION_NAMES.argument(alternative.argument)
            if not name.startswith("--") or name in options:
                possible.append(alternative)
        return possible or remedy


def _unknown_option(error: click.NoSuchOption) -> click.UsageError:
    """The error with the nearest option of the command.

    Click would sort by the alphabet, and list distant ones.
    """
    parameters = [] if error.ctx is None else error.ctx.command.get_params(error.ctx)
    options = [
        name for parameter in parameters for name in (*parameter.opts, *parameter.secondary_opts)
    ]
    known = [name.removeprefix("--") for name in options if name.startswith("--")]
    names = nearest_names(error.option_name.removeprefix("--"), known, cutoff=_SIMILAR)
    near = " or ".join(f"--{name}" for name in names)
    hint = f" Did you mean {near}?" if near else ""
    command = None if error.ctx is None else error.ctx.info_name
    if error.option_name == "--cluster" and command in _OF_COUNTS:
        hint = (
            " Counts of scores contain no clusters. Audit the rows with metrifair audit --cluster."
        )
    return click.UsageError(f"No such option {error.option_name!r}.{hint}", error.ctx)


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(package_name="metrifair")
def main() -> None:
    """Train and audit predictors whose score distributions are close across demographic groups.

    Exit codes: 0 success, 1 a limit such as --fail-above is broken or evidence differs, 2 invalid
    input.
    """
