# What one does here most. `make` alone, or `make help`, lists it. Every target works in a fresh clone; what a target needs beyond Go it says or installs.

SHELL := bash
.DEFAULT_GOAL := help

# Linters, pinned. They are fetched by the first `make lint`, never by `make run`, and stay out of go.mod, which lists what the product is made of.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT := mvdan.cc/gofumpt@v0.12.0

# Rounds of every race that a test repeats, more of them to look harder: make test RDV_ROUNDS=1000
export RDV_ROUNDS ?= 100

# Random sequences that internal/difftest makes on all stores: make test RDV_SEQUENCES=5000 PACKAGES=./internal/difftest
export RDV_SEQUENCES ?= 60

# The detector looks at this project's code, not at SQLite's, which is C written as Go: its tests would take twice as long.
UNWATCHED := -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false -gcflags=modernc.org/libc/...=-race=false

# Packages tested at once: tests of stores wait for the disk half of their time. What vet would find, make lint finds.
PARALLEL := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# Further flags of go test: make test TESTFLAGS='-count=1 -run EV12' PACKAGES=./store/...
TESTFLAGS ?=
# The longest first: else they end alone, one beside an idle processor.
PACKAGES ?= ./store/postgres ./store/sqlite ./...

# Flags of the program that a target runs: make run ARGS='--store postgres://...'
ARGS ?=

FUZZTIME ?= 1m

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: bin/rendezvous ## build and serve: every role in one process, embedded NATS, nothing else needed (ARGS= for its flags)
	bin/rendezvous up $(ARGS)

.PHONY: demo
demo: bin/rendezvous ## build and watch events meet waits, both ways round; ends by itself
	bin/rendezvous demo $(ARGS)

.PHONY: build
build: ## build every program into bin/
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

# Always handed to go build, which knows better than make what is up to date.
.PHONY: bin/rendezvous
bin/rendezvous:
	@test -e $@ || echo "building $@: the first time this takes a minute or more" >&2
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/rendezvous

.PHONY: test
test: c-compiler ## run all tests with the race detector, on a PostgreSQL of their own; a skip is a failure
	@set -o pipefail; CGO_ENABLED=1 go run ./internal/pgtest/cmd/pgtest -- \
		go test -json -race -vet=off -p $(PARALLEL) $(UNWATCHED) -timeout 40m $(TESTFLAGS) $(PACKAGES) | go run ./internal/testsum -skips .ci/skips

.PHONY: c-compiler
c-compiler:
	@command -v $$(go env CC | cut -d ' ' -f 1) >/dev/null || { \
		echo "make test uses Go's race detector, which needs a C compiler, and $$(go env CC) is not there. Install one:" >&2; \
		echo "  Debian, Ubuntu: sudo apt-get install -y gcc libc6-dev    Fedora: sudo dnf install -y gcc    macOS: xcode-select --install" >&2; \
		exit 1; }

.PHONY: rules
rules: ## show which test cites which rule of docs/spec, and which rule none does (ARGS=-without for those alone)
	@go run ./internal/rules $(ARGS)

.PHONY: lint
lint: ## check form, vet, staticcheck, and this repository's own rules (clock, arrows between packages, file size, names)
	@unformatted=$$(go run $(GOFUMPT) -l .); \
	if [ -n "$$unformatted" ]; then printf 'gofumpt would change (make format does it):\n%s\n' "$$unformatted"; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...
	go test ./internal/lint

.PHONY: format
format: ## write every Go file in the form that lint wants
	go run $(GOFUMPT) -w .

.PHONY: soak
soak: ## kill every worker, broker and PostgreSQL at random under load for 200 rounds and 20,000 timers, clocks askew, and push-workers for 300, then check that nothing was lost, doubled or early
	go run ./internal/soak -rounds 200 -timers 20000 $(ARGS)
	go run ./internal/soak -push -rounds 300 $(ARGS)

.PHONY: soak-embedded
soak-embedded: ## kill the one process of `rendezvous up` for 1,000 rounds, on its embedded store and NATS server
	go run ./internal/soak -embedded -rounds 1000 $(ARGS)

.PHONY: soak-short
soak-short: ## all three for a while: two minutes in all
	go run ./internal/soak -duration 35s -timer-rate 60 $(ARGS)
	go run ./internal/soak -push -duration 15s $(ARGS)
	go run ./internal/soak -embedded -duration 10s -timer-rate 30 $(ARGS)

.PHONY: bench
bench: ## measure the whole pipeline, timers and push on this machine (ARGS="-only push" for a part)
	go run ./bench $(ARGS)

.PHONY: bench-short
bench-short: ## the same with a tenth of the events, a twentieth of the timers and less of push
	go run ./bench -short $(ARGS)

# How many open waits, and as many live events; beside them there are five times as many consumed events and a tenth of dead letters. Of start-ups: how many timers.
FILLED ?= 1000000

.PHONY: bench-filled
bench-filled: ## measure the sweeper and the operator's reads on stores with a million waits and events (FILLED=100000 for less)
	RDV_FILLED=$(FILLED) go run ./internal/pgtest/cmd/pgtest -- \
		go test ./store/postgres ./store/sqlite -p 1 -run '^$$' -bench BenchmarkFilled -benchtime 1x -timeout 2h $(TESTFLAGS)

.PHONY: bench-startup
bench-startup: ## measure how a timer-worker starts beside a million armed timers and a million finished runs (FILLED=100000 for less)
	go run ./bench -startup $(FILLED) $(ARGS)

.PHONY: fuzz
fuzz: ## run every fuzz target for a minute (FUZZTIME=10m for longer)
	.ci/fuzz $(FUZZTIME)

.PHONY: fuzz-short
fuzz-short: ## the same for five seconds each
	.ci/fuzz 5s

.PHONY: clean
clean: ## remove what make built; data of `make run` stays
	rm -rf bin
