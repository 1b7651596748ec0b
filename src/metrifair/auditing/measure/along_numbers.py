"""Quantiles of the scores and selection rates along a number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.attribute_bands import Bands
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.worst_cuts import WorstCut
from metrifair.auditing.records import AlongNumber
from metrifair.problem.bands import quantile_cuts
from metrifair.problem.values import band_names
from metrifair.support.checks import rows_or_none

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
# in a band; with fewer, quantiles at the ends are hardly more than one row each
_MOST_BANDS = 20
_FEWEST_ROWS = 30


def along_number(
    sample: AuditSample,
    bands: Bands,
    cut: WorstCut,
    selected: NDArray[Any] | None,
) -> AlongNumber | None:
    """Quantiles of the scores, and shares that are selected, in bands of a number with about as
    many rows each.

    ``selected`` is the selected amount of each unit; None: no decisions. The worst ``cut`` is
    marked. None if all values are equal, and for other scores than predictions.
    """
    units = bands.units
    values = bands.values
    scores = bands.part.scores
    if not bands.part.of_predictions or not len(units):
        return None
    amounts = np.ones(len(units))
    if bands.amounts is not None:
        amounts = bands.amounts
    rows = rows_or_none(sample.units.rows, units)
    cuts = quantile_cuts(values, amounts, _MOST_BANDS, rows=rows, least=_FEWEST_ROWS)
    if not len(cuts):
        return None
    band = np.searchsorted(cuts, values)
    count = len(cuts) + 1
    weight = np.bincount(band, amounts, count)
    quantiles = np.zeros((count, len(QUANTILES)))
    for number in range(count):
        upto = np.cumsum(scores.at(units[band == number]).astype(np.float64))
        quantiles[number] = scores.values[
            np.searchsorted(upto, np.array(QUANTILES) * upto[-1] * (1 - 1e-12))
        ]
    rates = []
    if selected is not None:
        rates = (np.bincount(band, selected[units], count) / weight).tolist()
    worst = next(
        (finding for finding in cut.findings if finding.metric == "kolmogorov"),
        None,
    )
    return AlongNumber(
        bands.attribute,
        bands.part.within,
        bands=band_names(cuts),
        at=(np.bincount(band, values * amounts, count) / weight).tolist(),
        sizes=[sample.units.size(units[band == number]) for number in range(count)],
        quantiles={f"{share:.0%}": quantiles[:, at].tolist() for at, share in enumerate(QUANTILES)},
        selection_rates=rates,
        cut=None if worst is None else worst.cut,
    )
