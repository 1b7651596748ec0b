"""Features in standard units, and models whose parameters have leading axes (seed, strength).

Features are centered and scaled in double precision, before anything is rounded to single. Inputs
of a model are (seeds, n, features), the same for all strengths of a seed; outputs are (seeds,
strengths, n), or (seeds, strengths, n, outputs) where a model has several.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.batches.samples import Samples
from metrifair.errors import DataError
from metrifair.problem.predictions import check_outputs
from metrifair.support.arrays import Floats

Parameters: TypeAlias = Mapping[str, Tensor]

_NUMBERS_AT_ONCE = 2**16  # so that what is computed from them stays in the processor's cache
_ROWS_TO_PREDICT = 65_536  # at once, so that memory stays bounded
_CLOSE = 0.1  # scale of the initial weights of a last layer
_LEAST_SPREAD = 1e-13  # a smaller spread, relative to the mean, is rounding


class Scaling(NamedTuple):
    """Center and spread of each feature, (seeds, features); a constant feature has spread 1."""

    mean: Tensor
    scale: Tensor

    @classmethod
    def none(cls, features: int) -> Scaling:
        """Features as they are."""
        return cls(
            torch.zeros(1, features, dtype=torch.float64),
            torch.ones(1, features, dtype=torch.float64),
        )

    def apply(self, x: Tensor) -> Tensor:
        """Features (seeds, n, features) in standard units."""
        return (x - self.mean.unsqueeze(1)) / self.scale.unsqueeze(1)

    def in_shared_units(
        self, x: Tensor, device: torch.device, dtype: torch.dtype
    ) -> tuple[Tensor, Scaling]:
        """Features (n, features) in units for all seeds, then rounded to ``dtype``, and the
        remaining scaling.

        The units of each feature are those of the seed with the smallest spread: exactly those of
        each seed if they agree. Seeds with rows in common have centers close to each other in these
        units, so that features can be rounded first and scaled for each seed later.
        """
        least = self.scale.argmin(0, keepdim=True)
        units = Scaling(*(part.gather(0, least) for part in self))
        scaled = torch.empty(x.shape, device=device, dtype=dtype)
        for place, piece in in_pieces(scaled, x):
            place.copy_(units.apply(piece.double().unsqueeze(0)).squeeze(0))
        remaining = (self.mean - units.mean) / units.scale, self.scale / units.scale
        return scaled, Scaling(*(part.to(device, dtype) for part in remaining))


def in_pieces(x: Tensor, *columns: Tensor, least_rows: int = 1) -> Iterator[tuple[Tensor, ...]]:
    """The features and other columns in pieces of rows, so that no second copy of the features
    is made.
    """
    rows = max(least_rows, _NUMBERS_AT_ONCE // max(1, x.shape[1]))
    return zip(*(part.split(rows) for part in (x, *columns)), strict=True)


def compute_scaling(data: Samples, rows: Sequence[Tensor] | None) -> Scaling:
    """Moments of the features of each seed's rows; of all rows, (1, features), if ``rows`` is
    None.
    """
    # one copy at a time
    parts: Iterable[Samples] = [data] if rows is None else (data.take(part) for part in rows)
    by_seed = [weighted_moments(part.x, part.weight) for part in parts]
    scaling = Scaling(*(torch.stack(moments) for moments in zip(*by_seed, strict=True)))
    infinite = (~scaling.scale.isfinite()).nonzero()
    if len(infinite):
        raise DataError(
            f"column {int(infinite[0, 1])} of X spreads so far that its square is infinite; "
            "rescale it"
        )
    return scaling


def weighted_moments(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column; 1 instead of a deviation that is 0 except for
    rounding.

    >>> weighted_moments(torch.tensor([[1e9, 5.0], [1e9 + 2, 5.0]]).double(), torch.ones(2))
    (tensor([1.0000e+09, 5.0000e+00], dtype=torch.float64), tensor([1., 1.], dtype=torch.float64))
    """
    mean, deviation = mean_and_deviation(x, weight)
    return mean, spread_or_one(mean, deviation)


