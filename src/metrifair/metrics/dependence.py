"""The dependence of scores on an attribute of any kind: numbers, names, several numbers at once.

First the functions that users call; then the same for a number in the rows of a batch, as training
and evaluation need it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import accumulate, pairwise
from math import frexp
from typing import Any, NamedTuple

import numpy as np

from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics.covariance import (
    CovarianceForm,
    block_sizes,
    covariance_slopes,
    covariance_value,
    distance_variance,
    drawn_form,
    plug_in_form,
    weighted_form,
)
from metrifair.metrics.dominance import AttributeValues
from metrifair.metrics.namespaces import Array, host_values, is_tensor, namespace_for, no_warnings
from metrifair.metrics.pair import TOO_FAR, Values, is_finite, sample_array, sample_weights
from metrifair.metrics.quadratic import projected
from metrifair.metrics.registry import Estimate
from metrifair.problem.cells import Dependence, Sides
from metrifair.problem.tables import (
    CodedColumn,
    Table,
    as_array,
    categories,
    columns,
    is_missing,
)
from metrifair.support.arrays import Floats


def distance_covariance(
    x: Values,
    a: Table,
    *,
    unbiased: bool = False,
    weights: Values | None = None,
) -> Any:
    """Squared distance covariance of scores and an attribute: 0 if and only if the two are
    independent.

    E|X - X'| d(A, A') + E|X - X'| E d(A, A') - 2 E|X - X'| d(A, A''), Székely's;
    ``dcor.distance_covariance_sqr`` is the same for numbers. One sort and running sums, also for
    the gradient: n log n steps, no pairs.

    Parameters
    ----------
    x : array-like of shape (n,), or tensor of shape (..., n)
        Scores. Leading axes of a tensor are many models at once.
    a : array-like of shape (n,), or table of several columns
        The attribute: numbers, of which d is the absolute difference; names, 0 if they are equal
        and 1 else; or several columns of numbers, the Euclidean distance of which is taken after
        each is standardized (by pairs: for some thousands of rows). Numbers that are codes of names
        must be text: ``a.astype(str)``.
    unbiased : bool, default=False
        Estimate without bias: the mean over random samples is the value of the population. It can
        be negative, and needs four rows.
    weights : array-like of shape (n,), default=None
        Weight of each sample. Only ratios matter. None weights all samples equally.

    Returns
    -------
    float or Tensor
        A float; if x is a tensor, a tensor of the leading axes, differentiable by x.

    Raises
    ------
    TooFewSamples
        If ``unbiased`` and there are less than four rows.
    DataError
        If an argument is empty, has another length, or contains values other than finite numbers or
        names.

    Examples
    --------
    >>> distance_covariance([0.0, 1.0, 1.0, 3.0], [20, 30, 40, 50])
    6.5625
    >>> distance_covariance([0.0, 1.0, 1.0, 3.0], ["f", "f", "m", "m"])
    0.1875
    """
    inputs = _Inputs.of(x, a, weights)
    with no_warnings():
        return inputs.result(inputs.covariance(unbiased=unbiased), factor=inputs.unit)


def energy_dependence(
    x: Values,
    a: Table,
    *,
    unbiased: bool = False,
    weights: Values | None = None,
) -> Any:
    """How much scores depend on an attribute, as an energy distance: for two groups it is the
    energy distance.

    Twice the squared distance covariance times E d^2 / E d of the attribute, over its own distance
    variance. In units of the score, independent of units, origin and sign of the attribute; 0 if
    and only if the two are independent. This is the penalty of estimators for attributes that are
    numbers, so that a strength means the same for these.

    Parameters
    ----------
    x : array-like of shape (n,), or tensor of shape (..., n)
        Scores. Leading axes of a tensor are many models at once.
    a : array-like of shape (n,), or table of several columns
        The attribute, as ``distance_covariance`` takes it.
    unbiased : bool, default=False
        Estimate without bias, the distance covariance only: the spread of the attribute is not
        corrected.
    weights : array-like of shape (n,), default=None
        Weight of each sample. Only ratios matter. None weights all samples equally.

    Returns
    -------
    float or Tensor
        A float; if x is a tensor, a tensor of the leading axes, differentiable by x. 0 if the
        attribute has one value only.

    Raises
    ------
    TooFewSamples
        If ``unbiased`` and there are less than four rows.
    DataError
        If an argument is empty, has another length, or contains values other than finite numbers or
        names.

    Examples
    --------
    >>> # energy_distance([0, 1], [1, 3])
    >>> energy_dependence([0.0, 1.0, 1.0, 3.0], ["f", "f", "m", "m"])
    1.5
    >>> energy_dependence([0.0, 1.0, 1.0, 3.0], [20, 20, 40, 40])
    1.5
    >>> round(energy_dependence([0.0, 1.0, 1.0, 3.0], [20, 30, 40, 50]), 3)
    3.231
    """
    inputs = _Inputs.of(x, a, weights)
    with no_warnings():
        return inputs.result(
            inputs.covariance(unbiased=unbiased) * energy_scale(inputs.attribute, inputs.weights)
        )


def distance_correlation(x: Values, a: Table) -> Any:
    """Distance correlation of scores and an attribute: between 0, independent, and 1, for reading
    only.

    The root of the distance covariance over the root of the product of both distance variances. On
    few rows it is far above 0 for any two samples.

    Parameters
    ----------
    x : array-like of shape (n,), or tensor of shape (..., n)
        Scores. Leading axes of a tensor are many models at once.
    a : array-like of shape (n,), or table of several columns
        The attribute, as ``distance_covariance`` takes it.

    Returns
    -------
    float or Tensor
        A float; if x is a tensor, a tensor of the leading axes, differentiable by x. 0 if scores or
        attribute have one value only.

    Raises
    ------
    DataError
        If an argument is empty, has another length, or contains values other than finite numbers or
        names.

    Examples
    --------
    >>> round(distance_correlation([0.0, 1.0, 1.0, 3.0], [20, 30, 40, 50]), 3)
    0.912
    >>> distance_correlation([1, 2, 3], [30, 20, 10])
    1.0
    """
    inputs = _Inputs.of(x, a, None)
    with no_warnings():
        return inputs.correlation(inputs.covariance(unbiased=False))


def dependence_and_correlation(x: Values, a: Table, weights: Values | None) -> tuple[Any, Any]:
    """The energy dependence and, without weights, the distance correlation, from one covariance."""
    inputs = _Inputs.of(x, a, weights)
    with no_warnings():
        covariance = inputs.covariance(unbiased=False)
        dependence = inputs.result(covariance * energy_scale(inputs.attribute, inputs.weights))
        return dependence, inputs.correlation(covariance) if weights is None else None


class _Inputs(NamedTuple):
    """Scores, attribute and weights, checked.

    Scores and attribute are scaled down where squares would overflow.
    """

    scores: Array
    attribute: AttributeValues
    weights: Array | None
    unit: float  # of the attribute's distances
    size: float  # by which scores were divided
    is_tensor: bool

    @classmethod
    def of(
        cls,
        x: Values,
        a: Table,
        weights: Values | None,
    ) -> _Inputs:
        scores = sample_array("x", x, 1)
        count = scores.shape[-1]
        if count == 0:
            raise DataError("x contains no scores; pass at least one")
        xp = namespace_for(scores, weights)
        xp = namespace_for(scores := xp.asarray(scores))
        share = None
        if weights is not None:
            share = xp.to_device(
                sample_weights(
                    "x",
                    weights,
                    count,
                    name="weights",
                )
            )
        attribute, unit = attribute_values(a, share)
        if attribute.count != count:
            raise DataError(
                f"x contains {count} scores and a {attribute.count} values; pass one per score"
            )
        size = 1.0
        if xp.is_host:
            size = _power_of_two(float(abs(xp.detach(scores)).max()))
        return cls(
            scores / size if size != 1 else scores,
            AttributeValues(xp.to_device(attribute.values), attribute.kind),
            share,
            unit,
            size,
            is_tensor(x),
        )

    def covariance(self, *, unbiased: bool) -> Array:
        """In units of the scaled scores and attribute."""
        xp = namespace_for(self.scores)
        every_row = Sides(
            slice(None),
            (self.scores.shape[-1],),
            (),
            self.weights,
        )
        form = covariance_form(every_row, "population" if unbiased else "batch", xp)
        value = covariance_value(self.scores, self.attribute, form)
        if unbiased:
            return value
        return xp.at_least(value, 0.0)

    def correlation(self, covariance: Array) -> Any:
        """The distance correlation of samples without weights."""
        xp = namespace_for(self.scores)
        product = (
            distance_variance(AttributeValues(self.scores))[0]
            * distance_variance(self.attribute)[0]
        )
        usable = product > 0
        squared = covariance / xp.sqrt(xp.where(usable, product, 1.0))
        positive = usable & (squared > 0)
        return self.result(
            xp.at_most(xp.sqrt(xp.where(positive, squared, 1.0)), 1.0) * positive, degree=0.0
        )

    def result(
        self,
        value: Array,
        *,
        factor: float = 1.0,
        degree: float = 1.0,
    ) -> Any:
        """In the user's units: a tensor if one was passed, else a float."""
        xp = namespace_for(self.scores)
        scaled = value * (factor * self.size**degree)
        if xp.is_host and not is_finite(scaled):
            raise DataError(TOO_FAR)
        if self.is_tensor:
            return xp.astype(scaled, self.scores.dtype)
        return scaled.item()


