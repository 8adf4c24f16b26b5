# Everything here runs from .venv, which is made from requirements.lock: by uv where it is installed,
# else by Python's own venv and pip. Nothing else is needed but Python 3.11 or later and a package index.
# The demo alone needs a third of that: where there is no .venv yet, it makes build/demo from demo.lock.
#
#   make demo    a conversation of many sessions goes in, dated facts come out
#   make check   what answers in three minutes: lint, types, docs, unit tests, the conformance kit on memory and SQLite
#   make test    the suite: check's tests, and those on a real Neo4j, Qdrant engine, embedding model and browser;
#                what needs a running Docker is skipped where there is none (but in CI)
#   make test-all    everything, long forms in their short version included: before a release
#   make lint    ruff, check and format
#   make types   basedpyright, strict
#   make soak    the long forms of the crash and isolation tests
#   make coverage    lines covered by make test, and by make test-all
#   make bench   speed against plain sqlite3
#   make neo4j-up    Neo4j with GDS and Browser in a container, on ports of this machine only
#   make neo4j-down  remove the container, keep its data
#   make docs    the documentation as a site in build/site, built strictly
#   make reference   write the generated pages of docs/reference and the picture of the layers from the code
#   make lock    resolve requirements.lock and demo.lock again (needs uv)
#   make clean   remove what the others made, .venv too

.POSIX:
.PHONY: demo docs reference environment check test test-all coverage lint types soak bench neo4j-up neo4j-down neo4j-image lock clean
.DEFAULT_GOAL := test

BIN = .venv/bin
READY = .venv/.ready
DEMO = build/demo
# Of how many processes a test run is; its report has the durations of all tests.
PROCESSES = 2
# Where Python writes no bytecode, each of a run's many processes compiles all modules anew.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal
REPORT = --junitxml=build/tests

demo:
	@if [ -e $(READY) ]; then bin=$(BIN); else $(MAKE) -s $(DEMO)/.ready && bin=$(DEMO)/bin; fi && \
	  $$bin/graphmem demo && printf '\nHere, graphmem is %s/graphmem.\n' $$bin

environment: $(READY)

check: lint
	@$(MAKE) -j 2 types docs
	$(PYTEST) --lane check $(REPORT)/check.xml $(ARGS)

test: $(READY) neo4j-image
	$(PYTEST) --lane test $(REPORT)/test.xml $(ARGS)

test-all: $(READY) neo4j-image
	$(PYTEST) --lane all $(REPORT)/test-all.xml $(ARGS)

soak: $(READY) neo4j-image
	GRAPHMEM_SOAK=1 $(BIN)/python -m pytest -m soak -o timeout=3600 $(ARGS)

coverage: $(READY) neo4j-image
	rm -f build/.coverage*
	for lane in test all; do \
	  COVERAGE_FILE=build/.coverage.$$lane $(BIN)/coverage run -m pytest -n $(PROCESSES) --dist worksteal --lane $$lane; \
	  $(BIN)/coverage combine -q --data-file=build/.coverage.$$lane build; \
	done
	for lane in test all; do echo "lane $$lane:"; $(BIN)/coverage report --data-file=build/.coverage.$$lane; done

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/basedpyright

# Before the tests, whose time limits are not for building it. Where there can't be one, the tests say why.
neo4j-image: $(READY)
	-@$(BIN)/python -m tests.neo4j_server

neo4j-up:
	@sh .ci/docker-engine
	@sh docker/neo4j-up

neo4j-down:
	@sh docker/neo4j-up --down

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

reference: $(READY)
	$(BIN)/python docs/reference.py

bench: $(READY)
	$(BIN)/python tests/bench/speed.py --json $(ARGS)

# --universal and the lowest Python make one file for 3.11 and later on Linux and macOS. No index is
# written into it: whichever one uv or pip is set up with serves, and the hashes say whether it is right.
COMPILE = uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-annotate --custom-compile-command "make lock"
lock:
	$(COMPILE) -o requirements.lock --extra all --extra testing --group dev --group docs --group notebook $(ARGS)
	$(COMPILE) -o demo.lock --extra spacy --extra embeddings --group demo -c requirements.lock

clean:
	rm -rf .venv dist build .pytest_cache .ruff_cache .hypothesis
	find graphmem backends tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements.lock pyproject.toml .ci/environment
	@sh .ci/environment .venv requirements.lock
	@touch $@

$(DEMO)/.ready: demo.lock pyproject.toml .ci/environment
	@mkdir -p build
	@sh .ci/environment $(DEMO) demo.lock
	@touch $@
