"""Evidence of an audit: verify evidence that ``Audit.to_evidence`` wrote, and plan how many rows an
audit needs.

>>> from metrifair import evidence
>>> evidence.rows_needed(0.1)
(412, 412)
"""

from metrifair.api.verification import Verification, verify
from metrifair.figures.power import detectable_gap, rows_needed

__all__ = ["Verification", "detectable_gap", "rows_needed", "verify"]


def __dir__() -> list[str]:
    return __all__
