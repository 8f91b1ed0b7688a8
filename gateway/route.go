package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

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
	switch {
	case climbs(x.target.Path):
		return x.bad(http.StatusBadRequest, `the path has a part "." or ".."`)
	case strings.ContainsFunc(x.target.Path, odd) || strings.TrimRight(x.target.Path, " .") != x.target.Path:
		return x.bad(http.StatusBadRequest, `the path must have no control characters, ";" or "\", and no blank or dot at its end`)
	case strings.ContainsFunc(x.target.RawQuery, func(r rune) bool { return r == ' ' || unicode.IsControl(r) }):
		return x.bad(http.StatusBadRequest, "the query must have no blanks or control characters")
	}
	return x.checkQuery()
}

// odd reports whether a character stands in no path of an API: servers do not agree on
// what it means.
func odd(r rune) bool { return r == ';' || r == '\\' || unicode.IsControl(r) }

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

// ambiguous reports whether a path may be another to who undoes its escaping first.
func (x *exchange) ambiguous(u *url.URL, endpoint llm.Endpoint, is bool) bool {
	if u.RawPath == "" {
		return false
	}
	plain := *u
	plain.RawPath = ""
	other, also := llm.Recognize(x.r.Method, &plain)
	return also && (!is || endpoint != other)
}

// path returns that of the request at the provider.
func (x *exchange) path() *url.URL {
	base := x.upstream.deployments[0].base
	if base.Path == "" {
		return &x.target
	}
	u := x.at(x.upstream.deployments[0])
	u.Host = "" // whose it is, the configuration says
	return u
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
