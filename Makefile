# machine-iac-operator. `make help` is the manual; a target without a description is a mistake.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules
.SUFFIXES:

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo development)
# Packages to test, and what else go test is told.
PACKAGES ?= ./...
TESTFLAGS ?=
# The file for what failed, which .ci/run tests once more, and a regular expression of the packages whose long tests it leaves for later.
FAILED ?=
SHORT ?= ^$$

# All but the race detector compiles as hack/tools.sh does, so that a package that several programs, tests and linters need is compiled once.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(shell go env GOFLAGS) -trimpath)

# Where hack/tools.sh looks for an installed control plane first. What fits gets a link in bin/, from which everything is taken.
INSTALLED_ASSETS := $(if $(filter undefined,$(origin KUBEBUILDER_ASSETS)),,$(KUBEBUILDER_ASSETS))
override KUBEBUILDER_ASSETS := $(CURDIR)/bin
export KUBEBUILDER_ASSETS
TOOLS_SH := KUBEBUILDER_ASSETS="$(INSTALLED_ASSETS)" hack/tools.sh

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make TARGET\n"} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-zA-Z0-9_-]+:.*##/ {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it

# Set CLUSTER=current to use the cluster of the current kubeconfig instead, and TOOLS=build or download to say where tools come from.
CLUSTER ?= local

.PHONY: demo
demo: tools-demo build-demo ## Run the operator on a local cluster with an example MachineSet; stays until interrupted (CLUSTER=current, TOOLS=build|download).
	@bin/demo --cluster=$(CLUSTER)

# DEBUG=1 runs it under Delve.
DEBUG ?=

.PHONY: run
run: ## In a second terminal, replace the demo's manager with one from source, in the foreground (DEBUG=1: under Delve).
	@[[ -x .dev/manager.sh ]] || { echo "no demo runs here; start one with 'make demo' in another terminal" >&2; exit 1; }
	go build $(if $(DEBUG),-gcflags='./...=-N -l') -o bin/ ./cmd/machine-controllers
	@DEBUG=$(DEBUG) .dev/manager.sh

.PHONY: demo-gardener
demo-gardener: tools-demo-gardener build-demo build-gardener ## Run Gardener's machine-controller-manager with this project's driver on two local clusters; stays until interrupted.
	@bin/demogardener

.PHONY: demo-down
demo-down: ## Remove the demo: its cluster and data, and what it put into the current cluster.
	@if [[ -x bin/demo ]]; then bin/demo --down; else echo "nothing to stop"; fi

##@ Build

.PHONY: tools
tools: ## Put every tool that CI and demo need into bin/, once: installed ones that fit, releases, or built from pinned Go modules (TOOLS=auto|download|build).
	@$(TOOLS_SH)

# What one target needs: a row of the table in hack/tools.sh.
TOOLS_FOR := demo demo-gardener plugin test test-all test-modules e2e e2e-pulumi e2e-upgrade e2e-libvirt e2e-openstack e2e-gardener e2e-jobs life peers chaos bench bench-check profile fmt lint verify
.PHONY: $(TOOLS_FOR:%=tools-%)
$(TOOLS_FOR:%=tools-%): tools-%:
	@$(TOOLS_SH) --for $*

# More garbage than usual is left lying while Go compiles, which makes a build a seventh faster.
GO_BUILD = @mkdir -p bin && GOGC=400 go build -ldflags "-s -w -X main.version=$(VERSION)" -o

.PHONY: build
build: build-demo build-gardener ## Build all of the project's own binaries into bin/.
	$(GO_BUILD) bin/ ./cmd/termination-handler

# What a target runs of these, and no more.
.PHONY: build-demo build-gardener
build-demo:
	$(GO_BUILD) bin/ ./cmd/kubectl-machine ./cmd/machine-api-operator ./cmd/machine-controllers ./hack/devcluster ./hack/demo

build-gardener:
	$(GO_BUILD) bin/ ./hack/demogardener
	cd gardener && GOGC=400 go build -ldflags "-s -w" -o ../bin/ ./cmd/... github.com/gardener/machine-controller-manager/cmd/machine-controller-manager

# What the image is built for, such as "linux/amd64 linux/arm64"; this machine's architecture when empty. Where it is pushed to.
PLATFORMS ?=
IMAGE ?=
# A filesystem mirror with more providers for the image, or a folder with the ones that 'make life' and 'make bench-field' run.
PROVIDERS ?=

