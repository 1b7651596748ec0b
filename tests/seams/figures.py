"""Internal names of `metrifair.figures` that tests use."""

from metrifair.figures.attenuation import overlaps_of_rows
from metrifair.figures.bounded_means import log_tail_of_difference, lower_mean, upper_mean
from metrifair.figures.certificates import certified_distance, dkw_radius
from metrifair.figures.clusters import share_correlations, share_size
from metrifair.figures.count_bounds import (
    COUNTED_UTILITIES,
    CountedSides,
    IntervalCounts,
    distance_bounds,
    exact_utility,
    gap_bounds,
    score_kind,
    square_bounds,
    utility_bounds,
)
from metrifair.figures.curves import Curves
from metrifair.figures.fold_gaps import (
    FEWEST_IN_FOLD,
    DrawnShares,
    FoldSides,
    corrected_squares,
    gap_without_chance,
    squared_distances,
)
from metrifair.figures.gap_bounds import ComparedSums, lower_gaps, upper_gaps
from metrifair.figures.intervals import Interval
from metrifair.figures.linear_bounds import (
    contrast,
    free_solution,
    least_gap,
    linear_certificate,
    risk,
    sampling_error,
    standardized,
)
from metrifair.figures.membership_estimates import (
    energy_estimate,
    merged_cells,
    rate_bounds,
    rate_estimate,
)
from metrifair.figures.power import _Plan
from metrifair.figures.selection_rates import (
    STANDARDS,
    GroupRates,
    RatioRule,
    compare_rates,
    effective_counts,
    fisher_p,
    impact_ratios,
    is_below,
    ratio_intervals,
    wilson_interval,
)
from metrifair.figures.sign_flips import sign_flip_p_value
from metrifair.figures.step_down import level_shares, spent_by_tables, step_down
from metrifair.figures.two_by_two import TwoByTwoTables, attainable_tails, log_tails, lower_log_odds
from metrifair.figures.two_rates import (
    RatePair,
    common_odds,
    odds_ratio,
    odds_ratio_interval,
    standard_deviations,
)
from metrifair.figures.utility import (
    UTILITIES,
    Predictions,
    Utility,
    as_utility,
    constant_mark,
    constant_model,
    utilities_for,
)
