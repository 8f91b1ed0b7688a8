package gateway

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// setTarget sets the target of the request: the query, and the path after the provider's
// name, which begins with "/" or is empty. It refuses a path that servers could read in
// different ways.
func (x *exchange) setTarget(name string) *refusal {
	u := x.r.URL
	x.target = url.URL{Path: u.Path[len("/")+len(name):], RawQuery: u.RawQuery}
	if u.RawPath != "" {
		x.target.RawPath = u.EscapedPath()[len("/")+len(name):]
	}
	path := x.target.Path
	switch {
	case strings.HasPrefix(path, "//"): // some servers take what follows for a host
		return refusalf(http.StatusBadRequest, `the path after the provider's name begins with "//": it must begin with one "/"`)
	case hasDotSegment(path):
		return refusalf(http.StatusBadRequest, `the path has a part of dots alone, such as "." or ".."`)
	case escapedTwice(path):
		return refusalf(http.StatusBadRequest, "the path is escaped twice: it must be escaped once")
	case strings.ContainsFunc(path, oddInPath) || hasOddName(path):
		return refusalf(http.StatusBadRequest, `the path must have no control characters, ";", "\", "?" or "#", no blanks around a name in it, and no dot after one`)
	case strings.ContainsFunc(x.target.RawQuery, oddInQuery):
		return refusalf(http.StatusBadRequest, `the query must have no blanks, control characters or "#"`)
	}
	return x.checkQuery()
}

// escapedTwice reports whether a path that was unescaped has an escape again. A server that unescapes
// once more would see another path.
func escapedTwice(path string) bool {
	return strings.IndexByte(path, '%') >= 0 && escape.MatchString(path)
}

var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// oddInPath reports whether servers do not agree on what a character in a path means: some take what follows an escaped
// "?" or "#" for no part of the path. No API has such a path.
func oddInPath(r rune) bool {
	return r == ';' || r == '\\' || r == '?' || r == '#' || unicode.IsControl(r)
}

// hasOddName reports whether a name in a path has blanks around it or dots behind it, which some servers drop.
func hasOddName(path string) bool {
	return strings.TrimRight(path, " .") != path || strings.Contains(path, " /") || strings.Contains(path, "/ ") || strings.Contains(path, "./")
}

// oddInQuery reports whether a character must be escaped in a query.
func oddInQuery(r rune) bool { return r == ' ' || r == '#' || unicode.IsControl(r) }

// hasDotSegment reports whether a path has a segment that may lead to a parent: only dots, or
// dots and blanks, since some servers drop blanks.
func hasDotSegment(path string) bool {
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

// providerPath returns the path and the query of the request at the provider, without a host.
func (x *exchange) providerPath() *url.URL {
	if x.upstream.deployments[0].base.Path == "" {
		return &x.target
	}
	u := x.address(x.upstream.deployments[0])
	u.Host = "" // the host must not decide which API it is: the configuration does
	return u
}

// address returns the URL of the request at a deployment.
func (x *exchange) address(d *deployment) *url.URL {
	u := x.target
	u.Scheme, u.Host = d.base.Scheme, d.base.Host
	u.Path = d.base.Path + behind(d.base.Path, u.Path)
	if u.RawPath != "" || d.base.RawPath != "" {
		u.RawPath = d.base.EscapedPath() + behind(d.base.EscapedPath(), x.target.EscapedPath())
	}
	return &u
}

// behind returns a path without the segments at its beginning with which the base ends. So a base_url may end in /v1,
// as the pages of compatible servers have it, whether or not clients' paths begin with /v1.
func behind(base, path string) string {
	for i := range len(base) {
		if base[i] == '/' && below(path, base[i:]) {
			return path[len(base)-i:]
		}
	}
	return path
}

// errWrongTarget is the error of a request that would go to another server than the
// deployment's.
var errWrongTarget = errors.New("ratelimit: the request is not for the configured base_url, and was not sent")

// receives reports whether a request goes to the deployment: to its host, with its Host
// header, and below its path. It is the last check before the request is sent with the
// provider's key.
func (d *deployment) receives(out *http.Request) bool {
	u := out.URL
	if u.Scheme != d.base.Scheme || u.Host != d.base.Host || out.Host != d.base.Host || u.Opaque != "" || u.User != nil {
		return false
	}
	return below(u.Path, d.base.Path) && (u.RawPath == "" || below(u.EscapedPath(), d.base.EscapedPath())) && !hasDotSegment(u.Path)
}

// below reports whether a path is the base, or begins with the base and a "/".
func below(path, base string) bool {
	rest, ok := strings.CutPrefix(path, base)
	return ok && (rest == "" || rest[0] == '/')
}
