package mockprovider

import (
	"iter"
	"net/http"
	"net/url"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// format reads calls and writes answers of an API.
type format interface {
	// read completes a call from the fields of its body. The error says what is wrong with them.
	read(c *Call) error

	whole(a *answer) object
	events(a *answer) iter.Seq[event]
	broken(a *answer) event // reports an error in mid-stream
	framing(c *Call) framing
}

// A headerFormat has usage in the headers of whole answers, too.
type headerFormat interface {
	headers(h http.Header, u usage)
}

// A binaryFormat answers with something else than JSON.
type binaryFormat interface {
	content() (kind string, body []byte)
}

// A modelFormat knows the model of calls that name none.
type modelFormat interface {
	model(c *Call) string
}

// endpoint is what a URL leads to.
type endpoint struct {
	api    dialect.API
	format format
	model  string
	stream bool
	array  bool // a Gemini stream as an array

	owner       llm.Provider // whose API it is
	cacheWrites bool         // the usage reports what was written to a cache
}

// A route leads from the end of a path to an endpoint, or from the folder of what a PATCH changes.
type route struct {
	end, patch string
	endpoint
}

// routeOf returns what a URL leads to, if that is a call of a model.
func routeOf(method string, u *url.URL) (endpoint, bool) {
	for _, r := range routes {
		if r.patch != "" && method == http.MethodPatch && strings.Contains(u.Path, r.patch) {
			return r.endpoint, true
		}
		if r.patch != "" || method == http.MethodPatch {
			continue
		}
		if before, ok := strings.CutSuffix(u.Path, r.end); ok {
			r.model = modelIn(before)
			r.array = r.stream && u.Query().Get("alt") != "sse"
			return r.endpoint, true
		}
	}
	return endpoint{}, false
}

// modelIn returns the model or the deployment that a path names, or "".
func modelIn(path string) string {
	for _, folder := range modelFolders {
		if _, name, ok := strings.Cut(path, folder); ok {
			return name
		}
	}
	return ""
}
