# `make demo` and `make test` need Python 3.11 or later; each target says what else it lacks.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests wait for servers half of the time.
WORKERS := $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')
PYTEST_FLAGS ?= -q -n $(WORKERS)

# where `make web` listens
PORT ?= 8000

# redis-py versions that `make test-all` runs the tests with, beside the newest
REDIS_PY := 5 6 7

# What is checked with the types of its environment; pyproject.toml leaves it out elsewhere.
RAILTRACKS := src/turnstore/integrations/railtracks.py tests/integrations/railtracks/*.py \
  tests/typing/railtracks_api.py

.DEFAULT_GOAL := help
.PHONY: help demo web test test-integrations test-railtracks test-web test-older test-all check bench \
  coverage clean \
  debian-servers debian-browser debian-lint
.DELETE_ON_ERROR:
.SECONDARY:

help:  ## what each target does
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(VENV)/demo.stamp  ## see an LLM client remember, with an embedded server
	$(BIN)/turnstore demo

web: $(VENV)/web.stamp  ## a chat in the browser, with several workers: examples/web
	$(BIN)/python -m examples.web --port $(PORT)

test: debian-servers $(VENV)/test.stamp  ## the tests on every server there is
	$(BIN)/pytest $(PYTEST_FLAGS)

test-integrations: debian-servers $(VENV)/integrations.stamp  ## each adapter with its real SDK
	$(BIN)/pytest $(PYTEST_FLAGS) tests/conformance tests/integrations
	$(BIN)/pytest -q -m integrations tests/docs tests/unit tests/facts/tools

# Railtracks wants an older openai and mcp than the others. LiteLLM, which it brings along, would
# look for prices in the network, and Railtracks writes a file for each session.
test-railtracks: export LITELLM_LOCAL_MODEL_COST_MAP := True
test-railtracks: export RAILTRACKS_DISABLE_EVENTS := True
test-railtracks: debian-servers $(VENV)-railtracks/test.stamp  ## Railtracks, in an environment of its own
	$(VENV)-railtracks/bin/pytest $(PYTEST_FLAGS) -p no:cacheprovider -m "" -k railtracks \
	  tests/conformance tests/integrations/railtracks tests/docs

test-web: debian-servers debian-browser $(VENV)/test-web.stamp  ## examples/web in a real browser, and the guides for the web
	$(BIN)/pytest $(PYTEST_FLAGS) --dist loadfile tests/web
	$(BIN)/pytest -q -m web tests/docs

test-all: debian-servers $(VENV)/test.stamp $(REDIS_PY:%=test-redis-py-%)  ## also slow tests, and redis-py 5, 6, 7
	$(BIN)/pytest $(PYTEST_FLAGS) -m "not integrations and not web"

# An older redis-py lies in a folder of its own, before the environment's. Before 8 it drops
# connections of an asyncio Cluster client without closing them.
OLDER = PYTHONPATH=$(VENV)/redis-py-$* $(BIN)/pytest $(PYTEST_FLAGS) -p no:cacheprovider \
  -W ignore::ResourceWarning

test-redis-py-%: debian-servers $(VENV)/redis-py-%/stamp
	$(OLDER)

test-older: $(REDIS_PY:%=test-briefly-%)  ## redis-py 5, 6, 7: every client setup, and lost answers

test-briefly-%: debian-servers $(VENV)/redis-py-%/stamp
	$(OLDER) -k "redis-8 or (cluster and smoke)" \
	  tests/store/test_smoke.py tests/store/test_setups.py tests/failure/test_lost_replies.py

check: debian-lint $(VENV)/dev.stamp $(VENV)-railtracks/test.stamp  ## style, types, layers, Lua, file lengths, the wheel
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy --python-executable $(VENV)-railtracks/bin/python \
	  --cache-dir .mypy_cache/railtracks $(RAILTRACKS)
	$(BIN)/pyright
	$(BIN)/pyright -p tests/typing/railtracks.json
	$(BIN)/lint-imports
	$(BIN)/python tests/checks/lint_lua.py
	$(BIN)/python tests/checks/lengths.py
	$(BIN)/pytest -q -m "not slow" tests/packaging

coverage: debian-servers $(VENV)/test.stamp  ## the tests, and the lines and branches they miss
	$(BIN)/pytest $(PYTEST_FLAGS) --cov --cov-report=term-missing

bench: $(VENV)/test.stamp  ## the benchmarks, paired with what they are measured against
	$(BIN)/python benchmarks/run.py

clean:  ## remove what the other targets made
	rm -rf $(VENV) $(VENV)-test $(VENV)-railtracks build dist .mypy_cache .ruff_cache .pytest_cache \
	  .import_linter_cache .hypothesis .coverage .coverage.*
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# One environment for all; each stamp adds what its target needs, and is made again when
# pyproject.toml changes.

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[demo]'
	touch $@

$(VENV)/test.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[demo,test]'
	touch $@

$(VENV)/integrations.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[demo,test,integrations]'
	touch $@

$(VENV)/web.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[demo,web,facts]'
	touch $@

$(VENV)/test-web.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[demo,web,test,test-web]'
	touch $@

$(VENV)/dev.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/pip install --quiet --editable '.[demo,web,test,test-web,integrations,dev]'
	touch $@

$(VENV)-railtracks/test.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)-railtracks
	$(VENV)-railtracks/bin/pip install --quiet --editable '.[test,railtracks]'
	touch $@

$(VENV)/redis-py-%/stamp: $(VENV)/test.stamp
	$(BIN)/pip install --quiet --upgrade --target $(VENV)/redis-py-$* 'redis~=$*.0'
	touch $@

# apt is used only where we are root; elsewhere the reader is told. A missing server is not an
# error here: the tests run on the servers there are, and say which one they miss. So it is with
# faketime, which moves a server's clock.

debian-servers:
	@$(call debian,redis-server,redis-server) || true
	@$(call debian,faketime,faketime) || true

debian-browser:
	@$(call debian,chromium,chromium)

debian-lint:
	@$(call debian,luacheck,lua-check)

define debian
command -v $(1) >/dev/null || { \
  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo "installing the Debian package $(2)"; \
    apt-get update -qq && \
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(2) >/dev/null; \
  else \
    echo "missing: $(1) (on Debian or Ubuntu: apt install $(2))" >&2; false; \
  fi; }
endef
