"""Audit options written flat, as tests keep them in dicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from metrifair import AuditOptions, PenaltyOptions, ReadOptions, audit


def flat(**given: Any) -> dict[str, Any]:
    """Arguments of an audit, with further options and how a file is read in their records.

    >>> flat(resamples=0, random_state=0, sheet="May")["reading"].sheet
    'May'
    """
    found = {
        "options": _record(AuditOptions, given),
        "reading": _record(ReadOptions, given),
        **given,
    }
    return {
        name: value
        for name, value in found.items()
        if not (name in ("options", "reading") and value is None)
    }


def _record(kind: Any, given: dict[str, Any]) -> Any:
    """The record of the options that are its own, which leave the others; None: there are none."""
    own = {one.name: given.pop(one.name) for one in fields(kind) if one.name in given}
    return kind(**own) if own else None


def flat_audit(y_pred: Any, entry: Callable[..., Any] | None = None, **given: Any) -> Any:
    """The audit of scores, or of another entry point, with the rates of a standard if asked."""
    rates = {
        name: given.pop(name)
        for name in ("standard", "reference", "min_group_share")
        if name in given
    }
    y_true = given.pop("y_true", None)
    found = (
        audit(y_true, y_pred, **flat(**given)) if entry is None else entry(y_pred, **flat(**given))
    )
    return found.rates(**rates).audit if rates else found


def with_penalty(**given: Any) -> dict[str, Any]:
    """Parameters of an estimator, with the fields of its penalty in their record.

    >>> with_penalty(epochs=1, contrast="rest")
    {'epochs': 1, 'penalty': PenaltyOptions(contrast='rest')}
    """
    options = _record(PenaltyOptions, given)
    return given if options is None else given | {"penalty": options}