.PHONY: image
image: ## Build the container image into dist/image, an OCI layout, without a container engine (PLATFORMS="linux/amd64 linux/arm64", PROVIDERS=MIRROR).
	@go run ./hack/image build -version "$(VERSION)" -providers "$(PROVIDERS)" $(PLATFORMS)

.PHONY: image-check
image-check: image ## Unpack that image, and run its programs in it against a real API server. Needs root; a part is skipped without.
	@$(TOOLS_SH) etcd kube-apiserver kubectl
	go test -tags image -count 1 -timeout 10m -v ./test/image $(TESTFLAGS)

.PHONY: image-push
image-push: ## Push that image and its SBOMs: make image-push IMAGE=registry.example/machine-iac-operator:v1.2.3.
	@go run ./hack/image push "$(IMAGE)"

# A kind cluster to install into, instead of that of the current context.
KIND ?=

.PHONY: deploy
deploy: image ## Build the image, and install it: make deploy IMAGE=registry.example/machine-iac-operator:dev, or KIND=name.
	@hack/deploy.sh "$(IMAGE)" "$(KIND)" "$(VERSION)"

##@ Use it

.PHONY: plugin
plugin: tools-plugin ## Build kubectl-machine, and what it needs to plan offline for every built-in module.
	$(GO_BUILD) bin/ ./cmd/kubectl-machine

# Where the plugin is put, and what it is built for.
PLUGIN_DIR ?= $(HOME)/.local/bin
PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

.PHONY: install-plugin
install-plugin: ## Make `kubectl machine` work, with completion: a link in PLUGIN_DIR (~/.local/bin).
	@mkdir -p bin "$(PLUGIN_DIR)"
	go build -ldflags "-s -w -X main.version=$(VERSION)" -o bin/ ./cmd/kubectl-machine
	@ln -sfn "$(CURDIR)/bin/kubectl-machine" "$(PLUGIN_DIR)/kubectl-machine"
	@install -m 755 install/krew/kubectl_complete-machine "$(PLUGIN_DIR)"
	@case ":$$PATH:" in *":$(PLUGIN_DIR):"*) ;; *) echo "$(PLUGIN_DIR) is not on PATH; kubectl looks for plugins there only" >&2;; esac

.PHONY: plugin-archives
plugin-archives: ## Build the plugin's archives and its krew manifest with their checksums into dist/ (VERSION=v1.2.3).
	@hack/plugin-archives.sh "$(VERSION)" $(PLUGIN_PLATFORMS)

.PHONY: release
release: ## Write what a release has besides its image into dist/: crds.yaml, install.yaml, openshift.yaml, chart, bundle, plugin, checksums (VERSION=v1.2.3 [IMAGE=...]).
	@go run ./hack/packaging release -check -version "$(VERSION)" -image "$(IMAGE)"
	@hack/plugin-archives.sh "$(VERSION)" $(PLUGIN_PLATFORMS)
	@go run ./hack/packaging release -version "$(VERSION)" -image "$(IMAGE)"

##@ Contribute

# The new module's name, and the folder that its folder is made in.
NAME ?=
DIR ?= modules

.PHONY: new-module
new-module: ## Lay down a new provider module: make new-module NAME=x [DIR=modules].
	@go run ./cmd/kubectl-machine module new "$(NAME)" --dir "$(DIR)"

# The engine whose registry is asked, such as terraform, and the folders of modules; all when empty.
ENGINE ?= bin/tofu
MODULES ?=

.PHONY: lock
lock: ## Write the checksums of the registry's releases into the lock files of modules; needs a network (ENGINE=terraform MODULES=modules/aws).
	@hack/lock.sh "$(ENGINE)" $(MODULES)

##@ Test

# Go's compiler leaves more garbage than usual lying, as for builds; tests do not. golangci-lint runs govet; here it would take a third of
# the processor time of a small edit's compilation.
GO_TEST = GOGC=400 go test -vet=off -exec 'env -u GOGC'
# Packages with nothing that could race, such as plans of HCL. The actuator's tests take half an hour of processor time even so (time go
# test ./actuators/iac); test-all runs the short ones with the race detector.
UNRACED := /(hack|modules|stacks|test|actuators/iac|cmd/kubectl-machine|internal/(inspect|module|plan|render))(/|$$)

# Most of it is waiting for engines, so that more packages than processors are tested at a time.
.PHONY: test
test: tools-test ## Unit tests, the API server, and a round trip of each engine; PACKAGES=./controllers/machine for one package.
	@$(GO_TEST) -short -timeout 15m -p 4 $(TESTFLAGS) $(PACKAGES)

