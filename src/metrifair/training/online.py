"""Learning from a stream: samples wait until they cover a batch; then the model takes one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite

import numpy as np
import torch
from torch import Tensor

from metrifair.batches import Coverage, cut
from metrifair.batches.samples import Batch, Samples, join_samples
from metrifair.errors import Diverged, TooFewSamples
from metrifair.metrics.dependence import with_scales
from metrifair.support.arrays import Floats
from metrifair.training.models import (
    Model,
    Moments,
    Network,
    Parameters,
    Predictor,
    Scaling,
    copy_parameters,
    stack_parameters,
)
from metrifair.training.objective import Objective, constant_output
from metrifair.training.stack import Adam

_LEFT_OUT = (
    "These samples were left out, and learning can go on with the next ones. Batch size and groups "
    "are fixed once a "
    "model has begun; begin a new one to change them (a group is left out where sensitive_features "
    "marks it as missing "
    "and groups does not name it)"
)


class Learner:
    """A model that learns for ever in constant memory.

    The state is the parameters, their moments, the features' running moments and the waiting
    samples. It does not depend on how the stream was cut into chunks. A network of ours starts from
    the base rate (or the mean) of the first batch, with small outputs. Before that it predicts the
    base rate of the waiting samples.

    >>> from metrifair.training.models import Network
    >>> from metrifair.problem.cells import Comparison
    >>> from metrifair.training.objective import BINARY
    >>> groups = (Comparison((0,), (1,)),)
    >>> learner = Learner(Network(1), Objective(BINARY, groups), Coverage(groups, size=4), strength=1.0)
    >>> chunk = Samples(torch.rand(11, 1), torch.ones(11), torch.arange(11) % 2, torch.ones(11))
    >>> learner.learn(chunk), len(learner.waiting)
    (2, 3)
    """

    def __init__(
        self,
        model: Model,
        objective: Objective,
        rule: Coverage,
        *,
        strength: float,
        seed: int = 0,
        learning_rate: float = 1e-2,
        weight_decay: float = 0.0,
        standardize: bool = True,
        start: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.model = model
        self.objective = objective
        self.rule = rule
        self.strength = strength
        self.standardize = standardize
        parameters = start
        if parameters is None:
            parameters = stack_parameters([model.initial(seed)], 1)
        self.adam = Adam(parameters, learning_rate=learning_rate, weight_decay=weight_decay)
        self.moments: Moments | None = None
        self.waiting: Samples | None = None
        self.updates = 0  # steps so far
        self.fresh = start is None  # until the first step
        self.has_warned = False  # of groups that are missing in its rows, once for a stream
        self.scales: dict[str, float] = {}  # of the dependences, by name; see Dependence.scale

    def learn(self, chunk: Samples) -> int:
        """Add samples; return the number of steps taken.

        Learning can continue after an error: the samples that led to it are left out, later ones
        wait.
        """
        waiting = chunk
        if self.waiting is not None:
            waiting = join_samples([self.waiting, chunk])
        start = steps = 0
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # divergence raises below
                while True:
                    try:
                        batch = cut(waiting, self.rule, start)
                    except TooFewSamples as error:
                        start += self.rule.patience
                        raise TooFewSamples(f"{error}. {_LEFT_OUT}") from error
                    if batch is None:
                        break
                    start += len(batch.samples)
                    self._step(batch)
                    steps += 1
        finally:
            rest = torch.arange(start, len(waiting))  # a view would keep the whole chunk
            self.waiting = waiting.take(rest)
        return steps

    def _step(self, batch: Batch) -> None:
        samples = batch.samples
        if samples.value is not None:
            batch = replace(batch, sides=with_scales(batch.sides, samples.value, self.scales))
        moments = self.moments
        before = None
        if self.fresh:
            before = self.adam.snapshot()
            for name, value in self._start(samples).items():
                self.adam.parameters[name].detach().copy_(value)
        features = samples.x.numpy()
        if self.standardize:
            so_far = moments or Moments.none(features.shape[1])
            self.moments = so_far.with_samples(features, samples.weight.numpy())
        if not self._set_gradient(batch, features):
            scaling = self._scaling(features.shape[1])
            scaled = scaling.apply(samples.x.unsqueeze(0))
            output = self.model(self.adam.parameters, scaled, training=True)
            terms = self.objective(output, batch)
            total = terms.risk + self.strength * terms.unfairness
            total.sum().backward()
        # Infinite moments would make all features constants. Means and weights that are not finite
        # show in the squares.
        finite = self.moments is None or isfinite(self.moments.squares.sum())
        if not (finite and self.adam.step_if_finite()):
            self.adam.gradient.zero_()
            if before is not None:
                self.adam.restore(before)
            self.moments = moments
            raise Diverged(
                f"learning diverged at strength {self.strength}; this batch was left out. Lower "
                "the learning rate, "
                "or check the scale of X"
            )
        self.updates += 1
        self.fresh = False

    def _set_gradient(self, batch: Batch, features: Floats) -> bool:
        """Compute the gradient of the batch without autograd, which is faster; False if the
        model needs autograd.
        """
        if not isinstance(self.model, Network) or self.model.outputs > 1:
            return False
        if self.standardize and self.moments is not None:
            features = self.moments.standardized(features)
        output, back = self.model.traced(self.adam.arrays, features)
        slopes = self.objective.slopes(output[:, 0], batch, self.strength)
        if slopes is None:
            return False
        back(slopes[:, None])
        return True

    def _start(self, samples: Samples) -> Parameters:
        """The parameters; of a network of ours, close to the constant that fits these samples
        best.
        """
        parameters = copy_parameters(self.adam.parameters)
        if not isinstance(self.model, Network):
            return parameters
        counts = self.objective.loss_weight(samples)
        task = self.objective.task
        constant = constant_output(task, samples.y, counts, self.model.outputs)
        return self.model.near(parameters, constant)

    def _scaling(self, features: int) -> Scaling:
        if self.standardize and self.moments is not None:
            return self.moments.scaling
        return Scaling.none(features)

    def predictor(self, features: int) -> Predictor:
        """The model as it is now."""
        if self.fresh and self.waiting is not None and len(self.waiting):
            scaling = self._scaling(features)
            if self.standardize:
                scaling = Moments.from_samples(self.waiting).scaling
            return Predictor(self.model, self._start(self.waiting), scaling)
        parameters = copy_parameters(self.adam.parameters)
        return Predictor(self.model, parameters, self._scaling(features))