def dependence_value(
    scores: Array,
    side: Sides,
    *,
    values: Array | None,
    estimate: Estimate = "batch",
) -> Array:
    """The energy dependence of scores (..., n) on a column of ``values`` (..., n, attributes), in
    the rows of a side.

    >>> from metrifair.problem.cells import Dependence
    >>> side = Sides(slice(0, 4), (4,), (), dependence=Dependence((0,)))
    >>> ages = np.array([[20.0], [20.0], [40.0], [40.0]])
    >>> float(dependence_value(np.array([0.0, 1.0, 1.0, 3.0]), side, values=ages))
    1.5
    """
    xp = namespace_for(scores)
    attribute, form, scale = _in_rows(
        side,
        values,
        estimate,
        xp,
    )
    value = covariance_value(scores[..., side.rows], attribute, form) * scale
    return xp.astype(value if estimate != "batch" else xp.at_least(value, 0.0), scores.dtype)


def dependence_slopes(
    scores: Array,
    side: Sides,
    *,
    values: Array | None,
    estimate: Estimate,
) -> Array:
    """The derivative of ``dependence_value`` by the scores of the side's rows."""
    attribute, form, scale = _in_rows(
        side,
        values,
        estimate,
        namespace_for(scores),
    )
    return covariance_slopes(scores[..., side.rows], attribute, form) * scale


