"""A misspelled argument is refused in the name of the class that the user called."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest
from sklearn.base import clone

import metrifair
from metrifair import FairClassifier, baselines, stacking

CLASSES: dict[str, Any] = {
    name: getattr(module, name)
    for module in (metrifair, baselines, stacking)
    for name in module.__all__
    if inspect.isclass(getattr(module, name)) and hasattr(getattr(module, name), "fit")
}
METHODS = ("fit", "partial_fit", "predict", "save", "to_onnx")


def refuses_other_arguments(model: Any, method: str) -> bool:
    """Whether the class has the method at any time and with its own arguments only: boosters pass
    others on to LightGBM or XGBoost.
    """
    function = inspect.getattr_static(model, method, None)
    if not inspect.isfunction(function):
        return False
    kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
    return inspect.Parameter.VAR_KEYWORD not in kinds


CALLS = [
    (name, method)
    for name, model in CLASSES.items()
    for method in METHODS
    if refuses_other_arguments(model, method)
]


@pytest.mark.parametrize(("name", "method"), CALLS)
def test_a_misspelled_argument_is_refused_in_the_name_of_the_class(name: str, method: str) -> None:
    model = CLASSES[name]
    said = rf"^{name}\.{method}\(\) got an unexpected keyword argument 'sensitive_feature'"
    with pytest.raises(TypeError, match=said):
        getattr(model, method)(object.__new__(model), sensitive_feature=1)


def test_so_it_is_in_classes_of_the_user_which_keep_their_methods() -> None:
    class Mine(FairClassifier):
        """A user's class."""

        def predict(self, X: Any) -> Any:
            """Predictions of mine."""
            return super().predict(X)

    with pytest.raises(TypeError, match=r"Mine\.fit\(\) got an unexpected keyword"):
        Mine().fit([[0.0]], [0], groups=[1])
    assert inspect.signature(Mine.fit) == inspect.signature(FairClassifier.fit)
    assert Mine.fit.__doc__ == FairClassifier.fit.__doc__
    assert Mine.predict.__doc__ == "Predictions of mine."
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    plain = FairClassifier(0.0, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(plain))
    assert (again.predict_proba(X) == clone(plain).fit(X, y).predict_proba(X)).all()
