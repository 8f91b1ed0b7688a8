package admin

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// State describes a running gateway.
type State struct {
	Version     string    `json:"version"`
	Started     time.Time `json:"started"`
	Uptime      float64   `json:"uptime_seconds"`
	Ready       bool      `json:"ready"`
	Reason      string    `json:"reason,omitempty"` // why the gateway is not ready
	Active      int       `json:"active"`           // requests in progress
	Waiting     int       `json:"waiting"`          // requests that wait for a model's quota
	Listen      string    `json:"listen"`
	Admin       string    `json:"admin"`
	Store       string    `json:"store"` // "memory", "sqlite" or "redis"
	OnStoreLoss string    `json:"on_store_loss"`
	StoreLost   string    `json:"store_lost,omitempty"` // why Redis does not answer, while it is lost
	Keys        string    `json:"keys"`                 // "off" or "required"
	Mode        string    `json:"mode"`                 // "enforce", or "shadow": no limit denies anything
	Models      []Model   `json:"models"`
	Projects    []Project `json:"projects"`      // those first whose calls are harmed most, 1,000 at most
	More        bool      `json:"more_projects"` // there are more projects
	OfFleet
}

func (a *Admin) state(r *http.Request) (any, error) {
	cfg := a.gateway.Config()
	s := State{
		Version:     a.version,
		Started:     a.started.UTC(),
		Uptime:      time.Since(a.started).Seconds(),
		Ready:       true,
		Active:      a.gateway.Active(),
		Listen:      cfg.Listen,
		Admin:       cfg.Admin.Listen,
		Store:       storeOf(cfg),
		OnStoreLoss: cfg.OnStoreLoss,
		Keys:        cfg.Keys,
		Mode:        a.gateway.Mode(),
		Models:      a.modelsOf(slices.Sorted(maps.Keys(a.gateway.Models().Quotas()))),
	}
	others, of := a.otherFigures(r.Context())
	s.OfFleet = of
	if err := a.gateway.Ready(); err != nil {
		s.Ready, s.Reason = false, message.Plain(err)
	}
	a.lookout.look(r.Context(), true)
	ids, harm := a.lookout.inOrder(a.knownProjects())
	s.More = len(ids) > maxPage
	if s.More {
		ids = ids[:maxPage]
	}
	s.Projects = a.projectsOf(r.Context(), ids)
	waiting := waitingCalls{map[string]int{}, map[string]int{}}
	a.gateway.Models().EachWaiting(func(project, _ string, _ time.Duration) { waiting.add(project, 1) })
	for i := range others {
		s.addWaiting(&others[i], &waiting)
	}
	for i := range s.Projects {
		p := &s.Projects[i]
		p.Harm = harm[p.ID]
		for k := range p.Shares { // counted anew, as the other gateways count: whatever their calls wait for
			p.Shares[k].Waiting = waiting.of(&p.Shares[k])
		}
	}
	for _, m := range s.Models {
		s.Waiting += m.Waiting
	}
	if err := a.gateway.StoreLost(); err != nil { // asked last, because the calls above may have found the loss
		s.StoreLost = message.Plain(err)
	}
	return s, nil
}

// addWaiting adds the requests of another gateway that are in progress, and those that wait: to the models that they
// wait for, and to the calls of their projects.
func (s *State) addWaiting(other *figures.Report, calls *waitingCalls) {
	s.Active += other.Active
	for _, w := range other.Waiting {
		for i := range s.Models {
			if s.Models[i].Name == w.Model {
				s.Models[i].wait(w.Project, w.Count)
			}
		}
		calls.add(w.Project, w.Count)
	}
}

// wait counts calls of a project that wait for the model in another gateway.
func (m *Model) wait(project string, n int) {
	m.Waiting += n
	for i := range m.Shares {
		if m.Shares[i].Project == project {
			m.Shares[i].Waiting += n
		}
	}
}

// waitingCalls is how many calls wait, by project.
type waitingCalls struct{ own, within map[string]int } // its own calls alone, and also those of the projects below it

func (w *waitingCalls) add(project string, n int) {
	w.own[project] += n
	for id := project; id != ""; id = above(id) {
		w.within[id] += n
	}
}

func (w *waitingCalls) of(s *InnerShare) int {
	if s.Own {
		return w.own[s.Project]
	}
	return w.within[s.Project]
}

// storeOf returns the kind of a gateway's store.
func storeOf(cfg *config.Config) string {
	switch {
	case cfg.State == config.Memory:
		return "memory"
	case cfg.Redis():
		return "redis"
	default:
		return "sqlite"
	}
}
