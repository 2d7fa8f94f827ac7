# HECATE. `make up` and `make test` do all the set-up; `make help` lists the rest.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# One set of C flags everywhere: the kernels take minutes to compile, and every
# other set compiles them again. NATIVE=1 uses all that this machine has.
ARCH := $(shell uname -m)
ifeq ($(NATIVE),1)
MARCH := $(shell gcc -march=native -Q --help=target 2>/dev/null | awk '$$1=="-march=" {print $$2; exit}')
else ifneq (,$(filter x86_64 amd64,$(ARCH)))
MARCH := x86-64-v3
else
MARCH := armv8.2-a+dotprod
endif
export CGO_ENABLED := 1
export CGO_CFLAGS := -O3 -march=$(MARCH)
export CGO_CXXFLAGS := -O3 -march=$(MARCH)
export GOFLAGS := -buildvcs=false

GO ?= go
# The race detector compiles the kernels once more, so it runs without them.
RACE := $(GO) test -race -tags noengine

.PHONY: help up build test test-engine test-race test-clients test-web test-long web lint bench release clean tools

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: build ## build, then a swarm of three nodes on this machine with the built-in demo model
	@exec bin/hecate up

build: tools ## bin/hecate and bin/hecate-node
	@tools/build.sh $(GO)

test: tools ## everything that guards a change (minutes)
	@$(GO) vet ./...
	@$(MAKE) --no-print-directory build
	@tools/say.sh "tests, with the engine"
	@tools/gotest.sh $(GO) test -timeout 25m ./...
	@tools/say.sh "tests under the race detector, without the engine"
	@tools/gotest.sh $(RACE) -timeout 25m ./...
	@tools/say.sh "the official JavaScript clients"
	@tools/clients/run.sh
	@tools/say.sh "the demo model's tools"
	@tools/python-tests.sh
	@tools/say.sh "the page, in Chromium"
	@web/test/run.sh

test-web: build ## only the page, in Chromium; HECATE_SHOTS=1 takes the pictures in docs/ anew
	@web/test/run.sh

web: ## build the page from web/ into internal/web/dist (needs Node 20)
	@cd web && npm ci --ignore-scripts --no-audit --no-fund && npm run check && npm run build

test-clients: build ## only the official JavaScript clients
	@tools/clients/run.sh
	@tools/say.sh "the demo model's tools"
	@tools/python-tests.sh

test-race: tools ## only the race detector's run
	@tools/gotest.sh $(RACE) ./...

test-long: tools build ## full grids: every token, every failure (an hour)
	@tools/gotest.sh $(GO) test -timeout 120m -tags long ./...

# TARGETS="linux-x86_64-v3" builds some only, VERSION=1.0 names the release.
release: tools ## archives for other machines in dist/, with checksums
	@VERSION=$(VERSION) GO=$(GO) tools/release.sh $(TARGETS)

lint: ## linter and vulnerability check, pinned in tools/
	@cd tools/lint && $(GO) build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@tools/bin/golangci-lint run ./...

tools: ## check for Go and a C++ compiler
	@tools/check.sh $(GO)

clean: ## remove what was built
	rm -rf bin dist
