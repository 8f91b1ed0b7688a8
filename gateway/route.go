package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// route finds the provider, whose name is the first part of the path, and what of the
// request is meant for it. The name must stand there literally: behind an escaped one,
// or one that ends with an escaped slash, the rest would not begin with "/".
func (x *exchange) route() *refusal {
	plain, _, _ := strings.Cut(strings.TrimPrefix(x.r.URL.Path, "/"), "/")
	x.upstream = x.setup.upstreams[plain]
	if x.upstream == nil {
		return x.nobody(plain)
	}
	x.Provider = x.upstream.name
	x.endpoint = llm.Endpoint{Provider: x.upstream.Kind, API: x.upstream.dialect()}
	if x.r.URL.RawPath != "" && !below(x.r.URL.EscapedPath(), "/"+x.upstream.name) {
		return x.bad(http.StatusBadRequest, fmt.Sprintf("the path must begin with /%s/ as it is, with nothing escaped", x.upstream.name))
	}
	if no := x.aim(x.upstream.name); no != nil {
		return no
	}
	return x.versioned()
}

// names returns the names of the providers, in order.
func (s *setup) names() []string { return slices.Sorted(maps.Keys(s.upstreams)) }

// ambiguous reports whether a path is another call to a server that undoes the escaping
// before it looks for segments.
func (x *exchange) ambiguous(u *url.URL, endpoint llm.Endpoint, is bool) bool {
	if u.RawPath == "" {
		return false
	}
	plain := *u
	plain.RawPath = ""
	other, also := llm.Recognize(x.r.Method, &plain)
	return also && (!is || endpoint != other)
}
