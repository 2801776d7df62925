# Two commands do all: `make demo` shows what the tool is for, `make test` runs every check that CI runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# one thread a process: the work is parallel by process
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test lint types imports tests long portable lowest docs notebook pages pictures browser figures oracle benchmark soak faults proofs zoo clean

demo: $(VENV)/installed
	$(BIN)/epsgauge demo

# Steps with one process run two at a time, the longest first; then the tests have all cores.
test: $(VENV)/installed
	$(MAKE) --jobs 2 types lint imports docs notebook
	$(MAKE) tests

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed
	$(BIN)/mypy

imports: $(VENV)/installed
	$(BIN)/lint-imports

# Tests start hundreds of processes: what they import is compiled once. Each process of pytest has a file at a time, the
# longest ones first (tests/conftest.py). One process more than cores, as many tests wait for others that they started
PROCESSES = $(shell $(PYTHON) -c "import os; print(1 + os.cpu_count())")
tests: $(VENV)/installed
	$(BIN)/python -m compileall -q src tests zoo faults
	$(BIN)/python -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder

# Tests that repeat at length what shorter ones show
long: $(VENV)/installed
	$(BIN)/python -m pytest -n auto -m long tests

# The numeric and textual tests on an older CPU, in other locales and folders, as another user, without git: one line each
portable: $(VENV)/installed
	$(BIN)/python tools/portable.py

# The tests of the core and of light extras with the lowest versions that pyproject.toml allows, in build/lowest
lowest: $(VENV)/installed
	$(BIN)/python tools/lowest.py

# The documentation as a site in build/docs; a warning is an error, also one of a page that an earlier build has read
docs: $(VENV)/installed
	$(BIN)/sphinx-build -W -E -q -b html -d build/doctrees docs build/docs
	$(BIN)/python tools/check_site.py build/docs

# The notebooks of examples/, from the first cell to the last
notebook: $(VENV)/installed
	$(BIN)/python tools/notebooks.py

# What is committed of the docs and made by a command: the gallery, the page of the JSON, the notebook's outputs
pages: $(VENV)/installed
	$(BIN)/python tools/gallery.py
	$(BIN)/python tools/json_page.py
	$(BIN)/python tools/notebooks.py --write

# The pictures of README and docs and the demo's figures; needs a browser. Run `make pages` after it
pictures: $(VENV)/installed
	$(BIN)/epsgauge demo --out build/demo
	$(BIN)/python tools/pictures.py --demo build/demo
	$(BIN)/python tools/pictures.py

# A browser for the tests of report and viewer, which skip without one
browser:
	@test -x /usr/bin/chromium || (apt-get update -q && apt-get install -y -q --no-install-recommends chromium)

# The paper's tables and figures, remade
figures: $(VENV)/installed
	$(BIN)/epsgauge reproduce tables
	$(BIN)/epsgauge reproduce figures -o build/figures

# N fresh cases in ball arithmetic against the library
N ?= 50
SEED ?= 1
oracle: $(VENV)/installed
	$(BIN)/python tools/oracle.py check --n $(N) --seed $(SEED)

benchmark: $(VENV)/installed
	$(BIN)/python benchmarks/interval.py
	$(BIN)/python benchmarks/runner.py
	$(BIN)/python benchmarks/scores.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/bounds.py
	$(BIN)/python benchmarks/thresholds.py
	$(BIN)/python benchmarks/tightness_of_bounds.py
	$(BIN)/python benchmarks/viewer.py
	$(BIN)/python benchmarks/attacks.py
	$(BIN)/python benchmarks/scale.py

# A real run killed KILLS times with SIGKILL, resumed, and compared with one that was left alone; then workers of
# clusters are killed
KILLS ?= 100
soak: $(VENV)/installed
	$(BIN)/python tools/soak.py --kills $(KILLS)
	$(BIN)/python tools/soak.py --kills $(KILLS) --together
	$(BIN)/python tools/soak_clusters.py --on dask
	$(BIN)/python tools/soak_clusters.py --on ray

# N mutations of stores and files each, hostile directories, edits, kills and lost clusters: everything but `tried` and `refused` is 0
faults: N := 1000
faults: $(VENV)/installed
	$(BIN)/python -m faults --n $(N) --seed $(SEED)

# What the guaranteed bounds promise, enumerated and simulated at length: about an hour on one core
proofs: $(VENV)/installed
	$(BIN)/python tools/enumerate_exact.py
	$(BIN)/python tools/monitoring.py --runs 1000
	$(BIN)/python tools/clusters.py --runs 400
	$(BIN)/python tools/false_guarantees.py

# Broken pipelines and their repaired twins: by the probe alone, by adversaries of growing power, and bugs that were
# shipped, on the wheels that have them (build/zoo/). Up to an hour on two busy cores
zoo: $(VENV)/installed
	$(BIN)/python -W ignore -m zoo --probe
	$(BIN)/python -m zoo.shipped
	$(BIN)/python -W ignore -m zoo.unseen
	$(BIN)/python -W ignore -m zoo

# pip is asked for the pinned versions of constraints.txt; the stamp is renewed when they or the package's needs change
$(VENV)/installed: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
