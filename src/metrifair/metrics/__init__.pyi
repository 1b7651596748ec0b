from .dependence import distance_correlation, distance_covariance, energy_dependence
from .kernels import median_distance
from .score_distances import (
    cramer_distance,
    distances,
    energy_distance,
    kolmogorov_distance,
    lp_distance,
    mmd_squared,
    total_variation,
    wasserstein_distance,
)
from .vectors import sliced_energy_distance, sliced_wasserstein_distance
from .witnesses import Witness, witness

__all__ = [
    "Witness",
    "cramer_distance",
    "distance_correlation",
    "distance_covariance",
    "distances",
    "energy_dependence",
    "energy_distance",
    "kolmogorov_distance",
    "lp_distance",
    "median_distance",
    "mmd_squared",
    "sliced_energy_distance",
    "sliced_wasserstein_distance",
    "total_variation",
    "wasserstein_distance",
    "witness",
]
