# make help lists the targets. Tests need Go, git and make. Tests of package fence also need
# PostgreSQL and Redis, tests of pages Chromium, and the inductive model z3; make test installs them where
# it can, and skips these tests otherwise. Linters are pinned in tools/go.mod.

GO ?= go
# gofmt of the very toolchain that builds, whether or not it is on the path.
GOFMT ?= $(shell $(GO) env GOROOT)/bin/gofmt

# How long a package's tests may take before they are taken to hang. Those of lab/mutant build hundreds of programs.
TIMEOUT ?= 30m
# The race detector slows the simulator down by about ten.
RACE_TIMEOUT ?= 30m
# How long each fuzz target runs, and which ones do: a pattern for "directory FuzzName".
FUZZTIME ?= 3s
FUZZ ?= .
# For how long make chaos breaks each kind of cluster, and what it draws from.
CHAOS_FOR ?= 5m
CHAOS_SEED ?= 1
# The same of make soak, which breaks one kind.
SOAK_FOR ?= 2h
SOAK_SEED ?= 1
SOAK_STORE ?= etcd

# The modules of the workspace (go.work).
MODULES = . server lab examples cmd/leasehold cmd/leasehold-lab fence/fenceetcd fence/fenceredis

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@echo "usage: make TARGET"
	@echo
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)$$/\1|\2/p' Makefile | \
		while IFS='|' read -r target text; do printf '  %-12s  %s\n' "$$target" "$$text"; done

.PHONY: build
build: ## build bin/leasehold and bin/leasehold-lab
	$(GO) build -o bin/ ./cmd/leasehold ./cmd/leasehold-lab

.PHONY: services
services: ## install PostgreSQL, Redis, Chromium and z3 for tests, where apt-get can
	@internal/testkit/realservice/install

.PHONY: test
test: services ## check formatting, vet, and test every package without long tests (minutes); required before a commit
	@unformatted=$$($(GOFMT) -l .) || exit 1; \
	if [ -n "$$unformatted" ]; then \
		echo "these files are not formatted, run gofmt -w on them:" >&2; \
		echo "$$unformatted" >&2; \
		exit 1; \
	fi
	$(GO) test -vet=all -short -shuffle=on -timeout=$(TIMEOUT) work
	@internal/testkit/realservice/install report # last, where it is seen

.PHONY: check
check: services ## run all tests: end to end, attacks, planted bugs, generated mutants of changed functions, failpoints, benchmarks, libraries under the race detector (half an hour)
	$(GO) test -shuffle=on -timeout=$(TIMEOUT) work
	@$(MAKE) --no-print-directory failpoints
	-@$(MAKE) --no-print-directory mutants-changed # a sample: survivors are listed, and are no error here
	CGO_ENABLED=1 $(GO) test -race -cpu 1 -short -shuffle=on -timeout=$(RACE_TIMEOUT) -skip '^(TestWildWallClock|TestOwnersReturnTogether)$$' $(RACED)
	@internal/testkit/realservice/install report # last, where it is seen

# What services link: what make check runs under the race detector, without two tests of package manager that take
# minutes there; make test-race has them. With several
# processors the detector crashes in tests with testing/synctest: timers of a bubble that fire at once run
# where they are set, and two of them at a time use one context of the detector (Go 1.26, runtime/time.go).
RACED = ./manager . ./owner ./lookup ./leasemap ./leasehttp ./leasegrpc ./fence/... ./fence/fenceetcd ./fence/fenceredis ./flease ./access ./secure ./admin ./leaseholdtest ./internal/runtime/...

# The packages with tests that pass failpoints.
POINTS = ./leaseholdtest ./manager ./owner ./flease ./server/agent ./manager/internal/memcatalog ./server/store/etcd ./internal/runtime/store/kv ./lab/chaos/nemesis

