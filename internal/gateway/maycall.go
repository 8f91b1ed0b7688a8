package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// checkModel refuses a call of a model that the project or the key may not call.
func (x *exchange) checkModel() *refusal {
	request := &x.call.Request
	if x.Model == "" {
		if owner, models := x.forbids(request.Model); models != nil {
			return refusalf(http.StatusForbidden, "%s may only call %s: the request names no model", owner, strings.Join(models, ", "))
		}
	}
	if request.Model == "" && x.escapesQuotas() {
		return refusalf(http.StatusBadRequest, `the call names no model, and the provider %q has quotas: name a model, or have the configuration set unnamed_model, or a quota for "*"`, x.Provider)
	}
	if owner, models := x.forbids(x.Model, request.Model); models != nil {
		return refusalf(http.StatusForbidden, "%s may not call %q, but only %s", owner, x.Model, strings.Join(models, ", "))
	}
	if !request.Fallbacks {
		return nil
	}
	if owner, models := x.forbids(); models != nil {
		return refusalf(http.StatusForbidden, "%s may only call %s: it may not name other models to fall back to", owner, strings.Join(models, ", "))
	}
	return nil
}

// forbids returns whose models, and which, have none of these names among them: those of the
// project, of one above it, or of the key. If all of them may call a model by one of the names,
// it returns nil. Without names, it returns the first that are restricted to some models.
func (x *exchange) forbids(names ...string) (owner string, models []string) {
	for _, level := range x.levels {
		if !x.among(level.Models, names) {
			return fmt.Sprintf("project %q", x.path), level.Models
		}
	}
	if !x.among(x.keyModels, names) {
		if x.Key == "" {
			return "the token", x.keyModels
		}
		return fmt.Sprintf("key %q", x.Key), x.keyModels
	}
	return "", nil
}

// among reports whether a model with any of these names is among the models, which are all if there
// are none.
func (x *exchange) among(models, names []string) bool {
	return len(models) == 0 || slices.ContainsFunc(models, func(pattern string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return x.upstream.Means(pattern, name) })
	})
}
