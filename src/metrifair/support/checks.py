"""Checks of what a user typed: a name among those that exist, a switch that is on or off, an extra that is there."""

from __future__ import annotations

import difflib
import importlib
import inspect
import secrets
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from functools import wraps
from math import inf, isfinite
from numbers import Integral, Real
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from metrifair.errors import DataError, MissingExtra

P = ParamSpec("P")
R = TypeVar("R")


def check_known(what: str, value: object, known: Iterable[str], *, otherwise: str = "") -> None:
    """Raise a DataError that lists what exists, and the nearest of it, unless ``value`` is among it.

    ``otherwise`` names what else the caller would have taken.

    >>> check_known("target", "heroin", ["heroin", "cannabis"])
    >>> check_known("target", "heroine", ["heroin", "cannabis"])
    Traceback (most recent call last):
    metrifair.errors.DataError: target must be one of 'heroin', 'cannabis', got 'heroine'; did you mean 'heroin'?
    """
    known = list(known)
    if isinstance(value, str) and value in known:
        return
    hint = _did_you_mean(value, known)
    listed = ", ".join(map(repr, known)) + (f" or {otherwise}" if otherwise else "")
    raise DataError(f"{what} must be one of {listed}, got {value!r}{hint}")


def _did_you_mean(value: object, known: Sequence[str]) -> str:
    """A question after the nearest name; empty where none is near."""
    # What was cut short is meant before what is spelled alike: "acc" is accuracy, not auc.
    near = [] if not isinstance(value, str) else [name for name in known if value and name.startswith(value)]
    near = near or (difflib.get_close_matches(value, known, n=1) if isinstance(value, str) else [])
    return f"; did you mean {near[0]!r}?" if near else ""


def check_names(given: Iterable[str], known: Collection[str], library: str, *, all_known: bool = True) -> None:
    """Raise a DataError at a parameter that is none of a library's, which it would leave unused.

    Where not all that it takes is known, only at a name that is one of them but for a letter or two.

    >>> check_names(["learning_rat"], ["learning_rate", "max_depth"], "LightGBM")
    Traceback (most recent call last):
    metrifair.errors.DataError: 'learning_rat' is not a parameter of LightGBM; did you mean 'learning_rate'?
    >>> check_names(["another"], ["learning_rate", "max_depth"], "XGBoost", all_known=False)
    """
    for name in given:
        if name not in known and (all_known or difflib.get_close_matches(name, known, n=1, cutoff=0.85)):
            raise DataError(f"{name!r} is not a parameter of {library}{_did_you_mean(name, sorted(known))}")


def check_switches(**switches: object) -> None:
    """Raise a DataError unless every value is True or False: "no" would otherwise count as true.

    >>> check_switches(violent=True)
    >>> check_switches(violent="no")
    Traceback (most recent call last):
    metrifair.errors.DataError: violent must be True or False, got 'no'
    """
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise DataError(f"{name} must be True or False, got {value!r}")


def names_of(what: str, given: object) -> tuple[str, ...]:
    """The names that were given: one, or several in whatever holds them, such as an array; or a DataError.

    >>> names_of("group", "sex"), names_of("group", ["sex", "race"])
    (('sex',), ('sex', 'race'))
    >>> names_of("group", 5)
    Traceback (most recent call last):
    metrifair.errors.DataError: group must be a name, or a sequence of names, got 5
    """
    names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    if not all(isinstance(name, str) for name in names):
        raise DataError(f"{what} must be a name, or a sequence of names, got {given!r}")
    return tuple(map(str, names))  # NumPy's text is text


def check_renamed(given: Container[str]) -> None:
    """Raise a DataError where an argument is given by the name that it had before.

    >>> check_renamed({"unbiased": True})
    Traceback (most recent call last):
    metrifair.errors.DataError: unbiased is now estimate: 'rows', 'population' (as unbiased=True was) or 'batch'
    """
    if "unbiased" in given:
        raise DataError("unbiased is now estimate: 'rows', 'population' (as unbiased=True was) or 'batch'")
    if "holdout" in given:
        raise DataError("holdout is now folds: the number of parts that are kept apart in turn, 1 for none")


