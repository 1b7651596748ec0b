"""Internal names of `metrifair.postprocessing` that tests use."""

from metrifair.postprocessing import postprocessor
from metrifair.postprocessing.group_model import blind_coin, blind_cut, blind_map, fit_group_model
from metrifair.postprocessing.postprocessor import (
    Postprocessor,
    TrainingRows,
    assign_folds,
    check_learner,
    out_of_fold,
    overfits,
    probabilities,
    with_ties,
)
from metrifair.postprocessing.rates import best_mixtures, best_thresholds, lower_hull, rate_curve
