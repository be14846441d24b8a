# make demo: fits, prints, plots, saves and exports a model on data that comes with the package.
# make test: runs the tests. Both set up everything they need in .venv, once.
# make quick: the tests of fast files, in less than a minute; make changed: those of what git says has changed.
# make docs: builds the site in docs/_build/html; warnings are errors, links are checked.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

export TF_CPP_MIN_LOG_LEVEL ?= 3
export TF_ENABLE_ONEDNN_OPTS ?= 0

.PHONY: demo test quick changed check docs clean

demo: $(VENV)/ready
	$(RUN) examples/quickstart.py

test: $(VENV)/ready
	$(RUN) -m pytest -n 2 --dist worksteal

quick: $(VENV)/ready
	$(RUN) -m pytest -n 2 --dist worksteal -m "not slow"

changed: $(VENV)/ready
	$(RUN) -m pytest -n 2 --dist worksteal $$($(RUN) tests/changed.py)

check: $(VENV)/ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

docs: $(VENV)/docs_ready
	$(RUN) -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(RUN) docs/check_links.py docs/_build/html

# pip's way of installing for development warns of itself: that warning is not the user's.
$(VENV)/docs_ready: $(VENV)/ready
	PYTHONWARNINGS=ignore $(RUN) -m pip install --quiet --editable ".[docs]"
	touch $@

$(VENV)/ready: pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Python 3.11 or newer is needed: make PYTHON=python3.11')"
	$(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --upgrade pip
	PYTHONWARNINGS=ignore $(RUN) -m pip install --quiet --editable ".[dev]"
	$(RUN) -m ahofm_keras.solvers.kernels
	touch $@

clean:
	rm -rf $(VENV) demo docs/_build
