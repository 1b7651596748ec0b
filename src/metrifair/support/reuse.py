"""Results that several models of one search need: computed once, and stored until the search
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import joblib

Result = TypeVar("Result")

_results: ContextVar[dict[tuple[int, str], tuple[object, Any]] | None] = ContextVar(
    "results", default=None
)


@contextmanager
def reusing_results() -> Iterator[None]:
    """Within this block, and in this thread, ``reused`` computes each result once."""
    token = _results.set({})
    try:
        yield
    finally:
        _results.reset(token)


def reused(compute: Callable[[], Result], owner: object, *inputs: Any) -> Result:
    """The result of a computation; within ``reusing_results``, that of an earlier one of this owner
    with equal inputs.

    The result depends on the owner (by identity) and the inputs (by their content) only. Callers
    must not change it.

    >>> with reusing_results():
    ...     first, second = (reused(lambda: [1.0, 2.0], "ranks", [5, 7]) for _ in range(2))
    ...     other = reused(lambda: [2.0, 1.0], "ranks", [7, 5])
    >>> first is second, other
    (True, [2.0, 1.0])
    """
    results = _results.get()
    if results is None:
        return compute()
    try:
        key = id(owner), str(joblib.hash(inputs))
    # content that cannot be identified, such as a local function: it is computed each time
    except Exception:
        return compute()
    if key not in results:
        # the owner is kept, so that no other object gets its identity
        results[key] = owner, compute()
    result: Result = results[key][1]
    return result
