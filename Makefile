# The everyday commands; `.venv/bin/python -m lab --help` and `-m devstack --help` list the others.
# A fresh machine needs only Python 3.11 or newer.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
MADE := $(VENV)/.made
PREPARED := $(VENV)/.prepared
NPM := $(BIN)/python -m devstack npm
# The processes of a stack import the same modules: compile each once, also if the shell disables bytecode.
export PYTHONDONTWRITEBYTECODE :=
# Static checks need settings but no server; the test settings provide an environment.
CHECK := DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python -W ignore::RuntimeWarning manage.py

.PHONY: help run port test lint format bench schema lock code manage chart packages release record-release clean translations

help: ## Show the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

# A lock file lists only what it adds to the ones before it.
LOCKS := requirements/base.txt requirements/watching.txt requirements/dev.txt

# The environment imports the packages of tools/, as does one from the time before tools/.
$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with PYTHON=")'
	@$(PYTHON) -m venv $(VENV)
	@cd $(VENV)/lib/python*/site-packages && printf '../../../../tools%s\n' '' /stripe_double >tools.pth
	@touch $@

$(INSTALLED): $(LOCKS) requirements/lock.txt | $(MADE)
	@echo "Installing the environment into $(VENV) (first time, and when requirements/ has changed) …"
	@$(BIN)/python -m devstack.install $(LOCKS)
	@touch $@

$(PREPARED): $(INSTALLED)
	@$(BIN)/python -m devstack prepare
	@touch $@

run: $(if $(PORT),port) $(PREPARED) ## Start everything, run the wallet journey and keep serving (ONCE=1, PORT=, LOAD=1, HOME_ONLY=1, PGBOUNCER=1, SIGNER=1 or pkcs11 or kms)
	@$(BIN)/python -m devstack run $(if $(ONCE),--once) $(if $(LOAD),--load) $(if $(HOME_ONLY),--home-only) $(if $(PORT),--port $(PORT)) $(if $(BLOCK_TIME),--block-time $(BLOCK_TIME)) $(if $(SIGNER),--signer $(filter-out 1,$(SIGNER)))

# A port that cannot be used is told before anything is installed.
port:
	@PYTHONPATH=tools $(PYTHON) -m devstack.ports '$(PORT)'

# Each worker starts its own servers. The journeys run on one worker and mostly wait, so three suit two cores.
WORKERS ?= 3
test: $(PREPARED) ## Run all tests on embedded services (ARGS= for pytest, WORKERS= processes, PGBOUNCER=1 through PgBouncer)
	@$(BIN)/python -m pytest -n $(WORKERS) --no-loadscope-reorder $(ARGS)

lint: $(INSTALLED) ## Style, types, import contract, migrations, API schema, container files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(CHECK) makemigrations --check --dry-run
	DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python -m devstack.migration_rules
	$(CHECK) check --fail-level WARNING
	@mkdir -p var
	$(CHECK) spectacular --validate --fail-on-warn --file var/openapi.yaml
	diff -u docs/openapi.yaml var/openapi.yaml
	$(BIN)/python clients/python/generate.py --check
	$(NPM) run check
	$(BIN)/python -m devstack biome check --error-on-warnings
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml deploy/compose.archive.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/ci.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml

chart: $(INSTALLED) ## Write what follows from the list of secrets; render deploy/chart with each values file into var/, and validate it
	@$(BIN)/python -m devstack chart

schema: $(INSTALLED) ## Write docs/openapi.yaml and the Python client's types
	$(CHECK) spectacular --validate --fail-on-warn --file docs/openapi.yaml
	$(BIN)/python clients/python/generate.py

packages: $(INSTALLED) ## Build the client packages and the Stripe double, and try them in empty folders (STACK= a running stack's file, to relay a call)
	@clients/try-packages.sh

translations: $(INSTALLED) ## Update and compile the catalogues of the pages for people (LANGUAGE=fr begins one)
	@$(BIN)/python -m devstack translations $(LANGUAGE)

format: $(INSTALLED) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/python -m devstack biome check --write

bench: $(PREPARED) ## Measure relaying under load (ARGS=, such as ARGS="--against COMMIT"; ARGS=--help)
	@$(BIN)/python -m lab bench $(ARGS)

code: $(INSTALLED) ## Show address, name, password and present code of an admin login of the stack (ROLE=support)
	@$(BIN)/python -m devstack code $(ROLE)

manage: $(INSTALLED) ## Run a management command against the running stack (CMD="…")
	@$(BIN)/python -m devstack manage $(CMD)

RELEASE := var/release/bin
record-release: $(PREPARED) ## Write the database of this release into tests/data/release, from which later changes are upgraded in tests
	@$(BIN)/python -m pytest -n0 -q tests/relay/record_release.py

release: ## Write the bill of materials of the locked packages and check them for known vulnerabilities (asks PyPI for them)
	@$(PYTHON) -m venv var/release
	@$(RELEASE)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt
	@cat requirements/base.txt > var/release/base.txt
	@cat requirements/base.txt requirements/watching.txt > var/release/watching.txt
	@for name in base watching; do \
		$(RELEASE)/cyclonedx-py requirements var/release/$$name.txt --output-reproducible -o var/release/$$name.cdx.json && \
		echo "wrote var/release/$$name.cdx.json"; \
	done
	@# A package that cannot be looked up is a failure.
	$(RELEASE)/pip-audit --strict --disable-pip --require-hashes -r var/release/watching.txt

lock: $(INSTALLED) ## Resolve requirements/*.in to hashed *.txt without index URLs
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
	$(BIN)/uv pip compile $(LOCK) requirements/lock.in -o requirements/lock.txt
	cat $(LOCKS) > var/all.txt
	$(BIN)/uv pip compile $(LOCK) requirements/dev.in -o var/all.txt
	$(BIN)/uv pip compile $(LOCK) -c var/all.txt requirements/base.in -o requirements/base.txt
	$(BIN)/uv pip compile $(LOCK) -c var/all.txt $(call WITHOUT,base) requirements/watching.in -o requirements/watching.txt
	$(BIN)/uv pip compile $(LOCK) -c var/all.txt $(call WITHOUT,base watching) requirements/dev.in -o requirements/dev.txt
	$(BIN)/uv pip compile $(LOCK) -c var/all.txt requirements/chart.in -o requirements/chart.txt
	$(BIN)/uv pip compile $(LOCK) requirements/release.in -o requirements/release.txt

LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make lock"
WITHOUT = $$(sed -n 's/^\([A-Za-z0-9._-]*\)==.*/--no-emit-package \1/p' $(patsubst %,requirements/%.txt,$(1)))

clean: ## Delete the data of the dev stack
	@[ ! -d var ] || find var -mindepth 1 -delete
