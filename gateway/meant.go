package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/llm"
)

// unversioned are first segments of providers' paths that stand behind a version.
var unversioned = []string{
	"audio", "batches", "cachedContents", "chat", "completions", "embeddings", "files", "images", "messages", "models", "moderations", "responses",
}

// versions are the versions that the paths of hosts begin with. Of other hosts it is not
// known: some have none.
var versions = map[string]string{
	"api.openai.com":                    "/v1",
	"api.anthropic.com":                 "/v1",
	"generativelanguage.googleapis.com": "/v1beta",
}

// nobody refuses a request whose path begins with no provider's name. Where keys are
// required, the names are told to clients that have one.
func (x *exchange) nobody(first string) *refusal {
	x.target.RawQuery = x.r.URL.RawQuery // which may have the key
	if _, known := x.key(); x.cfg.Keys == config.KeysRequired && !known {
		return x.bad(http.StatusUnauthorized, x.needKey())
	}
	wrong := fmt.Sprintf("no provider is named %.40q", first)
	if first == "" {
		wrong = "the path names no provider"
	}
	guess := "."
	if meant := x.meant(first); meant != "" {
		guess = fmt.Sprintf(": did you mean %s?", meant)
	}
	return x.bad(http.StatusNotFound, fmt.Sprintf("%s%s A path begins with one of /%s/", wrong, guess, strings.Join(x.setup.names(), "/, /")))
}

// meant returns the path that was probably meant, for one that begins with no provider's
// name: with a name that is nearly the same, or where the name was forgotten. Nothing of
// the client's path is in it, which may hold a secret.
func (x *exchange) meant(first string) string {
	if name := config.Nearest(first, x.setup.names()); name != "" {
		return "/" + name + "/…"
	}
	path := x.r.URL.Path
	if slices.Contains(unversioned, first) {
		path = "/v1" + path
	} else if first != "v1" && first != "v1beta" {
		return ""
	}
	endpoint, ok := llm.Recognize(http.MethodPost, &url.URL{Path: path})
	name := x.setup.speakerOf(path, endpoint)
	switch {
	case name == "":
		return ""
	case ok && usualPaths[endpoint.API] != "":
		return "/" + name + usualPaths[endpoint.API]
	}
	return "/" + name + "/" + strings.Split(path, "/")[1] + "/…"
}

// usualPaths are paths of calls as providers have them.
var usualPaths = map[llm.API]string{
	llm.Chat:        "/v1/chat/completions",
	llm.Responses:   "/v1/responses",
	llm.Completions: "/v1/completions",
	llm.Embeddings:  "/v1/embeddings",
	llm.Messages:    "/v1/messages",
	llm.Generate:    "/v1beta/models/…",
}

// speakerOf returns the name of the provider whose path it may be: the first of its
// kind, or else of OpenAI's, whose paths most servers have.
func (s *setup) speakerOf(path string, endpoint llm.Endpoint) string {
	kind := llm.OpenAI
	switch {
	case endpoint.API == llm.Messages:
		kind = llm.Anthropic
	case endpoint.API == llm.Generate, strings.HasPrefix(path, "/v1beta/"):
		kind = llm.Gemini
	}
	for _, name := range s.names() {
		if s.upstreams[name].Kind == kind {
			return name
		}
	}
	return ""
}

// versioned refuses a request that lacks the version its provider's paths begin with: an
// SDK whose base URL should have had it.
func (x *exchange) versioned() *refusal {
	version := versions[x.upstream.deployments[0].base.Host]
	first, _, _ := strings.Cut(strings.TrimPrefix(x.target.Path, "/"), "/")
	if version == "" || !slices.Contains(unversioned, first) {
		return nil
	}
	meant := "/" + x.upstream.name + version
	return x.bad(http.StatusNotFound, fmt.Sprintf("the provider %q has no path /%s: did you mean %s/%s? The base URL is to end with %s", x.upstream.name, first, meant, restOfCall(x, first), meant))
}

// restOfCall returns the rest of a path that lacks its version: all of it for a call, and
// else its first segment.
func restOfCall(x *exchange, first string) string {
	if endpoint, ok := llm.Recognize(http.MethodPost, &url.URL{Path: x.target.Path}); ok && endpoint.API != llm.Generate {
		if _, rest, ok := strings.Cut(usualPaths[endpoint.API], "/v1/"); ok {
			return rest
		}
	}
	return first
}
