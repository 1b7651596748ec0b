"""Checks of user input, and of what it contains: a known name, a switch, an extra, an array."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from math import inf, isfinite
from numbers import Integral, Real
from types import ModuleType
from typing import Any, TypeVar

from metrifair.errors import DataError, MissingExtra

RowsOrNone = TypeVar("RowsOrNone")  # an array, a tensor, or None


def check_known(
    argument: str,
    value: object,
    known: Iterable[str],
    *,
    otherwise: str = "",
    also: Iterable[str] = (),
) -> None:
    """Raise a DataError that lists the known names, and the nearest one, unless ``value`` is among
    them.

    ``otherwise`` describes other values that the argument accepts; those in ``also`` can be the
    nearest.

    >>> check_known("target", "heroin", ["heroin", "cannabis"])
    >>> check_known("target", "heroine", ["heroin", "cannabis"])
    Traceback (most recent call last):
    metrifair.errors.DataError: target must be one of 'heroin', 'cannabis', got 'heroine'; did you
    mean 'heroin'?
    """
    known = list(known)
    if isinstance(value, str) and value in known:
        return
    listed = ", ".join(map(repr, known)) + (f" or {otherwise}" if otherwise else "")
    remedy = did_you_mean(value, [*known, *also])
    raise DataError(f"must be one of {listed}", argument=argument, received=value, remedy=remedy)


_OTHER_NAMES = {  # of other libraries and textbooks, by ours
    "kolmogorov": ("gap", "ks", "kolmogorov_smirnov", "kolmogorov-smirnov", "ks_distance"),
    "wasserstein": ("emd", "earth_mover", "earth_movers_distance", "w1"),
    "total_variation": ("tv", "total_variation_distance"),
    "mmd": ("maximum_mean_discrepancy",),
    "selection_difference": (
        "demographic_parity_difference",
        "statistical_parity_difference",
        "parity_difference",
    ),
    "selection_ratio": (
        "demographic_parity_ratio",
        "disparate_impact",
        "impact_ratio",
        "four_fifths",
    ),
    "true_positive_difference": ("equal_opportunity_difference", "tpr_difference"),
    "false_positive_difference": ("predictive_equality_difference", "fpr_difference"),
    "linear": ("logistic", "logistic_regression", "logisticregression", "logreg"),
    "mlp": ("network", "neural_network", "nn"),
}
_MISSPELLED = 0.88  # similarity of two spellings that differ by a letter


def shortlist(texts: Sequence[str], most: int) -> str:
    """The first texts between commas, and an ellipsis if there are more.

    >>> shortlist(["a", "b", "c"], 2)
    'a, b, ...'
    """
    return ", ".join([*texts[:most], *(["..."] if len(texts) > most else [])])


def did_you_mean(value: object, known: Sequence[str]) -> str | None:
    """A question that lists the nearest known names; None if none is near.

    >>> did_you_mean("KS", ["energy", "kolmogorov"])
    "did you mean 'kolmogorov'?"
    """
    if not isinstance(value, str):
        return None
    choices = " or ".join(map(repr, nearest_names(value, known)))
    if choices:
        return f"did you mean {choices}?"
    return None


def nearest_names(value: str, known: Sequence[str], *, cutoff: float = 0.6) -> list[str]:
    """The same name but for capitals; or the one that begins with the value; or all that contain it
    as a word.

    A name that differs by a letter comes before those that contain the value; other spellings come
    last. ``cutoff`` is the least similarity of a spelling, from 0 to 1.

    >>> nearest_names("parity", ["statistical_parity", "energy", "risk_parity"])
    ['statistical_parity', 'risk_parity']
    >>> nearest_names("enrgy", ["statistical_parity", "energy", "risk_parity"])
    ['energy']
    >>> nearest_names("groups", ["group", "max-groups"]), nearest_names("F1", ["f1_macro", "f1"])
    (['group'], ['f1'])
    """
    if not value:
        return []
    lower = value.lower()
    same = [name for name in known if lower == name.lower() or lower in _OTHER_NAMES.get(name, ())]
    # A prefix comes before a similar spelling: "acc" is accuracy, not auc.
    first = same or [name for name in known if name.lower().startswith(lower)]
    if first:
        return first[:1]
    by_lower = {name.lower(): name for name in reversed(known)}
    misspelled = difflib.get_close_matches(lower, by_lower, n=1, cutoff=_MISSPELLED)
    if misspelled:
        return [by_lower[misspelled[0]]]
    with_word = [name for name in known if lower in re.split("[_-]", name.lower())]
    return with_word or [
        by_lower[name] for name in difflib.get_close_matches(lower, by_lower, n=1, cutoff=cutoff)
    ]


def check_names(
    names: Iterable[str], known: Collection[str], library: str, *, all_known: bool = True
) -> None:
    """Raise a DataError at a name that is not a parameter of a library, which would ignore it.

    If not all parameters are known, only at a name that differs from one of them by a letter or
    two.

    >>> check_names(["learning_rat"], ["learning_rate", "max_depth"], "LightGBM")
    Traceback (most recent call last):
    metrifair.errors.DataError: 'learning_rat' is not a parameter of LightGBM; did you mean
    'learning_rate'?
    >>> check_names(["another"], ["learning_rate", "max_depth"], "XGBoost", all_known=False)
    """
    for name in names:
        if name not in known and (
            all_known or difflib.get_close_matches(name, known, n=1, cutoff=0.85)
        ):
            remedy = did_you_mean(name, sorted(known))
            raise DataError(f"{name!r} is not a parameter of {library}", remedy=remedy)


def check_switches(**switches: object) -> None:
    """Raise a DataError unless every value is True or False: "no" would otherwise count as true.

    >>> check_switches(violent=True)
    >>> check_switches(violent="no")
    Traceback (most recent call last):
    metrifair.errors.DataError: violent must be True or False, got 'no'
    """
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise DataError("must be True or False", argument=name, received=value)


def as_names(argument: str, value: object) -> tuple[str, ...]:
    """One name, or several in any collection, such as an array, as a tuple; or a DataError.

    >>> as_names("group", "sex"), as_names("group", ["sex", "race"])
    (('sex',), ('sex', 'race'))
    >>> as_names("group", 5)
    Traceback (most recent call last):
    metrifair.errors.DataError: group must be a name, or a sequence of names, got 5
    """
    names = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    if not all(isinstance(name, str) for name in names):
        raise DataError("must be a name, or a sequence of names", argument=argument, received=value)
    return tuple(map(str, names))  # NumPy's text is text


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """The module, or a MissingExtra with the command that installs it.

    >>> require("json", extra="datasets", purpose="this example").__name__
    'json'
    >>> require("no_such_module", extra="datasets", purpose="this example")
    Traceback (most recent call last):
    metrifair.errors.MissingExtra: this example needs no_such_module: pip install
    "metrifair[datasets]"
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
    """True for an integer of at least ``least``."""
    if isinstance(value, bool):
        return False
    return isinstance(value, Integral) and int(value) >= least


