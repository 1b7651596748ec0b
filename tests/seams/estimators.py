"""Internal names of `metrifair.estimators` that tests use."""

from metrifair.estimators import convergence, estimator
from metrifair.estimators.convergence import Slack, training_slack
from metrifair.estimators.settings import (
    as_device,
    is_solved,
    model_for,
    objective_for,
    schedule_for,
    trainable,
)
from metrifair.estimators.table_model import RULES, TableModel, choose_threshold, decision_gaps
