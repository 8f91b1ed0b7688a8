package gateway

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Parameters of a query that Google's servers take, with or without a $ before their
// names.
var (
	ofCredentials = []string{"key", "access_token"}
	ofMethod      = []string{"httpMethod"} // in whose place it says another
	ofUsage       = []string{"fields"}     // of the answer, which may leave usage out
)

// checkQuery refuses what makes a request another at the provider than it is here.
func (x *exchange) checkQuery() *refusal {
	if x.endpoint.API == llm.Generate && without(x.target.RawQuery, ofMethod) != x.target.RawQuery {
		return x.bad(http.StatusBadRequest, "the query names another method: it must not")
	}
	return nil
}

// showUsage sees to it that the answer to a call of Gemini tells what was used, and can
// be read.
func (x *exchange) showUsage() *refusal {
	if x.endpoint.API != llm.Generate || x.signed {
		return nil
	}
	delete(x.r.Header, "X-Goog-Fieldmask")
	x.target.RawQuery = without(x.target.RawQuery, ofUsage)
	for pair := range strings.SplitSeq(x.target.RawQuery, "&") {
		name, value := parameter(pair)
		kind, _, _ := strings.Cut(value, ";") // Google's own clients say json;enum-encoding=int
		if name == "callback" || name == "alt" && kind != "" && kind != "json" && kind != "sse" {
			return x.bad(http.StatusUnsupportedMediaType, fmt.Sprintf("the query has %.40q: the answer must be JSON or SSE, for it has to be read", pair))
		}
	}
	return nil
}

// without returns a query without some parameters. What else stands in it stays as it is.
func without(query string, names []string) string {
	if query == "" {
		return ""
	}
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		if name, _ := parameter(pair); !slices.Contains(names, name) {
			kept = append(kept, pair)
		}
	}
	return strings.Join(kept, "&")
}

// parameter returns the name and the value of one. What cannot be read is a key, to be
// on the safe side.
func parameter(pair string) (name, value string) {
	name, value, _ = strings.Cut(pair, "=")
	name, err := url.QueryUnescape(name)
	if err != nil {
		return ofCredentials[0], ""
	}
	if plain, err := url.QueryUnescape(value); err == nil {
		value = plain
	}
	return strings.TrimPrefix(name, "$"), value
}
