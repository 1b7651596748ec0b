"""Internal names of `metrifair.support` that tests use."""

from metrifair.support.checks import check_integer, check_number, make_seed
from metrifair.support.parallel import run_parallel
from metrifair.support.progress import Progress
from metrifair.support.provenance import (
    Provenance,
    ScoreOrigin,
    SourceFile,
    read_score_origin,
    source_files,
)
from metrifair.support.reuse import reused, reusing_results
from metrifair.support.special import beta_quantile, normal_cdf, normal_quantile, student_quantile
