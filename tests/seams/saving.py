"""Internal names of `metrifair.saving` that tests use."""

from metrifair.saving import modelfile, records
from metrifair.saving.lightgbm_trees import lightgbm_trees
from metrifair.saving.modelfile import (
    Content,
    add_prefix,
    fingerprint,
    from_bytes,
    read,
    strip_prefix,
    to_bytes,
    write,
)
from metrifair.saving.models import encoder_record, make_content, read_encoder, read_model
from metrifair.saving.onnx import make_forest, onnx_model
from metrifair.saving.records import (
    Classes,
    EncoderRecord,
    classes_record,
    read_classes,
    read_record,
)
from metrifair.saving.scoring import _trees, table_scorer
from metrifair.saving.xgboost_trees import xgboost_trees
