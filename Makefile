# Every command first installs what it needs into .venv, from constraints.txt; nothing else on the machine is touched.
PYTHON ?= python3
BIN := .venv/bin
# One thread per process: with both cores busy, two threads each run many times slower.
export OMP_NUM_THREADS := 1
export PYTHONHASHSEED := 0
# What one process has compiled the next one reads, also where the environment says otherwise. pip would compile all
# modules on one core, most of which nobody imports.
export PYTHONDONTWRITEBYTECODE :=
PIP := -m pip install --quiet --disable-pip-version-check
COMPILE := $(BIN)/python -W ignore -m compileall -qq -j 2 .venv/lib || true  # here: their warnings would fail tests
# Neighbors stay in one process, and what they share is made once; who is done first takes from the other.
PYTEST := -m pytest -n 2 --dist worksteal

DATA := build/data
.PHONY: help demo data test test-all extended test-slow test-install test-lowest docs lint format approve bench mutate reproduce clean
.DEFAULT_GOAL := help

help:
	@echo "make demo        the whole trade-off on real mortgage data, with a report to open"
	@echo "make data        download the published files of the data sets into $(DATA); tests of real data need them"
	@echo "make test        install into .venv, check the format, run the tests that a change breaks soonest (minutes)"
	@echo "make test-all    the same, then types, all other tests but the slow ones, and a tenth of those (SEED=... repeats it)"
	@echo "make test-slow   the long tests"
	@echo "make test-install  the built wheel in an empty environment: audits, commands, databases, training"
	@echo "make test-lowest   audits and training with the lowest versions that pyproject.toml allows"
	@echo "make docs        the site, in docs/_build/html/index.html, and its tests"
	@echo "make lint        format check, lint, types, import layers"
	@echo "make format      format and mend what can be mended"
	@echo "make approve     write what people read to tests/approved, after a change of sentences; review the diff"
	@echo "make bench       ratios against peers, measured in one run"
	@echo "make mutate ROOM=auditing     planted faults that the fast tests of a room catch; OPTIONS=--mutants=20 for a sketch"
	@echo "make reproduce NAME=theory    an experiment of the paper, or all; OPTIONS=--quick for a sketch"

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "metrifair needs Python 3.11 or later")'
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) --no-compile -c constraints.txt -e ".[test]"
	$(COMPILE)
	touch $@

# What the types, the other tests and the site need besides: a third of all packages, which nobody waits for before
# make demo or make test.
.venv/complete: .venv/installed
	$(BIN)/python $(PIP) --no-compile -c constraints.txt -e ".[dev]"
	$(COMPILE)
	touch $@

demo: .venv/installed
	$(BIN)/metrifair demo

data: .venv/installed
	$(BIN)/python -c 'import sys; from metrifair import datasets; \
		[datasets.load(name, data_home=sys.argv[1]) for name in datasets.names()]' $(DATA)

lint: .venv/complete
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

approve: .venv/complete
	$(BIN)/python -m tests.approvals
	rm -f tests/approved/refusals.txt
	METRIFAIR_APPROVE=1 $(BIN)/python -m pytest -p no:cacheprovider -m refusal tests

test: .venv/installed
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/python $(PYTEST) -m "not slow and not extended"

# Types take one core for longer than a minute: beside the tests, not before them.
test-all: test
	$(MAKE) --no-print-directory -j 2 lint extended

# And a tenth of the slow tests: another one for each commit, the same whenever the seed is given again.
SEED ?= $(shell git rev-parse --short HEAD 2>/dev/null || date +%F)
extended: .venv/complete
	$(BIN)/python $(PYTEST) -m "extended and not slow or rotated" --slow-seed=$(SEED)

# Programs of docs/other-tools.md, and clusters that joblib and narwhals know: a minute of installation that no other
# command needs.
OTHER_TOOLS := accelerate huggingface_hub lightning optuna pyspark ray skorch
test-slow: .venv/complete
	$(BIN)/python $(PIP) --no-compile -c constraints.txt $(OTHER_TOOLS)
	METRIFAIR_EXPLORE=1 $(BIN)/python $(PYTEST) -m slow
# Two that skip elsewhere: what they ask for changes SciPy for all others, or is one of those tools.
	SCIPY_ARRAY_API=1 $(BIN)/python $(PYTEST) -k "array_api or a_hub_reads_it" tests/laws/test_estimator_checks.py \
		tests/baselines/test_method_checks.py tests/boosting/test_boosting_checks.py tests/api/test_model_card.py

# Nothing of ours may be importable there but the wheel: python -I ignores the folder it is run from. Each part says
# which packages it came with, and how much they take on the disk.
WHEEL = $$(ls build/wheel/*.whl)
test-install: .venv/complete
	rm -rf build/wheel build/empty build/training
	$(BIN)/python -m build --wheel --no-isolation --outdir build/wheel . >/dev/null
	$(PYTHON) -m venv --without-pip build/empty
	$(PYTHON) -m venv --without-pip build/training
	for part in audits commands databases training; do \
		extra=$$(echo $$part | sed 's/audits//; s/commands/[cli]/; s/databases/[cli,sql]/; s/training/[train]/'); \
		folder=build/$$(echo $$part | sed '/training/!s/.*/empty/'); \
		$(BIN)/python -m pip --python $$folder/bin/python install --quiet --disable-pip-version-check --no-compile \
			-c constraints.txt "$(WHEEL)$$extra" && $$folder/bin/python -I tests/use_$$part.py || exit 1; \
	done

# Tests that need nothing but audits and training, with the lowest versions of what it needs.
CORE_TESTS := $(addprefix tests/,metrics/test_closed_forms.py metrics/test_line.py metrics/test_energy.py \
	metrics/test_unbiased.py metrics/test_registry.py baselines/test_xian.py problem/test_cells.py \
	training/test_adam.py training/test_models.py training/test_objective.py figures/test_certificates.py figures/test_utility.py)
test-lowest: .venv/complete
	rm -rf build/wheel build/lowest
	$(BIN)/python -m build --wheel --no-isolation --outdir build/wheel . >/dev/null
	$(PYTHON) -m venv build/lowest
	build/lowest/bin/python $(PIP) -c constraints-lowest.txt "$(WHEEL)[train]"
	build/lowest/bin/python -I tests/use_training.py
	build/lowest/bin/python $(PIP) -c constraints-lowest.txt pytest hypothesis
	build/lowest/bin/python -m pytest -p no:cacheprovider -q -m "not slow" $(CORE_TESTS)

# Everything anew, so that no page shows what an older version said; warnings are errors; then the built pages are tested.
docs: .venv/complete
	rm -rf docs/_build docs/gallery docs/reference/generated
	$(BIN)/sphinx-build -q -j 2 -W --keep-going docs docs/_build/html
	METRIFAIR_SITE=docs/_build/html $(BIN)/python $(PYTEST) tests/site $(wildcard docs/*.md docs/tutorials/*.md docs/concepts/*.md)
	@echo "open docs/_build/html/index.html"

bench: .venv/complete
	$(BIN)/python -m benchmarks

mutate: .venv/complete
	$(BIN)/python -m benchmarks.mutate $(ROOM) $(OPTIONS)

reproduce: .venv/complete
	$(BIN)/python -m experiments $(NAME) $(OPTIONS)

clean:
	rm -rf .venv dist build docs/_build docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