def check_number(
    name: str, value: object, *, low: float = -inf, high: float = inf, low_open: bool = False
) -> None:
    """Raise a DataError unless the value is a finite number from ``low`` (or above it) to ``high``.

    >>> check_number("gamma", 0.5, low=0)
    >>> check_number("gamma", -1, low=0)
    Traceback (most recent call last):
    metrifair.errors.DataError: gamma must be a finite number, at least 0, got -1
    """
    if isinstance(value, Real) and is_number(value):
        number = float(value)
        if low <= number <= high and not (low_open and number == low):
            return
    bounds = []
    if low > -inf:
        bounds.append(f"{'above' if low_open else 'at least'} {low:g}")
    if high < inf:
        bounds.append(f"at most {high:g}")
    remedy = None
    if high == 1:
        remedy = share_hint(value)
    raise DataError(
        ", ".join(["must be a finite number", *bounds]),
        argument=name,
        received=value,
        remedy=remedy,
    )


def share_hint(value: object) -> str | None:
    """The hint that writes a percentage as a share; None if the value is not one.

    >>> share_hint(95), share_hint("2.5"), share_hint(1.5), share_hint("many")
    ('95 percent is 0.95', '2.5 percent is 0.025', None, None)
    """
    try:
        percent = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if 2 <= percent <= 100:
        return f"{percent:g} percent is {percent / 100:g}"
    return None


