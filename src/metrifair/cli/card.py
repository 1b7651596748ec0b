"""`metrifair card`: what a model is and reaches, as Markdown that model hubs read."""

from __future__ import annotations

from pathlib import Path

import click

from metrifair.cli.options import STANDARD_OUTPUT, Output, check_paths
from metrifair.errors import DataError


@click.command(short_help="Describe a model for those who use it.")
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--audit", "audited", metavar="FILE", help="What metrifair audit --json wrote of the model's scores.")
@click.option("--frontier", "swept", metavar="FILE", help="The frontier it was chosen from, written by Frontier.save.")
@click.option(
    "--output",
    default=str(STANDARD_OUTPUT),
    show_default=True,
    type=Output(".md", stdout=True),
    help="File for the card (.md); - is standard output.",
)
@click.option("--title", help="Name of the model.")
@click.option("--license", "licence", metavar="NAME", help="Identifier, such as mit.")
@click.option("--language", metavar="CODE", help="Of texts among the features, such as en.")
@click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="What it was trained on. Repeatable.")
@click.option("--intended-use", metavar="TEXT", help="Who should use it for what, and who should not.")
def command(
    *,
    model: Path,
    audited: str | None,
    swept: str | None,
    output: Path,
    title: str | None,
    licence: str | None,
    language: str | None,
    datasets: tuple[str, ...],
    intended_use: str | None,
) -> None:
    """Write the model card of MODEL, in Markdown with a head that model hubs read.

    What it was trained with is read off the model's file, figures by group come from an audit, and what fairness cost
    from a frontier. What nobody has stated, such as what the model is for, the card says so.

    \b
    Example:
      metrifair card loans.metrifair --audit audit.json --license mit --output README.md
    """
    check_paths([model, *filter(None, (audited, swept))], [output])
    from metrifair.auditing.compare import audit_in
    from metrifair.loading import load
    from metrifair.model_card import to_card
    from metrifair.tradeoff.result import Frontier

    known, front = load(model), None if swept is None else load(swept)
    if front is not None and not isinstance(front, Frontier):
        raise DataError(f"{swept!r} holds a {type(front).__name__}, not a frontier; pass what Frontier.save wrote")
    card = to_card(
        known,
        None if audited is None else audit_in(audited),
        front,
        None if output == STANDARD_OUTPUT else output,
        title=title,
        license=licence,
        language=language,
        datasets=datasets,
        intended_use=intended_use,
    )
    click.echo(card if output == STANDARD_OUTPUT else f"Model card: {output}", nl=output != STANDARD_OUTPUT)