def sliced_dependence(
    scores: Array,
    side: Sides,
    *,
    values: Array | None,
    estimate: Estimate,
    directions: Array,
) -> Array:
    """The dependence of vector scores (..., n, d): the mean over projections on all directions,
    rescaled.
    """
    projections, shrinkage = projected(scores, directions)
    if values is not None:
        values = values[..., None, :, :]
    return (
        dependence_value(
            projections, side.for_coordinates(), values=values, estimate=estimate
        ).mean(-1)
        / shrinkage
    )


def _in_rows(
    side: Sides,
    values: Array | None,
    estimate: Estimate,
    xp: Any,
) -> tuple[AttributeValues, CovarianceForm, Array | float]:
    """The attribute in the rows of a side, the covariance of these rows, and its factor to an
    energy distance.
    """
    dependence = side.dependence
    count = side.counts[0]
    if dependence is None or values is None:
        raise DataError("the samples have no values of the attribute; pass them")
    if count == 0:
        raise TooFewSamples(
            "a batch has no sample whose attribute is known; use a larger batch size"
        )
    column = values[..., side.rows, dependence.column]
    attribute = AttributeValues(column)
    scale = energy_scale(attribute, side.weights) if dependence.scale is None else dependence.scale
    return attribute, covariance_form(side, estimate, xp), scale


def covariance_form(side: Sides, estimate: Estimate, xp: Any) -> CovarianceForm:
    """The estimate from the rows of a side."""
    count = side.counts[0]
    fraction = None
    if estimate == "rows":
        fraction = side.fraction
    if estimate == "batch":
        return plug_in_form(count, side.weights, xp)
    # weights no longer contain the odds of being drawn
    if len(side.left) == 1 and side.weights is not None:
        if fraction is None:
            return weighted_form(side.weights)
        return plug_in_form(count, side.weights, xp)
    shares = None
    totals = None
    if side.weights is not None:
        ends = pairwise(accumulate(side.left, initial=0))
        shares = xp.stack([side.weights[..., start:end].sum(-1) for start, end in ends], -1)
    if fraction is not None:
        totals = block_sizes(side.left, namespace_for(fraction))[0] / fraction
    return drawn_form(
        side.left,
        totals,
        shares,
        xp,
    )