def mean_and_deviation(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column, computed in pieces of rows."""
    share = weight.double() / weight.double().sum()

    def mean_after(transform: Callable[[Tensor], Tensor]) -> Tensor:
        total = torch.zeros(x.shape[1], dtype=torch.float64, device=x.device)
        for piece, part in in_pieces(x, share):
            total += part @ transform(piece.double())
        return total

    mean = mean_after(lambda piece: piece)
    return mean, mean_after(lambda piece: (piece - mean).square()).sqrt()


def spread_or_one(mean: Tensor, deviation: Tensor) -> Tensor:
    """The deviations, with 1 for those that are rounding errors."""
    return torch.where(deviation <= _LEAST_SPREAD * mean.abs(), 1.0, deviation)


class Moments(NamedTuple):
    """Weight, mean and sum of squared deviations of each feature of all samples so far."""

    weight: float
    mean: Floats  # (features,)
    squares: Floats  # (features,)

    @classmethod
    def from_samples(cls, samples: Samples) -> Moments:
        """The moments of samples; a constant feature has no spread at any scale."""
        total = float(samples.weight.double().sum())
        mean, deviation = mean_and_deviation(samples.x, samples.weight)
        return cls(total, mean.numpy(), deviation.square().numpy() * total)

    @classmethod
    def none(cls, features: int) -> Moments:
        """The moments of no samples."""
        return cls(0.0, np.zeros(features), np.zeros(features))

    def with_samples(self, x: Floats, weight: Floats) -> Moments:
        """The moments after more samples; batches are added in order."""
        more = float(weight.sum())
        mean = weight @ x / more
        squared = x - mean
        squared *= squared
        shift = mean - self.mean
        part = more / (self.weight + more)
        squares = self.squares + weight @ squared + shift * shift * (self.weight * part)
        return Moments(self.weight + more, self.mean + shift * part, squares)

    def standardized(self, x: Floats) -> Floats:
        """Features (n, features) in units of these samples, as ``scaling`` has them."""
        spread = np.sqrt(self.squares / max(self.weight, 1e-300))
        spread[spread <= _LEAST_SPREAD * np.abs(self.mean)] = 1.0
        units: Floats = x - self.mean
        units /= spread
        return units

    @property
    def scaling(self) -> Scaling:
        """Center and spread for a stack of one."""
        mean = torch.from_numpy(self.mean)
        spread = torch.from_numpy(np.sqrt(self.squares / max(self.weight, 1e-300)))
        return Scaling(mean.unsqueeze(0), spread_or_one(mean, spread).unsqueeze(0))


class Model(Protocol):
    """A model that can be trained."""

    def initial(self, seed: int) -> dict[str, Tensor]:
        """Parameters of one network at the start, without leading axes; the same for the same
        seed.
        """
        ...

    def __call__(self, parameters: Parameters, x: Tensor, *, training: bool = False) -> Tensor:
        """Outputs of all networks, for parameters with leading axes (seeds, strengths)."""
        ...


@dataclass(frozen=True)
class Network:
    """A linear model, or one with hidden layers of rectified linear units.

    >>> network = Network(features=3, hidden=(4,))
    >>> several = stack_parameters([network.initial(seed) for seed in (0, 1)], copies=5)
    >>> network(several, torch.zeros(2, 7, 3, dtype=torch.float64)).shape
    torch.Size([2, 5, 7])
    """

    features: int
    hidden: tuple[int, ...] = ()
    outputs: int = 1

    @property
    def widths(self) -> tuple[int, ...]:
        """Units of every layer, from the features to the outputs."""
        return (self.features, *self.hidden, self.outputs)

    def initial(self, seed: int) -> dict[str, Tensor]:
        """Uniform weights on the scale of one over the root of a unit's inputs."""
        generator = torch.Generator().manual_seed(seed)
        parameters = {}
        for layer, (before, after) in enumerate(
            zip(self.widths[:-1], self.widths[1:], strict=True)
        ):
            bound = 1 / sqrt(before) if before else 0.0
            for name, shape in (("weight", (after, before)), ("bias", (after, 1))):
                uniform = torch.rand(shape, generator=generator, dtype=torch.float64)
                parameters[f"{name}{layer}"] = (2 * uniform - 1) * bound
        return parameters

    def traced(
        self, arrays: Mapping[str, tuple[Floats, Floats]], x: Floats
    ) -> tuple[Floats, Callable[[Floats], None]]:
        """Outputs (n, outputs) of one network for features (n, features), and the function that
        backpropagates slopes.

        ``arrays`` contain the value and the gradient of every parameter; backpropagation adds to
        the gradient. By hand, because autograd takes longer than the products of a small batch.
        """
        layers = range(len(self.widths) - 1)
        inputs = [x]
        output = x
        for layer in layers:
            if layer:
                inputs.append(np.maximum(output, 0.0))
            output = inputs[-1] @ arrays[f"weight{layer}"][0][0, 0].T
            output += arrays[f"bias{layer}"][0][0, 0, :, 0]

        def back(slope: Floats) -> None:
            for layer in reversed(layers):
                weight, slope_of_weight = arrays[f"weight{layer}"]
                _, slope_of_bias = arrays[f"bias{layer}"]
                slope_of_weight[0, 0] += slope.T @ inputs[layer]
                slope_of_bias[0, 0, :, 0] += slope.sum(0)
                if layer:
                    slope = (slope @ weight[0, 0]) * (inputs[layer] > 0)

        return output, back

    def near(
        self, parameters: Parameters, output: Tensor, *, spread: float = _CLOSE
    ) -> dict[str, Tensor]:
        """Parameters of networks whose outputs are close or equal to a constant (..., outputs)."""
        last = len(self.widths) - 2
        weight = parameters[f"weight{last}"]
        bias = parameters[f"bias{last}"]
        close = {
            f"weight{last}": spread * weight,
            f"bias{last}": output.to(bias).unsqueeze(-1).expand_as(bias),
        }
        return {**parameters, **close}

    def __call__(self, parameters: Parameters, x: Tensor, *, training: bool = False) -> Tensor:  # noqa: ARG002
        """Outputs; the first layer of all strengths of a seed is one matrix product."""
        weight = parameters["weight0"]
        bias = parameters["bias0"]
        seeds, strengths, units, _ = weight.shape
        flat = torch.baddbmm(bias.reshape(seeds, -1, 1), weight.flatten(1, 2), x.transpose(1, 2))
        units_first = flat.view(seeds, strengths, units, -1)  # (seeds, strengths, units, n)
        for layer in range(1, len(self.widths) - 1):
            weight = parameters[f"weight{layer}"]
            bias = parameters[f"bias{layer}"]
            units_first = weight @ units_first.relu() + bias
        return units_first.squeeze(2) if self.outputs == 1 else units_first.transpose(2, 3)


@dataclass(frozen=True, eq=False)
class StackedModule:
    """Any ``torch.nn.Module`` that maps (n, features) to (n,), (n, 1) or (n, outputs), run as a
    stack.

    Layers with ``reset_parameters`` start anew for each seed; other parameters start as they are.
    """

    module: torch.nn.Module
    outputs: int = 1

    def __post_init__(self) -> None:
        for name, part in self.module.named_modules():
            if getattr(part, "track_running_stats", False):
                raise DataError(
                    f"layer {name or 'itself'} ({type(part).__name__}) keeps running statistics, "
                    "which a stack of "
                    "models cannot share; use LayerNorm or GroupNorm"
                )

    def initial(self, seed: int) -> dict[str, Tensor]:
        """The module's parameters, reset in all layers that support it."""
        fresh = copy.deepcopy(self.module)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for part in fresh.modules():
                if callable(reset := getattr(part, "reset_parameters", None)):
                    reset()
        return {name: value.detach().double() for name, value in fresh.named_parameters()}

    def __call__(self, parameters: Parameters, x: Tensor, *, training: bool = False) -> Tensor:
        """Outputs, by vectorizing the module over seeds and strengths; dropout acts in training
        only.
        """
        self.module.train(training)

        def call(parameters: dict[str, Tensor], rows: Tensor) -> Tensor:
            output: Tensor = torch.func.functional_call(self.module, parameters, (rows,))
            return output

        over_strengths = torch.func.vmap(call, in_dims=(0, None), randomness="different")
        try:
            output: Tensor = torch.func.vmap(over_strengths, randomness="different")(
                dict(parameters), x
            )
        except (RuntimeError, ValueError, TypeError) as error:
            raise DataError(
                f"{type(self.module).__name__} cannot be run as a stack of models ({error}); it "
                "must map a float "
                "tensor (n, features) to (n, outputs) by operations without side effects"
            ) from error
        expected = (*x.shape[:1], output.shape[1], x.shape[1])
        shapes = [(*expected, 1), expected] if self.outputs == 1 else [(*expected, self.outputs)]
        if output.shape not in shapes:
            shape = "(n,) or (n, 1)" if self.outputs == 1 else f"(n, {self.outputs})"
            raise DataError(
                f"the module must return {shape} for n samples, got shape {tuple(output.shape[2:])}"
            )
        return output.squeeze(-1) if self.outputs == 1 and output.ndim == 4 else output


def stack_parameters(starts: Sequence[Parameters], copies: int) -> dict[str, Tensor]:
    """Parameters with leading axes (seeds, strengths): one start per seed, the same for all
    strengths.
    """
    return {
        name: torch.stack([start[name] for start in starts])
        .unsqueeze(1)
        .repeat_interleave(copies, 1)
        for name in starts[0]
    }


def member(parameters: Parameters, seed: int, strength: int) -> dict[str, Tensor]:
    """One network of a stack, as its own stack."""
    return {
        name: value[seed : seed + 1, strength : strength + 1].clone()
        for name, value in parameters.items()
    }


@dataclass(frozen=True, eq=False)
class Predictor:
    """One trained model: features in, outputs out."""

    model: Model
    parameters: dict[str, Tensor]  # leading axes (1, 1)
    scaling: Scaling  # (1, features)

    @torch.no_grad()
    def output(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outputs (n,), or (n, outputs), in pieces so that memory stays bounded."""
        pieces = torch.as_tensor(x).split(_ROWS_TO_PREDICT)
        outputs = [
            self.model(self.parameters, self.scaling.apply(piece.unsqueeze(0)))[0, 0]
            for piece in pieces
        ]
        output = torch.cat(outputs).numpy()
        if all(bool(part.isfinite().all()) for part in self.parameters.values()):
            check_outputs(output)
        return output

    @property
    def is_constant(self) -> bool:
        """Whether the model is a network whose last weights are 0, so that its output is
        constant.
        """
        last = f"weight{len(self.model.widths) - 2}" if isinstance(self.model, Network) else ""
        return bool(last) and not self.parameters[last].any()

    def linear_parts(self) -> tuple[Floats, Floats] | None:
        """Weights (outputs, features) and intercepts (outputs,) in the units of X; None for
        other models.
        """
        if not isinstance(self.model, Network) or self.model.hidden:
            return None
        first = self._first_layer(self.model)
        return first.weight.detach().numpy(), first.bias.detach().numpy()

    def as_module(self, center: float = 0.0, spread: float = 1.0) -> torch.nn.Sequential:
        """The model as layers of torch: from unscaled features to outputs x spread + center, (n,
        outputs).

        >>> start = stack_parameters([Network(2, (3,)).initial(0)], copies=1)
        >>> Predictor(Network(2, (3,)), start, Scaling.none(2)).as_module()
        Sequential(
          (0): Linear(in_features=2, out_features=3, bias=True)
          (1): ReLU()
          (2): Linear(in_features=3, out_features=1, bias=True)
        )
        """
        layers: list[torch.nn.Module] = []
        if isinstance(self.model, Network):
            layers.append(self._first_layer(self.model))
            for layer in range(1, len(self.model.widths) - 1):
                layers += [
                    torch.nn.ReLU(),
                    _linear(*(self.parameters[f"{name}{layer}"] for name in ("weight", "bias"))),
                ]
        elif isinstance(self.model, StackedModule):
            module = copy.deepcopy(self.model.module).double()
            mean, scale = self.scaling
            module.load_state_dict(
                {name: value[0, 0] for name, value in self.parameters.items()}, strict=False
            )
            if bool((mean != 0).any() or (scale != 1).any()):
                layers.append(_linear(torch.diag(1 / scale[0]), -(mean / scale)[0]))
            layers.append(module.train(False))
            # one row would lose this axis
            if module(torch.zeros(2, mean.shape[1], dtype=torch.float64)).ndim == 1:
                layers.append(torch.nn.Unflatten(0, (-1, 1)))
        else:
            raise DataError(f"a model of type {type(self.model).__name__} has no layers of torch")
        if (center, spread) != (0.0, 1.0):
            weight = torch.ones(1, 1, dtype=torch.float64)
            bias = torch.zeros(1, dtype=torch.float64)
            if isinstance(self.model, Network):
                weight, bias = (part.detach() for part in layers.pop().parameters())
            layers.append(_linear(weight * spread, bias * spread + center))
        return torch.nn.Sequential(*layers).train(False)

    def _first_layer(self, network: Network) -> torch.nn.Linear:
        """The first layer, with the scaling of the features in it."""
        weight = self.parameters["weight0"].reshape(network.widths[1], -1) / self.scaling.scale
        return _linear(weight, self.parameters["bias0"].reshape(-1) - weight @ self.scaling.mean[0])


def _linear(weight: Tensor, bias: Tensor) -> torch.nn.Linear:
    """A layer with these numbers, with any leading axes."""
    layer = torch.nn.Linear(weight.shape[-1], weight.shape[-2], dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(weight.reshape(layer.weight.shape))
        layer.bias.copy_(bias.reshape(-1))
    return layer
