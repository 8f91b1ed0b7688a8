package gateway

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// maxResponseID is how many bytes of an id a [dialect.Meter] keeps. A longer one cannot be distinguished from others.
const maxResponseID = 64

// leaveOpen deposits a call that the provider goes on with in the background, until its response is fetched.
// It reports false for a call whose usage is known already, or whose response nobody could find.
func (x *exchange) leaveOpen(meter *dialect.Meter) bool {
	id := meter.ResponseID()
	if x.call.Request.API.Told(meter.Usage()) || id == "" || len(id) >= maxResponseID {
		return false
	}
	path, query, name := x.endpoint.Response(x.target.Path, id)
	x.g.batches.open(responseName(x.Provider, name), x.call.Background(x.whereToFetch(path, query)))
	return true
}

// whereToFetch returns where the gateway itself can fetch a response, with the account that the call was made with. It is
// empty if that account is the client's.
func (x *exchange) whereToFetch(path string, query url.Values) string {
	if !x.gatewayAccount {
		return ""
	}
	if version := x.target.Query()["api-version"]; version != nil { // Azure's
		query["api-version"] = version
	}
	where := url.URL{Path: path, RawQuery: query.Encode()}
	return where.String()
}

// readResponse returns what reads the response at a path as it passes, whole or as a stream, and settles the call that it
// is of if that was left open. It returns nil if no response of such a call is there.
func (x *exchange) readResponse(path string) func(*http.Response) io.Reader {
	api, id := dialect.FetchedAt(path)
	if api == "" || strings.HasSuffix(id, "/files") && !asksFromTheStart(x.target.RawQuery) {
		return nil
	}
	return func(response *http.Response) io.Reader {
		if response.StatusCode != http.StatusOK {
			return response.Body
		}
		return newResponseReader(x, api, id, response)
	}
}

// asksFromTheStart reports whether the query of a request for a list asks for all that is in it, or for its first entries:
// with another parameter, the end of the answer may be the end of a part. A provider may read a query that is not
// well-formed in another way than the gateway.
func asksFromTheStart(query string) bool {
	values, err := url.ParseQuery(query)
	for name := range values {
		if name != "limit" && name != "api-version" {
			return false
		}
	}
	return err == nil
}

// responseReader reads a response as it passes.
type responseReader struct {
	x     *exchange
	api   dialect.API
	id    string
	body  io.Reader
	meter *dialect.Meter
	ended bool
}

func newResponseReader(x *exchange, api dialect.API, id string, response *http.Response) *responseReader {
	return &responseReader{x: x, api: api, id: id, body: response.Body, meter: dialect.NewMeter(api, response.Header)}
}

// Read settles the call before the client gets the end of the response. A response that has ended without usage,
// because it was cancelled or has failed, may have cost all that was reserved.
func (r *responseReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.meter.Write(p[:n])
	if r.ended || !r.meter.Finished() {
		return n, err
	}
	r.ended = true
	if used := r.meter.Usage(); r.api.Told(used) {
		if open := r.x.g.batches.find(responseName(r.x.Provider, r.id)); open != nil {
			open.SettleCall(used)
		}
	}
	return n, err
}
