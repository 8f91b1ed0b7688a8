# `make` lists the targets. CI runs `make test`, and `make apidiff`.

MODULES := . interop benchmarks
# Tested without the race detector, which would take up to ten times as long: what computes alone, simulates, measures,
# reads documents, or drives other programs and SDKs, as the other modules do. It watches all others in `make test`, and
# most of these in `make soak`. The longest comes first.
PLAIN   := ./scripts/release ./internal/dialect ./internal/fair ./internal/gateway/config ./internal/scenes ./internal/docs
FUZZTIME ?= 30s
CLIENT  ?= client/ratelimit.ts
# The race detector watches our code and not SQLite's, which is C translated to Go: its tests take half the time.
# Everything that looks at our packages uses these flags, so each package is compiled once: for any clone, by -trimpath.
RACE    := -race -trimpath '-gcflags=modernc.org/...=-race=0 -d=checkptr=0'
# A program with the race detector would otherwise sleep for a second before it ends.
export GORACE := atexit_sleep_ms=0
# Compilers, linkers and tests collect their garbage a quarter as often: a tenth of their CPU.
quick lint unit flakes: export GOGC := 400
# Tools, Helm and the programs that tests run are compiled as a release is: once, too.
STATIC  := CGO_ENABLED=0 GOFLAGS='$(shell go env GOFLAGS) -trimpath'
TOOL    := $(STATIC) go tool -modfile=$(CURDIR)/tools/go.mod
# Many tests wait for processes more than they compute: there are more of them at once than the machine has cores.
AT_ONCE := -p $(shell echo $$((1 + $$(nproc 2>/dev/null || echo 2))))
# -short runs fewer rounds of the tests at random, and of those with very many calls; `make lint` has vetted already.
# -w leaves out what only debuggers read: linking takes two thirds of the time.
SHORT   := -short -vet=off -shuffle=on -ldflags=-w $(AT_ONCE)
# Packages whose tests take longest. They come first, so that the others run beside them.
LONG    := . ./store/redisstore ./internal/gateway/scenarios ./internal/gateway ./internal/gateway/admin ./cmd/ratelimit \
	./project ./store/sqlitestore ./limit ./llmhttp ./internal/engine ./internal/engine/fleettests ./internal/gateway/server ./store
# Packages whose tests take longest, or need other programs, which `make quick` leaves out.
SLOW    := go-ratelimit$$|/cmd/ratelimit$$|/scenarios$$|/fleettests$$|/admin$$|/server$$|/redisstore$$|/scripts/|/examples/

.DEFAULT_GOAL := help
.PHONY: help deps test quick lint unit demo bench fuzz soak flakes client prices docs pictures screenshots apidiff release

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

deps: ## install what the tests need and the machine lacks, or say what to install
	@scripts/deps.sh

test: deps lint unit ## everything that CI checks: format, vet, staticcheck, actionlint, all tests, with the race detector

quick: ## the tests of a minute and a half, without the race detector: vet, the engine, projects, stores but Redis
	@go vet ./...
	@go test -short -vet=off $(AT_ONCE) $$(go list ./... | grep -v -E '$(SLOW)')

lint:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	@staticcheck=$$($(TOOL) -n staticcheck) && go vet $(RACE) ./... && GOFLAGS="$(RACE)" $$staticcheck ./... && \
		for m in interop benchmarks; do (cd $$m && $(STATIC) go vet ./... && $(STATIC) $$staticcheck ./...) || exit 1; done
	@cd deploy && $(STATIC) go vet ./...
	@$(TOOL) actionlint # the workflows in .github

unit:
	@go run ./scripts/suite -first '$(LONG)' -plain '$(PLAIN)' -modules 'interop benchmarks deploy' -- $(RACE) $(SHORT) -timeout 30m

demo: ## see quotas, limits, an SDK and a service with projects at work in the terminal
	@go run ./examples/quotas
	@echo
	@go run ./examples/limits
	@echo
	@cd interop && go run ./examples/sdk
	@echo
	@go run ./examples/service

bench: ## measure against the peers, print the ratios, write docs/plots/*.svg
	@cd benchmarks && go run .

fuzz: ## fuzz every target for FUZZTIME each (30s)
	@for m in $(MODULES); do (cd $$m && $(CURDIR)/scripts/fuzz.sh $(FUZZTIME)) || exit 1; done

soak: ## the long versions of all tests, ten times over, and far longer ones of the tests at random
	@for m in . interop; do (cd $$m && go test $(RACE) -shuffle=on -timeout 60m -count=10 ./...) || exit 1; done
	@go test -timeout 60m -count=10 ./internal/scenes
	@go test $(RACE) -timeout 60m ./limit ./store/... . ./internal/fair ./project ./llm ./internal/dialect -rapid.checks=20000
	@cd interop && go test -timeout 60m ./tokenizers -texts 1000000

flakes: ## test PACKAGES (all) on a starved machine, ROUNDS (30) times each in another order: lists each test that ever failed
	@go run ./scripts/flakes -modules '$(MODULES)' -packages '$(or $(PACKAGES),.)' -rounds $(or $(ROUNDS),30) -- $(RACE) -ldflags=-w

client: deps ## write TypeScript types of the admin API to CLIENT (client/ratelimit.ts)
	@node interop/tsclient/node_modules/openapi-typescript/bin/cli.js internal/gateway/admin/openapi.json -o $(CLIENT)

prices: ## download the prices that providers publish, and write price/table.json anew
	@go run ./scripts/prices price

docs: pictures ## write the generated parts of the documentation anew
	@go run ./scripts/docs
	@go test ./cmd/ratelimit -run 'TestCommandsDocument|TestHelp' -update >/dev/null

screenshots: ## take the pictures of the dashboard anew; SCREENSHOTS=15m has traffic for so long before
	@cd interop && go run ./dashboard/screenshots -for $(or $(SCREENSHOTS),2m)

pictures: ## draw the pictures of the documentation anew
	@cd benchmarks && go run ./pictures

apidiff: ## compare the Go API with that of the last tag, or of BASE
	@scripts/apidiff.sh $(BASE)

release: ## build binaries, packages, images, SBOMs and checksums of all platforms into dist/
	@rm -rf dist
	@go run ./scripts/release
