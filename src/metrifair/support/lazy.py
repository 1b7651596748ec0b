"""Public names that are imported when they are first used, and that name the extra they need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lazy_loader

from metrifair.errors import MissingExtra

_OF_TRAINING = ("joblib", "scipy", "sklearn", "threadpoolctl", "torch")


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, by the stub beside its file."""
    load, names, public = lazy_loader.attach_stub(package, file)

    def found(name: str) -> Any:
        try:
            return load(name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in _OF_TRAINING:
                raise
            raise MissingExtra(f'{package}.{name} needs {missing}: pip install "metrifair[train]"') from error

    return found, names, public
