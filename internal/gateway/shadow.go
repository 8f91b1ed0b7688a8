package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
)

// hasModes reports whether the configuration has something in shadow.
func (s *setup) hasModes() bool {
	projects := append(slices.Collect(maps.Values(s.cfg.Projects)), s.cfg.Defaults)
	inShadow := func(p *config.Project) bool { return p != nil && p.Mode == config.ModeShadow }
	for _, q := range s.declared {
		if q.mode == config.ModeShadow {
			return true
		}
	}
	return s.cfg.Mode == config.ModeShadow || slices.ContainsFunc(projects, inShadow)
}

// Mode returns whether the gateway enforces limits: [config.ModeEnforce] or [config.ModeShadow].
func (g *Gateway) Mode() string { return g.mode(g.setup.Load()) }

// mode returns the mode of the gateway. What an operator has set at run time comes before the file.
func (g *Gateway) mode(s *setup) string {
	if set := g.controls.State().Gateway().Mode; set != "" {
		return set
	}
	return s.cfg.Mode
}

// ModelMode returns whether the limits of a quota are enforced.
func (g *Gateway) ModelMode(quota string) string { return g.modelMode(g.setup.Load(), quota) }

func (g *Gateway) modelMode(s *setup, quota string) string {
	switched := g.controls.State()
	if !s.modes && !switched.HasModes() {
		return config.ModeEnforce
	}
	own := switched.Model(quota).Mode
	if own == "" {
		own = s.declared[quota].mode
	}
	if own == config.ModeShadow || g.mode(s) == config.ModeShadow {
		return config.ModeShadow
	}
	return config.ModeEnforce
}

// ProjectMode returns whether the limits of a project itself are enforced.
func (g *Gateway) ProjectMode(id string) string {
	if g.shadowOf(g.setup.Load(), id) != "" {
		return config.ModeShadow
	}
	return config.ModeEnforce
}

// ConfiguredProjectMode returns the mode that the configuration gives to a project itself.
func (g *Gateway) ConfiguredProjectMode(id string) string {
	if rules := g.setup.Load().tree.At(id); rules != nil && rules.Mode != "" {
		return rules.Mode
	}
	return config.ModeEnforce
}

// ConfiguredModelMode returns the mode that the configuration gives to a quota itself.
func (g *Gateway) ConfiguredModelMode(quota string) string {
	return cmp.Or(g.setup.Load().declared[quota].mode, config.ModeEnforce)
}

// shadowOf returns the highest project on a path that is in shadow, with all below it, or "".
func (g *Gateway) shadowOf(s *setup, path string) string {
	switched := g.controls.State()
	if !s.modes && !switched.HasModes() {
		return ""
	}
	if g.mode(s) == config.ModeShadow {
		first, _, _ := strings.Cut(path, "/")
		return first
	}
	for id := range control.Levels(path) {
		mode := switched.Project(id).Mode
		if rules := s.tree.At(id); mode == "" && rules != nil {
			mode = rules.Mode
		}
		if mode == config.ModeShadow {
			return id
		}
	}
	return ""
}

// fieldShadow is the header that says which limit would have denied a call, if it were enforced.
const fieldShadow = "X-Ratelimit-Shadow"

// overlook records which limit in shadow would have denied the call.
func (x *exchange) overlook() {
	if d := &x.decision.Shadow; x.decision.Allowed && d.Limit != "" {
		x.ShadowLimit, x.ShadowOwner = d.Limit, d.Owner
		x.w.Header()[fieldShadow] = []string{fmt.Sprintf("would deny; limit=%q; owner=%q; used=%d; max=%d", d.Limit, d.Owner, d.Used, d.Max)}
	}
}

// shadowLost is the limit in the record of a call that a gateway in shadow has let pass, although its
// limits could not be asked.
const shadowLost = "store-lost"

// passesUncounted reports whether a call passes although the store did not answer, because all limits are
// in shadow.
func (x *exchange) passesUncounted(err error) bool {
	lost := x.decision.Code == ratelimit.DecisionStoreLost || err != nil
	if !lost || x.ctx.Err() != nil || x.g.serving.Err() != nil || x.g.mode(x.setup) != config.ModeShadow {
		return false
	}
	x.ShadowLimit = shadowLost
	x.w.Header()[fieldShadow] = []string{"would deny; limit=\"" + shadowLost + "\""}
	return true
}
