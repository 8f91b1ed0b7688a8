package admin

import (
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/message"
)

// Reloaded is the result of a reload.
type Reloaded struct {
	Warnings []string `json:"warnings"` // settings that are valid, but hardly meant
}

// config returns the configuration without its secrets.
func (a *Admin) config(*http.Request) (any, error) { return a.gateway.Config(), nil }

func (a *Admin) reloadConfig(r *http.Request) (any, error) {
	if a.reload == nil {
		return nil, problemf(http.StatusConflict, "the gateway was started without a configuration file: there is nothing to read anew")
	}
	err := a.do(r, change{action: "config.reload", apply: func() (any, error) {
		if err := a.reload(); err != nil {
			return nil, problemf(http.StatusUnprocessableEntity, "the gateway goes on with the configuration that it has: %s", message.Plain(err))
		}
		return nil, nil
	}})
	if err != nil {
		return nil, err
	}
	return Reloaded{append([]string{}, a.gateway.Config().Warnings...)}, nil
}
