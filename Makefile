# The two commands of the README are `make demo` and `make test`; each sets itself up on a fresh checkout.
PYTHON ?= python3
BIN := .venv/bin
# torch comes in many builds of gigabytes; `make dist` tries the one that is pinned. PINS= tries what the bounds say.
PINS ?= --pin $(shell grep '^torch==' constraints.txt)

.PHONY: setup demo test coverage search test-slow test-ray docs docs-check figures dist mutants torture audit lint format bench clean

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup  ## Streams five two-class tasks of handwritten digits and writes a picture.
	$(BIN)/python examples/demo.py

test: setup  ## The default suite; ends with the tests that were skipped and why.
	$(BIN)/python -m pytest -n 2 -rs

coverage: setup  ## The default suite in one process, and which lines and branches of the package it leaves out.
	$(BIN)/python -m coverage run -m pytest
	$(BIN)/python -m coverage report

search: setup  ## The property tests with examples that nobody has tried; the suite takes the same ones every time.
	$(BIN)/python -m pytest -n 2 -m 'hypothesis and not slow' --hypothesis-profile search

test-slow: setup  ## What needs minutes or the published datasets (CNDPM_DATA=...).
	$(BIN)/python -m pytest -m slow

test-ray: .venv-ray/.installed  ## Clusters of two nodes on this machine, in an environment of its own that has Ray.
	.venv-ray/bin/python -m pytest -m ray

.venv-ray/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-ray
	.venv-ray/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,ray]'
	touch $@

docs: .venv/.documenting  ## The site, in build/docs/html; a broken link, formula or reference, or a public name without words, fails.
	$(BIN)/python -m pytest tests/test_examples.py tests/test_docstrings.py
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --fresh-env --builder html docs build/docs/html

figures: setup  ## The tables of README and docs/results, written from the records in docs/results/records.
	$(BIN)/python -m figures

docs-check: docs  ## The built site in a browser: search, console, dark and light, phone width; a newcomer's paths as printed.
	$(BIN)/python -m figures --check
	CNDPM_SITE=build/docs/html $(BIN)/python -m pytest tests/docs -m slow

.venv/.documenting: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev,docs]'
	touch $@

dist: setup  ## Wheel and sdist in dist/, each tried in an empty environment.
	$(BIN)/python -m release build
	$(BIN)/python -m release try --newest $(PINS)
	$(BIN)/python -m release try --oldest $(PINS)

mutants: setup  ## Changes of meaning, one at a time, that some test should notice; JOBS=1 tries one after the other.
	$(BIN)/python -m mutants --jobs $(or $(JOBS),2)

# Attempts are functions of SEED; LIMIT=600 ends each attack after so many seconds, RECORD=file keeps the counts.
SEED ?= 0
HOW = --seed $(SEED) --jobs $(or $(JOBS),2) $(if $(LIMIT),--seconds $(LIMIT)) $(if $(RECORD),--out $(RECORD))
torture: setup  ## Damaged files, kills, lost power, hostile calls, requests and configurations, interrupts, threads; fails if one does harm.
	$(BIN)/python -m torture.readers --n 100000 $(HOW)
	$(BIN)/python -m torture.loaders --n 100000 $(HOW)
	$(BIN)/python -m torture.loaders --n 10000 --what flips $(HOW)
	$(BIN)/python -m torture.folders --n 10000 $(HOW)
	$(BIN)/python -m torture.wrong_requests --n 1000 $(HOW) --jobs 1
	$(BIN)/python -m torture.kills --n 1200 $(HOW)
	$(BIN)/python -m torture.serving --kills $(or $(KILLS),1000) --seed $(SEED) $(if $(RECORD),--out $(RECORD))
	$(BIN)/python -m torture.crash_points $(HOW)
	$(BIN)/python -m torture.calls --n 100000 $(HOW)
	$(BIN)/python -m torture.river_calls --n 20000 $(HOW)
	$(BIN)/python -m torture.merges --n 2000 $(HOW)
	$(BIN)/python -m torture.interrupts --n 1700 $(HOW)
	$(BIN)/python -m torture.threads --n 200 $(HOW)
	$(BIN)/python -m torture.overrides --n 20000 $(HOW)

audit: setup  ## Known vulnerabilities of the pinned packages; needs the network.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python -m pip_audit --requirement requirements.lock --require-hashes --no-deps --disable-pip

lint: setup  ## Style, types and the direction of imports.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## Ratios measured in one run; CNDPM_DATA=... names the datasets of the streams.
	$(BIN)/python -m benchmarks.costs
	$(BIN)/python -m benchmarks.streams
	$(BIN)/python -m benchmarks.replay
	$(BIN)/python -m benchmarks.reports
	$(BIN)/python -m benchmarks.saving

clean:
	rm -rf .venv .venv-ray .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
