"""The paper's printed entries, all fifty, and the settings of its runs, written down a second
time.
"""

from __future__ import annotations

import pytest

from experiments.data import load
from experiments.printed import Printed, printed
from experiments.settings import CORRECTED, DATA, PUBLISHED, Effort, cases

METHODS = {
    "Berk individual": "berk-individual", "Berk group": "berk-group", "Cho": "fair-kde", "Oneto": "sinkhorn",
    "Zafar": "zafar", "MFL NN": "mfl-nn", "MFL linear": "mfl-linear",
}  # fmt: skip
SETS = {
    "Student Math": "student-math", "Student Portuguese": "student-portuguese", "Drug": "drug", "COMPAS": "compas",
    "Adult": "adult",
}  # fmt: skip
TABLES = {
    "regression": """
| Berk individual | Berk group | MFL linear | MFL NN |
| Student Math | 0.531+-0.042; 1.48 | 0.430+-0.055; 0.21 | 0.624+-0.029; 4.07 | 0.634+-0.034; 4.69 |
| Student Portuguese | 0.679+-0.013; 4.67 | 0.642+-0.029; 1.10 | 0.733+-0.012; 6.12 | 0.704+-0.016; 7.06 |
| CC | 0.357+-0.008; 710.23 | 0.503+-0.009; 168.49 | 0.517+-0.007; 11.39 | 0.541+-0.005; 16.54 |
""",
    "classification": """
| Cho | Oneto | MFL NN | Zafar | MFL linear |
| Drug | 0.786+-0.008; 10.54 | 0.825+-0.005; 416.18 | 0.823+-0.005; 6.66 | 0.668+-0.013; 0.35 | 0.814+-0.004; 5.89 |
| CC | 0.817+-0.004; 13.52 | 0.829+-0.004; 217.27 | 0.829+-0.003; 8.39 | 0.787+-0.004; 81.05 | 0.812+-0.003; 5.93 |
| COMPAS | 0.667+-0.004; 17.33 | 0.666+-0.003; 2299.37 | 0.661+-0.003; 9.99 | 0.625+-0.006; 0.44 | 0.605+-0.004; 9.87 |
| Adult | 0.769+-0.002; 141.35 | - | 0.842+-0.000; 149.61 | 0.799+-0.000; 29.45 | 0.820+-0.001; 159.80 |
""",
    "equal-opportunity": """
| Cho | Oneto | MFL NN | Zafar | MFL linear |
| Drug | 0.789+-0.013; 12.29 | 0.823+-0.005; 57.78 | 0.815+-0.005; 1.97 | 0.653+-0.021; 0.10 | 0.795+-0.004; 1.63 |
| CC | 0.821+-0.006; 16.38 | 0.829+-0.01; 152.36 | 0.830+-0.008; 2.41 | 0.749+-0.006; 26.12 | 0.812+-0.004; 2.09 |
| COMPAS | 0.656+-0.004; 18.71 | 0.666+-0.004; 1703.84 | 0.660+-0.004; 3.14 | 0.616+-0.008; 0.12 | 0.599+-0.004; 2.89 |
| Adult | 0.765+-0.004; 154.44 | - | 0.841+-0.001; 29.93 | 0.740+-0.000; 7.94 | 0.788+-0.004; 26.60 |
""",
}


def entries() -> dict[tuple[str, str, str], Printed | None]:
    """The tables above, by experiment, data set and method."""
    found = {}
    for experiment, text in TABLES.items():
        heading, *lines = (
            [part.strip() for part in line.strip("|").split("|")]
            for line in text.strip().splitlines()
        )
        communities = "communities-regression" if experiment == "regression" else "communities"
        for name, *texts in lines:
            for method, entry in zip(heading, texts, strict=True):
                numbers = (
                    [float(part) for part in entry.replace("+-", ";").split(";")]
                    if entry != "-"
                    else None
                )
                data = communities if name == "CC" else SETS[name]
                found[experiment, data, METHODS[method]] = Printed(*numbers) if numbers else None
    return found