def with_scale(dependence: Dependence, values: Array, weights: Array | None = None) -> Dependence:
    """The dependence with the scale of these rows' values (n,); unchanged if all are equal."""
    if not len(values):
        return dependence
    scale = float(energy_scale(AttributeValues(values), weights))
    if scale > 0:
        return replace(dependence, scale=scale)
    return dependence


def with_scales(
    sides: Sequence[Sides], values: Array, scales: dict[str, float]
) -> tuple[Sides, ...]:
    """The sides with the scales of their dependences; missing ``scales`` are computed from these
    rows and added.

    Unknown values count as equal.
    """
    sides_with_scales = []
    for side in sides:
        dependence = side.dependence
        if dependence is not None:
            if str(dependence) not in scales:
                scale = with_scale(
                    dependence, values[side.rows, dependence.column], side.weights
                ).scale
                scales |= {} if scale is None else {str(dependence): scale}
            scaled = replace(dependence, scale=scales.get(str(dependence), 0.0))
            side = replace(side, dependence=scaled)  # noqa: PLW2901
        sides_with_scales.append(side)
    return tuple(sides_with_scales)


def energy_scale(attribute: AttributeValues, weights: Array | None = None) -> Array:
    """The factor from a squared distance covariance to an energy dependence; 0 if the attribute
    has one value.
    """
    xp = namespace_for(attribute.values)
    variance, ratio = distance_variance(attribute, weights)
    return xp.where(variance > 0, 2 * ratio / xp.where(variance > 0, variance, 1.0), 0.0)


def attribute_values(a: Table, weights: Array | None = None) -> tuple[AttributeValues, float]:
    """The user's attribute, around 0 and of size 1, and the unit of its distances: NumPy arrays."""
    if is_tensor(a):
        array = host_values(a)
        columns_of_a = (
            {"a": array} if array.ndim == 1 else {f"a {k}": part for k, part in enumerate(array.T)}
        )
    else:
        columns_of_a = columns("a", a)
    if any(is_missing(column).any() for column in columns_of_a.values()):
        raise DataError("a misses values; leave those rows out")
    for name, column in columns_of_a.items():
        if column.dtype.kind in "mM" or (
            column.dtype.kind == "O" and any(isinstance(value, date) for value in column)
        ):
            raise DataError(
                f"{name} contains dates; pass a number, such as the days since one of them"
            )
    categorical = [] if is_tensor(a) else categories("a", a)
    text = [
        name
        for name, column in columns_of_a.items()
        if name in categorical or not _are_numbers(column)
    ]
    if not text:
        numbers = [_centered(name, column) for name, column in columns_of_a.items()]
        if len(numbers) == 1:
            return AttributeValues(numbers[0][0]), numbers[0][1]
        table = np.stack([values for values, _ in numbers], -1)
        share = np.full(len(table), 1 / len(table)) if weights is None else host_values(weights)
        centered = table - share @ table
        spread = np.sqrt(share @ centered**2)
        return AttributeValues(centered / np.where(spread > 0, spread, 1.0), "vectors"), 1.0
    if len(columns_of_a) > 1:
        raise DataError(
            f"a contains several columns, and {text[0]!r} is not one of numbers; pass one column "
            "of names"
        )
    (name, values), *_ = columns_of_a.items()
    column = CodedColumn(name, values)
    return AttributeValues(column.places(column.levels()), "names"), 1.0


def _are_numbers(column: Any) -> bool:
    if column.dtype.kind in "biuf":
        return True
    return column.dtype.kind == "O" and not any(isinstance(value, str) for value in column.tolist())


def _centered(name: str, column: Any) -> tuple[Floats, float]:
    """Numbers less their median, divided by a power of two near the largest: no digit is lost."""
    values = as_array(name, column).astype(np.float64)
    if not np.isfinite(values).all():
        raise DataError(f"{name} contains infinite values; leave those rows out")
    if not len(values):
        raise DataError(f"{name} contains no values; pass at least one")
    size = _power_of_two(float(np.abs(values).max()))
    centered = values / size - np.median(values / size)
    unit = float(np.abs(centered).max())
    unit = 2.0 ** frexp(unit)[1] if unit > 0 else 1.0
    return centered / unit, size * unit


def _power_of_two(largest: float) -> float:
    """1, unless the square of the number is near the largest or the smallest float."""
    exponent = frexp(largest)[1]
    if largest > 0 and abs(exponent) > 300:
        return 2.0**exponent
    return 1.0
