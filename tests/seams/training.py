"""Internal names of `metrifair.training` that tests use."""

from metrifair.training import fused, graphs, loop, models, solver
from metrifair.training.loop import RowsObjective, one_thread, thin_rows
from metrifair.training.models import Moments, Network, StackedModule, member, stack_parameters
from metrifair.training.objective import (
    BINARY,
    MULTICLASS,
    Objective,
    Terms,
    constant_output,
    regression,
    scores,
)
from metrifair.training.online import Learner
from metrifair.training.solver import minimize
from metrifair.training.stack import Adam, Epoch, EpochSource, stratified_epochs