.PHONY: test-times
test-times: tools-test ## Run the same tests anew, and print where the time goes.
	@$(GO_TEST) -json -count 1 -short -timeout 15m -p 4 $(TESTFLAGS) $(PACKAGES) | go run ./hack/testtimes

.PHONY: test-all
test-all: tools-test-all test-gardener ## All unit and integration tests, with the race detector where there is concurrency; the plans of test/manifests are left to test-modules.
	@go run ./hack/testtimes $(if $(FAILED),-failed '$(FAILED)') \
	  <(go list $(PACKAGES) | grep -E '$(UNRACED)' | grep -vE '$(SHORT)' | xargs -r env $(GO_TEST) -json -timeout 60m -p 2 -skip '^TestManifests' $(TESTFLAGS) || true; \
	    go list $(PACKAGES) | grep -E '$(UNRACED)' | grep -E '$(SHORT)' | xargs -r env $(GO_TEST) -json -short -timeout 60m -p 2 -skip '^TestManifests' $(TESTFLAGS)) \
	  <(go list $(PACKAGES) | grep -vE '$(UNRACED)' | CGO_ENABLED=1 xargs -r env $(GO_TEST) -json -race -timeout 60m -p 2 $(TESTFLAGS) || true; \
	    go list $(PACKAGES) | grep -E '/actuators/iac$$' | CGO_ENABLED=1 xargs -r env $(GO_TEST) -json -race -short -timeout 60m $(TESTFLAGS))

.PHONY: test-gardener
test-gardener: ## Test the driver for Gardener's machine-controller-manager, a module of its own.
	cd gardener && CGO_ENABLED=1 go test -race -timeout 10m ./...

.PHONY: test-modules
test-modules: tools-test-modules ## Check every provider module and stack, offline: contract, format, validation, its own tests, and the plans of test/manifests.
	go run ./cmd/kubectl-machine module check modules examples/modules stacks examples/stacks --engine-path bin/tofu --provider-mirror bin/schemas
	go test -count 1 -run 'TestManifests' ./cmd/kubectl-machine

.PHONY: e2e
e2e: tools-e2e build ## The whole story against the built binaries on the development cluster.
	go test -tags e2e -count 1 -timeout 60m -v ./test/e2e $(TESTFLAGS)

.PHONY: e2e-demo
e2e-demo: tools-e2e build ## The demo in clusters that exist: what it makes, refuses, and takes away again.
	go test -tags e2e -count 1 -timeout 20m -v ./hack/demo $(TESTFLAGS)

.PHONY: e2e-pulumi
e2e-pulumi: tools-e2e-pulumi build ## The same story with Machines that run on Pulumi.
	E2E_ENGINE=pulumi go test -tags e2e -count 1 -timeout 60m -v ./test/e2e $(TESTFLAGS)

.PHONY: e2e-upgrade
e2e-upgrade: tools-e2e-upgrade build ## A hundred Machines while the operator is upgraded, from this release to itself or from a commit (UPGRADE_FROM=v0.1.0).
	go test -tags upgrade -count 1 -timeout 40m -v ./test/upgrade $(TESTFLAGS)

.PHONY: e2e-libvirt
e2e-libvirt: tools-e2e-libvirt build ## Domains of a libvirt of its own: adoption, and a guest that joins as a Node. Needs root; installs what is missing (Debian, amd64).
	@mkdir -p dist
	test/e2elibvirt/image.sh bin dist/worker.qcow2
	hack/libvirt.sh go test -tags e2e_libvirt -count 1 -timeout 90m -p 1 -v -run Domain ./test/adoption ./test/e2elibvirt $(TESTFLAGS)

.PHONY: e2e-openstack
e2e-openstack: tools-e2e-openstack build ## Servers of an OpenStack of its own, with Nova's fake driver. Needs root; installs what is missing (Debian).
	hack/openstack.sh go test -tags e2e_openstack -count 1 -timeout 60m -v ./test/e2eopenstack $(TESTFLAGS)

.PHONY: e2e-gardener
e2e-gardener: tools-e2e-gardener build ## Gardener's machine-controller-manager with this project's driver: its own integration suite, and what that leaves out. Needs root.
	cd gardener && go test -c -o ../bin/gardener-integration.test ./test/integration/provider
	go test -tags e2e_gardener -count 1 -timeout 60m -v ./test/e2egardener $(TESTFLAGS)

.PHONY: e2e-jobs
e2e-jobs: tools-e2e-jobs build ## Runs in Jobs: a real Job controller, a node whose Pods are processes, Kueue, and runs that are cut off. Needs root.
	go test -tags e2e_jobs -count 1 -timeout 45m -v ./test/e2ejobs $(TESTFLAGS)