def check_integer(name: str, value: object, *, least: int) -> None:
    """Raise a DataError unless the value is an integer from ``least`` upwards.

    >>> check_integer("rounds", 2.5, least=0)
    Traceback (most recent call last):
    metrifair.errors.DataError: rounds must be an integer from 0 upwards, got 2.5
    """
    if not is_integer(value, least=least):
        raise DataError(f"must be an integer from {least} upwards", argument=name, received=value)


def make_seed(random_state: Any) -> int:
    """The seed of a random state: the integer, or a seed drawn from a NumPy generator or from
    the system.
    """
    most = 2**31 - 1
    if random_state is None:
        return secrets.randbelow(most)
    if isinstance(random_state, Integral):
        return int(random_state)
    for draw in ("integers", "randint"):  # Generator and RandomState, without importing NumPy
        if hasattr(random_state, draw):
            return int(getattr(random_state, draw)(most))
    raise DataError(
        "must be None, an integer or a NumPy generator",
        argument="random_state",
        received=random_state,
    )


def last_step(model: Any) -> Any:
    """The model that a scikit-learn pipeline ends with; any other model itself."""
    while hasattr(model, "named_steps"):
        model = model.steps[-1][1]
    return model


def groups_if_accepted(method: Callable[..., Any], groups: Any) -> dict[str, Any]:
    """The groups as an argument, if a method accepts them, itself or in the last step of a
    pipeline.

    A method of ours that accepts and ignores them gets none: scikit-learn's metadata routing would
    ask for a request of them.

    >>> def fit(X, y, *, sensitive_features): ...
    >>> groups_if_accepted(fit, ["f", "m"]), groups_if_accepted(str.lower, ["f", "m"])
    ({'sensitive_features': ['f', 'm']}, {})
    """
    if getattr(method, "__name__", "") != "fit" and _ignores_groups(method):
        return {}
    return argument_if_accepted(method, "sensitive_features", groups)


def _ignores_groups(method: Callable[..., Any]) -> bool:
    """Whether a method that predicts, itself or in the last step of a pipeline, is one of ours that
    ignores groups; a class of the user's, derived from ours, may need them.
    """
    model = last_step(getattr(method, "__self__", None))
    defined = getattr(type(model), getattr(method, "__name__", ""), None)
    is_ours = getattr(defined, "__module__", "").startswith("metrifair.")
    return is_ours and getattr(type(model), "_ignores_groups", False)


def argument_if_accepted(method: Callable[..., Any], name: str, value: Any) -> dict[str, Any]:
    """A value as the argument of this name, if a method accepts it, itself or in the last step
    of a pipeline.
    """
    model: Any = getattr(method, "__self__", None)
    prefix = ""
    while hasattr(model, "named_steps"):
        step, model = model.steps[-1]
        prefix = prefix + (f"{step}__" if method.__name__ == "fit" else "")
        method = getattr(model, method.__name__)
    if prefix:
        from sklearn import get_config  # noqa: PLC0415 (already imported by the owner of a pipeline)

        # the pipeline then passes it on by itself
        if get_config()["enable_metadata_routing"]:
            prefix = ""
    if name in inspect.signature(method).parameters:
        return {f"{prefix}{name}": value}
    return {}


def rows_or_none(array: RowsOrNone, rows: Any) -> RowsOrNone:
    """Some rows of an array or a tensor, by number, slice or mask; None where there is none.

    >>> import numpy as np
    >>> rows_or_none(np.array([3, 5, 7]), [0, 2]), rows_or_none(None, [0, 2])
    (array([3, 7]), None)
    """
    values: Any = array
    if values is not None:
        values = values[rows]
    found: RowsOrNone = values
    return found
