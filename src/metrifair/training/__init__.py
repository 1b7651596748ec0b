"""The training of a whole stack of models at once.

scaling: features in standard units; stack: models in training, and one step of all of them; loop: epochs; results: what
is left of it, a predictor for each model.
"""

from metrifair.training.loop import Schedule, train
from metrifair.training.predictor import Predictor, Trained
from metrifair.training.scaling import Scaling, spread_or_one, weighted_moments

__all__ = ["Predictor", "Scaling", "Schedule", "Trained", "spread_or_one", "train", "weighted_moments"]
