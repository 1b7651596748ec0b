"""The names of model families.

Nothing is imported here: ``metrifair --help`` needs these words.
"""

AUTO_FAMILIES = (
    "linear",
    "barycenter",
    "thresholds",
    "small_trees",
    "large_trees",
    "blind_barycenter",
    "stack",
    "network",
    "stack_with_features",
)
"""The families of "auto", in the order in which it tries those that suit the data."""

POSTPROCESSORS = ("barycenter", "thresholds")
COMMAND_FAMILIES = (*POSTPROCESSORS, "linear", "mlp", "lightgbm", "xgboost")
"""What the command line trains besides "auto": values of --model, and post-processors of it."""
