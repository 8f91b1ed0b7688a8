package gateway

import (
	"net/http"
	"net/url"
	"strings"
)

// locationFields are headers of answers with an address that a client may follow.
var locationFields = []string{"Location", "Content-Location"}

// uploadFields are headers of answers of Google's with the address to which a client sends a file. SDKs take it as it
// is, so it must have a host.
var uploadFields = []string{"X-Goog-Upload-Url", "X-Goog-Upload-Control-Url"}

// replaceLocations replaces the addresses in the headers of an answer with those of the same resources at the
// gateway. It drops addresses that are not the deployment's: a client that follows one would get past the
// gateway, maybe with its key. u is the URL of the request at the deployment.
func (x *exchange) replaceLocations(d *deployment, u *url.URL, h http.Header) {
	for _, name := range locationFields {
		x.replaceLocation(d, u, h, name, "")
	}
	for _, name := range uploadFields {
		x.replaceLocation(d, u, h, name, x.origin())
	}
}

// replaceLocation replaces the address in one header, whose new value begins with the given text.
func (x *exchange) replaceLocation(d *deployment, u *url.URL, h http.Header, name, begin string) {
	values := h[name]
	if values == nil {
		return
	}
	if path := x.pathOf(d, u, values[0]); path != "" && len(values) == 1 {
		h[name] = []string{begin + path}
	} else {
		delete(h, name)
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
