"""Inherited methods that carry the name of the class which the user called."""

from __future__ import annotations

from functools import update_wrapper
from inspect import getattr_static
from types import FunctionType
from typing import Any


class OwnMethodNames:
    """A base whose subclasses have public methods of their own name: Python's error for a wrong
    argument names ``FairClassifier.fit``, not the private base that defines ``fit``.

    >>> class Base(OwnMethodNames):
    ...     def fit(self, X): ...
    >>> class Model(Base): ...
    >>> Model.fit.__qualname__
    'Model.fit'
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in dir(cls):
            method = getattr_static(cls, name)
            if name.startswith("_") or not isinstance(method, FunctionType):
                continue
            own_name = f"{cls.__qualname__}.{name}"
            if method.__qualname__ == own_name or not _is_ours(method):
                continue
            parts = method.__code__, method.__globals__, name, method.__defaults__
            own = FunctionType(*parts, method.__closure__)
            update_wrapper(own, method)
            own.__kwdefaults__ = method.__kwdefaults__
            own.__qualname__ = own_name
            setattr(cls, name, own)


def _is_ours(method: FunctionType) -> bool:
    return method.__module__.partition(".")[0] == "metrifair"
