"""What a user without extras can do, run by `make test-install` in an environment that holds
the wheel and no more.
"""

import json
import subprocess
import sys
import tempfile
from importlib.metadata import files, requires
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

import numpy as np

import metrifair
from metrifair import AuditOptions, AuditState, audit, compare, load, monitor, unfairness
from metrifair.metrics import wasserstein_distance, witness

EXTRAS = (
    "torch",
    "sklearn",
    "scipy",
    "joblib",
    "safetensors",
    "pandas",
    "polars",
    "click",
    "lightgbm",
    "matplotlib",
)
MOST_MEGABYTES = 100
NEEDED = {
    "BarycenterPostprocessor": "train",
    "FairClassifier": "train",
    "FairClassifierCV": "train",
    "FairLGBMClassifier": "boosting",
    "FairLGBMRegressor": "boosting",
    "FairRegressor": "train",
    "FairRegressorCV": "train",
    "FairXGBClassifier": "boosting",
    "FairXGBRegressor": "boosting",
    "Frontier": "train",
    "SearchOptions": "train",
    "TableEncoder": "train",
    "ThresholdPostprocessor": "train",
    "frontier": "train",
    "to_card": "train",
}


def megabytes() -> float:
    """What all packages of this environment take on the disk, in units of 2^20 bytes as `du -m`
    has them.
    """
    folder = Path(np.__file__).parents[1]
    return (
        sum(
            path.stat().st_size
            for path in folder.rglob("*")
            if path.suffix != ".pyc" and path.is_file()
        )
        / 2**20
    )


def check_audits() -> None:
    """Measure, audit, compare and count, with pages and files."""
    generator = np.random.default_rng(0)
    a = generator.integers(2, size=1_000)
    y = (generator.random(1_000) < 0.5).astype(int)
    old, new = (np.clip(generator.normal(0.5 + shift * a, 0.2), 0, 1) for shift in (0.2, 0.05))
    found, better = (
        audit(y, scores, sensitive_features=a, random_state=0) for scores in (old, new)
    )
    assert found.worst(criterion="statistical_parity").value == unfairness(
        None, old, sensitive_features=a
    )
    losses = audit(
        y,
        old,
        sensitive_features=a,
        criteria=["risk_parity"],
        random_state=0,
        options=AuditOptions(loss="log_loss"),
    )
    assert losses.findings
    assert wasserstein_distance(old[a == 0], old[a == 1]) > 0.1
    assert witness(old[a == 0], old[a == 1]).gap > 0
    assert found.rates(standard="four-fifths")
    assert compare(found, better).differences
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "audit.html")
        found.to_html(page)
        assert page.stat().st_size > 10_000
        states = []
        for day, scores in enumerate((old, new)):
            state = AuditState()
            state.add(y, scores, sensitive_features=a)
            state.save(Path(folder, f"{day}.state"))
            states.append(load(Path(folder, f"{day}.state")))
        assert monitor(states).summary


def check_errors() -> None:
    """What needs an extra says which."""
    needed = NEEDED | {"nn.UnfairnessPenalty": "train", "baselines.BerkRegressor": "train"}
    missing = {}
    for name in (*metrifair.__all__, "nn.UnfairnessPenalty", "baselines.BerkRegressor"):
        try:
            attrgetter(name)(metrifair)
        except metrifair.errors.MissingExtra as error:
            missing[name] = str(error)
    assert set(missing) == set(needed), missing
    for name, extra in needed.items():
        assert f'pip install "metrifair[{extra}]"' in missing[name], missing[name]
    done = subprocess.run(
        [sys.executable, "-I", "-m", "metrifair", "audit"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        'the command line needs click: pip install "metrifair[cli]"\n',
    ), done


def check_bill_of_materials() -> None:
    """The wheel lists what it requires."""
    (listed,) = (file for file in files("metrifair") or () if file.name.endswith(".cdx.json"))
    document = json.loads(listed.read_text())
    assert document["metadata"]["component"]["version"] == metrifair.__version__
    required = [part for part in document["components"] if part["scope"] == "required"]
    texts = {row["value"] for part in required for row in part["properties"]}
    assert texts == {text for text in requires("metrifair") or () if "extra ==" not in text}


def main() -> None:
    """Audits, and errors that name extras."""
    there = [name for name in EXTRAS if find_spec(name)]
    if there:
        raise SystemExit(f"this environment is not empty: it holds {there}")
    check_audits()
    check_errors()
    check_bill_of_materials()
    size = megabytes()
    print(
        f"metrifair {metrifair.__version__} audits without extras: {size:.0f} MB of at most "
        f"{MOST_MEGABYTES}"
    )
    assert size <= MOST_MEGABYTES, size


if __name__ == "__main__":
    main()
