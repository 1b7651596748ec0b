"""The rows of a file, counted into an audit state."""

from __future__ import annotations

import os

from metrifair.auditing.out_of_core.columns import Roles, levels_for, used_rows
from metrifair.auditing.out_of_core.files import opened
from metrifair.auditing.out_of_core.rows import check_some
from metrifair.auditing.state import AuditState
from metrifair.auditing.state_file import Shape
from metrifair.auditing.state_rows import plain
from metrifair.problem.attributes import band_names


def count_file(
    state: AuditState,
    path: str | os.PathLike[str],
    roles: Roles,
    *,
    format: str | None = None,  # noqa: A002
    separator: str | None = None,
) -> None:
    """Add the rows of a file of any size to a state, in one pass; rows that miss something are left out and counted."""
    with opened(path, format=format, separator=separator) as source:
        source.check(roles.by_role)
        shape = Shape(roles.groups, roles.controls, roles.label, roles.weight is not None, source.is_text)
        levels = levels_for(roles)
        before = state.rows
        for batch in source.batches(roles.columns):
            used = used_rows(roles, levels, batch)
            left_out = used.left_out.total()
            if used.weight is not None and not used.weight.all():
                used = used.only(used.weight != 0)
            values = [
                [plain(value) for value in (level.values if level.cuts is None else band_names(level.cuts))]
                for level in levels
            ]
            coded = [(own, code.astype("int64") - 1) for own, code in zip(values, used.codes, strict=True)]
            state._add_coded(shape, coded, used.scores, used.weight, left_out=left_out)
        check_some(source.name, roles, state.rows - before)
