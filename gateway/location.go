package gateway

import (
	"net/http"
	"net/url"
	"strings"
)

// locationFields are headers of answers with an address that a client may follow.
var locationFields = []string{"Location", "Content-Location"}

// replaceLocations replaces the addresses in the headers of an answer with those of the same resources at the
// gateway. It drops addresses that are not the deployment's: a client that follows one would get past the
// gateway, maybe with its key. u is the URL of the request at the deployment.
func (x *exchange) replaceLocations(d *deployment, u *url.URL, h http.Header) {
	for _, name := range locationFields {
		values := h[name]
		if values == nil {
			continue
		}
		if path := x.pathOf(d, u, values[0]); path != "" && len(values) == 1 {
			h[name] = []string{path}
		} else {
			delete(h, name)
		}
	}
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
