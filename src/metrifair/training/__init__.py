"""The training of a whole stack of models at once, and learning from a stream.

models: networks with leading axes (seed, strength), predictors; objective: risk + strength x unfairness; scaling:
features in standard units; adam; loop: epochs and steps of a stack; online: one model, for ever.
"""

from metrifair.training.loop import Schedule, Trained, train
from metrifair.training.models import Predictor
from metrifair.training.scaling import Scaling, spread_or_one, weighted_moments

__all__ = ["Predictor", "Scaling", "Schedule", "Trained", "spread_or_one", "train", "weighted_moments"]
