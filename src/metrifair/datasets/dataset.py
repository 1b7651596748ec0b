"""The result of every loader."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from metrifair.support.checks import require

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

TaskName = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table of features with its target and its groups, and where they come from.

    Parameters
    ----------
    X : pandas.DataFrame
        Features, one float64 column each, in the order of the raw file.
    y : pandas.Series
        Target with the index of ``X``: 0 and 1 for classification, reals for regression.
    group_codes : pandas.Series
        Group of each row, 0 or 1, with the index of ``X``; its name is that of the attribute.
    task : {"classification", "regression"}
        What kind of target it is.
    names : tuple of two str
        What group 0 and group 1 mean.
    description : str
        Description of the rows, with source, citation and license.
    prescribed : int or None, default=None
        Number of leading rows that the source itself calls training rows; None if it prescribes no
        split.
    number : pandas.Series or None, default=None
        The number that the groups were cut from, with the index of ``X``; None if they were not.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"income": [1.0, 2.0, 3.0, 4.0, 5.0]})
    >>> data = Dataset(
    ...     X=table, y=pd.Series([0, 0, 1, 1, 1]),
    ...     group_codes=pd.Series([0, 1, 0, 1, 0], name="sex"),
    ...     task="classification", names=("women", "men"), description="five made-up people",
    ... )
    >>> data
    Dataset(5 rows x 1 columns, classification, sex: 0 = women (3), 1 = men (2))
    >>> data.sensitive_features.tolist()
    ['women', 'men', 'women', 'men', 'women']
    >>> train, test = data.split(seed=0)
    >>> len(train), len(test)
    (3, 2)
    """

    X: pd.DataFrame
    y: pd.Series
    group_codes: pd.Series
    task: TaskName
    names: tuple[str, str]
    description: str
    prescribed: int | None = None
    number: pd.Series | None = None

    @cached_property
    def sensitive_features(self) -> pd.Series:
        """The name of each row's group, such as "not white", with the index of ``X``; audits
        and reports show it.
        """
        return self.group_codes.map(dict(enumerate(self.names)))

    def split(self, seed: int = 0) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of the training rows and of the test rows.

        A quarter of the rows, rounded up, are test rows, drawn as scikit-learn's
        ``train_test_split`` draws them with ``random_state=seed``. If the source prescribes a
        split, it is returned for every seed.

        Parameters
        ----------
        seed : int, default=0
            Any integer from 0; the paper's splits are those of 0 to 9.

        Returns
        -------
        train, test : ndarray of int
            Positions in ``X``.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = pd.Series([0, 1, 0, 1])
        >>> data = Dataset(rows.to_frame("x"), rows, rows, "classification", ("a", "b"), "",
        ...     prescribed=3)
        >>> data.split(seed=7)
        (array([0, 1, 2]), array([3]))
        """
        rows = np.arange(len(self.X))
        if self.prescribed is not None:
            return rows[: self.prescribed], rows[self.prescribed :]
        selection = require("sklearn.model_selection", extra="train", purpose="a random split")
        train, test = selection.train_test_split(rows, random_state=seed)
        return train, test

    def __repr__(self) -> str:
        sizes = [int((self.group_codes == group).sum()) for group in (0, 1)]
        groups = ", ".join(f"{group} = {self.names[group]} ({sizes[group]})" for group in (0, 1))
        n_rows, n_columns = self.X.shape
        size = f"{n_rows} rows x {n_columns} columns"
        return f"Dataset({size}, {self.task}, {self.group_codes.name}: {groups})"
