"""`metrifair reproduce`: the paper's experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class _Experiment(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """A name that ``metrifair.experiments`` knows; asked for when it is needed."""

    name = "experiment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from metrifair.experiments import NAMES

        if value not in (*NAMES, "all"):
            self.fail(f"{value!r} is none of {', '.join(NAMES)} or all", param, ctx)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        from click.shell_completion import CompletionItem

        from metrifair.experiments import NAMES

        return [CompletionItem(name) for name in (*NAMES, "all") if name.startswith(incomplete)]


@click.command(short_help="Run the paper's experiments.")
@click.argument("name", type=_Experiment())
@click.option(
    "--protocol",
    type=click.Choice(["published", "corrected"]),
    default="corrected",
    show_default=True,
    help="What the authors' code did, or what the paper's text means.",
)
@click.option("--seeds", type=click.IntRange(1, 1_000), default=10, show_default=True, help="Repetitions.")
@click.option("--quick", is_flag=True, help="Two seeds, few strengths, few epochs: to see that it works.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes that work at once.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("results"),
    show_default=True,
    help="Folder for points, tables, figures and pages. Finished work in it is not done again.",
)
def command(*, name: str, protocol: str, seeds: int, quick: bool, jobs: int, out: Path) -> None:
    """Run the paper's experiment NAME, or all of them, and set our figures beside the printed ones."""
    from metrifair.cli.terminal import console, working
    from metrifair.experiments import reproduce

    with working(f"Reproducing {name}; what is finished is kept in {out}"):
        reproduce(name, protocol=protocol, seeds=seeds, quick=quick, out=out, n_jobs=jobs)
    console().print(f"Results: {out.resolve()}", soft_wrap=True)
