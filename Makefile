# Two commands do everything from a fresh clone: `make demo` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
LINKED := $(VENV)/.linked
# A strict editable install links each module when it is made. A folder's time changes with its list of
# files, so a new module is linked before the next command needs it.
FOLDERS := $(shell $(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["tool"]["setuptools"]["package-dir"].values())' 2>/dev/null)
# A few processes, each with whole files and whole servers, so that what a file shares is made once. Four keep
# two cores busy, as tests wait for disks, for commands, and for servers that come back.
PARALLEL := -n 4 --dist loadgroup --no-loadscope-reorder
# Tests of the files themselves, which any edit may break and which take a second.
TREE := tests/packaging/test_tree.py \
	tests/mutation/test_mutants.py::test_mutants_that_may_survive_are_still_in_the_code
# Images of Python often set this; each process that a test starts would then compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
TOO_OLD := shinglefold needs Python 3.11 or newer; say which one: make PYTHON=python3.12 …

.DEFAULT_GOAL := help
.PHONY: help dev demo test coverage check pyright all-but-pyright site bench plugin release fuzz mutants gate-run engine-up engine-down clean

help: ## what each command does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

demo: $(LINKED) ## index the example site and show result pages before and after folding
	@$(BIN)/shinglefold demo

test: $(LINKED) ## run the tests; ARGS="tests/canon -x" chooses, SERVERS=all adds real servers (or opensearch-3,…)
	@$(if $(SERVERS),SHINGLEFOLD_TEST_SERVERS=$(SERVERS) )$(BIN)/python -m pytest $(or $(ARGS),$(PARALLEL))

coverage: $(LINKED) ## run the tests, and tell what share of each module's lines and branches they reach
	@$(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term:skip-covered

check: pyright all-but-pyright ## lint, layers, types, and the tests of the files themselves; make -j 2 check: at a time

# Three quarters of the work of `make check`, on one processor.
pyright: $(LINKED)
	$(BIN)/pyright

all-but-pyright: $(LINKED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/python -m pytest -q $(TREE)

site: $(LINKED) ## build the pages and the Python API as a site: build/site/README.html
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs build/site

bench: $(LINKED) ## time and measure every stage; the evidence goes to bench/runs/
	@$(BIN)/python -m bench $(ARGS)

plugin: ## build the plugin for OpenSearch into dist/; needs Maven and Java 21 or newer (JAVA_HOME)
	mvn -q -B -f opensearch-plugin/pom.xml package $(ARGS)
	@mkdir -p dist && cp -v opensearch-plugin/target/*.zip dist/

release: $(LINKED) ## build the distributions, check them, and run the demo from its wheel in a fresh environment
	@rm -rf dist .cache/release
	for folder in . integrations/*/; do $(BIN)/python -m build --outdir dist "$$folder" || exit 1; done
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv .cache/release
	.cache/release/bin/python -m pip install --quiet "$$(echo dist/shinglefold-*.whl)[ru,uk,zh,embedded]"
	cd .cache/release && bin/shinglefold demo >/dev/null && bin/shinglefold --version

dev: $(INSTALLED) ## set up .venv, or link new modules into it
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $(LINKED)

fuzz: $(LINKED) ## throw a million texts and 100,000 malformed inputs; ARGS="--inputs 1000 --seed 7" chooses
	@PYTHONPATH=tests $(BIN)/python -m support.fuzz $(ARGS)

mutants: $(LINKED) ## change the code, and tell what no test notices; ARGS="--package sketch --sample 80 --seed 7" chooses
	@PYTHONPATH=tests $(BIN)/python -m support.mutation $(ARGS)

gate-run: $(LINKED) ## add 10,000 near-copies by writers that are killed, and keep the evidence; SERVERS=opensearch-3 on a server
	@SHINGLEFOLD_GATE_TEXTS=$(or $(TEXTS),10000) SHINGLEFOLD_TEST_SERVERS=$(SERVERS) \
		$(if $(SERVERS),PYTHONPATH=$$(PYTHONPATH=tests $(BIN)/python -m support.servers client $(SERVERS))) \
		$(BIN)/python -m pytest -q -s -k test_the_whole_run \
		$(if $(SERVERS),tests/servers/gate/test_crashes.py,tests/grouping/test_killed_writers.py)

engine-up: $(LINKED) ## start a real server: ENGINE=opensearch-3, opensearch-2, elasticsearch-9 or elasticsearch-8
	@PYTHONPATH=tests $(BIN)/python -m support.servers up $(or $(ENGINE),opensearch-3)

engine-down: $(LINKED) ## stop it again
	@PYTHONPATH=tests $(BIN)/python -m support.servers down

clean: ## remove everything that was set up or built here
	rm -rf $(VENV) build dist .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache *.egg-info

$(LINKED): $(INSTALLED) $(FOLDERS)
	@$(MAKE) --no-print-directory dev

$(INSTALLED): pyproject.toml setup.cfg
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("$(TOO_OLD)")'
	@echo 'Setting up $(VENV); this is done once …'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --use-pep517 -e '.[all,dev]'
	@touch $@
