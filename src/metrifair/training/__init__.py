"""The training of a whole stack of models at once, and learning from a stream.

models: features in standard units, networks with leading axes (seed, strength), predictors;
objective: risk + strength x unfairness; adam; loop: epochs and steps of a stack; online: one model,
for ever.
"""

from metrifair.training.loop import TrainedStack, train
from metrifair.training.models import Predictor, Scaling, spread_or_one, weighted_moments
from metrifair.training.stack import Schedule

__all__ = [
    "Predictor",
    "Scaling",
    "Schedule",
    "TrainedStack",
    "spread_or_one",
    "train",
    "weighted_moments",
]
