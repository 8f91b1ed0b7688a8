package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// unversionedPaths are the segments that follow the version in providers' paths.
var unversionedPaths = []string{
	"audio", "batches", "cachedContents", "chat", "completions", "embeddings", "files", "images", "messages", "models", "moderations", "responses",
}

// versionPrefixes are the versions with which paths begin, by the provider's host. Other
// hosts may have none.
var versionPrefixes = map[string]string{
	"api.openai.com":                    "/v1",
	"api.anthropic.com":                 "/v1",
	"generativelanguage.googleapis.com": "/v1beta",
}

// unknownProvider refuses a request whose path begins with no provider's name. Where keys are
// required, only clients with a valid key get the providers' names.
func (x *exchange) unknownProvider(first string) *refusal {
	x.target.RawQuery = x.r.URL.RawQuery // may have the key
	if _, _, known := x.findKey(); x.cfg.Keys == config.KeysRequired && !known {
		return x.refuseKey()
	}
	wrong := fmt.Sprintf("no provider is named %.40q", first)
	if first == "" {
		wrong = "the path names no provider"
	}
	guess := "."
	if meant := x.suggestion(first); meant != "" {
		guess = fmt.Sprintf(": did you mean %s?", meant)
	}
	return refusalf(http.StatusNotFound, "%s%s A path begins with one of /%s/", wrong, guess, strings.Join(x.setup.names(), "/, /"))
}

// suggestion returns the path that the client probably meant: its provider's name is misspelt
// or missing. It contains nothing of the client's path, which may hold a secret.
func (x *exchange) suggestion(first string) string {
	if name := message.Nearest(first, x.setup.names()); name != "" {
		return "/" + name + "/…"
	}
	path := x.r.URL.Path
	if slices.Contains(unversionedPaths, first) {
		path = "/v1" + path
	} else if first != "v1" && first != "v1beta" {
		return ""
	}
	endpoint, ok := dialect.Recognize(http.MethodPost, &url.URL{Path: path})
	name := x.setup.providerFor(path, endpoint)
	switch {
	case name == "":
		return ""
	case ok && callPaths[endpoint.API] != "":
		return "/" + name + callPaths[endpoint.API]
	}
	return "/" + name + "/" + strings.Split(path, "/")[1] + "/…"
}

// callPaths are the paths of calls at the providers, by API.
var callPaths = map[dialect.API]string{
	dialect.Chat:        "/v1/chat/completions",
	dialect.Responses:   "/v1/responses",
	dialect.Completions: "/v1/completions",
	dialect.Embeddings:  "/v1/embeddings",
	dialect.Messages:    "/v1/messages",
	dialect.Generate:    "/v1beta/models/…",
}

// providerFor returns the name of the first provider of the kind that a path is for, which is
// OpenAI's unless the path is Anthropic's or Google's. It is empty if there is none.
func (s *setup) providerFor(path string, endpoint dialect.Endpoint) string {
	kind := dialect.OpenAI
	switch {
	case endpoint.API == dialect.Messages:
		kind = dialect.Anthropic
	case endpoint.API == dialect.Generate, strings.HasPrefix(path, "/v1beta/"):
		kind = dialect.Gemini
	}
	for _, name := range s.names() {
		if s.upstreams[name].Kind == kind {
			return name
		}
	}
	return ""
}

// checkVersion refuses a request that lacks the version with which its provider's paths
// begin: the SDK's base URL should have it.
func (x *exchange) checkVersion() *refusal {
	version := versionPrefixes[x.upstream.deployments[0].base.Host]
	first, _, _ := strings.Cut(strings.TrimPrefix(x.target.Path, "/"), "/")
	if version == "" || !slices.Contains(unversionedPaths, first) {
		return nil
	}
	meant := "/" + x.upstream.name + version
	return refusalf(http.StatusNotFound, "the provider %q has no path /%s: did you mean %s/%s? The base URL must end with %s", x.upstream.name, first, meant, pathAfterVersion(x, first), meant)
}

// pathAfterVersion returns the part of a path that follows the version: all of it for a call
// of a model, otherwise the first segment.
func pathAfterVersion(x *exchange, first string) string {
	if endpoint, ok := dialect.Recognize(http.MethodPost, &url.URL{Path: x.target.Path}); ok && endpoint.API != dialect.Generate {
		if _, rest, ok := strings.Cut(callPaths[endpoint.API], "/v1/"); ok {
			return rest
		}
	}
	return first
}
