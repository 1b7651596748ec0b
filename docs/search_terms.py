"""What readers search for, and the page that should come first; an index of keywords on top of
the words of pages.
"""

from __future__ import annotations

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

PAGES: dict[str, tuple[str, ...]] = {
    "start": ("install", "installation", "quickstart", "getting started"),
    "standards": (
        "four-fifths",
        "80% rule",
        "impact ratio",
        "adverse impact",
        "ll144",
        "local law 144",
        "eeoc",
        "shortfall",
    ),
    "numbers": ("age", "income", "continuous attribute", "numeric attribute", "worst cut"),
    "deploy": ("onnx", "deployment", "production", "torchscript"),
    "coming-from": ("fairlearn", "aif360", "aequitas", "error-parity", "giskard", "migration"),
    "boosting": ("lightgbm", "xgboost", "gradient boosting"),
    "cli": ("command line", "cli", "terminal", "options", "exit code"),
    "beyond-one-machine": (
        "database",
        "parquet",
        "sql",
        "spark",
        "dask",
        "larger than memory",
        "out of core",
        "federated",
        "several sites",
    ),
    "other-tools": ("mlflow", "lightning", "optuna", "skorch"),
    "sklearn": ("pipeline", "scikit-learn", "grid search", "cross-validation", "text columns"),
    "finding-groups": ("subgroups", "slices", "worst group", "find groups", "conjunction"),
    "comparing": ("drift", "monitoring", "compare models"),
    "choosing": ("threshold", "utility", "constant predictor", "model selection"),
    "defaults": ("default", "defaults", "learning rate", "hyperparameters"),
    "baselines": ("baseline", "reweighing", "zafar"),
    "untrusted-input": ("pickle", "security", "untrusted"),
    "intervals": ("confidence interval", "coverage", "bootstrap"),
    "concepts/criteria": (
        "criterion",
        "equalized odds",
        "equal opportunity",
        "statistical parity",
        "demographic parity",
    ),
    "concepts/distances": ("distance", "kolmogorov", "energy distance", "wasserstein"),
    "concepts/limits": ("limits", "law", "compliance"),
    "tutorials/your-own-network": ("pytorch", "training loop", "torch"),
    "tutorials/streams": ("stream", "partial_fit", "online learning"),
    "tutorials/reading-a-report": ("report", "html report"),
    "tutorials/choosing-a-strength": ("strength", "trade-off", "pareto front"),
    "gallery/2_train/plot_unknown_groups": ("missing groups", "missing group", "unknown groups"),
}


def _index(app: Sphinx, page: nodes.document) -> None:
    """Enter the terms of a page into the index and into the search, as its main subjects."""
    entries = [("single", term, "", "main", None) for term in PAGES.get(app.env.docname, ())]
    if entries:
        app.env.domains.index_domain.entries.setdefault(app.env.docname, []).extend(entries)
        page.append(addnodes.index(entries=entries, inline=False))


def setup(app: Sphinx) -> dict[str, bool]:
    """Index every page that is read."""
    app.connect("doctree-read", _index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
