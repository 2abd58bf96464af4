# make          what there is to make
# make run      a first try: a sandbox, a recorded sample, its timeline; it serves until Ctrl-C
# make ci       what CI runs
#
# HERE=1        no isolation: sandboxes are this very machine
# PKG, TESTFLAGS  narrow make test: make test PKG=./record/... TESTFLAGS='-run TestRun'

export HERE PKG TESTFLAGS CLIENTS

.DEFAULT_GOAL := help
.PHONY: help build run dev types test test-web test-opensandbox check test-clients fuzz soak matrix ci bench bench-opensandbox vuln clean

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nHERE=1 works without gVisor, and without isolation: make run HERE=1, make test HERE=1\n'

build: ## build bin/glassbox, the recorder and, once per version, gVisor's runsc
	@scripts/build.sh

run: ## build, show a recorded sample, and serve until Ctrl-C (GLASSBOX_PORT, 7717)
	@scripts/run.sh

dev: ## serve, and show each change of server and page at one address (GLASSBOX_PORT, 7717)
	@scripts/dev.sh

types: ## generate the page's types of the API
	@scripts/types.sh

test: ## run the tests (PKG=./history/... narrows them)
	@scripts/test.sh

test-opensandbox: ## run the tests that need a real OpenSandbox server, which it starts (as root)
	@scripts/test-opensandbox.sh

test-web: ## run the tests of the page, in a real browser too (installs Chromium by apt if it is missing)
	@scripts/test-web.sh

check: ## format, lint, go.mod, vet, cross builds, a bare clone, generated files
	@scripts/check.sh

test-clients: ## run the public OpenSandbox clients against glassbox serve (CLIENTS='sdk node' narrows them)
	@scripts/test-clients.sh

fuzz: ## run each fuzz target for FUZZTIME (30s)
	@scripts/fuzz.sh

ci: ## what CI runs: test, check, test-clients, test-opensandbox, test-web, fuzz
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory test-clients
	@$(MAKE) --no-print-directory test-opensandbox
	@$(MAKE) --no-print-directory test-web
	@$(MAKE) --no-print-directory fuzz

soak: ## many sandboxes, and many kills: what the tests do a few times only
	@scripts/soak.sh

matrix: ## run the tests that need nginx and Caddy, which it installs on Debian (as root)
	@scripts/matrix.sh

bench: ## measure, write docs/bench.json, fail when a ratio is over its budget
	@scripts/bench.sh

bench-opensandbox: ## measure the local runtime beside a real OpenSandbox server, which it starts (as root)
	@scripts/bench-opensandbox.sh

vuln: ## look for known vulnerabilities
	@scripts/vuln.sh

clean: ## remove bin/
	rm -rf bin
