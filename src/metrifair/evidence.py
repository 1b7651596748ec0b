"""Evidence: verify what ``Audit.to_evidence`` wrote, plan how many rows an audit needs, and refute
linear alternatives.

>>> from metrifair import evidence
>>> evidence.rows_needed(0.1)
(412, 412)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metrifair.api.verification import Verification, verify
from metrifair.figures.power import detectable_gap, rows_needed
from metrifair.support.lazy import missing_extra

if TYPE_CHECKING:
    from metrifair.api.refutation import Refutation, refute_linear

__all__ = [
    "Refutation",
    "Verification",
    "detectable_gap",
    "refute_linear",
    "rows_needed",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import what needs the extra ``train`` on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module("metrifair.api.refutation"), name)
    except ModuleNotFoundError as error:
        raise missing_extra(error, f"metrifair.evidence.{name}") or error from error


def __dir__() -> list[str]:
    return __all__
