# Two commands set everything up on a fresh machine: `make demo` (Python and make), `make test` (also a C compiler and Go).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test check generate golden bench soak shim pictures requirements clean
help: ## This list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 22

$(VENV)/run.stamp: requirements/run.txt requirements/build.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --require-hashes -r requirements/run.txt -r requirements/build.txt
	$(PIP) install --no-build-isolation --no-deps --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/run.stamp requirements/dev.txt
	$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

demo: $(VENV)/run.stamp ## Show top and doctor: on the real card and cluster if there are any, else on a made-up pool
	@$(MAKE) --silent --no-print-directory -C shim release-$$(uname -m) PYTHON=$(abspath $(BIN))/python
	@$(BIN)/python -m tools.demo

test: $(VENV)/dev.stamp ## Run every test (builds the test bench the first time)
	-$(BIN)/python -m tests.cluster build
	$(BIN)/python -m pytest

check: $(VENV)/dev.stamp ## Lint, types, layers, freshness of generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.generate --check

generate: $(VENV)/dev.stamp ## Write all generated files anew: schemas, completions, docs, region layout
	$(BIN)/python -m tools.generate

golden: $(VENV)/dev.stamp ## Write the golden files anew; review the diff
	$(BIN)/python -m pytest tests --update-golden

bench: $(VENV)/dev.stamp ## Print the speed ratios
	$(BIN)/python -m tests.bench_ratios

soak: $(VENV)/dev.stamp ## The long storms in full; the result is kept in docs/soak.txt
	VGPUCTL_SOAK=1 $(BIN)/python -m pytest -m soak -v --no-header --durations=10 -o console_output_style=classic > docs/soak.txt; \
	  code=$$?; tail -n 1 docs/soak.txt; exit $$code

shim: $(VENV)/run.stamp ## Build the preloaded library for both architectures
	$(MAKE) -C shim release PYTHON=$(abspath $(BIN))/python

pictures: $(VENV)/dev.stamp ## Draw the README's pictures anew
	$(BIN)/python -m tools.pictures

requirements: $(VENV)/dev.stamp ## Pin the newest versions anew
	$(PIP) install uv
	cd requirements && for set in run build dev; do \
	  case $$set in run) from="../pyproject.toml";; build) from=build.in;; dev) from="../pyproject.toml build.in --group ../pyproject.toml:dev";; esac; \
	  ../$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-header --no-annotate --upgrade $$from -o $$set.txt; done

clean: ## Remove what was built
	rm -rf build dist shim/build $(VENV)
