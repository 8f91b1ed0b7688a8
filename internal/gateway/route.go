package gateway

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// route finds the provider, whose name is the first segment of the path, and sets the target
// to the rest. The name must not be escaped, and an unescaped slash must follow it; otherwise
// the rest would not begin with "/".
func (x *exchange) route() *refusal {
	plain, _, _ := strings.Cut(strings.TrimPrefix(x.r.URL.Path, "/"), "/")
	x.upstream = x.setup.upstreams[plain]
	if x.upstream == nil {
		return x.unknownProvider(plain)
	}
	x.Provider = x.upstream.name
	x.endpoint = dialect.Endpoint{Provider: x.upstream.Kind, API: dialect.ErrorAPI(x.upstream.Kind)}
	if x.r.URL.RawPath != "" && !below(x.r.URL.EscapedPath(), "/"+x.upstream.name) {
		return refusalf(http.StatusBadRequest, "the path must begin with /%s/ as it is, with nothing escaped", x.upstream.name)
	}
	if refused := x.setTarget(x.upstream.name); refused != nil {
		return refused
	}
	return x.checkVersion()
}

// names returns the names of the providers, in order.
func (s *setup) names() []string { return slices.Sorted(maps.Keys(s.upstreams)) }

// ambiguous reports whether a server that unescapes a path before it splits it would take the
// request for another call. recognized reports whether the request is a call to the endpoint.
func (x *exchange) ambiguous(u *url.URL, endpoint dialect.Endpoint, recognized bool) bool {
	if u.RawPath == "" {
		return false
	}
	plain := *u
	plain.RawPath = ""
	other, also := dialect.RecognizeAt(x.upstream.Kind, x.r.Method, &plain)
	return also && (!recognized || endpoint != other)
}

// checkMethod refuses to change what is at the path of a call: some servers call the model whatever the
// method is, and the gateway would not read the call.
func (x *exchange) checkMethod(path *url.URL) *refusal {
	if x.r.Method != http.MethodPut && x.r.Method != http.MethodPatch {
		return nil
	}
	if _, call := dialect.RecognizeAt(x.upstream.Kind, http.MethodPost, path); !call {
		return nil
	}
	x.w.Header().Set("Allow", "GET, HEAD, POST, DELETE, OPTIONS")
	return refusalf(http.StatusMethodNotAllowed, "this is the path of calls of models: the method must be POST")
}
