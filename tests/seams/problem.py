"""Internal names of `metrifair.problem` that tests use."""

from metrifair.problem import cells, problem
from metrifair.problem.attributes import (
    group_codes,
    in_groups,
    number_facts,
    numbers_among,
    numbers_warning,
    stratum_codes,
)
from metrifair.problem.bands import candidate_cuts, in_bands, quantile_cuts
from metrifair.problem.cells import (
    Attribute,
    Comparison,
    Dependence,
    Sides,
    compile_cells,
    needs_combinations,
)
from metrifair.problem.criteria import (
    CRITERIA,
    membership_codes,
    overlapping_strata,
    separate_strata,
)
from metrifair.problem.losses import REGRESSION_LOSSES, log_losses, logits
from metrifair.problem.memberships import row_probabilities
from metrifair.problem.predictions import criterion_scores
from metrifair.problem.problem import (
    Inputs,
    make_problem,
    problem_by_membership,
    problem_with_probabilities,
    problem_with_scheme,
    problem_with_scheme_and_probabilities,
)
from metrifair.problem.tables import (
    CodedColumn,
    coded_columns,
    columns,
    is_missing,
    renumbered,
    same_length,
    same_rows,
)
from metrifair.problem.values import canonical, canonical_values, is_missing_value, place_among
