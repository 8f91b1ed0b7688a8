package gateway

import (
	"net/http"
	"slices"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
)

// checkNames refuses names that no model can have, before they are compared: comparing takes
// time that grows with the square of a name's length.
func (x *exchange) checkNames(names ...string) *refusal {
	for _, name := range names {
		switch {
		case name != "" && !modelname.Valid(name):
			return refusalf(http.StatusBadRequest, "the name of a model must have at most %d bytes of UTF-8, and no control characters", modelname.MaxBytes)
		case holdsKey(name):
			return refusalf(http.StatusBadRequest, "the name of the model holds a virtual key")
		}
	}
	return nil
}

// modelParameters are the parameters of a query in which some servers look for the model.
var modelParameters = []string{"model", "model_id", "engine", "deployment", "deployment_id"}

// checkOneModel refuses a call that names different models in its path, its query or its
// body: it would be charged to one, and might be served by the other. It also refuses a call
// that names its model only in the query: most servers do not look there, and OpenAI would
// serve a stored prompt with another model. At Azure only the path counts: its SDKs send a
// model in the body as well, which Azure ignores.
func (x *exchange) checkOneModel() *refusal {
	request := &x.call.Request
	if refused := x.checkNames(request.Model, request.InBody); refused != nil {
		return refused
	}
	if request.InBody != "" && !x.upstream.same(request.Model, request.InBody) {
		return twoModels("path", request.Model, "body", request.InBody)
	}
	if x.target.RawQuery == "" {
		return nil
	}
	for pair := range strings.SplitSeq(x.target.RawQuery, "&") {
		name, value := parameter(pair)
		if value == "" || !slices.Contains(modelParameters, strings.ToLower(name)) {
			continue
		}
		if refused := x.checkNames(value); refused != nil {
			return refused
		}
		if request.Model == "" {
			return refusalf(http.StatusBadRequest, "the query names the model %.60q, and the body none: the body must name it", value)
		}
		if !x.upstream.same(request.Model, value) {
			return twoModels("query", value, "path or body", request.Model)
		}
		if m, _ := x.upstream.Find(value); slices.Contains(m.Aliases, value) {
			return refusalf(http.StatusBadRequest, "the query names the model by %.60q, which is an alias: the body must name it, and the query must not", value)
		}
	}
	return nil
}

// same reports whether two names stand for one model.
func (u *upstream) same(one, other string) bool {
	return one == other || dialect.PlainName(u.Kind, one) == dialect.PlainName(u.Kind, other)
}

func twoModels(here, one, there, other string) *refusal {
	return refusalf(http.StatusBadRequest, "the %s names the model %.60q, and the %s %.60q: they must be the same", here, one, there, other)
}

// escapesQuotas reports whether a call without a model, such as one of OpenAI's responses with
// a stored prompt, would be charged to no quota although the provider has quotas: none has the
// pattern "*", and the configuration has no model for such calls.
func (x *exchange) escapesQuotas() bool {
	_, known := x.upstream.Find("")
	return !known && slices.ContainsFunc(x.upstream.Models, func(m config.Model) bool { return m.Quota != ratelimit.ModelQuota{} })
}
