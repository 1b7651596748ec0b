from . import batches, criteria, datasets, errors, nn
from .criteria import Criterion
from .errors import DataError, MissingExtra, ModelFileError, TooFewSamples
from .estimators import FairClassifier, FairRegressor
from .loading import load
from .measuring import unfairness
from .metrics.catalog import distances
from .metrics.cdf import cramer_distance, kolmogorov_distance, lp_distance, total_variation, wasserstein_distance
from .metrics.kernel import median_distance
from .metrics.quadratic import energy_distance, mmd_squared
from .metrics.sliced import sliced_energy_distance
from .metrics.witness import Witness, witness
from .objective import Objective
from .tradeoff.frontier import Frontier, frontier

__all__ = [
    "Criterion",
    "DataError",
    "FairClassifier",
    "FairRegressor",
    "Frontier",
    "MissingExtra",
    "ModelFileError",
    "Objective",
    "TooFewSamples",
    "Witness",
    "batches",
    "cramer_distance",
    "criteria",
    "datasets",
    "distances",
    "energy_distance",
    "errors",
    "frontier",
    "kolmogorov_distance",
    "load",
    "lp_distance",
    "median_distance",
    "mmd_squared",
    "nn",
    "sliced_energy_distance",
    "total_variation",
    "unfairness",
    "wasserstein_distance",
    "witness",
]
