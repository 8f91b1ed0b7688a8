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

func (a *Admin) gatewaySettings(r *http.Request) (any, error) {
	return Gateway{a.gateway.Mode(), a.version}, nil
}

// changeGateway changes the mode of all gateways on the store.
func (a *Admin) changeGateway(r *http.Request) (any, error) {
	patch, err := readPatch[control.Gateway](r)
	if err != nil {
		return nil, err
	}
	_, preview, err := perform(a, r, edit[control.Gateway]{
		action: "gateway.change",
		now:    func() control.Gateway { return a.gateway.Controls().State().Gateway() },
		spelled: func(s control.Gateway) control.Gateway {
			return control.Gateway{Mode: cmp.Or(s.Mode, a.gateway.Config().Mode)}
		},
		next: func(before control.Gateway) (after control.Gateway, err error) {
			if after, err = merge(before, patch, "gateway"); err == nil {
				err = invalid(control.CheckMode(after.Mode))
			}
			return after, err
		},
		apply: func(ctx context.Context, _, after control.Gateway) error {
			return a.gateway.Controls().SetGateway(ctx, after)
		},
	})
	if err != nil || preview != nil {
		return preview, err
	}
	return a.gatewaySettings(r)
}
