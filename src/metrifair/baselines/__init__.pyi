from .berk import BerkRegressor
from .chzhen import ChzhenPostprocessor
from .fairbatch import FairBatchClassifier
from .fairkde import FairKDEClassifier
from .kamiran import MassagingClassifier, ReweighingClassifier
from .labelbias import LabelBiasClassifier
from .sinkhorn import SinkhornClassifier
from .xian import XianPostprocessor
from .zafar import ZafarClassifier

__all__ = [
    "BerkRegressor",
    "ChzhenPostprocessor",
    "FairBatchClassifier",
    "FairKDEClassifier",
    "LabelBiasClassifier",
    "MassagingClassifier",
    "ReweighingClassifier",
    "SinkhornClassifier",
    "XianPostprocessor",
    "ZafarClassifier",
]
