package admin

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
	"dappco.re/go/core/go-ratelimit/internal/modelname"
)

// Model is a model's quota, and what is used of it.
type Model struct {
	Name    string         `json:"model"`
	Quota   Quota          `json:"quota"`
	Origin  gateway.Origin `json:"origin"`         // where the quota's maxima are from
	Usage   *Usage         `json:"usage"`          // nil while the store does not answer
	Waiting int            `json:"waiting"`        // calls that wait in this gateway
	Paused  float64        `json:"paused_seconds"` // how much longer the provider takes no calls
	Stopped bool           `json:"paused"`         // an operator has paused the model
	Mode    string         `json:"mode"`           // "enforce", or "shadow": its quota denies nothing

	Shares []event.ProjectShare `json:"shares,omitempty"`      // of the projects that use the model, 1,000 at most
	More   bool                 `json:"more_shares,omitempty"` // there are more projects

	Lifted []string `json:"lifted,omitempty"` // in the answer to a change: the limits that it has removed
	Term   *Term    `json:"term,omitempty"`   // of the last change, if it has one
}

// Quota is what a model may use.
type Quota struct {
	ratelimit.ModelQuota
	Margin *Seconds `json:"margin,omitempty"` // in seconds, in place of ModelQuota's; nil: the provider's margin
}

func newQuota(q ratelimit.ModelQuota) Quota {
	margin := Seconds(q.Margin)
	return Quota{q, &margin}
}

// Usage is what is used of a model now. A count that the quota does not limit may be 0
// although calls were made.
type Usage struct {
	Used     map[string]int `json:"used"` // by the names of limits
	DayStart time.Time      `json:"day_start,omitzero"`
}

// NewUsage returns what is used of a model.
func NewUsage(s *ratelimit.ModelStats) *Usage {
	u := &Usage{map[string]int{}, s.DayStart}
	for l := range s.Limits() {
		u.Used[l.Name] = l.Used
	}
	return u
}

// ModelList is a page of quotas.
type ModelList struct {
	Quotas []Model `json:"quotas"`
	Next   string  `json:"next,omitempty"` // the parameter after of the next page; empty: this is the last
}

func (a *Admin) quotas(r *http.Request) (any, error) {
	names, next, err := pageOf(r, slices.Collect(maps.Keys(a.gateway.Models().Quotas())), func(name string) string { return name })
	return ModelList{a.modelsOf(names), next}, err
}

// modelsOf returns the models with these names, as far as they have a quota.
func (a *Admin) modelsOf(names []string) []Model {
	models := []Model{}
	for _, name := range names {
		if m, ok := a.model(name); ok {
			models = append(models, m)
		}
	}
	return models
}

func (a *Admin) model(name string) (m Model, ok bool) {
	rl := a.gateway.Models()
	quota, ok := rl.Quota(name)
	if !ok {
		return Model{}, false
	}
	m = Model{Name: name, Quota: newQuota(quota), Origin: a.gateway.Origin(name), Waiting: rl.Waiting(name), Paused: rl.Paused(name).Seconds(), Stopped: a.gateway.Controls().State().Model(name).Paused, Mode: a.gateway.ModelMode(name), Term: a.termOf(control.ModelTerm, name)}
	m.Shares = rl.Shares(name)
	if len(m.Shares) > maxPage {
		m.Shares, m.More = m.Shares[:maxPage], true
	}
	if d := rl.Decide(name, 0); d.Code != ratelimit.DecisionStoreLost && !d.Stats.Local {
		m.Usage = NewUsage(&d.Stats)
	}
	return m, true
}

func (a *Admin) quota(r *http.Request) (any, error) {
	name := r.PathValue("model")
	m, ok := a.model(name)
	if !ok {
		return nil, noQuota(name)
	}
	return m, nil
}

func noQuota(model string) *Problem {
	return problemf(http.StatusNotFound, "model %.80q has no quota: GET /v1/quotas lists those that have one", model)
}

// QuotaSettings is what a PATCH can change of a model: its quota, and what is switched at run time.
type QuotaSettings struct {
	Quota
	control.Model
}

// setQuota replaces a quota. If the configuration names the model, the quota holds until the next
// reload. A pause stays.
func (a *Admin) setQuota(r *http.Request) (any, error) {
	name := r.PathValue("model")
	ask, err := decode[Quota](r)
	if err != nil {
		return nil, err
	}
	return editQuota(a, r, name, edit[Quota]{
		action: "quota.set", subject: name,
		now:   func() Quota { return a.quotaNow(name) },
		next:  func(Quota) (Quota, error) { return a.checkedQuota(name, ask) },
		apply: func(ctx context.Context, before, after Quota) error { return a.replaceQuota(ctx, name, before, after) },
		kind:  control.ModelTerm,
		held:  func(before, after Quota, t *control.Term) { a.holdQuota(name, after, t) },
	})
}

