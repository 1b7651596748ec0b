"""Internal names of `metrifair.batches` that tests use."""

from metrifair.batches import samples
from metrifair.batches.samples import (
    PATIENCE,
    Batch,
    DevicePasses,
    Layout,
    Samples,
    StratifiedPasses,
    join_samples,
    layout,
    overshoot_weights,
    rows_by_cell,
    sampling_odds,
    sides_by_row,
    tensor_sides,
)
