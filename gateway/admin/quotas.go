package admin

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/gateway"
)

// Model is a model's quota, and what is used of it.
type Model struct {
	Name    string         `json:"model"`
	Quota   Quota          `json:"quota"`
	Origin  gateway.Origin `json:"origin"`         // where its maxima are from
	Usage   *Usage         `json:"usage"`          // nil while the store cannot be asked
	Waiting int            `json:"waiting"`        // calls that wait for their turn here
	Paused  float64        `json:"paused_seconds"` // how much longer the provider takes no calls
}

// Quota is what a model may use.
type Quota struct {
	ratelimit.ModelQuota
	Margin *Seconds `json:"margin,omitempty"` // in place of the one above; nil: the provider's
}

func newQuota(q ratelimit.ModelQuota) Quota {
	margin := Seconds(q.Margin)
	return Quota{q, &margin}
}

// Usage is what is used of a model now. What its quota does not limit may be 0
// although something was used.
type Usage struct {
	RPM        int       `json:"rpm"`
	TPM        int       `json:"tpm"`
	RPD        int       `json:"rpd"`
	InputTPM   int       `json:"input_tpm"`
	OutputTPM  int       `json:"output_tpm"`
	TPD        int       `json:"tpd"`
	Concurrent int       `json:"concurrent"`
	DayStart   time.Time `json:"day_start,omitzero"`
}

// ModelList is a page of quotas.
type ModelList struct {
	Quotas []Model `json:"quotas"`
	Next   string  `json:"next,omitempty"` // the after of the next page, if there is one
}

func (a *Admin) quotas(r *http.Request) (any, error) {
	names, next, err := pageOf(r, slices.Collect(maps.Keys(a.gateway.Models().Quotas())), func(name string) string { return name })
	return ModelList{a.modelsOf(names), next}, err
}

// modelsOf returns the models of names that have a quota.
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
	m = Model{Name: name, Quota: newQuota(quota), Origin: a.gateway.Origin(name), Waiting: rl.Waiting(name), Paused: rl.Paused(name).Seconds()}
	if d := rl.Decide(name, 0); d.Code != ratelimit.DecisionStoreLost {
		s := &d.Stats
		m.Usage = &Usage{s.RPM, s.TPM, s.RPD, s.InputTPM, s.OutputTPM, s.TPD, s.Concurrent, s.DayStart}
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
	return problemf(http.StatusNotFound, "model %.80q has no quota: GET /v1/quotas says which have", model)
}

// setQuota sets a quota, until the configuration says otherwise when it is read the
// next time.
func (a *Admin) setQuota(r *http.Request) (any, error) {
	name := r.PathValue("model")
	asked, err := decode[Quota](r)
	if err != nil {
		return nil, err
	}
	quota := a.gateway.WithMargin(name, asked.ModelQuota)
	if asked.Margin != nil {
		quota.Margin = time.Duration(*asked.Margin)
	}
	if !fitName(name) {
		return nil, problemf(http.StatusBadRequest, "model %.40q: a name must have 1 to %d bytes of UTF-8, and no control characters", name, maxName)
	}
	if err := invalid(quota.Validate()); err != nil {
		return nil, err
	}
	if a.quotaOf(name) == nil && !a.gateway.Charges(name) {
		return nil, problemf(http.StatusNotFound, "no call is charged to %.80q: it must be one of GET /v1/quotas, or of a model that has none yet PROVIDER/MODEL, with deployments PROVIDER/MODEL@DEPLOYMENT", name)
	}
	err = a.do(r, change{
		action: "quota.set", subject: name,
		before: func() any { return a.quotaOf(name) },
		make:   func() (any, error) { return newQuota(quota), a.gateway.Models().SetQuota(name, quota) },
	})
	if err != nil {
		return nil, err
	}
	m, _ := a.model(name)
	return m, nil
}

const maxName = 512 // as the limiter has it

func fitName(name string) bool {
	return name != "" && len(name) <= maxName && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// quotaOf returns the quota of a model, or nil if it has none.
func (a *Admin) quotaOf(name string) any {
	if quota, ok := a.gateway.Models().Quota(name); ok {
		return newQuota(quota)
	}
	return nil
}
