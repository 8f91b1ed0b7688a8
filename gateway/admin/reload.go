package admin

import (
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/message"
)

// Reloaded is what reading the configuration anew has brought.
type Reloaded struct {
	Warnings []string `json:"warnings"` // of the configuration: what is valid, but hardly meant
}

// config is the configuration, without its secrets.
func (a *Admin) config(*http.Request) (any, error) { return a.gateway.Config().Redacted(), nil }

func (a *Admin) readAnew(r *http.Request) (any, error) {
	if a.reload == nil {
		return nil, problemf(http.StatusConflict, "the gateway was started without a configuration file: there is nothing to read anew")
	}
	err := a.do(r, change{action: "config.reload", make: func() (any, error) {
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
