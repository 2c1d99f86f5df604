# make help says what there is. Tests need Go, git and make. Those of package fence also
# need PostgreSQL and Redis, and those of pages Chromium, which make test installs if it can,
# and are skipped without; what linting needs beyond that is pinned in tools/go.mod.

GO ?= go
# gofmt of the very toolchain that builds, whether or not it is on the path.
GOFMT ?= $(shell $(GO) env GOROOT)/bin/gofmt

# How long a package's tests may take before they are taken to hang.
TIMEOUT ?= 15m
# The race detector slows the simulator down by about ten.
RACE_TIMEOUT ?= 30m
# How long each fuzz target runs.
FUZZTIME ?= 10s

.DEFAULT_GOAL := help

.PHONY: help
help: ## say what there is
	@echo "usage: make TARGET"
	@echo
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)$$/\1|\2/p' Makefile | \
		while IFS='|' read -r target text; do printf '  %-10s  %s\n' "$$target" "$$text"; done

.PHONY: build
build: ## build bin/leasehold
	$(GO) build -o bin/leasehold ./cmd/leasehold

.PHONY: services
services: ## install PostgreSQL, Redis and Chromium for the tests that need them, where apt-get can
	@internal/realservice/install

.PHONY: test
test: services ## check formatting, vet, and run all tests: what must pass before a commit
	@unformatted=$$($(GOFMT) -l .) || exit 1; \
	if [ -n "$$unformatted" ]; then \
		echo "these files are not formatted, run gofmt -w on them:" >&2; \
		echo "$$unformatted" >&2; \
		exit 1; \
	fi
	$(GO) vet ./...
	$(GO) test -shuffle=on -timeout=$(TIMEOUT) ./...
	cd bench/flease && $(GO) vet ./... && $(GO) test -shuffle=on -timeout=$(TIMEOUT) ./...
	@internal/realservice/install report # last, where it is seen

.PHONY: test-race
test-race: services ## run all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -shuffle=on -timeout=$(RACE_TIMEOUT) ./...

.PHONY: generate
generate: ## write the Go code of proto/ again (the first build of buf takes minutes)
	$(GO) tool -modfile=tools/buf/go.mod buf lint
	$(GO) tool -modfile=tools/buf/go.mod buf generate

.PHONY: lint
lint: ## run golangci-lint as tools/go.mod pins it (its first build takes minutes)
	$(GO) tool -modfile=tools/go.mod golangci-lint run ./...

.PHONY: verify
verify: ## simulate ten thousand worlds of each kind, and try everything in small ones (minutes)
	$(GO) run ./cmd/leasehold sim --seeds 10000
	$(GO) run ./cmd/leasehold sim --seeds 10000 --diskless
	$(GO) run ./cmd/leasehold sim --seeds 10000 --agents
	$(GO) run ./cmd/leasehold flease sim --seeds 10000
	$(GO) run ./cmd/leasehold flease sim --explore 14 --detours 2

.PHONY: chaos
chaos: ## hold what the services of Live Mesh promise against a thousand runs with faults, and twenty with real processes (minutes)
	cd examples/livemesh && $(GO) test -timeout=60m ./queue ./pubsub ./documents ./device -args -runs=1000
	$(GO) test -timeout=60m -run RealProcesses -parallel 2 -v ./examples/livemesh -args -runs=20

.PHONY: screenshots
screenshots: services ## make the pictures of pages in the documents again, with a real browser
	$(GO) test -count=1 -run TwoWindows ./examples/livemesh -args -screenshots=screenshots

.PHONY: screenshots
screenshots: services ## make the pictures of the dashboard in docs/dashboard again (needs Chromium)
	mkdir -p docs/dashboard
	$(GO) test ./internal/dashboard -count=1 -run 'Screenshots|Many' -args -screenshots=$(CURDIR)/docs/dashboard

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME, 10s unless told
	@grep -r --include='*_test.go' '^func Fuzz' . | \
		sed -n 's|^\(.*\)/[^/]*_test\.go:func \(Fuzz[A-Za-z0-9_]*\).*|\1 \2|p' | sort | \
		while read -r dir target; do \
			echo "$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$dir" </dev/null || exit 1; \
		done

.PHONY: bench
bench: ## measure what the libraries, a manager and a failover cost, against floors and peers (minutes)
	cd bench && $(GO) run ./ratios
	$(GO) run ./internal/scale
	$(GO) run ./cmd/leasehold demo --for 60s --json

.PHONY: bench-flease
bench-flease: ## compare flease with etcd and ZooKeeper (minutes); FLAGS="-docs ../../docs" writes docs/flease.md
	cd bench/flease && $(GO) run . $(FLAGS)

.PHONY: bench-sim
bench-sim: ## run the benchmarks of the simulator and the manager machine
	$(GO) test -run '^$$' -bench . -benchmem -cpu 1 ./internal/sim ./internal/machine/manager

.PHONY: cover
cover: services ## say which share of the code all tests together run, in total and by function
	$(GO) test -timeout=$(TIMEOUT) -coverpkg=./... -coverprofile=cover.out ./...
	$(GO) tool cover -func=cover.out

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf bin cover.out
