"""Internal names of `metrifair.metrics` that tests use."""

from metrifair.metrics import dominance, line, numpy_namespace, pair, quadratic
from metrifair.metrics.covariance import covariance_value, drawn_form, plug_in_form, weighted_form
from metrifair.metrics.dependence import (
    covariance_form,
    dependence_and_correlation,
    dependence_slopes,
    dependence_value,
    with_scale,
)
from metrifair.metrics.dominance import AttributeValues, distance_sums, signed_sums
from metrifair.metrics.line import merged
from metrifair.metrics.namespaces import namespace_for
from metrifair.metrics.pair import Pair, between, to_pair
from metrifair.metrics.penalty_options import penalty_options
from metrifair.metrics.quadratic import (
    energy_between,
    energy_coefficients,
    mmd_between,
    sliced_energy_between,
    vector_energy_between,
)
from metrifair.metrics.registry import (
    METRICS,
    PENALTY_ESTIMATES,
    Integral,
    MetricFacts,
    acts_on_vectors,
    facts,
    is_largest_gap,
    least_samples,
    plug_in_metric,
    training_metric,
    vector_metric,
    warn_without_estimate,
)
from metrifair.metrics.torch_namespace import TorchNamespace, random_directions
