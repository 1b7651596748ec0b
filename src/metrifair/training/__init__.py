"""The training of a whole stack of models at once, and learning from a stream.

models: features in standard units, networks with leading axes (seed, strength), predictors;
objective: risk + strength x unfairness; adam; loop: epochs and steps of a stack; online: one model,
for ever.

Why a step is fast. One sort per comparison: ranks and coefficients need no gradient, so that
autograd sees one dot product. All seeds share one copy of the features, all strengths of a seed the
first product of matrices. Without ties, the slope at a place of the order is linear in the number of
left scores below it. Shapes are static, and on CUDA up to 32 steps are one graph (``graphs``); the
step that most frontiers take is five Triton kernels there (``fused``). Linear models take no steps
(``solver``): each evaluation is two products and one sort of all distinct rows.
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
