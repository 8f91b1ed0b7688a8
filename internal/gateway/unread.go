package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// A request that is no call of a model in a format that the gateway reads is forwarded unread. Its path
// says what it can do: use tokens that nobody counts, create credentials that lead past the gateway, or
// change what others use.

// changes reports whether a request with this method does more than to fetch or delete something.
func changes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodDelete && method != http.MethodOptions
}

// freeEnds are the ends of paths where nothing calls a model, whatever is posted there: counts of tokens, files, ends
// of calls, and objects that are made before a model is called. freeFolders are folders below which no path calls a
// model. paidFolders are those in which nothing is free: what OpenAI's vector stores keep costs something by the day.
var (
	freeEnds = []string{
		"/count_tokens", ":countTokens", "/input_tokens", "/count-tokens", "/tokenize", "/detokenize", "/files", "/cancel", ":cancel",
		"/uploads", "/skills", "/assistants", "/threads", "/agents", "/evals", "/items", "/api/show",
	}
	freeFolders = []string{"/uploads/", "/containers/"}
	paidFolders = []string{"/vector_stores/"}
)

// callsNoModel reports whether a request certainly calls no model.
func callsNoModel(method, path string) bool {
	if !changes(method) {
		return true
	}
	if slices.ContainsFunc(paidFolders, func(folder string) bool { return strings.Contains(path, folder) }) && !strings.HasSuffix(path, "/cancel") {
		return false
	}
	return slices.ContainsFunc(freeEnds, func(end string) bool { return strings.HasSuffix(path, end) }) ||
		slices.ContainsFunc(freeFolders, func(folder string) bool { return strings.Contains(path, folder) })
}

// usesNoTokens reports whether a request that is no call in a format that the gateway reads certainly uses
// no tokens: it calls no model, or OpenAI's models for moderation, which are free.
func (x *exchange) usesNoTokens() bool {
	return callsNoModel(x.r.Method, x.target.Path) || dialect.UsesNoTokens(x.upstream.Kind, x.target.Path)
}

// checkUnknown refuses a request to an endpoint that the gateway does not read, if the configuration does not let it pass:
// by default, where its project, key or run has limits in tokens, or in dollars and nothing says what it costs.
func (x *exchange) checkUnknown() *refusal {
	_, priced := x.upstream.EndpointPrice(x.r.Method, x.target.Path)
	mode := x.upstream.UnknownEndpoints
	switch {
	case priced, mode == config.UnknownPass, x.usesNoTokens():
		return nil
	case mode == config.UnknownDeny:
		return x.unknownEndpoint("unknown_endpoints: deny of the provider refuses what the gateway does not read")
	}
	var units []string
	if mode == "" {
		units = append(units, project.Tokens)
	}
	if x.passedPrice() == price.Unknown {
		units = append(units, project.Dollars)
	}
	x.setOwners()
	owner, unit, err := hidden.Of[engine.Projects](x.g.limits.Projects).LimitedBy(engine.OwnersOf(&x.call.Call), units...)
	switch {
	case err != nil:
		return x.undecided(err)
	case owner == "":
		return nil
	}
	return x.unknownEndpoint(fmt.Sprintf("%s has a limit in %s, and nothing says what such a request costs", owner, unit))
}

// unknownEndpoint refuses a request to an endpoint that the gateway does not read, and says what would let it pass.
func (x *exchange) unknownEndpoint(why string) *refusal {
	endpoint := fmt.Sprintf("%s %.200s", x.r.Method, x.target.Path)
	return refusalf(http.StatusForbidden, "not sent: the gateway does not read %s, and %s: the configuration must have endpoint_prices: {%q: 0.02} for the provider %q, with the price of a request in dollars, or unknown_endpoints: count (each costs what unpriced says of a request) or pass (each costs nothing)",
		endpoint, why, endpoint, x.Provider)
}

// credentialNames are names in the paths at which providers create credentials, or sessions that clients
// speak with directly. Each alone says so.
var credentialNames = []string{
	"client_secrets", "transcription_sessions", "auth_tokens", "authtokens", "api_keys", "api-keys", "apikeys", "admin_api_keys", "keys",
	"service_accounts", "service-accounts", "single-use-token", "get-signed-url", "get_signed_url", "access-token", "access_token", "access_tokens",
	"token", "tokens", "organization", "organizations",
}

// sessionNames are pairs of names at the ends of such paths.
var sessionNames = [][2]string{
	{"realtime", "sessions"}, {"realtimeapi", "sessions"}, {"chatkit", "sessions"}, {"realtime", "calls"}, {"auth", "grant"}, {"key", "generate"},
}

// fetchedNames are those of credentialNames that providers create at a GET.
var fetchedNames = []string{"single-use-token", "get-signed-url", "get_signed_url", "token"}

// checkCredentials refuses to create credentials: whoever has them calls the provider past the gateway.
func (x *exchange) checkCredentials() *refusal {
	if x.upstream.AllowCredentials || !x.createsCredentials() {
		return nil
	}
	return refusalf(http.StatusForbidden, "credentials and sessions with which a client reaches the provider past the gateway are not created through it: the configuration must have allow_credentials: true for the provider %q", x.Provider)
}

func (x *exchange) createsCredentials() bool {
	if x.r.Method == http.MethodHead || x.r.Method == http.MethodDelete || x.r.Method == http.MethodOptions {
		return false
	}
	words := pathWords(x.providerPath().Path)
	if x.r.Method == http.MethodGet {
		return len(words) > 0 && slices.Contains(fetchedNames, words[len(words)-1])
	}
	if n := len(words); n >= 2 && slices.Contains(sessionNames, [2]string{words[n-2], words[n-1]}) {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(credentialNames, word) })
}

// managementPaths are the paths at which servers of one's own load, change and delete models: Ollama's,
// llama.cpp's, vLLM's and SGLang's, and LM Studio's.
var managementPaths = [][]string{
	{"api", "delete"}, {"api", "pull"}, {"api", "push"}, {"api", "create"}, {"api", "copy"}, {"api", "blobs"},
	{"models", "load"}, {"models", "unload"}, {"models", "download"}, {"lora-adapters"}, {"slots"}, {"props"},
	{"load_lora_adapter"}, {"unload_lora_adapter"}, {"sleep"}, {"wake_up"}, {"reset_prefix_cache"}, {"flush_cache"}, {"update_weights_from_disk"},
}

// checkManagement refuses to change the models of a server of one's own, which others use too.
func (x *exchange) checkManagement() *refusal {
	if !dialect.IsOwnServer(x.upstream.Kind) || x.upstream.AllowManagement || x.r.Method == http.MethodGet || x.r.Method == http.MethodOptions {
		return nil
	}
	words := pathWords(x.providerPath().Path)
	for _, path := range managementPaths {
		for i := range words {
			if len(words)-i >= len(path) && slices.Equal(words[i:i+len(path)], path) {
				return refusalf(http.StatusForbidden, "models of the server are not changed through the gateway: the configuration must have allow_management: true for the provider %q", x.Provider)
			}
		}
	}
	return nil
}
