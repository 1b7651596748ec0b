"""Train and audit predictors whose scores are distributed alike across demographic groups."""

# both are light: their dependencies are imported on first use
from metrifair import errors as errors
from metrifair import metrics as metrics
from metrifair.support.lazy import attach

__version__ = "1.0.0rc1"

__getattr__, __dir__, __all__ = attach(
    __name__,
    __file__,
    modules=("batches", "criteria", "evidence", "mlflow", "postprocessing", "stacking"),
)
