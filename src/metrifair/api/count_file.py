"""The scores of a file, counted into a state."""

from __future__ import annotations

import os

from metrifair.api.state import AuditState
from metrifair.auditing.out_of_core.columns import ColumnLevels, Roles, levels_for, used_rows
from metrifair.auditing.out_of_core.files import opened
from metrifair.auditing.out_of_core.formats import AS_USUAL, ReadOptions
from metrifair.auditing.out_of_core.rows import check_some
from metrifair.auditing.state_file import Shape, Value, plain
from metrifair.problem.values import band_names


def count_file(state: AuditState, path: str | os.PathLike[str], roles: Roles, options: ReadOptions = AS_USUAL) -> None:
    """Add the rows of a file of any size to a state, in one pass; rows that miss something are left out and counted."""
    with opened(path, options) as source:
        source.check(roles.by_role)
        shape = Shape(roles.groups, roles.controls, roles.label, roles.weight is not None, source.is_text)
        levels = levels_for(roles)
        before, precision = state.rows, source.precision(roles.score)
        for batch in source.batches(roles.columns):
            used = used_rows(roles, levels, batch)
            left_out = used.left_out.total()
            if used.weight is not None and not used.weight.all():
                used = used.only(used.weight != 0)
            coded = [
                (level_values(level), code.astype("int64") - 1) for level, code in zip(levels, used.codes, strict=True)
            ]
            state._add_coded(shape, coded, used.scores, used.weight, precision=precision, left_out=left_out)
        check_some(source.name, roles, state.rows - before)


def level_values(level: ColumnLevels) -> list[Value]:
    """The values of a column in a state: those of its levels, or the names of its bands."""
    return [plain(value) for value in (level.values if level.cuts is None else band_names(level.cuts))]