# One platform of test/life, all when empty.
PLATFORM ?=

.PHONY: life
life: tools-life build-demo ## Take Machines of every platform through their whole life, and write docs/platforms.md: make life PLATFORM=azure PROVIDERS=DIR. libvirt needs root.
	PLATFORM="$(PLATFORM)" PROVIDERS="$(if $(PROVIDERS),$(abspath $(PROVIDERS)))" $(if $(findstring libvirt,$(PLATFORM)),hack/libvirt.sh )go test -tags life -count 1 -timeout 120m -v ./test/life $(TESTFLAGS)

# The folder with OpenShift's programs, bin/peers when empty.
PEERS ?=

.PHONY: peers
peers: tools-peers build-demo ## Run OpenShift's unmodified programs beside the manager; those that are missing are skipped: make peers PEERS=DIR.
	PEERS="$(if $(PEERS),$(abspath $(PEERS)))" go test -tags peers -count 1 -timeout 60m -v ./test/peers $(TESTFLAGS)

# How many rounds are played, from which seed on. Set as well where it is wanted: FAULTS, WRITE, MINUTES, RECORD, VERBOSE, LANES, LEASE, AWAY, PATIENCE (test/chaos/doc.go).
ROUNDS ?= 20
SEED ?= 1

.PHONY: chaos
chaos: tools-chaos build ## Seeded rounds of faults against the built manager: make chaos ROUNDS=20 SEED=1.
	ROUNDS=$(ROUNDS) SEED=$(SEED) go test -tags chaos -count 1 -timeout 24h -v -run TestRounds ./test/chaos $(TESTFLAGS)

.PHONY: bench
bench: tools-bench build ## Measure, and write docs/benchmarks.md.
	go test -tags bench -count 1 -timeout 120m -v ./test/bench $(TESTFLAGS)

# Sizes of MachineSets, each with how long a virtual machine takes, and the interval of drift checks at the largest.
FIELD ?= 40@60s,200@0s,200@60s,200@180s,1000@60s
REST ?= 12m

.PHONY: bench-field
bench-field: tools-life build ## Measure bursts with terraform-provider-azurerm and a slow cloud, within 40 minutes: make bench-field PROVIDERS=DIR FIELD=200@60s REST=0.
	PROVIDERS="$(if $(PROVIDERS),$(abspath $(PROVIDERS)))" go test -tags life -count 1 -timeout 180m -v -run '^TestField$$' ./test/life \
	  -field $(FIELD) -rest $(REST) -page $(CURDIR)/docs/benchmarks.md $(TESTFLAGS)

.PHONY: profile
profile: tools-profile build ## Write CPU profiles of create, update, drift check and destroy into dist/profile, and the table of them into docs/benchmarks.md.
	go test -tags bench -count 1 -timeout 30m -v -run '^TestProfile$$' ./test/bench -profiles $(CURDIR)/dist/profile $(TESTFLAGS)

.PHONY: bench-check
bench-check: tools-bench-check build ## Measure what has ratios, and fail where one has grown by more than a fifth since docs/benchmarks.md.
	go test -tags bench -count 1 -timeout 60m -v -run '^(TestBench|TestEngines|TestLooks|TestPreview)$$' ./test/bench -idle 0 -page= -against ../../docs/benchmarks.md $(TESTFLAGS)

##@ Keep it right

.PHONY: generate
generate: ## Bring generated files up to date.
	hack/update-crds.sh
	go run ./hack/packaging generate
	go test ./cmd/machine-controllers ./cmd/machine-api-operator -run TestTheManualListsEveryFlag -update
	go test ./test/monitoring -run TestThePageHasTheSeriesOfEachCollector -update
	go test ./api/v1alpha1 -run TestModuleFieldsAreDocumented -update
	go test -run '^TestReference$$' ./cmd/kubectl-machine -update
	go mod tidy
	cd gardener && go mod tidy

.PHONY: fmt
fmt: tools-fmt ## Format the code.
	bin/golangci-lint fmt
	cd gardener && ../bin/golangci-lint fmt
	bin/tofu fmt -recursive modules
	bin/tofu fmt -recursive examples
	bin/tofu fmt -recursive stacks

.PHONY: lint
lint: tools-lint ## Lint the code.
	bin/golangci-lint run
	cd gardener && ../bin/golangci-lint run

.PHONY: verify
verify: tools-verify ## What CI checks besides tests: generated files, format, lint, import rules, a clean tree. Add a step here.
	@hack/verify.sh
