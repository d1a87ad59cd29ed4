# Two commands do everything from a fresh clone: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help dev demo test check bench clean

help: ## what each command does
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

# Re-links the sources too: a strict editable install links each module, so a new module needs `make dev`.
dev: $(VENV)/bin/python ## set up .venv with all extras, or link new modules into it
	@$(BIN)/python -m pip install --quiet -e '.[all,dev]'
	@touch $(STAMP)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "shinglefold needs Python 3.11 or newer; say which: make PYTHON=python3.12 …")'
	@$(PYTHON) -m venv $(VENV)

# What the demo needs and no more: it shall start soon on a fresh clone.
$(STAMP): pyproject.toml setup.cfg | $(VENV)/bin/python
	@echo 'Setting up .venv (once) …'
	@$(BIN)/python -m pip install --quiet -e '.[all,dev]'
	@touch $@

demo: $(STAMP) ## index the example corpus and show result pages before and after folding
	@$(BIN)/shinglefold demo

test: $(STAMP) ## run the tests
	@$(BIN)/python -m pytest $(ARGS)

check: $(STAMP) ## lint, layers and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/pyright

bench: $(STAMP) ## time and measure every stage; evidence goes to bench/runs/
	$(BIN)/python -m bench $(ARGS)

clean: ## remove everything that was set up or built here
	rm -rf $(VENV) build dist .cache .pytest_cache .mypy_cache .ruff_cache *.egg-info
