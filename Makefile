# SPDX-License-Identifier: Apache-2.0
#
# The whole entry: "make generate lint test" is what CI runs. docs/testing.md tells
# what runs where.

KERNEL ?= 6.12
LSM    ?= bpf
FILES  ?=
SCRIPT ?=
CASES  ?=
SEED   ?= 1
COUNT  ?= 1000
PREFIX ?= /usr/local
BINDIR ?= bin
DEBDIR ?= dist
# What --version says.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --always --dirty --abbrev=12 2>/dev/null || echo devel)

# Pinned here and nowhere else; they are no dependencies of the product.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Tracked or about to be; a file that is deleted and not committed is left out.
sources  = $(wildcard $(shell git ls-files -co --exclude-standard -- $(1)))
GO_FILES = $(call sources,'*.go')
C_FILES  = $(filter-out bpf/headers/%,$(call sources,'*.c' '*.h'))
# By what stands in their first lines, because commands have no suffix.
SCRIPTS  = $(shell awk 'FNR == 1 && /^\#!.*[\/ ](ba|da)?sh$$/ || /^\# shellcheck shell=/ { print FILENAME; nextfile } \
	FNR > 20 { nextfile }' $(call sources,. ':!*.go' ':!*.o' ':!*.md' ':!*/testdata/*'))

export GOFLAGS ?= -buildvcs=false

.DEFAULT_GOAL := build
.PHONY: help build generate fmt lint lint-c lint-sh lint-go test test-all conformance differential budgets bench demo install deb vm clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 12

build: ## static binaries in bin/ (BINDIR)
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w -X github.com/actplane/actplane/internal/version.stamp=$(VERSION)' \
		-o $(BINDIR)/ ./cmd/...

generate: ## BPF objects and protocol code, which are committed
	@integration/vm/packages clang-14 llvm-14 protobuf-compiler
	go generate ./...

fmt: ## format Go and C
	gofmt -w $(GO_FILES)
	$(if $(C_FILES),clang-format-14 -i $(C_FILES))

lint: lint-c lint-sh lint-go ## formats, clang-format, shellcheck, vet, staticcheck

lint-c:
	@integration/vm/packages clang-format-14
	$(if $(C_FILES),@clang-format-14 --dry-run -Werror $(C_FILES))

# Left out: code for another shell in single quotes, functions that are called by name.
lint-sh:
	@integration/vm/packages shellcheck
	@shellcheck -x -P SCRIPTDIR -e SC2016,SC2317 $(SCRIPTS)

lint-go:
	@unformatted=$$(gofmt -l $(GO_FILES)); test -z "$$unformatted" || { echo "gofmt would change:" $$unformatted; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

test: ## everything native, and one kernel in the VM on both tiers (KERNEL=6.12)
	integration/vm/test $(KERNEL)

test-all: ## everything native with the race detector and other random cases, and every kernel
	@export ACTPLANE_TEST_SEED=$${ACTPLANE_TEST_SEED:-$$(od -An -N6 -tu8 /dev/urandom | tr -d ' ')}; \
		echo "ACTPLANE_TEST_SEED=$$ACTPLANE_TEST_SEED"; RACE=1 WHOLE=1 integration/vm/test 6.1 6.12 new 5.10

conformance: build ## act out the cases of CASES=FILE in containers [KERNEL=6.12 LSM=bpf|nobpf]
	@test -n "$(CASES)" || { echo 'usage: make conformance CASES=FILE [KERNEL=6.12] [LSM=bpf|nobpf]'; exit 2; }
	@KERNEL=$(KERNEL) LSM=$(LSM) integration/conformance/run $(CASES)

differential: ## random cases on a real kernel against the model [SEED=1 COUNT=1000 KERNEL=6.12 LSM=bpf|nobpf]
	@KERNEL=$(KERNEL) LSM=$(LSM) integration/conformance/random-cases $(SEED) $(COUNT)

budgets: ## write the table of what the kernels' verifiers make of the BPF programs
	integration/vm/budgets

bench: ## decisions and the event pipeline, natively; guest instructions of system calls [KERNEL=6.12 LSM=bpf|nobpf]
	go test -run='^$$' -bench=. -benchmem ./...
	integration/vm/bench $(KERNEL) $(LSM)

demo: build ## a real agent container under a policy
	@KERNEL=$(KERNEL) LSM=$(LSM) integration/demo/demo

install: build ## binaries to PREFIX/bin, and the runtime "actplane" to Docker (root)
	bin/actplane install --prefix $(PREFIX)

deb: build ## the Debian package, in DEBDIR [DEBVERSION=1.2.3]
	packaging/deb/build $(BINDIR) $(DEBDIR) $(DEBVERSION)

vm: build ## run SCRIPT=file in the Docker VM [KERNEL=6.12 LSM=bpf|nobpf FILES=folder]
	@test -n "$(SCRIPT)" || { echo 'usage: make vm SCRIPT=file [KERNEL=6.12] [LSM=bpf|nobpf] [FILES=folder]'; exit 2; }
	@KERNEL=$(KERNEL) LSM=$(LSM) FILES="$(FILES)" integration/vm/docker "$(SCRIPT)"

clean: ## what was built in the tree; the cache of kernels and machines stays
	rm -rf bin dist
