# make demo: fits, prints, plots, saves and exports a model on data that comes with the package.
# make test: runs the tests. Both set up everything they need in .venv, once.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

export TF_CPP_MIN_LOG_LEVEL ?= 3
export TF_ENABLE_ONEDNN_OPTS ?= 0

.PHONY: demo test check clean

demo: $(VENV)/ready
	$(RUN) examples/quickstart.py

test: $(VENV)/ready
	$(RUN) -m pytest -n 2

check: $(VENV)/ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or newer is needed: make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	$(RUN) -m pip install --quiet --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) demo
