package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// Parameters of a query that Google's servers accept, with or without a $ before their names.
var (
	credentialParameters = []string{"key", "access_token"}
	methodParameters     = []string{"httpMethod"} // replaces the method of the request
	usageParameters      = []string{"fields"}     // selects fields of the answer, and may leave usage out
)

// checkQuery refuses a query with which the provider would take the request for another.
func (x *exchange) checkQuery() *refusal {
	if x.endpoint.API == dialect.Generate && withoutParameters(x.target.RawQuery, methodParameters) != x.target.RawQuery {
		return refusalf(http.StatusBadRequest, "the query must not name another method")
	}
	return nil
}

// ensureUsage makes sure that the answer of a call reports usage in a form that the gateway can read. It
// refuses a request for another form. Google's servers, which can leave fields out of any answer, may be
// behind a provider of any kind.
func (x *exchange) ensureUsage() *refusal {
	if x.signed {
		return nil
	}
	x.askAllFields()
	for pair := range strings.SplitSeq(x.target.RawQuery, "&") {
		name, value := parameter(pair)
		kind, _, _ := strings.Cut(value, ";") // Google's own clients send json;enum-encoding=int
		if name == "callback" || name == "alt" && kind != "" && kind != "json" && kind != "sse" {
			return refusalf(http.StatusUnsupportedMediaType, "the query has %.40q: the answer must be JSON or SSE, because the gateway has to read it", pair)
		}
	}
	return nil
}

// askAllFields removes what selects fields of the answer.
func (x *exchange) askAllFields() {
	delete(x.r.Header, "X-Goog-Fieldmask")
	x.target.RawQuery = withoutParameters(x.target.RawQuery, usageParameters)
}

// withoutParameters returns a query without some parameters, and otherwise unchanged.
func withoutParameters(query string, names []string) string {
	if query == "" {
		return ""
	}
	var others []string
	for pair := range strings.SplitSeq(query, "&") {
		if name, _ := parameter(pair); !slices.Contains(names, name) {
			others = append(others, pair)
		}
	}
	return strings.Join(others, "&")
}

// parameter returns the name and the value of a query's parameter. A name that cannot be
// unescaped counts as a key's, to be on the safe side.
func parameter(pair string) (name, value string) {
	name, value, _ = strings.Cut(pair, "=")
	name, err := url.QueryUnescape(name)
	if err != nil {
		return credentialParameters[0], ""
	}
	if plain, err := url.QueryUnescape(value); err == nil {
		value = plain
	}
	return strings.TrimPrefix(name, "$"), value
}
