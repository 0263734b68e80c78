# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup java demo simulation test check rubbish bench docs lock clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(READY) ## create .venv with the locked dependencies

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "penstock needs Python 3.11 or newer; found $$($(PYTHON) --version); set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)
	@sh tools/find-java.sh --install || true  # only what runs on Spark needs it

java: ## find Java 17 or newer, or install Debian's
	@sh tools/find-java.sh --install

demo: setup ## run an application on Spark for six minutes, scaled as its load rises eightfold and falls; plots in out/demo
	@sh tools/find-java.sh --install
	@rm -rf out/demo
	$(BIN)/penstock run lookups --load ramp --low 20 --high 160 --minutes 6 \
	  --max-replicas 8 --out out/demo

simulation: setup ## compare policies on a synthetic four-week trace, without Java: plots in out/simulation.html
	$(BIN)/penstock compare --out out/simulation.html

test: check ## everything CI runs: checks, then tests
	$(BIN)/python -m pytest -n auto -m "not spark and not browser" tests docs/examples
	@sh tools/find-java.sh --install
	$(BIN)/python -m pytest -m spark --durations=12 tests

check: setup ## formatting, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

rubbish: setup ## a hundred thousand bad inputs to all commands, of which every one must end in one clear line
	PYTHONPATH=tests $(BIN)/python -m rubbish --inputs 100000 --real 100

bench: setup ## speed and memory, as ratios within one run
	$(BIN)/penstock bench

docs: setup ## regenerate the tables of policies in the docs
	$(BIN)/python tools/policy_tables.py

lock: setup ## recompile requirements.lock from pyproject.toml
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-annotate --extra dev pyproject.toml -o requirements.lock

clean: ## remove what was built, .venv included
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis
