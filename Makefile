# Every command prepares what it needs by itself (scripts/setup); the second run starts at once.
# ARGS are handed on: make test ARGS="tests/protocol -k cancel", make bench ARGS="--quick".

ARGS ?=
PYTHON_IN_VENV := .venv/bin/python
SCRIPTS := "js/**/*.{ts,mjs,json,md}" eslint.config.mjs
PYTEST := $(PYTHON_IN_VENV) -m pytest -q

# A PYTHON given by the user chooses the interpreter that the virtual environment is made from.
export PYTHON

# Tests and benchmarks start hundreds of Python processes, each of which would compile every module.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo quick test nightly check lint format docs docs-site js pictures bench faults soak fuzz compat conformance dist test-all

help: ## list these commands
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | \
	  awk -F'|' '{ printf "%-17s%s\n", $$1, $$2 }'

setup: ## prepare everything: Python and npm packages, example servers, Chromium, Redis, Pyodide
	@scripts/setup

demo: ## watch an agent play music in a page; sets up all it needs
	@scripts/setup package chromium
	@$(PYTHON_IN_VENV) -m transom demo $(ARGS)

quick: ## the tests without processes, load and agent frameworks: what to run at every save
	@scripts/setup python node
	@$(PYTEST) --forks 6 --tier quick $(ARGS)

test: ## lint, and every test but the nightly ones; with ARGS just those: ARGS="tests/host -k approval"
	@scripts/setup python node servers chromium headless_shell redis
	@scripts/test $(ARGS)

nightly: ## everything there is, for hours: scripts/nightly names the parts; ARGS="fuzz fleet" runs some
	@scripts/setup
	@scripts/setup firefox
	@scripts/nightly $(ARGS)

test-all: ## make test with each of Python 3.11, 3.12 and 3.13 that is found
	@scripts/test-all $(ARGS)

check: lint ## lint, formatting and types, with those of JavaScript; CI runs it beside make test
	@node_modules/.bin/eslint js
	@node_modules/.bin/pyright

lint: ## what of make check takes seconds: make test has it too
	@scripts/setup python node
	@$(PYTHON_IN_VENV) -m ruff check --quiet
	@$(PYTHON_IN_VENV) -m ruff format --check --quiet
	@node_modules/typescript-7/bin/tsc -p js
	@node_modules/typescript-7/bin/tsc -p js/test
	@node_modules/.bin/prettier --check --log-level warn $(SCRIPTS)

format: ## fix what lint and formatting can fix by themselves
	@scripts/setup python node
	@$(PYTHON_IN_VENV) -m ruff check --quiet --fix
	@$(PYTHON_IN_VENV) -m ruff format --quiet
	@node_modules/.bin/eslint --fix js
	@node_modules/.bin/prettier --write --log-level warn $(SCRIPTS)

js: ## build what pages carry, load and import, from js/src into src/transom/web/static
	@scripts/setup node
	@node js/build.mjs

docs: ## write the reference from docstrings and help, and put samples into the pages
	@scripts/setup python
	@$(PYTHON_IN_VENV) scripts/api.py $(ARGS)
	@$(PYTHON_IN_VENV) scripts/quotes.py
	@$(PYTHON_IN_VENV) -m scripts.statements

docs-site: ## build the documentation as a site in site/, strictly; ARGS go to mkdocs build
	@scripts/setup docs
	@NO_MKDOCS_2_WARNING=1 $(PYTHON_IN_VENV) -m mkdocs build --strict --quiet $(ARGS)
	@echo "site/index.html is built; to look at it: $(PYTHON_IN_VENV) -m http.server -d site"

pictures: ## take the pictures in docs/images, light and dark, and record the demo; ARGS name some
	@scripts/setup python chromium
	@$(PYTHON_IN_VENV) scripts/pictures.py $(ARGS)
	@$(PYTHON_IN_VENV) scripts/recording.py

bench: ## measure Transom and its peers in one run and print the ratios
	@scripts/setup
	@$(PYTHON_IN_VENV) -m benchmarks $(ARGS)

soak: ## an hour of faults in real processes, gateways and a fleet: memory must not grow, nothing may remain
	@scripts/setup
	@$(PYTHON_IN_VENV) -m benchmarks.soak_gateway --minutes 30 $(ARGS)

faults: ## every fault of client, server, browser, worker and Redis at every step of a call (make test runs some)
	@scripts/setup
	@$(PYTEST) --forks 2 --tier nightly tests/gateway/test_fault_matrix.py tests/web/test_fleet_faults.py $(ARGS)

fuzz: ## coverage-guided fuzzing of untrusted input, ten minutes for each target
	@scripts/setup fuzz
	@$(PYTHON_IN_VENV) -m tests.fuzz.guided $(ARGS)

compat: ## show the official example servers' Views in Chromium and write docs/compatibility.md
	@scripts/setup
	@$(PYTHON_IN_VENV) -m scripts.compat $(ARGS)

conformance: ## run the official conformance suite and others', and write their tables; ARGS name legs: ARGS="url host"
	@scripts/setup python conformance inspectors
	@$(PYTHON_IN_VENV) -m scripts.conformance $(ARGS)
	@$(if $(ARGS),,$(PYTHON_IN_VENV) -m scripts.inspectors)

dist: ## build wheel, sdist and npm package, install the wheel into an empty environment, run the demo
	@scripts/setup python node chromium
	@scripts/dist
