# Two commands: `make demo` and `make test`. Both need Python 3.11 or later and nothing else; each makes what it needs.

PYTHON ?= python3
VENV ?= .venv
QUERY ?= array library with automatic differentiation
PYTEST_ARGS ?=

BACKENDS := numpy_reference jax_xla torch_sdpa jax_splash
# What `make conformance` keeps: a JSON, a JUnit and an HTML report of each backend, and the records.
REPORTS := build/conformance

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip
say = @printf '\n== %s\n'

.DEFAULT_GOAL := help
.PHONY: help demo test lint imports types pytest conformance support clean
.DELETE_ON_ERROR:
.NOTPARALLEL:

help:
	@echo 'make demo    search the descriptions of installed packages with a language model, on JAX and on PyTorch'
	@echo '             (ask something else: make demo QUERY="parse YAML files")'
	@echo 'make test    lint, import rules, types, conformance, and all tests (some only: make test PYTEST_ARGS="-k lse")'
	@echo 'make conformance   the suite on each backend; reports and records in $(REPORTS)'
	@echo 'make clean   remove $(VENV) and what builds and tools left'
	@echo 'Another interpreter: make PYTHON=python3.12 demo'

demo: $(VENV)/.installed-examples
	$(say) 'what is here: attnhub doctor'
	$(BIN)/attnhub doctor
	$(say) 'document search'
	$(BIN)/python examples/document_search.py "$(QUERY)"

test: lint imports types conformance pytest

lint: $(VENV)/.installed-test
	$(say) 'lint and format: ruff'
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

imports: $(VENV)/.installed-test
	$(say) 'who may import whom: import-linter'
	$(BIN)/lint-imports

types: $(VENV)/.installed-test
	$(say) 'types: mypy'
	$(BIN)/mypy

pytest: $(VENV)/.installed-test
	$(say) 'tests: pytest'
	$(BIN)/python -m pytest $(PYTEST_ARGS)

conformance: $(BACKENDS:%=conformance-%) support

# Records are read by the backend's version, its sources and the libraries here: those of an earlier run do no harm.
conformance-%: $(VENV)/.installed-test
	$(say) 'conformance of $*: full tier, strict'
	@mkdir -p $(REPORTS)
	ATTNHUB_RECORDS=$(REPORTS)/records $(BIN)/attnhub check $* --tier full --strict \
	  --json $(REPORTS)/$*.json --junit $(REPORTS)/$*.xml --html $(REPORTS)/$*.html

support: $(VENV)/.installed-test
	$(say) 'docs/support.md is what the records say'
	ATTNHUB_RECORDS=$(REPORTS)/records $(BIN)/python -m tools.support_table --check

.PHONY: field-report
field-report: $(VENV)/field/.installed
	$(say) 'the suite on released libraries: docs/field-report.md (half an hour)'
	$(VENV)/field/bin/python -m field_report

$(VENV)/field/.installed: $(VENV)/.made
	$(say) 'an environment for released libraries, in $(VENV)/field (some minutes, about 3 GB)'
	$(PYTHON) -m venv $(VENV)/field
	$(VENV)/field/bin/python -m pip install --constraint constraints.txt --editable '.[field]'
	@touch $@

$(VENV)/.made: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { \
	  echo 'No `$(PYTHON)` here. attnhub needs Python 3.11 or later: install one, or name it: make PYTHON=/path/to/python3'; \
	  exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v >= (3, 11) or sys.exit("attnhub needs Python 3.11 or later; \
	`$(PYTHON)` is %d.%d. Name a newer one: make PYTHON=python3.12" % v)'
	@$(PYTHON) -c 'import ensurepip, venv' || { \
	  echo '`$(PYTHON)` comes without venv. Install it (on Debian and Ubuntu: apt install python3-venv), then try again.'; \
	  exit 1; }
	$(say) 'a new environment in $(VENV)'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.installed-examples: $(VENV)/.made
	$(say) 'attnhub and what the example needs, into $(VENV) (some minutes, about 1.5 GB)'
	$(PIP) install --constraint constraints.txt --editable '.[examples]'
	@touch $@

$(VENV)/.installed-test: $(VENV)/.made
	$(say) 'attnhub and what its tests need, into $(VENV) (some minutes, about 2 GB)'
	$(PIP) install --constraint constraints.txt --editable '.[test]'
	@touch $@ $(VENV)/.installed-examples

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -path ./.git -prune -o -type d -name __pycache__ -exec rm -rf {} +
