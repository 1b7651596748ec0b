__version__: str

from . import baselines, datasets, nn
from .api.audit import audit
from .api.audit_columns import audit_file, audit_table
from .api.audit_result import Audit
from .api.compare import AuditDifference, compare
from .api.cross_validated import FairClassifierCV, FairRegressorCV
from .api.find_groups import find_groups
from .api.frontier import Frontier, frontier
from .api.loading import load, save
from .api.model_card import to_card
from .api.monitor import AuditSeries, monitor
from .api.reading import read_file
from .api.state import AuditState
from .auditing.request import AuditOptions
from .auditing.sources.file_formats import ReadOptions
from .auditing.unfairness import unfairness
from .boosting.lightgbm import FairLGBMClassifier, FairLGBMRegressor
from .boosting.xgboost import FairXGBClassifier, FairXGBRegressor
from .encoding.encoder import TableEncoder
from .errors import DataError
from .estimators import FairClassifier, FairRegressor
from .metrics.penalty_options import PenaltyOptions
from .postprocessing.barycenter import BarycenterPostprocessor
from .postprocessing.threshold import ThresholdPostprocessor
from .problem.memberships import GroupProbabilities
from .tradeoff.sweep import SearchOptions

__all__ = [
    "Audit",
    "AuditDifference",
    "AuditOptions",
    "AuditSeries",
    "AuditState",
    "BarycenterPostprocessor",
    "DataError",
    "FairClassifier",
    "FairClassifierCV",
    "FairLGBMClassifier",
    "FairLGBMRegressor",
    "FairRegressor",
    "FairRegressorCV",
    "FairXGBClassifier",
    "FairXGBRegressor",
    "Frontier",
    "GroupProbabilities",
    "PenaltyOptions",
    "ReadOptions",
    "SearchOptions",
    "TableEncoder",
    "ThresholdPostprocessor",
    "audit",
    "audit_file",
    "audit_table",
    "baselines",
    "compare",
    "datasets",
    "find_groups",
    "frontier",
    "load",
    "monitor",
    "nn",
    "read_file",
    "save",
    "to_card",
    "unfairness",
]
