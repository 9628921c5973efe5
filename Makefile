# Every target sets up what it needs. `make` alone lists them.

VENV ?= .venv
BIN := $(VENV)/bin
# The first Python that is new enough; PYTHON=... names another one.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11
PYTHON ?= $(shell for p in $(CANDIDATES); do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; \
	done)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench docs wheel clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 16

setup: $(VENV)/dev.stamp  ## everything that a developer needs, in .venv

demo: $(VENV)/core.stamp  ## sanitize the examples; show them before and after, and the promise
	@$(BIN)/python examples/demo.py

test: $(VENV)/dev.stamp  ## the whole test suite
	@$(BIN)/python -m pytest -n auto

check: $(VENV)/dev.stamp  ## lint, format, types, and docs that have drifted
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python scripts/docs.py --check

bench: $(VENV)/dev.stamp  ## measure against plain implementations (some minutes)
	$(BIN)/python bench/run.py --write

docs: $(VENV)/dev.stamp  ## write the generated parts of README and docs (some ten minutes)
	$(BIN)/python scripts/docs.py --draw
	$(BIN)/python scripts/choosing_epsilon.py --write

wheel: $(VENV)/core.stamp  ## build a wheel into dist/ and try it without the source tree
	@BUILDER=$(BIN)/python scripts/try_wheel.sh

clean:  ## remove what the other targets made, but no output of yours
	rm -rf $(VENV) build dist bench/results .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests scripts bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is written last, so that a broken setup is done again.
$(VENV)/core.stamp: pyproject.toml
	@test -n "$(PYTHON)" || { echo "deniable needs Python 3.11 or newer: none of" \
		"$(CANDIDATES) is; name one with make PYTHON=..." >&2; exit 2; }
	@echo "setting up $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV) || { echo "$(PYTHON) can't make a virtual environment; on Debian" \
		"and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@$(PIP) --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/core.stamp scripts/dependency_group.py
	@$(BIN)/python scripts/dependency_group.py dev > $(VENV)/dev.txt
	@$(PIP) --editable '.[accounting,plots,postgresql]' --requirement $(VENV)/dev.txt
	@touch $@
