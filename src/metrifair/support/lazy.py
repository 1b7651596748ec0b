"""Names and commands that are imported when they are first used, and that name the extra they
lack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

import lazy_loader

from metrifair.errors import MissingExtra

_EXTRAS = {
    **dict.fromkeys(("joblib", "scipy", "sklearn", "threadpoolctl", "torch"), "train"),
    **dict.fromkeys(("click", "polars", "rich"), "cli"),
    **dict.fromkeys(("starlette", "uvicorn"), "studio"),
}


def missing_extra(
    error: ModuleNotFoundError, purpose: str, extra: str | None = None
) -> MissingExtra | None:
    """The error that names the extra of the missing module; None if the module is of no extra.

    >>> print(missing_extra(ModuleNotFoundError(name="torch.nn"), "metrifair.frontier"))
    metrifair.frontier needs torch: pip install "metrifair[train]"
    """
    module = (error.name or "").partition(".")[0]
    if module not in _EXTRAS:
        return None
    return MissingExtra(
        f'{purpose} needs {module}: pip install "metrifair[{extra or _EXTRAS[module]}]"'
    )


def attach(
    package: str, file: str, modules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, by the stub beside its file.

    ``modules`` are further public modules, which are attributes but not among the names of
    ``__all__``.
    """
    load, names, public = lazy_loader.attach_stub(package, file)

    def load_or_name_extra(name: str) -> Any:
        try:
            if name in modules:
                return import_module(f"{package}.{name}")
            return load(name)
        except ModuleNotFoundError as error:
            boosted = name.startswith(("FairLGBM", "FairXGB"))
            missing = missing_extra(error, f"{package}.{name}", "boosting" if boosted else None)
            if missing is None:
                raise
            raise missing from error

    return load_or_name_extra, names, public
