from .kernels import median_distance
from .vectors import sliced_energy_distance, sliced_wasserstein_distance
from .witness import Witness

__all__ = ["Witness", "median_distance", "sliced_energy_distance", "sliced_wasserstein_distance"]
