"""Internal names of `metrifair.boosting` that tests use."""

from metrifair.boosting import objective, problem, xgboost
from metrifair.boosting.dask import LocalRows, SummedRisk, Together, _parts, check_summable
from metrifair.boosting.objective import (
    FIRST_STRENGTH,
    LEVELS,
    METRIC_NAME,
    PLACES,
    WIDEST,
    Descent,
    energy_tables,
    grid_places,
    leveled_dependence,
)
from metrifair.boosting.problem import (
    FOLDS,
    GroupSample,
    boosting_problem,
    expected_shares,
    is_penalized,
)