def test_all_fifty_printed_entries() -> None:
    known = entries()
    assert sum(entry is not None for entry in known.values()) == 50
    assert {key: printed(*key) for key in known} == known


def test_nothing_else_was_printed() -> None:
    known = entries()
    everything = {
        (experiment, data, method)
        for experiment in (*TABLES, "preprocessing", "postprocessing", "boosting")
        for data in (*DATA, "loanapp")
        for method in (*METHODS.values(), "xian", "fairbatch", "mfl-nn-decay")
    }
    assert not any(printed(*key) for key in everything - known.keys())


# name: batch, epochs, learning rate, steps per epoch, strengths (lowest, highest, count), hidden
# units, A in X
SETTINGS = {
    "drug": (128, 500, 5e-4, 11, (1e-5, 100, 25), 16, True),
    "communities": (128, 500, 5e-4, 11, (1e-5, 100, 25), 16, True),
    "compas": (2048, 500, 5e-4, 1, (1e-5, 100, 25), 16, True),
    "adult": (2048, 500, 5e-4, 15, (1e-5, 100, 25), 16, True),
    "student-math": (128, 2000, 1e-3, 2, (1e-5, 1e3, 50), 20, False),
    "student-portuguese": (128, 2000, 1e-3, 3, (1e-5, 1e3, 50), 20, False),
    "communities-regression": (128, 1000, 1e-4, 11, (1e-5, 1e2, 50), 20, False),
}


def test_settings_of_the_published_runs() -> None:
    whole = Effort.of(10)
    found = {
        case.name: case.data
        for name in ("classification", "regression")
        for case in cases(name, PUBLISHED, whole)
    }
    assert found.keys() == SETTINGS.keys()
    for name, (batch, epochs, rate, _, strengths, hidden, _) in SETTINGS.items():
        data = found[name]
        known = (data.batch_size, data.epochs, data.learning_rate, data.strengths, data.hidden)
        assert known == (batch, epochs, rate, strengths, hidden)
        grid = whole.strengths(*data.strengths)
        assert (len(grid), grid[0], grid[-1]) == (
            strengths[2],
            *(pytest.approx(end) for end in strengths[:2]),
        )
    equal = {case.name: case.data for case in cases("equal-opportunity", PUBLISHED, whole)}
    assert {name: data.batch_size for name, data in equal.items()} == {
        "drug": 512, "communities": 512, "compas": 2048, "adult": 2048,
    }  # fmt: skip
    assert all(data.learning_rate == 5e-4 and data.epochs == 500 for data in equal.values())


@pytest.mark.parametrize("name", SETTINGS)
def test_steps_per_epoch_and_the_group_among_the_features(name: str, raw_data: object) -> None:
    batch, _, _, steps, _, _, inside = SETTINGS[name]
    splits = load(name, "raw", seeds=1)
    assert splits.train.shape[1] // batch == steps
    assert (splits.without_group.shape[1] < splits.x.shape[1]) == inside


def test_what_the_two_protocols_are() -> None:
    assert (PUBLISHED.name, PUBLISHED.penalize, PUBLISHED.floored) == ("published", "output", True)
    assert (PUBLISHED.inputs, PUBLISHED.heroin) == (("raw",), False)
    assert (CORRECTED.name, CORRECTED.penalize, CORRECTED.floored) == (
        "corrected",
        "prediction",
        False,
    )
    assert (CORRECTED.inputs, CORRECTED.heroin) == (("raw", "standard"), True)


def test_a_sketch_is_short() -> None:
    effort = Effort.of(10, quick=True)
    assert effort.seeds == (0, 1)
    assert {case.data.epochs for case in cases("classification", PUBLISHED, effort)} == {5}
    assert len(effort.strengths(1e-5, 1.0, 25)) == 4
