"""A frontier in a notebook: the report's slider, whose position Python reads and sets."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from metrifair.errors import DataError
from metrifair.report.frontier import page_content, widget_script
from metrifair.support.checks import require
from metrifair.tradeoff.points import Point

if TYPE_CHECKING:
    from metrifair.api.frontier import Frontier

anywidget: Any = require("anywidget", extra="notebook", purpose="a slider in a notebook")
traitlets: Any = require("traitlets", extra="notebook", purpose="a slider in a notebook")


class FrontierWidget(anywidget.AnyWidget):  # type: ignore[misc]  # its base carries no types
    """A slider over a frontier's strengths and the selected models; see
    :meth:`metrifair.Frontier.widget`.
    """

    _esm = widget_script()
    content = traitlets.Dict().tag(sync=True)  # the content of the chart
    message = traitlets.Unicode().tag(sync=True)  # why nothing was chosen, or a warning
    row = traitlets.Int().tag(sync=True)  # the position of the slider
    max_unfairness = traitlets.Float(None, allow_none=True).tag(sync=True)
    strength = traitlets.Float()

    def __init__(self, frontier: Frontier) -> None:
        self.frontier = frontier
        self._ready = False
        view = frontier.view()
        self._rows = view.rows
        content = page_content(view)
        row: Any = content["start"]
        super().__init__(
            content=content,
            row=row,
            strength=self._rows[row].strength,
            max_unfairness=frontier.record.limit,
        )
        self._ready = True  # from now on, setting a limit selects a model

    @property
    def points(self) -> tuple[Point, ...]:
        """The figures of the models at the slider, one for each seed."""
        return tuple(self._rows[self.row].points)

    @property
    def chosen(self) -> Point | None:
        """The figures of the model at the slider: of the frontier's choice if it is there, else
        of the first seed.
        """
        usable = [point for point in self.points if not point.failed]
        return self.frontier.chosen if self.frontier.chosen in usable else next(iter(usable), None)

    @property
    def model(self) -> Any:
        """The model of all rows behind ``chosen``, which is trained if it has not been.

        None if training failed, or if the frontier comes from a file without this model.
        """
        chosen = self.chosen
        if chosen is None:
            return None
        self.frontier._trade_off.train_missing([chosen.job])
        outcomes = self.frontier._trade_off.outcomes
        return next((outcome.model for outcome in outcomes if outcome.job == chosen.job), None)

    @traitlets.validate("row")  # type: ignore[untyped-decorator]
    def _check_row(self, proposal: Any) -> int:
        if not 0 <= proposal["value"] < len(self._rows):
            raise DataError(f"row must be from 0 to {len(self._rows) - 1}, got {proposal['value']}")
        return int(proposal["value"])

    @traitlets.validate("strength")  # type: ignore[untyped-decorator]
    def _check_strength(self, proposal: Any) -> float:
        strengths = sorted({row.strength for row in self._rows})
        if proposal["value"] not in strengths:
            raise DataError(
                f"strength must be one of {', '.join(f'{value:g}' for value in strengths)}, got "
                f"{proposal['value']}"
            )
        return float(proposal["value"])

    @traitlets.observe("row")  # type: ignore[untyped-decorator]
    def _follow_row(self, change: Any) -> None:
        self.strength = self._rows[change["new"]].strength

    @traitlets.observe("strength")  # type: ignore[untyped-decorator]
    def _follow_strength(self, change: Any) -> None:
        current = self._rows[self.row]
        if current.strength != change["new"]:  # prefer a row of the family that is shown
            matches = [
                number for number, row in enumerate(self._rows) if row.strength == change["new"]
            ]
            self.row = next(
                (number for number in matches if self._rows[number].family == current.family),
                matches[0],
            )

    @traitlets.observe("max_unfairness")  # type: ignore[untyped-decorator]
    def _choose(self, change: Any) -> None:
        """Select a model within the limit, and move the slider to it."""
        if change["new"] is None or not self._ready:
            return
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.frontier.select(max_unfairness=change["new"])
                message = " ".join(str(warning.message) for warning in caught)
            except DataError as error:
                message = str(error)
        view = self.frontier.view()
        self._rows = view.rows
        with self.hold_sync():
            self.content, self.message = page_content(view), message
            if self.frontier.chosen is not None:
                self.row = self.content["start"]
