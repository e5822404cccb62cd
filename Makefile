# Everything a checkout needs, by name. `make` alone lists the targets.

PYTHON ?= python3
PORT ?= 8000
VENV := .venv
BENCH ?= full
PROCESSES ?= 4
BIN := $(VENV)/bin
NODE := tests/clients/node_modules
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet --quiet
INSTALL := PIP='$(PIP)' scripts/install
LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-strip-extras --python-version 3.11 \
	--custom-compile-command 'make lock'

# What is compiled is kept even where the machine says otherwise: the tests start the service hundreds of times.
export PYTHONDONTWRITEBYTECODE :=

# For root, PostgreSQL and apt-get add users and libraries by commands that the PATH of `su` does not lead to.
export PATH := $(PATH):/usr/sbin:/sbin

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev serve test lint types layers compile audit format lock snapshot catalogues docs release screenshots bench bench-others browser clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.runtime ## make .venv with trellis and what it needs to run

setup-dev: $(VENV)/.dev ## the same, with the tools for working on it

serve: setup ## serve a demonstration community on http://127.0.0.1:$(PORT), database var/trellis.db
	@mkdir -p var
	@[ -n "$$TRELLIS_DATABASE_URL$$TRELLIS_DATABASE_URL_FILE" ] || \
	grep -Eqs '^[[:space:]]*(export[[:space:]]+)?TRELLIS_DATABASE_URL(_FILE)?[[:space:]]*=' .env || \
	printf '\n%s\n' 'TRELLIS_DATABASE_URL=sqlite:///var/trellis.db' >> .env
	@exec $(BIN)/trellis serve --demo --port $(PORT)

test: setup-dev browser ## every check: lint, types, layers, tests
	@$(MAKE) --no-print-directory --jobs=2 types lint layers compile $(NODE)/.installed
	@echo "Running the tests …"
	@$(BIN)/pytest -n $(PROCESSES) --dist worksteal --thorough --durations=10

lint: setup-dev ## style: ruff
	@echo "Checking the style …"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup-dev ## types: mypy, strict
	@echo "Checking the types …"
	@$(BIN)/mypy

layers: setup-dev ## who imports whom: import-linter
	@echo "Checking who imports whom …"
	@$(BIN)/lint-imports

compile: setup-dev  # once before the processes that run them do, of which each would compile them all
	@echo "Compiling the tests …"
	@$(BIN)/pytest --only-compile

audit: setup-dev ## check the pinned dependencies for known vulnerabilities, if their database can be reached: pip-audit
	@echo "Auditing the dependencies …"
	@$(BIN)/python scripts/audit.py

format: setup-dev ## let ruff put the code in order
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: setup-dev ## pin the newest dependencies in requirements/
	@echo "Resolving the dependencies …"
	@$(LOCK) --upgrade --group dev --extra traces pyproject.toml --output-file requirements/dev.txt
	@$(LOCK) --upgrade --group build --constraints requirements/dev.txt pyproject.toml --output-file requirements/runtime.txt
	@$(LOCK) --upgrade --extra traces --constraints requirements/dev.txt pyproject.toml --output-file requirements/traces.txt
	@$(LOCK) --upgrade --group bench --constraints requirements/dev.txt pyproject.toml --output-file requirements/bench.txt
	@$(LOCK) --upgrade --group others --output-file requirements/others.txt

catalogues: setup-dev ## bring the texts of the panel's languages up to date with the code
	@$(BIN)/python -m scripts.catalogues

docs: setup-dev ## build the documentation as a site in build/site, with a search; a link that leads nowhere is an error
	@$(BIN)/sphinx-build --quiet --fail-on-warning --jobs auto --builder html --conf-dir docs/site . build/site
	@echo "It is in build/site/index.html."

release: setup-dev ## build wheel, source distribution, Debian package, bill of materials and checksums into dist/
	@$(BIN)/python -m scripts.catalogues --check
	@$(BIN)/python -m scripts.release

snapshot: setup ## write docs/openapi.json, docs/structure.schema.json and docs/errors.md
	@mkdir -p docs
	@$(BIN)/trellis openapi > docs/openapi.json.new
	@mv docs/openapi.json.new docs/openapi.json
	@$(BIN)/python scripts/structure_schema.py > docs/structure.schema.json.new
	@mv docs/structure.schema.json.new docs/structure.schema.json
	@$(BIN)/python -m scripts.errors_page > docs/errors.md.new
	@mv docs/errors.md.new docs/errors.md

screenshots: setup-dev browser ## take the screenshots of the README and the docs
	@$(BIN)/python scripts/screenshots.py

bench: $(VENV)/.bench ## measure it, in 12 to 30 minutes; BENCH=quick takes two, BENCH='quick --only read-hot' less
	@$(BIN)/python -W 'ignore:XDG_RUNTIME_DIR is not set' -m bench $(BENCH)

bench-others: $(VENV)/.dev $(VENV)/.bench ## measure it beside Datasette and Directus, which it installs into var/bench, in five minutes
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m bench.others $(BENCH_OTHERS)

browser: ## see that the tests have a browser
	@scripts/browser

clean: ## remove what the other targets made, but not var/
	rm -rf $(VENV) build dist .coverage .coverage.* htmlcov .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: each is older than what it was made from only when there is something to do.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "trellis needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo 'not there')." >&2; \
		echo "Name another one, for example: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Making the virtual environment .venv …"
	@$(PYTHON) -m venv $(VENV) || { \
		echo "Python could not make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv" >&2; \
		rm -rf $(VENV); exit 1; }

$(VENV)/.runtime: requirements/runtime.txt pyproject.toml | $(BIN)/python
	@echo "Installing the pinned dependencies into .venv …"
	@$(INSTALL) $(VENV) requirements/runtime.txt --compile-bytecode
	@$(PIP) install --no-build-isolation --no-deps --no-index --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.runtime
	@echo "Installing the pinned development tools into .venv …"
	@$(INSTALL) $(VENV) requirements/dev.txt
	@touch $@

$(VENV)/.bench: requirements/bench.txt $(VENV)/.runtime
	@echo "Installing the pinned peers and plotting library of the benchmark into .venv …"
	@$(INSTALL) $(VENV) requirements/bench.txt --compile-bytecode
	@touch $@

# What the tests take from npm, with the npm of .venv: the client generator, and axe-core for the pages.
$(NODE)/.installed: tests/clients/package-lock.json $(VENV)/.dev
	@echo "Installing the pinned npm packages of the tests …"
	@cd tests/clients && PATH="$(CURDIR)/$(BIN):$$PATH" "$(CURDIR)/$(BIN)/npm" ci --no-audit --no-fund --silent || \
		echo "The npm registry cannot be reached: the tests that need it are skipped, or fail under CI."
	@mkdir -p $(NODE) && touch $@
