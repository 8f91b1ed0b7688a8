package gateway

import (
	"net/http"
	"net/url"
	"strings"
)

// locationFields are headers of answers with an address that a client may follow.
var locationFields = []string{"Location", "Content-Location", "X-Goog-Upload-Url", "X-Goog-Upload-Control-Url"}

// pathsAlone is how many of locationFields may be a path without a host. SDKs of Google's send files to the address in
// the others as it is.
const pathsAlone = 2

// replaceLocations replaces the addresses in the headers of an answer with those of the same resources at the
// gateway. It drops addresses that are not the deployment's: a client that follows one would get past the
// gateway, maybe with its key. u is the URL of the request at the deployment.
func (x *exchange) replaceLocations(d *deployment, u *url.URL, h http.Header) {
	for i, name := range locationFields {
		values := h[name]
		if values == nil {
			continue
		}
		path := x.pathOf(d, u, values[0])
		switch {
		case path == "" || len(values) > 1:
			delete(h, name)
		case i < pathsAlone:
			h[name] = []string{path}
		default:
			h[name] = []string{x.origin() + path}
		}
	}
}

// origin returns the scheme and the host of the gateway, as the client has reached it.
func (x *exchange) origin() string {
	if x.overTLS {
		return "https://" + x.r.Host
	}
	return "http://" + x.r.Host
}

// pathOf returns the path at the gateway, and the query, of an address that is relative to the URL of a request
// at a deployment. It is empty for an address that is not the deployment's.
func (x *exchange) pathOf(d *deployment, u *url.URL, address string) string {
	to, err := u.Parse(address)
	if err != nil || to.Scheme != d.base.Scheme || to.Host != d.base.Host || to.User != nil || to.Opaque != "" || !below(to.EscapedPath(), d.base.EscapedPath()) {
		return ""
	}
	path := "/" + x.upstream.name + strings.TrimPrefix(to.EscapedPath(), d.base.EscapedPath())
	if to.RawQuery != "" {
		path += "?" + to.RawQuery
	}
	return path
}