// changeQuota changes some fields of what a model has.
func (a *Admin) changeQuota(r *http.Request) (any, error) {
	name := r.PathValue("model")
	patch, err := readPatch[QuotaSettings](r)
	if err != nil {
		return nil, err
	}
	return editQuota(a, r, name, edit[QuotaSettings]{
		action: "quota.change", subject: name,
		now: func() QuotaSettings {
			return QuotaSettings{a.quotaNow(name), a.gateway.Controls().State().Model(name)}
		},
		spelled: func(s QuotaSettings) QuotaSettings {
			s.Mode = cmp.Or(s.Mode, a.gateway.ConfiguredModelMode(name))
			return s
		},
		next: func(before QuotaSettings) (after QuotaSettings, err error) {
			if after, err = merge(before, patch, "model"); err == nil {
				after.Quota, err = a.checkedQuota(name, after.Quota)
			}
			if err == nil {
				err = invalid(control.CheckMode(after.Mode))
			}
			return after, err
		},
		apply: func(ctx context.Context, before, after QuotaSettings) error {
			if before.Model != after.Model {
				if err := unchanged(a.gateway.Controls().ReplaceModel(ctx, name, before.Model, after.Model)); err != nil {
					return err
				}
			}
			if a.quotaOf(name) != nil && before.plain() == after.plain() {
				return nil
			}
			return a.replaceQuota(ctx, name, before.Quota, after.Quota)
		},
		kind: control.ModelTerm,
		held: func(before, after QuotaSettings, t *control.Term) {
			t.Resume = after.Paused && !before.Paused
			if before.plain() != after.plain() {
				a.holdQuota(name, after.Quota, t)
			}
		},
	})
}

// holdQuota fills in a term with the quota that holds meanwhile, and the one that the model has now.
func (a *Admin) holdQuota(name string, after Quota, t *control.Term) {
	held := after.plain()
	t.Quota = &held
	if earlier := a.gateway.Controls().State().Term(control.ModelTerm, name); earlier.Quota != nil {
		t.QuotaBefore = earlier.QuotaBefore
	} else if before, ok := a.gateway.Models().Quota(name); ok {
		t.QuotaBefore = &before
	}
}

// replaceQuota sets the quota of a model in place of one that quotaNow has returned.
func (a *Admin) replaceQuota(ctx context.Context, name string, before, after Quota) error {
	was := before.plain()
	if a.quotaOf(name) == nil {
		was = ratelimit.ModelQuota{}
	}
	return unchanged(a.gateway.Models().ReplaceQuota(ctx, name, was, after.plain()))
}

// editQuota makes an edit of a quota, and returns the model afterwards.
func editQuota[T any](a *Admin, r *http.Request, name string, e edit[T]) (any, error) {
	lifted, preview, err := perform(a, r, e)
	if err != nil || preview != nil {
		return preview, err
	}
	m, ok := a.model(name)
	if !ok { // a change that changes nothing
		return nil, noQuota(name)
	}
	m.Lifted = lifted
	return m, nil
}

// checkedQuota returns a quota for a model with its margin, or what is wrong with it.
func (a *Admin) checkedQuota(name string, ask Quota) (Quota, error) {
	quota := a.gateway.WithMargin(name, ask.ModelQuota)
	if ask.Margin != nil {
		quota.Margin = time.Duration(*ask.Margin)
	}
	if err := invalid(cmp.Or(modelname.Check(name), quota.Validate())); err != nil {
		return ask, err
	}
	if a.quotaOf(name) == nil && !a.gateway.Charges(name) {
		return ask, problemf(http.StatusNotFound, "no call is charged to %.80q: it must be in the list of GET /v1/quotas or, for a model without a quota, PROVIDER/MODEL, or PROVIDER/MODEL@DEPLOYMENT if it has deployments", name)
	}
	return newQuota(quota), nil
}

// plain returns the quota as the limiter has it.
func (q Quota) plain() ratelimit.ModelQuota {
	plain := q.ModelQuota
	plain.Margin = 0
	if q.Margin != nil {
		plain.Margin = time.Duration(*q.Margin)
	}
	return plain
}

// quotaNow returns the quota of a model, or one that limits nothing.
func (a *Admin) quotaNow(name string) Quota {
	quota, ok := a.gateway.Models().Quota(name)
	if !ok {
		quota = a.gateway.WithMargin(name, quota)
	}
	return newQuota(quota)
}

// quotaOf returns the quota of a model, or nil if it has none.
func (a *Admin) quotaOf(name string) any {
	if quota, ok := a.gateway.Models().Quota(name); ok {
		return newQuota(quota)
	}
	return nil
}
