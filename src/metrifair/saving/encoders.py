"""A fitted table encoder <-> JSON: names, medians, scales and levels."""

from __future__ import annotations

import math
import reprlib
from dataclasses import asdict
from typing import cast, get_args

import numpy as np
from sklearn.utils.validation import check_is_fitted

from metrifair.checks import check_known
from metrifair.encoding.coders import Coder, Levels, Numbers
from metrifair.encoding.encoder import TableEncoder
from metrifair.encoding.kinds import Kind
from metrifair.errors import ModelFileError
from metrifair.saving.modelfile import Json
from metrifair.saving.plain import Fields

_FIELDS = ("parameters", "count", "names", "coders", "dropped")


def encoder_meta(encoder: TableEncoder) -> dict[str, Json]:
    """What a file holds of an encoder.

    >>> meta = encoder_meta(TableEncoder().fit({"age": [20, 40]}))
    >>> meta["coders"]["age"]
    {'kind': 'number', 'median': 30.0, 'centre': 30.0, 'spread': 10.0, 'flagged': False}
    >>> encoder_of(Fields.of("encoder", meta)).transform({"age": [50]})
    array([[2.]])
    """
    check_is_fitted(encoder, "coders_")
    names = getattr(encoder, "feature_names_in_", None)
    return {
        "parameters": {name: int(value) for name, value in encoder.get_params().items()},
        "count": int(encoder.n_features_in_),
        "names": None if names is None else [str(name) for name in names],
        "coders": {name: _coder_meta(coder) for name, coder in encoder.coders_.items()},
        "dropped": dict(encoder.dropped_),
    }


def encoder_of(meta: Fields) -> TableEncoder:
    """The encoder, or a ModelFileError where the fields describe none."""
    meta.only(*_FIELDS)
    parameters = meta.inner("parameters").only("min_frequency", "max_levels")
    encoder = TableEncoder(**{name: parameters.whole(name, least=1) for name in parameters.values})
    encoder.n_features_in_ = meta.whole("count", least=1)
    known = [f"x{place}" for place in range(encoder.n_features_in_)]
    if meta.get("names") is not None:
        known = meta.texts("names")
        encoder.feature_names_in_ = np.array(known, dtype=object)
    coders, dropped = meta.inner("coders"), meta.inner("dropped")
    encoder.dropped_ = {name: dropped.text(name) for name in dropped.values}
    encoder.coders_ = {name: _coder_of(coders.inner(name)) for name in coders.values}
    if len(known) != encoder.n_features_in_ or sorted([*encoder.coders_, *encoder.dropped_]) != sorted(known):
        raise ModelFileError(f"{meta.where} describes other columns than it names: {reprlib.repr(known)}")
    if not encoder.coders_:
        raise ModelFileError(f"{meta.where} has no columns")
    return encoder


def _coder_meta(coder: Coder) -> Json:
    meta: dict[str, Json] = asdict(coder)
    return meta | {"levels": list(coder.levels)} if isinstance(coder, Levels) else meta


def _coder_of(meta: Fields) -> Coder:
    coder = _levels_of(meta) if "levels" in meta.values else _numbers_of(meta)
    if not coder.names(""):
        raise ModelFileError(f"{meta.where} becomes no column")
    return coder


def _numbers_of(meta: Fields) -> Numbers:
    meta.only("kind", "median", "centre", "spread", "flagged")
    median, centre, spread = (_real(meta, name) for name in ("median", "centre", "spread"))
    if spread < 0:
        raise ModelFileError(f"{meta.where}.spread must not be negative, got {spread}")
    return Numbers(_kind(meta, "number", "date"), median, centre, spread, meta.flag("flagged"))


def _levels_of(meta: Fields) -> Levels:
    meta.only("kind", "levels", "pooled", "flagged")
    levels = tuple(meta.texts("levels"))
    if len(set(levels)) < len(levels):
        raise ModelFileError(f"{meta.where} names a level twice: {reprlib.repr(levels)}")
    return Levels(_kind(meta, "text", "truth"), levels, meta.flag("pooled"), meta.flag("flagged"))


def _kind(meta: Fields, *allowed: Kind) -> Kind:
    kind = meta.text("kind")
    check_known(f"{meta.where}.kind", kind, [known for known in get_args(Kind) if known in allowed])
    return cast("Kind", kind)


def _real(meta: Fields, name: str) -> float:
    value = meta.get(name)
    if not isinstance(value, float) or not math.isfinite(value):
        raise ModelFileError(f"{meta.where}.{name} must be a number, got {reprlib.repr(value)}")
    return value
