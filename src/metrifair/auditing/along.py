"""How scores and decisions go along an attribute that is a number, ready to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.sample import AuditSample, Part
from metrifair.problem.attributes import band_names
from metrifair.problem.bands import quantile_cuts
from metrifair.results import AlongNumber, Finding

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_MOST_BANDS, _FEWEST_ROWS = 20, 30  # in a band; of fewer, quantiles at the ends are hardly more than one person each


def along_number(
    sample: AuditSample, part: Part, place: int, selected: NDArray[Any] | None, findings: Sequence[Finding]
) -> AlongNumber | None:
    """Quantiles of the scores, and shares that are selected, in bands of a number with about as many rows each.

    ``selected`` is how much of each unit is, None: nothing is decided. ``findings`` are those of the number there; its
    worst cut is marked. None where all values are equal.
    """
    problem = sample.problem
    known = problem.groups[part.units, place] >= 0
    units = part.units[known]
    if problem.numbers is None or not len(units):
        return None
    values, counts = problem.numbers[units, place], sample.weight if sample.weight is not None else sample.rows
    amounts = np.ones(len(units)) if counts is None else counts[units].astype(np.float64)
    rows = None if sample.rows is None else sample.rows[units]
    cuts = quantile_cuts(values, amounts, _MOST_BANDS, rows=rows, least=_FEWEST_ROWS)
    if not len(cuts):
        return None
    band, bands = np.searchsorted(cuts, values), len(cuts) + 1
    weight = np.bincount(band, amounts, bands)
    quantiles = np.zeros((bands, len(QUANTILES)))
    for one in range(bands):
        upto = np.cumsum(part.scores.at(units[band == one]).astype(np.float64))
        quantiles[one] = part.scores.values[np.searchsorted(upto, np.array(QUANTILES) * upto[-1] * (1 - 1e-12))]
    rates = () if selected is None else np.bincount(band, selected[units].astype(np.float64), bands) / weight
    worst = next((one for one in findings if one.metric == "kolmogorov"), None)
    return AlongNumber(
        problem.scheme.attributes[place].name,
        part.within,
        bands=band_names(cuts),
        at=(np.bincount(band, values * amounts, bands) / weight).tolist(),
        sizes=[sample.size(units[band == one]) for one in range(bands)],
        quantiles={f"{share:.0%}": quantiles[:, at].tolist() for at, share in enumerate(QUANTILES)},
        selection_rates=list(map(float, rates)),
        cut=None if worst is None else float(worst.groups[0].removeprefix("up to ")),
        sentence="" if worst is None else worst.sentence,
    )
