package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const mostName = 512 // bytes of the name of a model

// checkNames refuses names that no model has, before they are compared or looked up: to undo
// what makes no difference in a name takes time that grows with the square of its length.
func (x *exchange) checkNames(names ...string) *refusal {
	for _, name := range names {
		switch {
		case len(name) > mostName || strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name):
			return x.bad(http.StatusBadRequest, fmt.Sprintf("the name of a model must have at most %d bytes of UTF-8, and no control characters", mostName))
		case holdsKey(name):
			return x.bad(http.StatusBadRequest, "the name of the model holds a virtual key")
		}
	}
	return nil
}

// ofModel are parameters of a query in which some servers look for the model.
var ofModel = []string{"model", "model_id", "engine", "deployment", "deployment_id"}

// oneModel refuses a call that names two models that differ, in its path, its query or
// its body: it would be charged to one, and might be served as the other. A call that
// names a model in its query alone is refused as well: most servers do not look there, and
// OpenAI would serve a stored prompt with another. Of Azure's deployments the path alone
// counts: its SDKs send a model in the body, and Azure does not look at it.
func (x *exchange) oneModel() *refusal {
	asks := &x.call.Request
	if no := x.checkNames(asks.Model, asks.InBody); no != nil {
		return no
	}
	if asks.InBody != "" && !x.upstream.Same(asks.Model, asks.InBody) {
		return x.twoModels("path", asks.Model, "body", asks.InBody)
	}
	if x.target.RawQuery == "" {
		return nil
	}
	for pair := range strings.SplitSeq(x.target.RawQuery, "&") {
		name, value := parameter(pair)
		if value == "" || !slices.Contains(ofModel, strings.ToLower(name)) {
			continue
		}
		if no := x.checkNames(value); no != nil {
			return no
		}
		if asks.Model == "" {
			return x.bad(http.StatusBadRequest, fmt.Sprintf("the query names the model %.60q, and the body none: the body must name it", value))
		}
		if !x.upstream.Same(asks.Model, value) {
			return x.twoModels("query", value, "path or body", asks.Model)
		}
		if m, _ := x.upstream.Find(value); slices.Contains(m.Aliases, value) {
			return x.bad(http.StatusBadRequest, fmt.Sprintf("the query names the model by %.60q, which is an alias: the body must name it, and the query must not", value))
		}
	}
	return nil
}

func (x *exchange) twoModels(here, one, there, other string) *refusal {
	return x.bad(http.StatusBadRequest, fmt.Sprintf("the %s names the model %.60q, and the %s %.60q: they must be the same", here, one, there, other))
}

// escapes reports whether a call that names no model, such as one of OpenAI's responses
// with a stored prompt, would be charged to no quota although the provider has some:
// there is no pattern "*", and the configuration names no model for such calls.
func (x *exchange) escapes() bool {
	_, known := x.upstream.Find("")
	return !known && x.upstream.Limited()
}
