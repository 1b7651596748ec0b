__version__: str

from . import batches, datasets, errors, mlflow, nn
from .api.audit import audit
from .api.audit_file import audit_file
from .api.audit_result import Audit
from .api.audit_table import audit_table
from .api.compare import AuditDifference, compare
from .api.frontier import Frontier, frontier
from .api.loading import load, save
from .api.model_card import to_card
from .api.monitor import AuditSeries, monitor
from .api.state import AuditState
from .auditing.contributions import FeatureContribution, GapContributions, gap_contributions
from .auditing.unfairness import unfairness
from .baselines.berk import BerkRegressor
from .baselines.chzhen import ChzhenPostprocessor
from .baselines.fairbatch import FairBatchClassifier
from .baselines.fairkde import FairKDEClassifier
from .baselines.kamiran import MassagingClassifier, ReweighingClassifier
from .baselines.labelbias import LabelBiasClassifier
from .baselines.sinkhorn import SinkhornClassifier
from .baselines.xian import XianPostprocessor
from .baselines.zafar import ZafarClassifier
from .boosting.lightgbm import FairLGBMClassifier, FairLGBMRegressor
from .boosting.xgboost import FairXGBClassifier, FairXGBRegressor
from .encoding.encoder import TableEncoder
from .errors import DataError, MissingExtra, ModelFileError, TooFewSamples
from .estimators import FairClassifier, FairRegressor
from .estimators.table_model import TableModel
from .metrics.dependence import distance_correlation, distance_covariance, energy_dependence
from .metrics.distances import (
    cramer_distance,
    distances,
    energy_distance,
    kolmogorov_distance,
    lp_distance,
    mmd_squared,
    total_variation,
    wasserstein_distance,
)
from .metrics.kernels import median_distance
from .metrics.vectors import sliced_energy_distance, sliced_wasserstein_distance
from .metrics.witness import Witness, witness
from .postprocessing.barycenter import BarycentrePostprocessor
from .postprocessing.threshold import ThresholdPostprocessor
from .problem import criteria
from .problem.criteria import Criterion
from .training.objective import Objective

__all__ = [
    "Audit",
    "AuditDifference",
    "AuditSeries",
    "AuditState",
    "BarycentrePostprocessor",
    "BerkRegressor",
    "ChzhenPostprocessor",
    "Criterion",
    "DataError",
    "FairBatchClassifier",
    "FairClassifier",
    "FairKDEClassifier",
    "FairLGBMClassifier",
    "FairLGBMRegressor",
    "FairRegressor",
    "FairXGBClassifier",
    "FairXGBRegressor",
    "FeatureContribution",
    "Frontier",
    "GapContributions",
    "LabelBiasClassifier",
    "MassagingClassifier",
    "MissingExtra",
    "ModelFileError",
    "Objective",
    "ReweighingClassifier",
    "SinkhornClassifier",
    "TableEncoder",
    "TableModel",
    "ThresholdPostprocessor",
    "TooFewSamples",
    "Witness",
    "XianPostprocessor",
    "ZafarClassifier",
    "audit",
    "audit_file",
    "audit_table",
    "batches",
    "compare",
    "cramer_distance",
    "criteria",
    "datasets",
    "distance_correlation",
    "distance_covariance",
    "distances",
    "energy_dependence",
    "energy_distance",
    "errors",
    "frontier",
    "gap_contributions",
    "kolmogorov_distance",
    "load",
    "lp_distance",
    "median_distance",
    "mlflow",
    "mmd_squared",
    "monitor",
    "nn",
    "save",
    "sliced_energy_distance",
    "sliced_wasserstein_distance",
    "to_card",
    "total_variation",
    "unfairness",
    "wasserstein_distance",
    "witness",
]