.PHONY: failpoints
failpoints: ## crash, pause and drop at every failpoint (minutes); part of make check
	$(GO) vet -tags failpoints ./internal/runtime/failpoint $(POINTS)
	$(GO) test -tags failpoints -shuffle=on -timeout=$(TIMEOUT) ./internal/runtime/failpoint
	$(GO) test -tags failpoints -shuffle=on -timeout=$(TIMEOUT) -run Point $(POINTS)

.PHONY: test-race
test-race: services ## run all tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -shuffle=on -timeout=$(RACE_TIMEOUT) work

.PHONY: generate
generate: ## generate the Go code of proto/ (the first build of buf takes minutes)
	GOWORK=off $(GO) tool -modfile=tools/buf/go.mod buf lint
	GOWORK=off $(GO) tool -modfile=tools/buf/go.mod buf generate

.PHONY: lint
lint: ## verify checksums and run golangci-lint, pinned in tools/go.mod (its first build takes minutes)
	@for dir in $(MODULES) tools; do (cd $$dir && GOWORK=off $(GO) mod verify >/dev/null) || exit 1; done
	@for dir in $(MODULES); do \
		(set -x && cd $$dir && GOWORK=off LOG_LEVEL=error $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint run ./...) || exit 1; \
	done

.PHONY: vulncheck
vulncheck: ## check our calls against the Go vulnerability database (needs the network)
	@for dir in $(MODULES); do (set -x && cd $$dir && GOWORK=off $(GO) tool -modfile=$(CURDIR)/tools/go.mod govulncheck ./...) || exit 1; done

.PHONY: sbom
sbom: build ## write the modules of bin/leasehold to bin/leasehold.cdx.json (CycloneDX)
	GOWORK=off $(GO) tool -modfile=tools/sbom/go.mod cyclonedx-gomod bin -json -noserial -output bin/leasehold.cdx.json bin/leasehold

.PHONY: reproducible
reproducible: ## build the binary twice, in different directories and without a cache, and compare (minutes)
	@GO=$(GO) tools/reproducible

.PHONY: verify
verify: models ## check the models, simulate ten thousand worlds of each kind, explore small ones, find all planted bugs (minutes)
	$(GO) run ./cmd/leasehold-lab sim --seeds 10000
	$(GO) run ./cmd/leasehold-lab sim --seeds 10000 --diskless
	$(GO) run ./cmd/leasehold-lab sim --seeds 10000 --agents
	$(GO) run ./cmd/leasehold-lab sim --seeds 10000 --supervised
	$(GO) run ./cmd/leasehold-lab sim --seeds 10000 --embedded
	$(GO) run ./cmd/leasehold-lab sim --seeds 10000 --faults default,store-restore=8
	$(GO) run ./cmd/leasehold-lab sim --seeds 10000 --managers 3 --faults default,move-failover=20
	$(GO) run ./cmd/leasehold-lab flease sim --seeds 10000
	$(GO) run ./cmd/leasehold-lab flease sim --explore 14 --detours 2
	$(GO) run ./cmd/leasehold-lab sim --explore 60 --detours 2
	$(GO) test -count=1 -timeout=30m -run Mutant ./lab/mutant -args -all
	$(GO) test -count=1 -timeout=30m -run 'Every(Flease)?MutantIsCaught' ./lab/mutant -args -all -first 1000001

# How long make verify-night runs.
NIGHT_FOR ?= 8h

.PHONY: verify-night
verify-night: ## simulate worlds that no run has simulated before, for NIGHT_FOR (default 8h), and add them to docs/LEDGER.md
	$(GO) run ./lab/ledger -for $(NIGHT_FOR)

# For how long make mutants runs; what make mutants-changed compares with, for how long, and the seed of its sample.
MUTANTS_FOR ?= 8h
MUTANTS_SINCE ?= HEAD~10
MUTANTS_SAMPLE ?= 2m
MUTANTS_SEED ?= 1

