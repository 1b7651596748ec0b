"""Internal names of `metrifair.boosting` that tests use."""

from metrifair.boosting import objective, problem
from metrifair.boosting.dask import LocalRows, SummedRisk, Together, _parts, check_summable
from metrifair.boosting.objective import (
    LEVELS_OF_NUMBERS,
    PLACES,
    Descent,
    energy_tables,
    grid_places,
    leveled_dependence,
)
from metrifair.boosting.problem import GroupSample, boosting_problem, expected_shares, is_penalized
