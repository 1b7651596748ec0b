"""Saving and exporting, for every fitted model.

Reading and writing files takes several times as long to import as fitting does: modules are
imported here when it is requested.
"""

from __future__ import annotations

import contextlib
from hashlib import sha256
from typing import TYPE_CHECKING

from metrifair.errors import DataError
from metrifair.support.files import write_file

if TYPE_CHECKING:
    from metrifair.saving.modelfile import Content, PathLike


class Saved:
    """Saving of fitted models: to a metrifair file, or to ONNX."""

    def save(self, path: PathLike) -> None:
        """Write the fitted model to one file, which ``metrifair.load`` reads without running any
        code.

        The file contains parameters, weights or trees, names of classes, groups and features, and
        the models that a post-processor wraps, which must be ours too. After loading,
        ``partial_fit`` goes on from the weights and from the means and variances of the features;
        samples that waited for their batch are not in the file. It cannot contain functions (a
        metric, score, callback or sets of your own: a DataError), and of a ``torch.nn.Module`` it
        contains the weights only. A ``random_state`` that is a generator is saved as None. A crash
        leaves the old file.

        Parameters
        ----------
        path : str or path
            The file. An existing file is replaced, in one step.
        """
        from metrifair.saving.modelfile import write  # noqa: PLC0415 (fitting needs none of it)

        write(path, self._content())

    def to_onnx(self, path: PathLike) -> None:
        """Write the fitted model as an ONNX graph, which runs without Python and without metrifair.

        Inputs: ``X`` of doubles (n, n_features); of a model that takes tables one input (n, 1) for
        each column by its name: doubles for numbers and booleans (1, 0), NaN where one is missing,
        and strings for text, empty if one is missing. Levels that were not seen at ``fit`` count as
        in Python. Outputs: ``label`` (n,) and ``probabilities`` (n, n_classes), or ``prediction``
        (n,). A positive label and a threshold that were chosen decide here too. docs/deploy.md
        states how close the numbers are, and which checks ONNX lacks.

        Parameters
        ----------
        path : str or path
            The file. An existing file is replaced, in one step.

        Raises
        ------
        DataError
            If ONNX does not support a part of the model: dates, categories that a booster splits
            by, post-processors, a module of your own. The message names it and a remedy.
        MissingExtra
            If onnx is not installed.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> import onnxruntime
        >>> from metrifair import FairClassifier
        >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["no", "yes", "no", "yes"])
        >>> model = FairClassifier(0.0, model="linear").fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.to_onnx(Path(folder) / "model.onnx")
        ...     session = onnxruntime.InferenceSession(Path(folder) / "model.onnx")
        >>> label, probabilities = session.run(None, {"X": X})
        >>> label.tolist(), bool(abs(probabilities - model.predict_proba(X)).max() < 1e-12)
        (['no', 'no', 'yes', 'yes'], True)
        """
        from metrifair.saving.modelfile import to_bytes  # noqa: PLC0415
        from metrifair.saving.onnx import onnx_model  # noqa: PLC0415

        about = {}
        with contextlib.suppress(DataError):  # a model that cannot be saved has no hash
            about["sha256"] = sha256(to_bytes(self._content())).hexdigest()
        try:
            graph = onnx_model(self, about)
        except UnicodeEncodeError as error:  # a lone surrogate, as in some files
            raise DataError(
                f"the text {error.object!r} cannot be written as ONNX; correct it, and fit again"
            ) from error
        write_file(path, graph)

    def _content(self) -> Content:
        from metrifair.saving.models import make_content  # noqa: PLC0415

        return make_content(self)
