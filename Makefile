# Each target makes its own .venv and needs nothing but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint package docs benchmark proofs clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group test --group lint
	touch $@

$(VENV)/.documented: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

demo: $(VENV)/.installed
	$(BIN)/frostline simulate philly-like-5000 --policy asrpt,asrpt-strict,fifo,sjf,smallest-area,easy --out run/demo

test: $(VENV)/.tested
	$(BIN)/python -m pytest

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

package: $(VENV)/.tested
	BIN=$(abspath $(BIN)) PYTHON=$(PYTHON) tests/package/smoke.sh

docs: $(VENV)/.documented
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet --jobs auto docs docs/_build/html

benchmark: $(VENV)/.tested
	$(BIN)/python benchmarks/run.py

proofs:
	$(MAKE) -C proofs

clean:
	rm -rf $(VENV) build dist run docs/_build docs/reference *.egg-info solver/*.egg-info
