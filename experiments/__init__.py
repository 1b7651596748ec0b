"""The paper's experiments, each with one call: tables with the printed values beside ours, figures, raw points.

>>> NAMES[:3]
('online-regression', 'online-classification', 'regression')
"""

from __future__ import annotations

from pathlib import Path

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
)


def reproduce(
    name: str, *, protocol: str = "corrected", seeds: int = 10, quick: bool = False, out: Path, n_jobs: int = 1
) -> None:
    """Run an experiment, or ``"all"``, and write its points, table, figure and page into the folder ``out``.

    ``protocol`` is ``"published"`` (what the authors' code did) or ``"corrected"`` (what the text means). ``quick``
    runs two seeds, few strengths and few epochs. Finished work is noted in ``out`` and never done again.
    Tables of several methods are filled by ``n_jobs`` processes at once.

    >>> reproduce("clasification", out=Path("results"))
    Traceback (most recent call last):
    metrifair.errors.DataError: name must be one of ..., got 'clasification'; did you mean 'classification'?
    """
    from experiments.catalogue import run  # noqa: PLC0415  (listing the names must not import torch)

    run(name, protocol=protocol, seeds=seeds, quick=quick, out=Path(out), n_jobs=n_jobs)