def refuses_renamed(function: Callable[P, R]) -> Callable[P, R]:
    """The function, but an argument by its former name is told so, not called unknown."""

    @wraps(function)
    def checked(*positional: P.args, **named: P.kwargs) -> R:
        check_renamed(named)
        return function(*positional, **named)

    return checked


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """The module, or a MissingExtra with the command that installs it.

    >>> require("json", extra="datasets", purpose="this example").__name__
    'json'
    >>> require("no_such_module", extra="datasets", purpose="this example")
    Traceback (most recent call last):
    metrifair.errors.MissingExtra: this example needs no_such_module: pip install "metrifair[datasets]"
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(f'{purpose} needs {module}: pip install "metrifair[{extra}]"') from error


def is_number(value: object) -> bool:
    """True for a finite number of any kind; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # an integer beyond all floats
        return False


def is_integer(value: object, *, least: int = 1) -> bool:
    """True for an integer from there upwards."""
    if isinstance(value, bool):
        return False
    return isinstance(value, Integral) and int(value) >= least


def check_number(name: str, value: object, *, low: float = -inf, high: float = inf, low_open: bool = False) -> None:
    """Raise a DataError unless the value is a finite number from ``low`` (or above it) to ``high``.

    >>> check_number("gamma", 0.5, low=0)
    >>> check_number("gamma", -1, low=0)
    Traceback (most recent call last):
    metrifair.errors.DataError: gamma must be a finite number, at least 0, got -1
    """
    if isinstance(value, Real) and is_number(value):
        number = float(value)
        if (low < number if low_open else low <= number) and number <= high:
            return
    bounds = [f"{'above' if low_open else 'at least'} {low:g}"] if low > -inf else []
    bounds += [f"at most {high:g}"] if high < inf else []
    raise DataError(", ".join([f"{name} must be a finite number", *bounds]) + f", got {value!r}")


def check_integer(name: str, value: object, *, least: int) -> None:
    """Raise a DataError unless the value is an integer from ``least`` upwards.

    >>> check_integer("rounds", 2.5, least=0)
    Traceback (most recent call last):
    metrifair.errors.DataError: rounds must be an integer from 0 upwards, got 2.5
    """
    if not is_integer(value, least=least):
        raise DataError(f"{name} must be an integer from {least} upwards, got {value!r}")


def seed_of(random_state: Any) -> int:
    """The seed that an integer is, or one drawn from a NumPy generator or from nowhere."""
    most = 2**31 - 1
    if random_state is None:
        return secrets.randbelow(most)
    if isinstance(random_state, Integral):
        return int(random_state)
    for draw in ("integers", "randint"):  # Generator and RandomState, without importing NumPy
        if hasattr(random_state, draw):
            return int(getattr(random_state, draw)(most))
    raise DataError(f"random_state must be None, an integer or a NumPy generator, got {random_state!r}")


def last_step(model: Any) -> Any:
    """The model that a scikit-learn pipeline ends with; any other model itself."""
    while hasattr(model, "named_steps"):
        model = model.steps[-1][1]
    return model


def groups_if_asked(method: Callable[..., Any], groups: Any) -> dict[str, Any]:
    """The groups as an argument of a method that has one for them, itself or in the last step of a pipeline.

    >>> def fit(X, y, *, sensitive_features): ...
    >>> groups_if_asked(fit, ["f", "m"]), groups_if_asked(str.lower, ["f", "m"])
    ({'sensitive_features': ['f', 'm']}, {})
    """
    model: Any = getattr(method, "__self__", None)
    prefix = ""
    while hasattr(model, "named_steps"):
        step, model = model.steps[-1]
        method, prefix = getattr(model, method.__name__), prefix + (f"{step}__" if method.__name__ == "fit" else "")
    if prefix:
        from sklearn import get_config  # noqa: PLC0415 (whoever has a pipeline has imported it)

        prefix = "" if get_config()["enable_metadata_routing"] else prefix  # the pipeline then passes it on by itself
    asked = "sensitive_features" in inspect.signature(method).parameters
    return {f"{prefix}sensitive_features": groups} if asked else {}
