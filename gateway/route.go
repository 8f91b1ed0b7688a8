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

// route finds the provider, whose name is the first part of the path. What stands
// behind it is the provider's own.
func (x *exchange) route() *refusal {
	u := x.r.URL
	name, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	x.upstream = x.setup.upstreams[name]
	if x.upstream == nil {
		return x.bad(http.StatusNotFound, fmt.Sprintf("no provider is named %.40q: a path begins with one of /%s/", name, strings.Join(x.setup.names(), "/, /")))
	}
	x.Provider = x.upstream.name
	x.endpoint = llm.Endpoint{Provider: x.upstream.Kind, API: x.upstream.dialect()}
	x.target = url.URL{Path: u.Path[1+len(name):], RawQuery: u.RawQuery}
	if raw, ok := strings.CutPrefix(u.RawPath, "/"+name); ok {
		x.target.RawPath = raw
	}
	if climbs(x.target.Path) {
		return x.bad(http.StatusBadRequest, `the path has a part "." or ".."`)
	}
	return nil
}

// names returns those of the providers, in order.
func (s *setup) names() []string { return slices.Sorted(maps.Keys(s.upstreams)) }

// climbs reports whether a path has parts that lead out of it.
func climbs(path string) bool {
	if !strings.Contains(path, "/.") {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// ambiguous reports whether the path may be another to who undoes its escaping first.
func (x *exchange) ambiguous(endpoint llm.Endpoint, is bool) bool {
	if x.target.RawPath == "" {
		return false
	}
	plain := x.target
	plain.RawPath = ""
	other, also := llm.Recognize(x.r.Method, &plain)
	return also && (!is || endpoint != other)
}

// at returns the address of the request at a deployment.
func (x *exchange) at(d *deployment) *url.URL {
	u := x.target
	u.Scheme, u.Host = d.base.Scheme, d.base.Host
	u.Path = d.base.Path + u.Path
	if u.RawPath != "" {
		u.RawPath = d.base.EscapedPath() + u.RawPath
	}
	return &u
}
