# Everything a developer, a user or CI calls. `make help` lists it.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
IMAGE    ?= pod-checkpointer/pod-checkpointer:dev
ARCH     ?= $(shell go env GOARCH)
ARCHIVE  ?= bin/image.tar

BUILD = CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'

STATICCHECK := go run honnef.co/go/tools/cmd/staticcheck@v0.7.0
GOFUMPT     := go run mvdan.cc/gofumpt@v0.10.0
CRANE       := go run github.com/google/go-containerregistry/cmd/crane@v0.22.1
HELM        := go run helm.sh/helm/v4/cmd/helm@v4.3.1
CYCLONEDX   := go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: needs-root build ## Bring up a real node, cut its power, watch the pods come back (root, Linux)
	@cd e2e && go run ./cmd/demo

.PHONY: needs-root
needs-root:
	@[ "$$(uname -s)" = Linux ] && [ "$$(id -u)" = 0 ] || { echo "the demo runs a real node, which needs root on Linux: sudo make demo"; exit 1; }

.PHONY: test
test: check race accept e2e ## Everything: what CI runs

.PHONY: check
check: ## The fast loop: vet, staticcheck, gofumpt, unit tests
	@unformatted=$$($(GOFUMPT) -l cmd internal e2e); if [ -n "$$unformatted" ]; then \
	  echo "not gofumpt-clean; run '$(GOFUMPT) -w cmd internal e2e':"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	$(STATICCHECK) ./...
	go test -timeout 30m ./...

.PHONY: lint
lint: ## More linters than check has (builds golangci-lint: a few minutes the first time)
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./...

.PHONY: race
race: ## Unit tests with the race detector
	CGO_ENABLED=1 go test -race -timeout 30m ./...

FUZZTIME ?= 1m

.PHONY: fuzz
fuzz: ## Each fuzzer for FUZZTIME, from the corpus in the repository
	@for target in $$(grep -rho '^func Fuzz[A-Za-z]*' --include='*_test.go' internal cmd | sed 's/func //' | sort -u); do \
	  dir=$$(dirname "$$(grep -rl "^func $$target(" --include='*_test.go' internal cmd)"); \
	  echo "$$target in $$dir"; go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "./$$dir" | tail -n 3; \
	done

.PHONY: build
build: ## The static binary, bin/checkpointer
	$(BUILD) -o bin/checkpointer ./cmd/checkpointer

.PHONY: image
image: ## The container image of the Dockerfile, as an archive that any runtime imports: bin/image.tar (ARCH=arm64 for another machine's)
	GOOS=linux GOARCH=$(ARCH) $(BUILD) -o bin/linux-$(ARCH)/bin/checkpointer ./cmd/checkpointer
	@cd e2e && go run ./cmd/image -name $(IMAGE) -arch $(ARCH) -context ../bin/linux-$(ARCH) -out $(abspath $(ARCHIVE)) \
	  -label org.opencontainers.image.version=$(VERSION) -label org.opencontainers.image.revision=$(REVISION)

.PHONY: push
push: ## Push the images for amd64 and arm64, and the index of both, as IMAGE
	@for arch in amd64 arm64; do \
	  $(MAKE) image ARCH=$$arch ARCHIVE=bin/image-$$arch.tar; \
	  $(CRANE) push bin/image-$$arch.tar $(IMAGE)-$$arch; \
	done
	$(CRANE) index append -t $(IMAGE) -m $(IMAGE)-amd64 -m $(IMAGE)-arm64

.PHONY: chart
chart: ## The chart of VERSION (such as v1.2.3), and what it makes with its default values: bin/pod-checkpointer-VERSION.tgz, bin/install.yaml
	$(HELM) package deploy/chart --version $(VERSION) --app-version $(VERSION) --destination bin
	$(HELM) template pod-checkpointer bin/pod-checkpointer-$(VERSION).tgz --namespace kube-system > bin/install.yaml

.PHONY: sbom
sbom: build ## What the binary is made of, as CycloneDX: bin/checkpointer.cdx.json
	$(CYCLONEDX) bin -json -std -noserial -notimestamp -version $(VERSION) -output bin/checkpointer.cdx.json bin/checkpointer

.PHONY: accept
accept: ## The kubelet's own code must accept every manifest that we make
	@cd e2e/kubeletaccept && go vet ./... && go test -count=1 -timeout 30m -v .

.PHONY: check-kubelets
check-kubelets: ## The same for the kubelets of 1.34, 1.35 and 1.36 (builds each once: 10 minutes)
	@cd e2e/kubeletaccept && go run ./kubelets

.PHONY: e2e
e2e: build ## End-to-end tests on a real node; KUBE_VERSION= and CONTAINERD_VERSION= for others than the pinned (root, Linux)
	@cd e2e && go vet ./...
	@if [ "$$(uname -s)" = Linux ] && [ "$$(id -u)" = 0 ]; then \
	  cd e2e && go test -count=1 -timeout $(if $(E2E_ALL),24h,85m) -p 1 -v ./...; \
	else \
	  echo "e2e: NOT RUN: the end-to-end tests need root on Linux (sudo make e2e); everything before this line did run"; \
	  [ "$${CI:-}" != true ]; \
	fi

.PHONY: e2e-all
e2e-all: ## The same with the long tests, 50 power cuts in the middle of saves and 10 minutes of chaos
	@E2E_ALL=1 POWER_CUTS=50 CHAOS_MINUTES=10 $(MAKE) e2e

.PHONY: chaos
chaos: build ## Break a real node in random ways: CHAOS_MINUTES=60, CHAOS_SEED= to repeat a story (root, Linux)
	@cd e2e && CHAOS_MINUTES=$${CHAOS_MINUTES:-60} go test -count=1 -timeout 24h -v -run 'TestChaos$$' .

.PHONY: simulate
simulate: ## Random histories of the modelled world against the core: SEED=first RUNS=how many STEPS=of each
	SEED=$(or $(SEED),0) RUNS=$(or $(RUNS),50000) STEPS=$(or $(STEPS),300) \
	  go test -count=1 -timeout 0 -v -run TestHistories ./internal/checkpoint/simulation

.PHONY: search
search: ## Every state of small worlds in which up to DEPTH things happen
	DEPTH=$(or $(DEPTH),3) go test -count=1 -timeout 0 -v -run TestEveryReachableState ./internal/checkpoint/simulation

.PHONY: mutate
mutate: ## Small faults in the core, each of which a test must catch (15 minutes)
	go run ./internal/checkpoint/mutate

.PHONY: bench
bench: ## Benchmarks
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: clean
clean: ## Remove what was built here; the cache of Kubernetes binaries stays
	rm -rf bin
