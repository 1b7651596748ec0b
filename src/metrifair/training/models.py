"""Features in standard units, and models whose parameters have leading axes (seed, strength).

Features are centered and scaled in double precision, before anything is rounded to single. Inputs
of a model are (seeds, n, features), the same for all strengths of a seed; outputs are (seeds,
strengths, n), or (seeds, strengths, n, outputs) where a model has several.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from metrifair.batches.samples import Samples
from metrifair.errors import DataError
from metrifair.problem.predictions import check_outputs
from metrifair.support.arrays import Floats

Parameters: TypeAlias = dict[str, Tensor]

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
            mean=torch.zeros(1, features, dtype=torch.float64),
            scale=torch.ones(1, features, dtype=torch.float64),
        )

    @classmethod
    def stack(cls, moments: Iterable[tuple[Tensor, Tensor]]) -> Scaling:
        """The scaling of several seeds, from center and spread (features,) of each."""
        means, scales = zip(*moments, strict=True)
        mean = torch.stack(means)
        scale = torch.stack(scales)
        return cls(mean, scale)

    def at(self, seed: int) -> Scaling:
        """That of one seed, which may be that of all: (1, features)."""
        if len(self.mean) == 1:
            return self
        row = slice(seed, seed + 1)
        return Scaling(self.mean[row], self.scale[row])

    def to(self, device: torch.device | str, dtype: torch.dtype = torch.float64) -> Scaling:
        """The same on a device."""
        mean = self.mean.to(device, dtype)
        scale = self.scale.to(device, dtype)
        return Scaling(mean, scale)

    def apply(self, x: Tensor) -> Tensor:
        """Features (seeds, n, features) in standard units."""
        mean = self.mean.unsqueeze(1)
        scale = self.scale.unsqueeze(1)
        return (x - mean) / scale

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
        units = Scaling(
            mean=self.mean.gather(0, least),
            scale=self.scale.gather(0, least),
        )
        # row by row, however x is stored: the fused step's kernels read it that way
        scaled = torch.empty(x.shape, device=device, dtype=dtype)
        for place, piece in in_pieces(scaled, x):
            precise = piece.double()
            in_units = units.apply(precise.unsqueeze(0))
            place.copy_(in_units.squeeze(0))
        shift = self.mean - units.mean
        remaining = Scaling(
            mean=shift / units.scale,
            scale=self.scale / units.scale,
        )
        return scaled, remaining.to(device, dtype)


def in_pieces(x: Tensor, *columns: Tensor, least_rows: int = 1) -> Iterator[tuple[Tensor, ...]]:
    """The features and other columns in pieces of rows, so that no second copy of the features
    is made.
    """
    width = max(1, x.shape[1])
    rows = max(least_rows, _NUMBERS_AT_ONCE // width)
    pieces = [part.split(rows) for part in (x, *columns)]
    return zip(*pieces, strict=True)


def compute_scaling(data: Samples, rows: Sequence[Tensor] | None) -> Scaling:
    """Moments of the features of each seed's rows; of all rows, (1, features), if ``rows`` is
    None.
    """
    parts: Iterable[Samples] = [data]
    if rows is not None:
        parts = map(data.take, rows)  # one copy at a time
    moments = (weighted_moments(part.x, part.weight) for part in parts)
    scaling = Scaling.stack(moments)
    is_infinite = ~scaling.scale.isfinite()
    if is_infinite.any():
        places = is_infinite.nonzero()
        _, column = places[0].tolist()
        raise DataError(
            f"column {column} of X spreads so far that its square is infinite; rescale it"
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
    precise = weight.double()
    share = precise / precise.sum()

    def mean_after(transform: Callable[[Tensor], Tensor]) -> Tensor:
        total = share.new_zeros(x.shape[1])
        for piece, part in in_pieces(x, share):
            transformed = transform(piece.double())
            total += part @ transformed
        return total

    mean = mean_after(lambda piece: piece)
    variance = mean_after(lambda piece: (piece - mean).square())
    return mean, variance.sqrt()


def spread_or_one(mean: Tensor, deviation: Tensor) -> Tensor:
    """The deviations, with 1 for those that are rounding errors."""
    is_rounding = deviation <= _LEAST_SPREAD * mean.abs()
    return torch.where(is_rounding, 1.0, deviation)


class Moments(NamedTuple):
    """Weight, mean and sum of squared deviations of each feature of all samples so far."""

    weight: float
    mean: Floats  # (features,)
    squares: Floats  # (features,)

    @classmethod
    def from_samples(cls, samples: Samples) -> Moments:
        """The moments of samples; a constant feature has no spread at any scale."""
        weight = samples.weight.double()
        total = float(weight.sum())
        mean, deviation = mean_and_deviation(samples.x, weight)
        variance = deviation.square().numpy()
        return cls(total, mean.numpy(), variance * total)

    @classmethod
    def none(cls, features: int) -> Moments:
        """The moments of no samples."""
        zeros = np.zeros(features)
        return cls(0.0, zeros, zeros)

    def with_samples(self, x: Floats, weight: Floats) -> Moments:
        """The moments after more samples; batches are added in order."""
        more = float(weight.sum())
        mean = weight @ x / more
        squared = x - mean
        squared *= squared
        shift = mean - self.mean
        total = self.weight + more
        part = more / total
        between = shift * shift * (self.weight * part)
        return Moments(
            weight=total,
            mean=self.mean + shift * part,
            squares=self.squares + weight @ squared + between,
        )

    @property
    def deviation(self) -> Floats:
        """The standard deviation of each feature."""
        variance = self.squares / max(self.weight, 1e-300)
        deviation: Floats = np.sqrt(variance)
        return deviation

    def standardized(self, x: Floats) -> Floats:
        """Features (n, features) in units of these samples, as ``scaling`` has them."""
        spread = self.deviation
        is_rounding = spread <= _LEAST_SPREAD * np.abs(self.mean)
        spread[is_rounding] = 1.0
        units: Floats = x - self.mean
        units /= spread
        return units

    @property
    def scaling(self) -> Scaling:
        """Center and spread for a stack of one."""
        mean = torch.from_numpy(self.mean)
        spread = torch.from_numpy(self.deviation)
        moments = mean, spread_or_one(mean, spread)
        return Scaling.stack([moments])


class Model(Protocol):
    """A model that can be trained."""

    def initial(self, seed: int) -> Parameters:
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

    @property
    def last(self) -> int:
        """The number of the last layer; the first is 0."""
        return len(self.hidden)

    def initial(self, seed: int) -> Parameters:
        """Uniform weights on the scale of one over the root of a unit's inputs."""
        generator = torch.Generator().manual_seed(seed)
        parameters = {}
        for layer, widths in enumerate(pairwise(self.widths)):
            before, after = widths
            bound = 0.0
            if before:
                bound = 1 / sqrt(before)
            for name, inputs in (("weight", before), ("bias", 1)):
                shape = after, inputs
                uniform = torch.rand(shape, generator=generator, dtype=torch.float64)
                symmetric = 2 * uniform - 1
                parameters[f"{name}{layer}"] = symmetric * bound
        return parameters

    def traced(
        self, arrays: Mapping[str, tuple[Floats, Floats]], x: Floats
    ) -> tuple[Floats, Callable[[Floats], None]]:
        """Outputs (n, outputs) of one network for features (n, features), and the function that
        backpropagates slopes.

        ``arrays`` contain the value and the gradient of every parameter; backpropagation adds to
        the gradient. By hand, because autograd takes longer than the products of a small batch.
        """
        layers = range(self.last + 1)
        inputs = [x]
        output = x
        for layer in layers:
            if layer:
                inputs.append(np.maximum(output, 0.0))
            weight, _ = arrays[f"weight{layer}"]
            bias, _ = arrays[f"bias{layer}"]
            incoming = weight[0, 0].T
            output = inputs[-1] @ incoming
            output += bias[0, 0, :, 0]

        def back(slope: Floats) -> None:
            for layer in reversed(layers):
                weight, weight_slope = arrays[f"weight{layer}"]
                _, bias_slope = arrays[f"bias{layer}"]
                units = inputs[layer]
                weight_slope[0, 0] += slope.T @ units
                bias_slope[0, 0, :, 0] += slope.sum(0)
                if layer:
                    slope = slope @ weight[0, 0]
                    slope *= units > 0

        return output, back

    def near(self, parameters: Parameters, output: Tensor, *, spread: float = _CLOSE) -> Parameters:
        """Parameters of networks whose outputs are close or equal to a constant (..., outputs)."""
        weight = f"weight{self.last}"
        bias = f"bias{self.last}"
        constant = output.to(parameters[bias]).unsqueeze(-1)
        close = dict(parameters)
        close[weight] = spread * parameters[weight]
        close[bias] = constant.expand_as(parameters[bias])
        return close

    def __call__(self, parameters: Parameters, x: Tensor, *, training: bool = False) -> Tensor:  # noqa: ARG002
        """Outputs; the first layer of all strengths of a seed is one matrix product."""
        weight = parameters["weight0"]
        bias = parameters["bias0"]
        seeds, strengths, units, _ = weight.shape
        all_weights = weight.flatten(1, 2)
        all_biases = bias.reshape(seeds, -1, 1)
        columns = x.transpose(1, 2)
        flat = torch.baddbmm(all_biases, all_weights, columns)
        units_first = flat.view(seeds, strengths, units, -1)  # (seeds, strengths, units, n)
        for layer in range(1, self.last + 1):
            active = units_first.relu()
            weight = parameters[f"weight{layer}"]
            units_first = weight @ active + parameters[f"bias{layer}"]
        if self.outputs == 1:
            return units_first.squeeze(2)
        return units_first.transpose(2, 3)


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
                layer = name or "itself"
                kind = type(part).__name__
                raise DataError(
                    f"layer {layer} ({kind}) keeps running statistics, which a stack of models "
                    "cannot share; use LayerNorm or GroupNorm"
                )

    def initial(self, seed: int) -> Parameters:
        """The module's parameters, reset in all layers that support it."""
        fresh = copy.deepcopy(self.module)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for part in fresh.modules():
                reset = getattr(part, "reset_parameters", None)
                if callable(reset):
                    reset()
        parameters = fresh.named_parameters()
        return {name: value.detach().double() for name, value in parameters}

    def __call__(self, parameters: Parameters, x: Tensor, *, training: bool = False) -> Tensor:
        """Outputs, by vectorizing the module over seeds and strengths; dropout acts in training
        only.
        """
        self.module.train(training)

        def call(parameters: Parameters, rows: Tensor) -> Tensor:
            output: Tensor = torch.func.functional_call(self.module, parameters, (rows,))
            return output

        over_strengths = torch.func.vmap(call, in_dims=(0, None), randomness="different")
        over_seeds = torch.func.vmap(over_strengths, randomness="different")
        try:
            output: Tensor = over_seeds(parameters, x)
        except (RuntimeError, ValueError, TypeError) as error:
            name = type(self.module).__name__
            raise DataError(
                f"{name} cannot be run as a stack of models ({error}); it must map a float tensor "
                "(n, features) to (n, outputs) by operations without side effects"
            ) from error
        seeds, rows, _ = x.shape
        strengths = output.shape[1]
        return self._checked(output, seeds, strengths, rows)

    def _checked(self, output: Tensor, *models_and_rows: int) -> Tensor:
        """The outputs if their shape is right, without the axis of a single one."""
        with_axis = (*models_and_rows, self.outputs)
        if output.shape == with_axis:
            if self.outputs == 1:
                return output.squeeze(-1)
            return output
        expected = f"(n, {self.outputs})"
        if self.outputs == 1:
            if output.shape == models_and_rows:
                return output
            expected = "(n,) or (n, 1)"
        shape = tuple(output.shape[2:])
        raise DataError(f"the module must return {expected} for n samples, got shape {shape}")


