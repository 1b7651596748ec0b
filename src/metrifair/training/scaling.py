"""Features in standard units: centred and scaled in double precision, before anything is rounded to single."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from metrifair.errors import DataError
from metrifair.problem.samples import Samples

_ROWS_AT_ONCE = 8_192  # so that no second copy of the features is made
_ROUNDING = 1e-13  # a spread that is this part of the mean, or less, is none


class Scaling(NamedTuple):
    """Centre and spread of each feature, (seeds, features); a constant feature has spread 1."""

    mean: Tensor
    scale: Tensor

    @classmethod
    def none(cls, features: int) -> Scaling:
        """Features as they are."""
        return cls(torch.zeros(1, features, dtype=torch.float64), torch.ones(1, features, dtype=torch.float64))

    def apply(self, x: Tensor) -> Tensor:
        """Features (seeds, n, features) in standard units."""
        return (x - self.mean.unsqueeze(1)) / self.scale.unsqueeze(1)

    def of_seed(self, seed: int) -> Scaling:
        """That of the seed at this place, (1, features)."""
        return Scaling(*(part[seed : seed + 1] for part in self))

    def after(self, units: Scaling) -> Scaling:
        """What is left to do for features that are in these units already."""
        return Scaling((self.mean - units.mean) / units.scale, self.scale / units.scale)

    @property
    def shared(self) -> Scaling:
        """Units for all seeds, exactly those of each if they agree: feature by feature of the seed with least spread.

        Where seeds have rows in common, none lies far from its centre as measured by a spread that is no smaller; so
        features in these units can be rounded, and then be scaled for each seed.
        """
        least = self.scale.argmin(0, keepdim=True)
        return Scaling(*(part.gather(0, least) for part in self))


def scaling_of(data: Samples, rows: Sequence[Tensor] | None) -> Scaling:
    """Moments of the features of each seed's rows, or, for all rows, of all seeds together (1, features)."""
    parts = [None] if rows is None else rows
    found = [_moments(data if own is None else data.take(own)) for own in parts]
    return Scaling(*(torch.stack(moments) for moments in zip(*found, strict=True)))


def _moments(part: Samples) -> tuple[Tensor, Tensor]:
    mean, scale = weighted_moments(part.x, part.weight)
    endless = (~scale.isfinite()).nonzero()
    if len(endless):
        raise DataError(f"column {int(endless[0])} of X spreads so far that its square is infinite; rescale it")
    return mean, scale


def weighted_moments(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column; 1 instead of a deviation that is 0 but for rounding.

    >>> weighted_moments(torch.tensor([[1e9, 5.0], [1e9 + 2, 5.0]]).double(), torch.ones(2))
    (tensor([1.0000e+09, 5.0000e+00], dtype=torch.float64), tensor([1., 1.], dtype=torch.float64))
    """
    mean, deviation = mean_and_deviation(x, weight)
    return mean, spread_or_one(mean, deviation)


def mean_and_deviation(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column, a piece of the rows after the other."""
    share = weight.double() / weight.double().sum()

    def mean_of(change: Callable[[Tensor], Tensor]) -> Tensor:
        pieces = zip(x.split(_ROWS_AT_ONCE), share.split(_ROWS_AT_ONCE), strict=True)
        sums = [(own.unsqueeze(-1) * change(piece.double())).sum(0) for piece, own in pieces]
        return torch.stack(sums).sum(0)

    mean = mean_of(lambda piece: piece)
    return mean, mean_of(lambda piece: (piece - mean).square()).sqrt()


def spread_or_one(mean: Tensor, deviation: Tensor) -> Tensor:
    """The deviations, with 1 for those that rounding alone explains."""
    return torch.where(deviation <= _ROUNDING * mean.abs(), 1.0, deviation)


class Moments(NamedTuple):
    """Weight, mean and sum of squared deviations of each feature of all samples so far."""

    weight: Tensor
    mean: Tensor  # (features,)
    squares: Tensor  # (features,)

    @classmethod
    def of_samples(cls, samples: Samples) -> Moments:
        """Those of samples that were trained on; a constant feature has no spread, whatever it is scaled by."""
        total = samples.weight.double().sum()
        mean, deviation = mean_and_deviation(samples.x, samples.weight)
        return cls(total, mean, deviation.square() * total)

    def with_samples(self, x: Tensor, weight: Tensor) -> Moments:
        """After more samples; the order of the additions is that of the batches."""
        more = weight.sum()
        mean = (weight.unsqueeze(-1) * x).sum(0) / more
        squares = (weight.unsqueeze(-1) * (x - mean).square()).sum(0)
        total = self.weight + more
        shift = mean - self.mean
        return Moments(
            total,
            self.mean + shift * (more / total),
            self.squares + squares + shift.square() * self.weight * (more / total),
        )

    @property
    def scaling(self) -> Scaling:
        """Centre and spread for a stack of one."""
        spread = (self.squares / self.weight.clamp_min(1e-300)).sqrt()
        return Scaling(self.mean.unsqueeze(0), spread_or_one(self.mean, spread).unsqueeze(0))


def in_units(x: Tensor, units: Scaling, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Features (n, features) in units that all seeds share, rounded to ``dtype`` only then."""
    found = torch.empty(x.shape, device=device, dtype=dtype)
    for place, piece in zip(found.split(_ROWS_AT_ONCE), x.split(_ROWS_AT_ONCE), strict=True):
        place.copy_(units.apply(piece.double().unsqueeze(0)).squeeze(0))
    return found
