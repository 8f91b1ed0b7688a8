package admin

import (
	"cmp"
	"context"
	"net/http"

	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
)

// Gateway is what holds for a gateway as a whole.
type Gateway struct {
	Mode    string `json:"mode"`    // "enforce", or "shadow": no limit denies anything
	Version string `json:"version"` // of the program
}

// GatewaySettings is what a PATCH can change of all gateways on the store.
type GatewaySettings struct {
	Mode string `json:"mode,omitempty"` // empty: as the configuration of each gateway says
}

func (a *Admin) gatewaySettings(r *http.Request) (any, error) {
	return Gateway{a.gateway.Mode(), a.version}, nil
}

// changeGateway changes the mode of all gateways on the store.
func (a *Admin) changeGateway(r *http.Request) (any, error) {
	patch, err := readPatch[GatewaySettings](r)
	if err != nil {
		return nil, err
	}
	_, preview, err := perform(a, r, edit[GatewaySettings]{
		action: "gateway.change",
		now:    func() GatewaySettings { return GatewaySettings(a.gateway.Controls().State().Gateway()) },
		spelled: func(s GatewaySettings) GatewaySettings {
			return GatewaySettings{cmp.Or(s.Mode, a.gateway.Config().Mode)}
		},
		next: func(before GatewaySettings) (after GatewaySettings, err error) {
			if after, err = merge(before, patch, "gateway"); err == nil {
				err = invalid(control.CheckMode(after.Mode))
			}
			return after, err
		},
		apply: func(ctx context.Context, _, after GatewaySettings) error {
			return a.gateway.Controls().SetGateway(ctx, control.Gateway(after))
		},
	})
	if err != nil || preview != nil {
		return preview, err
	}
	return a.gatewaySettings(r)
}