def stack_parameters(starts: Sequence[Parameters], copies: int) -> Parameters:
    """Parameters with leading axes (seeds, strengths): one start per seed, the same for all
    strengths.
    """
    parameters = {}
    for name in starts[0]:
        values = [start[name] for start in starts]
        by_seed = torch.stack(values)
        with_strengths = by_seed.unsqueeze(1)
        parameters[name] = with_strengths.repeat_interleave(copies, 1)
    return parameters


def copy_parameters(parameters: Parameters) -> Parameters:
    """Copies that training no longer changes."""
    return {name: value.detach().clone() for name, value in parameters.items()}


def member(parameters: Parameters, seed: int, strength: int) -> Parameters:
    """One network of a stack, as its own stack, on the CPU."""
    alone = {}
    for name, value in parameters.items():
        network = value[seed : seed + 1, strength : strength + 1]
        alone[name] = network.to("cpu", copy=True)
    return alone


@dataclass(frozen=True, eq=False)
class Predictor:
    """One trained model: features in, outputs out."""

    model: Model
    parameters: Parameters  # leading axes (1, 1)
    scaling: Scaling  # (1, features)

    @torch.no_grad()
    def output(self, x: Floats) -> Floats:
        """Outputs (n,), or (n, outputs), in pieces so that memory stays bounded."""
        outputs = []
        pieces = torch.as_tensor(x).split(_ROWS_TO_PREDICT)
        for piece in pieces:
            stacked = piece.unsqueeze(0)
            scaled = self.scaling.apply(stacked)
            output = self.model(self.parameters, scaled)
            outputs.append(output[0, 0])
        joined = torch.cat(outputs).numpy()
        parameters = self.parameters.values()
        if all(part.isfinite().all() for part in parameters):
            check_outputs(joined)
        return joined

    @property
    def is_constant(self) -> bool:
        """Whether the model is a network whose last weights are 0, so that its output is
        constant.
        """
        if not isinstance(self.model, Network):
            return False
        last_weight = self.parameters[f"weight{self.model.last}"]
        return not last_weight.any()

    def linear_parts(self) -> tuple[Floats, Floats] | None:
        """Weights (outputs, features) and intercepts (outputs,) in the units of X; None for
        other models.
        """
        if not isinstance(self.model, Network) or self.model.hidden:
            return None
        weight, bias = _numbers(self._first_layer(self.model))
        return weight.numpy(), bias.numpy()

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
        if isinstance(self.model, Network):
            layers = self._network_layers(self.model)
        elif isinstance(self.model, StackedModule):
            layers = self._module_layers(self.model)
        else:
            raise DataError(f"a model of type {type(self.model).__name__} has no layers of torch")
        if (center, spread) != (0.0, 1.0):
            weight = torch.ones(1, 1, dtype=torch.float64)
            bias = torch.zeros(1, dtype=torch.float64)
            if isinstance(self.model, Network):  # whose last layer does this too
                weight, bias = _numbers(layers.pop())
            weight = weight * spread
            bias = bias * spread + center
            layers.append(_linear(weight, bias))
        module = torch.nn.Sequential(*layers)
        return module.train(False)

    def _network_layers(self, network: Network) -> list[torch.nn.Module]:
        layers: list[torch.nn.Module] = [self._first_layer(network)]
        for layer in range(1, network.last + 1):
            weight = self.parameters[f"weight{layer}"]
            bias = self.parameters[f"bias{layer}"]
            layers.append(torch.nn.ReLU())
            layers.append(_linear(weight, bias))
        return layers

    def _module_layers(self, model: StackedModule) -> list[torch.nn.Module]:
        """The scaling as a layer if there is any, then the module."""
        layers: list[torch.nn.Module] = []
        mean, scale = self.scaling
        is_centered = mean != 0
        is_scaled = scale != 1
        if is_centered.any() or is_scaled.any():
            weight = torch.diag(1 / scale[0])
            bias = -(mean / scale)
            layers.append(_linear(weight, bias))
        module = copy.deepcopy(model.module).double()
        state = {}
        for name, value in self.parameters.items():
            state[name] = value[0, 0]
        module.load_state_dict(state, strict=False)
        layers.append(module.train(False))
        two_rows = torch.zeros_like(mean).expand(2, -1)
        if module(two_rows).ndim == 1:  # of one row, this axis would be lost
            with_axis = torch.nn.Unflatten(0, (-1, 1))
            layers.append(with_axis)
        return layers

    def _first_layer(self, network: Network) -> torch.nn.Linear:
        """The first layer, with the scaling of the features in it."""
        mean, scale = self.scaling
        units = network.widths[1]
        of_scaled = self.parameters["weight0"].reshape(units, -1)
        weight = of_scaled / scale
        bias = self.parameters["bias0"].reshape(-1)
        shift = weight @ mean[0]
        return _linear(weight, bias - shift)


def _linear(weight: Tensor, bias: Tensor) -> torch.nn.Linear:
    """A layer with these numbers, with any leading axes."""
    *_, outputs, inputs = weight.shape
    layer = torch.nn.Linear(inputs, outputs, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(weight.reshape(outputs, inputs))
        layer.bias.copy_(bias.reshape(-1))
    return layer


def _numbers(layer: torch.nn.Module) -> tuple[Tensor, Tensor]:
    """The weights and the intercepts of a linear layer."""
    weight, bias = layer.parameters()
    return weight.detach(), bias.detach()
