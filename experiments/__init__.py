"""The paper's experiments, each with one call: tables with the printed values beside ours, figures,
raw points.

>>> NAMES[:3]
('online-regression', 'online-classification', 'regression')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

NAMES = (
    "online-regression",
    "online-classification",
    "regression",
    "classification",
    "equal-opportunity",
    "preprocessing",
    "postprocessing",
    "convergence",
    "theory",
    "boosting",
    "continuous",
)
ALONE = ("hidden-groups", "hindsight", "duel")
"""Not part of ``"all"``: two have splits of their own, one compares us with other libraries,
from wheels.
"""


def reproduce(
    name: str,
    *,
    protocol: str = "corrected",
    seeds: int = 10,
    quick: bool = False,
    out: Path,
    n_jobs: int = 1,
    parts: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Run an experiment, or ``"all"``, and write its points, table, figure and page into the folder
    ``out``.

    ``protocol`` is ``"published"`` (what the authors' code did) or ``"corrected"`` (what the text
    means). ``quick`` runs two seeds, few strengths and few epochs. Finished work is noted in
    ``out`` and never done again, unless the sources of the library or of the experiment have
    changed. Tables of several methods are filled by ``n_jobs`` processes at once. ``parts`` are
    options of the duel, as the command line names them.

    >>> reproduce("clasification", out=Path("results"))
    Traceback (most recent call last):
    metrifair.errors.DataError: name must be one of ..., got 'clasification'; did you mean 'classification'?
    """
    # Imported here: listing the names must not import torch.
    from experiments import (  # noqa: PLC0415
        boosting,
        comparisons,
        continuous,
        convergence,
        duel,
        hidden_groups,
        hindsight,
        online,
        theory,
    )
    from experiments.settings import PROTOCOLS, Effort  # noqa: PLC0415
    from metrifair.support.checks import check_integer, check_known  # noqa: PLC0415

    check_known("name", name, ["all", *NAMES, *ALONE])
    check_known("protocol", protocol, PROTOCOLS)
    check_integer("seeds", seeds, least=1)
    check_integer("n_jobs", n_jobs, least=1)
    chosen, effort, folder = PROTOCOLS[protocol], Effort.of(seeds, quick=quick), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    alone: dict[str, Callable[..., None]] = {
        "online-regression": online.run_regression,
        "online-classification": online.run_classification,
        "convergence": convergence.run,
        "theory": theory.run,
        "boosting": partial(boosting.run, n_jobs=n_jobs),
        "continuous": partial(continuous.run, n_jobs=n_jobs),
        "hidden-groups": partial(hidden_groups.run, n_jobs=n_jobs),
        "hindsight": partial(hindsight.run, n_jobs=n_jobs),
        "duel": partial(duel.run, n_jobs=n_jobs, parts=duel.Parts.of(**parts)),
    }
    for one in NAMES if name == "all" else (name,):
        run = alone[one] if one in alone else partial(comparisons.run, one, n_jobs=n_jobs)
        run(chosen, effort, folder)
