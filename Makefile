# Every command of the project. Python 3.11 or newer is all a fresh machine needs.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PREPARED := $(VENV)/.prepared
NPM := $(BIN)/python -m devstack npm
# A stack is several processes that import the same modules: compile each once, also where the shell says not to.
export PYTHONDONTWRITEBYTECODE :=
# Static checks read settings and models, never a server; the test settings carry an environment for that.
CHECK := DJANGO_SETTINGS_MODULE=tests.settings $(BIN)/python -W ignore::RuntimeWarning manage.py

.PHONY: help run test lint bench chaos cluster cluster-test cluster-throughput signers restore-drill upgrade-rehearsal soak fuzz mutation manage clean lock chart schema format structure bundle packages generators release

help: ## Show the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20

$(INSTALLED): requirements/dev.txt requirements/lock.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one with PYTHON=")'
	@echo "Installing the environment into $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m devstack.install requirements/dev.txt
	@touch $@

$(PREPARED): $(INSTALLED)
	@$(BIN)/python -m devstack prepare
	@touch $@

run: $(PREPARED) ## Start everything, run the wallet journey, keep serving (ONCE=1, PORT=, LOAD=1, PGBOUNCER=1, SIGNER=1 or pkcs11 or kms)
	@$(BIN)/python -m devstack run $(if $(ONCE),--once) $(if $(LOAD),--load) $(if $(PORT),--port $(PORT)) $(if $(BLOCK_TIME),--block-time $(BLOCK_TIME)) $(if $(SIGNER),--signer $(filter-out 1,$(SIGNER)))

# Each of the workers has its own servers. The journeys stay on one of them and mostly wait, so three suit two processors.
WORKERS ?= 3
test: $(PREPARED) ## Run every test on embedded services (ARGS= for pytest, WORKERS= at once, PGBOUNCER=1 behind PgBouncer)
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
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml deploy/compose.archive.yaml

chart: $(INSTALLED) ## Render deploy/chart with Helm for each file of values, validate, and keep it in deploy/rendered
	@$(BIN)/python -m devstack chart

schema: $(INSTALLED) ## Write docs/openapi.yaml, and what the clients take from it
	$(CHECK) spectacular --validate --fail-on-warn --file docs/openapi.yaml
	$(BIN)/python clients/python/generate.py
	$(NPM) run generate

bundle: $(INSTALLED) ## Bundle the TypeScript client for the pages of the service
	$(NPM) run bundle

packages: $(INSTALLED) ## Build the client packages and try them in empty folders (STACK= a running stack's file, to relay)
	@clients/try-packages.sh

generators: $(INSTALLED) ## Make calls of the running stack with clients generated from the OpenAPI document (STACK=)
	@clients/try-generators.sh

format: $(INSTALLED) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(PREPARED) ## Measure relaying under load (ARGS=, such as ARGS="--against COMMIT"; ARGS=--help)
	@$(BIN)/python -m lab bench $(ARGS)

chaos: $(PREPARED) ## Cause faults under load and compare what was promised (MINUTES=60, FAULTS= their first words, TIMES= of each)
	@$(BIN)/python -m lab chaos $(if $(MINUTES),--minutes $(MINUTES)) $(if $(FAULTS),--faults "$(FAULTS)") $(if $(TIMES),--times $(TIMES))

signers: $(PREPARED) ## Kill and stall what signs, with keys in each place (CALLS=2000, KEYS=local,keystore,pkcs11,kms)
	@$(BIN)/python -m lab signers $(if $(CALLS),--calls $(CALLS)) $(if $(KEYS),--keys $(KEYS))

cluster: $(PREPARED) ## Start the service on many hosts, with network namespaces as hosts; takes root (ONCE=1)
	@$(BIN)/python -m lab cluster $(if $(ONCE),--once)

restore-drill: $(PREPARED) ## Lose PostgreSQL under load, restore it, compare the books with the chain (ARGS=--help)
	@$(BIN)/python -m lab restore-drill $(ARGS)

cluster-test: $(PREPARED) ## Kill, stop and cut off hosts and processes of a cluster (MINUTES=60, FAULTS= their first words, TIMES= of each, ASYNCHRONOUS=1)
	@$(BIN)/python -m lab cluster-test $(if $(MINUTES),--minutes $(MINUTES)) $(if $(FAULTS),--faults "$(FAULTS)") $(if $(TIMES),--times $(TIMES)) $(if $(ASYNCHRONOUS),--asynchronous)

cluster-throughput: $(PREPARED) ## Measure relaying in a cluster of one to three web hosts and one or two workers (ARGS=--help)
	@$(BIN)/python -m lab cluster-throughput $(ARGS)

upgrade-rehearsal: $(PREPARED) ## Add columns and replace every process under load; no request may fail (ARGS=--help)
	@$(BIN)/python -m lab upgrade-rehearsal $(ARGS)

soak: $(PREPARED) ## Keep the stack busy without any fault; nothing may grow or fail (MINUTES=30)
	@$(BIN)/python -m lab soak $(if $(MINUTES),--minutes $(MINUTES))

CASES ?= 5000
fuzz: $(PREPARED) ## Send requests made at random from the API's description (CASES=50000)
	@FUZZ_CASES=$(CASES) LOG_LEVEL=CRITICAL $(BIN)/python -m pytest -n0 -q -s tests/gateway/test_random_requests.py

mutation: $(PREPARED) ## Change the code that moves money, bit by bit; each change must fail a test (ARGS=--help)
	@$(BIN)/python -m lab mutation $(ARGS)

structure: $(INSTALLED) ## Measure the code's structure (CHECKOUT= for another one)
	@$(BIN)/python -m lab structure $(CHECKOUT)

manage: $(INSTALLED) ## Run a management command against the running stack (CMD="…")
	@$(BIN)/python -m devstack manage $(CMD)

RELEASE := var/release/bin
release: ## Write the bill of materials of the locked packages, and look for known vulnerabilities of them (needs pypi.org)
	@$(PYTHON) -m venv var/release
	@$(RELEASE)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt
	@for name in base watching; do \
		$(RELEASE)/cyclonedx-py requirements requirements/$$name.txt --output-reproducible -o var/release/$$name.cdx.json && \
		echo "wrote var/release/$$name.cdx.json"; \
	done
	@# One that cannot be looked up is a failure, and not one that is safe.
	$(RELEASE)/pip-audit --strict --disable-pip --require-hashes -r requirements/watching.txt

lock: $(INSTALLED) ## Resolve requirements/*.in to hashed *.txt without any address
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
	$(BIN)/uv pip compile $(LOCK) requirements/lock.in -o requirements/lock.txt
	$(BIN)/uv pip compile $(LOCK) requirements/dev.in -o requirements/dev.txt
	$(BIN)/uv pip compile $(LOCK) -c requirements/dev.txt requirements/base.in -o requirements/base.txt
	$(BIN)/uv pip compile $(LOCK) -c requirements/dev.txt requirements/chart.in -o requirements/chart.txt
	$(BIN)/uv pip compile $(LOCK) -c requirements/dev.txt requirements/watching.in -o requirements/watching.txt
	$(BIN)/uv pip compile $(LOCK) requirements/release.in -o requirements/release.txt

LOCK := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make lock"

clean: ## Forget the data of the dev stack
	rm -rf var
