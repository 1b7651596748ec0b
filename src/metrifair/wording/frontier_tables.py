"""The tables of frontiers: one description of each column, as ``wording.tables`` has of audits.

Pages and terminals read the columns of rows, which are models of one strength; data frames those of
single models. A figure of a model has its name in ``wording.terms``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter

from metrifair.figures.intervals import Interval
from metrifair.tradeoff.points import Point
from metrifair.wording.frontier import row_note
from metrifair.wording.frontier_view import (
    WITH_ALLOWANCE,
    FrontierRow,
    FrontierView,
    RowFigure,
    needs_group_text,
)
from metrifair.wording.numbers import figure_text, strength_texts
from metrifair.wording.tables import Column, ColumnTable, count_column, text_column


def _row_figure(key: str, row: FrontierRow) -> RowFigure:
    return row.figures[key]


def _strength(row: FrontierRow) -> str:
    """The strength, with a star if the table has a note on it."""
    return f"{row.text} *" if row_note(row) else row.text


def _strength_or_chosen(row: FrontierRow) -> str:
    """The same where no color marks the chosen model."""
    chosen = " (chosen)" if row.is_chosen else ""
    return f"{row.text}{chosen} *" if row_note(row) else f"{row.text}{chosen}"


def row_table(view: FrontierView) -> ColumnTable:
    """The columns of a table with one row for each strength.

    >>> table = row_table(FrontierView([Point(0, 0, 0.9, 0.4)], accuracy_name="R2"))
    >>> [column.heading for column in table.pick("strength", "accuracy", "unfairness")]
    ['Strength', 'R²', 'Unfairness']
    """
    figures = (
        Column(key, "", partial(_row_figure, key), attrgetter("text"), title=view.label(key))
        for key in view.keys
    )
    return ColumnTable(
        text_column("strength", _strength, title=view.label("strength")),
        text_column("needs_group", show=_needs_group),
        *figures,
        Column(WITH_ALLOWANCE, "", partial(_row_figure, WITH_ALLOWANCE), attrgetter("text")),
        count_column("models", lambda row: len(row.points) - row.failed),
        text_column("pareto", "on_front", lambda on_front: "yes" if on_front else ""),
        text_column("training", "state"),
    )


def _needs_group(needed: bool) -> str:
    return needs_group_text(needed) if needed else ""


def row_columns(view: FrontierView) -> list[Column]:
    """The columns of a page: all figures, and what else is to be known.

    >>> points = [Point(0, seed, 0.9, 0.4, failed=seed > 0) for seed in range(2)]
    >>> [column.key for column in row_columns(FrontierView(points))]
    ['strength', 'accuracy', 'unfairness', 'models', 'pareto', 'training']
    """
    models = ["models"] if any(len(row.points) > 1 for row in view.rows) else []
    training = ["training"] if any(row.failed for row in view.rows) else []
    keys = _with_allowance(view, view.keys)
    return row_table(view).pick(*_first(view), *keys, *models, "pareto", *training)


def short_columns(view: FrontierView, keys: Sequence[str]) -> list[Column]:
    """The columns of a terminal: these figures, without color."""
    first, *columns = row_table(view).pick(*_first(view), *_with_allowance(view, keys))
    title = "On the Pareto front" if view.parameters else first.title
    return [replace(first, value=_strength_or_chosen, title=title), *columns]


def _with_allowance(view: FrontierView, keys: Sequence[str]) -> list[str]:
    """The keys, with the figure that a choice compared with its limit beside the unfairness."""
    shown = list(keys)
    if view.gaps_with_allowance and view.gap_key in shown:
        shown.insert(shown.index(view.gap_key) + 1, WITH_ALLOWANCE)
    return shown


def _first(view: FrontierView) -> tuple[str, ...]:
    """The columns before the figures."""
    if any(row.needs_group for row in view.rows):
        return "strength", "needs_group"
    return ("strength",)


def sort_value(view: FrontierView, column: Column, row: FrontierRow) -> float | None:
    """The number by which a page sorts the rows by a column; None if it is missing."""
    if column.key == "strength":
        return view.rows.index(row) if view.parameters else row.strength
    if column.key == "training":
        return row.failed
    value = column.value_in(row)
    return value.value if isinstance(value, RowFigure) else float(value)


def constant_row(view: FrontierView) -> FrontierRow | None:
    """The constant predictor as the last row of a table; None if it is not known.

    >>> row = constant_row(FrontierView([Point(0, 0, 0.9, 0.4)], constant=Point(0, 0, 0.7, 0.0)))
    >>> row.text, row.figures["accuracy"].text
    ('constant', '0.700')
    """
    point = view.baseline
    if point is None:
        return None
    figures = {key: RowFigure(point.figure(key), below=view.below(point, key)) for key in view.keys}
    return FrontierRow(
        point.strength,
        "constant",
        (point,),
        0,
        figures | {WITH_ALLOWANCE: RowFigure(None)},
        on_front=False,
    )


def alternative_columns(view: FrontierView) -> list[Column]:
    """The columns of less discriminatory alternatives: the utility and the unfairness of models.

    >>> points = [Point(0, 0, 0.9, 0.4), Point(1, 0, 0.9, 0.1)]
    >>> columns = alternative_columns(FrontierView(points))
    >>> [column.cell(points[0]).line for column in columns]
    ['0 (compared with)', '0.900', '0.400']
    """
    base, fairer = view.alternatives
    models = {point.job: point.strength for point in (base, *fairer)}
    texts = dict(zip(models, strength_texts(models.values()), strict=True))
    return [
        text_column(
            "strength",
            lambda point: f"{point.family} {texts[point.job]}".strip(),
            note=lambda point: "compared with" if point.job == base.job else "",
            title=view.label("strength"),
        ),
        *(
            Column(
                key,
                "",
                partial(view.text, key=key),
                str,
                partial(_shown_interval, view, key),
                figure_text,
                title=view.label(key),
            )
            for key in (view.key, view.gap_key)
        ),
    ]


def _shown_interval(view: FrontierView, key: str, point: Point) -> Interval | None:
    """The interval of a figure; None if the figure itself names the upper end."""
    return None if view.below(point, key) is not None else point.intervals.get(key)


def point_table(view: FrontierView) -> ColumnTable:
    """The columns of a data frame with one row for each model.

    >>> list(point_table(FrontierView([Point(0, 0, 0.9, 0.4)])).frame())[:4]
    ['strength', 'seed', 'failed', 'accuracy']
    """
    chosen = None if view.chosen is None else view.chosen.job
    figures = dict.fromkeys(name for point in view.shown for name in point.figures)
    return ColumnTable(
        *(_family_columns(view) if view.parameters else ()),
        Column("strength", value=lambda point: float(point.strength)),
        Column("seed", "Int64"),
        Column("failed", "Boolean"),
        *(_point_column(view, name) for name in figures),
        Column("is_noise", "Boolean"),
        text_column("mark", lambda point: point.marks.get(view.key, "")),
        Column("overfit", "Boolean"),
        Column("chosen", "Boolean", lambda point: point.job == chosen),
    )


def _family_columns(view: FrontierView) -> tuple[Column, ...]:
    """The family of a model, the parameter that its "strength" is of, and whether it needs the
    group.
    """
    return (
        text_column("family"),
        text_column("parameter", lambda point: view.parameters[point.family]),
        Column("needs_group", "Boolean"),
    )


def _point_column(view: FrontierView, name: str) -> Column:
    """A figure of models; with the ends of its interval, if any model has one."""

    def value(point: Point) -> float | None:
        return None if point.failed else point.figures.get(name)

    if not any(name in point.intervals for point in view.shown):
        return Column(name, value=value)
    return Column(name, value=value, interval=lambda point: point.intervals.get(name))