.PHONY: mutants
mutants: ## run generated mutants for MUTANTS_FOR (default 8h), from where the last run stopped, and write docs/MUTANTS.md
	$(GO) run ./lab/mutagen -for $(MUTANTS_FOR)

.PHONY: mutants-changed
mutants-changed: ## run a sample of the generated mutants of functions that differ from MUTANTS_SINCE, for MUTANTS_SAMPLE (default 2m)
	@if git rev-parse -q --verify "$(MUTANTS_SINCE)^{commit}" >/dev/null 2>&1; then \
		$(GO) run ./lab/mutagen -changed $(MUTANTS_SINCE) -for $(MUTANTS_SAMPLE) -seed $(MUTANTS_SEED); \
	else \
		echo "SKIPPED, NOT TESTED: there is no commit $(MUTANTS_SINCE), so no function has changed since; set MUTANTS_SINCE" >&2; \
	fi

.PHONY: models
models: ## check lab/models and their mutants with Spin and z3 (installs them where apt-get can)
	@internal/testkit/realservice/install models
	lab/models/check
	$(GO) test -count=1 -v ./lab/models/inductive

.PHONY: chaos
chaos: build ## inject faults into real clusters of each kind for CHAOS_FOR (default 5m; Linux), and into Live Mesh a thousand times (minutes)
	@[ -e .git ] || echo "SKIPPED, NOT TESTED: there is no history here to build an older commit from, so that nothing is upgraded" >&2
	bin/leasehold-lab chaos --store all --for $(CHAOS_FOR) --seed $(CHAOS_SEED) $(if $(wildcard .git),--other oldest) --drift --failpoints --report bin/chaos.json
	bin/leasehold-lab chaos --drift=beyond --for 45s --seed $(CHAOS_SEED) --report bin/beyond.json
	cd examples/livemesh && $(GO) test -timeout=60m ./queue ./pubsub ./documents ./device -args -runs=1000
	$(GO) test -timeout=60m -run RealProcesses -parallel 2 -v ./examples/livemesh -args -runs=20

.PHONY: soak
soak: build ## inject faults into a real cluster for SOAK_FOR (default 2h; Linux), and check that nothing grows
	bin/leasehold-lab chaos --soak --store $(SOAK_STORE) --for $(SOAK_FOR) --seed $(SOAK_SEED) --report bin/soak.json

.PHONY: screenshots
screenshots: services ## write the screenshots of the documents (needs Chromium)
	$(GO) test -count=1 -run TwoWindows ./examples/livemesh -args -screenshots=screenshots
	mkdir -p docs/dashboard
	$(GO) test ./server/dashboard -count=1 -run 'Screenshots|Many' -args -screenshots=$(CURDIR)/docs/dashboard

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (default 3s), about five minutes; FUZZ=pattern selects some
	@GO=$(GO) tools/fuzz $(FUZZTIME) '$(FUZZ)'

.PHONY: bench
bench: ## benchmark against papers, peers and lower bounds, and write docs/BENCHMARKS.md (half an hour); FLAGS="-only routing"
	cd lab/bench && $(GO) run . -docs ../../docs $(FLAGS)

.PHONY: bench-quick
bench-quick: ## print the headlines of make bench, as a table and as JSON lines (3 minutes at most, once built)
	cd lab/bench && $(GO) run . -quick $(FLAGS)

.PHONY: bench-sim
bench-sim: ## run the benchmarks of the simulator and the manager machine
	$(GO) test -run '^$$' -bench . -benchmem -cpu 1 ./lab/sim ./internal/core/machine/manager

.PHONY: cover
cover: services ## print the coverage of all tests, in total and by function
	$(GO) test -count=1 -timeout=$(TIMEOUT) -coverpkg=work -coverprofile=cover.out work
	$(GO) tool cover -func=cover.out

.PHONY: clean
clean: ## remove the output of other targets
	rm -rf bin cover.out
