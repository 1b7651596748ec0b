"""Internal names of `metrifair.tradeoff` that tests use."""

from metrifair.tradeoff import frontier, ledger, out_of_fold, sweep
from metrifair.tradeoff.choice import NOTHING, Chooser, Rule, choose
from metrifair.tradeoff.configurations import lines
from metrifair.tradeoff.evaluate import make_point, predict, score_curves
from metrifair.tradeoff.family_names import AUTO_FAMILIES
from metrifair.tradeoff.goal import Goal
from metrifair.tradeoff.group_features import group_feature_notes
from metrifair.tradeoff.ledger import Entry, Ledger, content_text, fingerprint
from metrifair.tradeoff.out_of_fold import (
    FoldLedger,
    FoldResult,
    TrainingFit,
    resembles,
    training_fit,
)
from metrifair.tradeoff.points import Change, FrontierNote, Job, Outcome, Point, area, pareto
from metrifair.tradeoff.portfolio import STRENGTHS, Portfolio
from metrifair.tradeoff.possible_choices import BoundedFigures
from metrifair.tradeoff.record import FrontierRecord
from metrifair.tradeoff.repeats import repeat_notes
from metrifair.tradeoff.resamples import (
    ResampledGaps,
    ResampledUtilities,
    draw_rows,
    number_of_resamples,
    resampled_gaps,
    resampled_utilities,
)
from metrifair.tradeoff.result import TradeOff
from metrifair.tradeoff.search_facts import SearchFacts, SearchFigures
from metrifair.tradeoff.split import data_set, make_folds
from metrifair.tradeoff.sweep import RowsToTrain, needs_group
