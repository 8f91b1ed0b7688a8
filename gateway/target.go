package gateway

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// aim sets the target of the request: the path that stands behind the provider's name,
// which begins with "/" or is empty, and the query. A path that servers could read in
// different ways is refused.
func (x *exchange) aim(name string) *refusal {
	u := x.r.URL
	x.target = url.URL{Path: u.Path[len("/")+len(name):], RawQuery: u.RawQuery}
	if u.RawPath != "" {
		x.target.RawPath = u.EscapedPath()[len("/")+len(name):]
	}
	path := x.target.Path
	switch {
	case strings.HasPrefix(path, "//"): // some servers take what follows for a host
		return x.bad(http.StatusBadRequest, `the path behind the provider's name begins with "//": it must begin with one "/"`)
	case climbs(path):
		return x.bad(http.StatusBadRequest, `the path has a part of dots alone, such as "." or ".."`)
	case strings.ContainsFunc(path, odd) || strings.TrimRight(path, " .") != path:
		return x.bad(http.StatusBadRequest, `the path must have no control characters, ";" or "\", and no blank or dot at its end`)
	case strings.ContainsFunc(x.target.RawQuery, oddInQuery):
		return x.bad(http.StatusBadRequest, `the query must have no blanks, control characters or "#"`)
	}
	return x.checkQuery()
}

// odd reports whether a character stands in no path of an API: servers do not agree on
// its meaning.
func odd(r rune) bool { return r == ';' || r == '\\' || unicode.IsControl(r) }

// oddInQuery reports whether a character must be escaped in a query.
func oddInQuery(r rune) bool { return r == ' ' || r == '#' || unicode.IsControl(r) }

// climbs reports whether a path has a part that may lead out of it: dots alone, or dots
// and blanks, which some servers drop.
func climbs(path string) bool {
	if !strings.Contains(path, "/.") && !strings.Contains(path, "/ ") {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		if part != "" && strings.Trim(part, " .") == "" {
			return true
		}
	}
	return false
}

// path returns the path of the request at the provider, with the query.
func (x *exchange) path() *url.URL {
	base := x.upstream.deployments[0].base
	if base.Path == "" {
		return &x.target
	}
	u := x.at(x.upstream.deployments[0])
	u.Host = "" // the configuration says which provider it is
	return u
}

// at returns the address of the request at a deployment.
func (x *exchange) at(d *deployment) *url.URL {
	u := x.target
	u.Scheme, u.Host = d.base.Scheme, d.base.Host
	u.Path = d.base.Path + u.Path
	if u.RawPath != "" || d.base.RawPath != "" {
		u.RawPath = d.base.EscapedPath() + x.target.EscapedPath()
	}
	return &u
}

// errAstray is the error of a request that would leave the gateway for another place
// than a deployment.
var errAstray = errors.New("ratelimit: the request is not for the configured base_url, and was not sent")

// leads reports whether a request goes to the deployment and nowhere else: to its host,
// with its Host header, and below its path. It is the last look at a request before the
// provider's key leaves with it, whatever has made the request.
func (d *deployment) leads(out *http.Request) bool {
	u := out.URL
	if u.Scheme != d.base.Scheme || u.Host != d.base.Host || out.Host != d.base.Host || u.Opaque != "" || u.User != nil {
		return false
	}
	return below(u.Path, d.base.Path) && (u.RawPath == "" || below(u.EscapedPath(), d.base.EscapedPath())) && !climbs(u.Path)
}

// below reports whether a path is the base, or begins with the base and a "/".
func below(path, base string) bool {
	rest, ok := strings.CutPrefix(path, base)
	return ok && (rest == "" || rest[0] == '/')
}
