package admin

import (
	_ "embed"
	"encoding/json"
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// Seconds is a duration, as this API writes and reads it.
type Seconds = control.Seconds

// Health is the answer to a probe.
type Health struct {
	Status string `json:"status"` // "ok"
}

// health says that the process runs.
func (a *Admin) health(*http.Request) (any, error) { return Health{"ok"}, nil }

// ready says whether the gateway serves clients. Only callers that may see everything have the store
// asked each time, and get the reason why the gateway does not.
func (a *Admin) ready(r *http.Request) (any, error) {
	if c := callerOf(r); !c.role.Includes(keys.RoleViewer) || c.project != "" {
		if a.gateway.Readiness() != nil {
			return nil, problemf(http.StatusServiceUnavailable, "the gateway is not ready")
		}
		return Health{"ok"}, nil
	}
	if err := a.gateway.Ready(); err != nil {
		return nil, problemf(http.StatusServiceUnavailable, "the gateway is not ready: %s", message.Plain(err))
	}
	return Health{"ok"}, nil
}

//go:embed openapi.json
var openAPI []byte

// document returns the OpenAPI document of this API.
func (a *Admin) document(*http.Request) (any, error) { return json.RawMessage(openAPI), nil }
