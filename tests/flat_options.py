"""Audit options written flat, as tests keep them in dicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from metrifair import Audit, AuditOptions, ReadOptions, audit


def flat(**given: Any) -> dict[str, Any]:
    """Arguments of an audit, with further options and how a file is read in their records.

    >>> flat(resamples=0, random_state=0, sheet="May")["reading"].sheet
    'May'
    """
    found = {"options": _record(AuditOptions, given), "reading": _record(ReadOptions, given), **given}
    return {name: value for name, value in found.items() if not (name in ("options", "reading") and value is None)}


def _record(kind: Any, given: dict[str, Any]) -> Any:
    """The record of the options that are its own, which leave the others; None: there are none."""
    own = {one.name: given.pop(one.name) for one in fields(kind) if one.name in given}
    return kind(**own) if own else None


def audit_with_rates(y_pred: Any, entry: Callable[..., Audit] | None = None, **given: Any) -> Audit:
    """The audit of scores, or of another entry point, with the rates of a standard, all options written flat."""
    rates = {name: given.pop(name) for name in ("standard", "reference", "min_group_share") if name in given}
    if entry is not None:
        return entry(y_pred, **flat(**given)).rates(**rates).audit
    return audit(given.pop("y_true", None), y_pred, **flat(**given)).rates(**rates).audit
