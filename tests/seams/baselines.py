"""Internal names of `metrifair.baselines` that tests use."""

from metrifair.baselines import berk, zafar
from metrifair.baselines.baseline import (
    TrainingData,
    features_at_predict,
    groups_at_predict,
    training_data,
)
from metrifair.baselines.berk import pair_moments, penalty_root
from metrifair.baselines.fairbatch import Sampler, batch_counts, cell_losses, cyclic, update_shares
from metrifair.baselines.fairkde import SmoothedRates, compared_cells, members, smoothed_acceptance
from metrifair.baselines.kamiran import independence_weights, rows_to_relabel
from metrifair.baselines.labelbias import tilted_weights, violations
from metrifair.baselines.network import weighted_epochs
from metrifair.baselines.sinkhorn import forward
from metrifair.baselines.transport import (
    Points,
    Sinkhorn,
    TransportProblem,
    by_coordinate,
    distinct_points,
)
from metrifair.baselines.xian import accepted, assignment, binary_assignment, offsets
from metrifair.baselines.zafar import (
    MISTREATED,
    ColumnScale,
    Logistic,
    Mistreatment,
    convex_round,
    covariances,
    solve,
    within_all,
)
