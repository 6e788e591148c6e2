# `make demo` and `make test` work as the first command after `git clone`: each makes .venv if it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-all lint format docs site lock bench release-check clean

# Without what only development needs.
demo: $(RUNS)
	$(BIN)/bookferry demo

# Files of tests lie in memory where there is room: each granted request and each file of a snapshot waits for a disk otherwise.
MEMORY = $$([ "$$(df --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 8000000 ] 2>/dev/null && echo TMPDIR=/dev/shm)

# A file's tests stay in one process: they share a sandbox, a wheel, a backup. Twice as many processes as there are cores, since each waits
# for others that it started. In the order of tests/conftest.py: the slow ones begin, and the quick ones fill what is left.
# What one process compiled, the hundreds that tests start need not compile again, whatever the environment says.
TESTS = env $(MEMORY) PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n $$($(BIN)/python -c 'import os; print(min(2 * (os.cpu_count() or 1), 16))') --dist loadfile --no-loadscope-reorder

test: $(STAMP)
	$(TESTS) -m "not long"

# With the long ones. What fails beside others is run once more, alone: a busy machine is no defect of Bookferry. Both results are
# printed, and a test that passes only alone is to be mended all the same.
test-all: $(STAMP)
	$(TESTS) || { echo "=== once more, alone ==="; $(BIN)/pytest --last-failed --last-failed-no-failures none; }

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The data dictionary, made from the descriptions of the tables, and the notebook with what it shows on the demonstration.
docs: $(STAMP)
	$(BIN)/python -m tests.dictionary > docs/tables.md
	$(BIN)/python -m tests.notebook

# The documentation as a site, in build/site, with a page of all commands.
site: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Every benchmark with its peers: some 25 minutes on a quiet machine. Writes benchmarks/results.json and the tables of benchmarks/README.md.
bench: $(STAMP)
	$(BIN)/python -m benchmarks

# Exact versions and hashes for every platform, and no address of an index: what development needs, what runs of it, and what runs on
# several machines.
UPGRADE = --upgrade
COMPILE = $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-strip-extras --no-emit-index-url --no-emit-find-links --quiet
lock: $(STAMP)
	$(COMPILE) --group dev --all-extras $(UPGRADE) -o requirements-dev.lock
	$(COMPILE) --group build --extra ui -c requirements-dev.lock -o requirements.lock
	$(COMPILE) --group build --all-extras -c requirements-dev.lock -o deploy/requirements.lock

# Stamps rather than the folder: an installation that broke off half-way is done again.
define ENVIRONMENT
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	|| { echo "Bookferry needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version). Name another: make PYTHON=python3.12 ..." >&2; exit 1; }
$(PYTHON) -m venv $(VENV)
endef
define CHECKOUT
$(PIP) --no-deps --no-build-isolation --editable .
@$(BIN)/python -m compileall -q assets_defs cli pipelines resources sandbox  # who runs it may not be allowed to write here
endef

$(RUNS): requirements.lock pyproject.toml
	$(ENVIRONMENT)
	$(PIP) --require-hashes -r requirements.lock
	$(CHECKOUT)
	@touch $(RUNS)

# What runs, too. By uv, in a quarter of pip's time. It does not read pip's configuration: where it finds no packages, pip installs them.
$(STAMP): requirements-dev.lock pyproject.toml
	$(ENVIRONMENT)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.lock | $(PIP) --require-hashes -r /dev/stdin
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements-dev.lock \
		|| $(PIP) --require-hashes -r requirements-dev.lock
	$(CHECKOUT)
	@touch $(RUNS) $(STAMP)

# Is this checkout ready to be released? Nothing is uncommitted, the version is a new one and has its day in CHANGELOG.md and CITATION.cff, the
# locks are those of pyproject.toml but for further hashes, and an sdist and a wheel can be built. An index takes no version twice.
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
DAY = $(shell sed -n '0,/^## /s/^## $(VERSION) (\([0-9]*-[0-9]*-[0-9]*\))$$/\1/p' CHANGELOG.md)
release-check: $(STAMP)
	test -z "$$(git status --porcelain)"
	test -z "$$(git tag --list v$(VERSION) --no-contains HEAD)"
	test -n "$(DAY)" && grep -qx 'version: $(VERSION)' CITATION.cff && grep -Eqx "date-released: '?$(DAY)'?" CITATION.cff
	$(MAKE) --silent lock UPGRADE= && git diff --exit-code -I '--hash=' -- '*.lock'
	$(BIN)/python -m build --no-isolation --outdir "$$(mktemp -d)" >/dev/null
	@echo "Ready. When CI is green: git tag --sign v$(VERSION) -m v$(VERSION) && git push origin v$(VERSION)"

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
