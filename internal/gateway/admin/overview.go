package admin

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/price"
)

// Overview is where models and projects stand now.
type Overview struct {
	Time         time.Time `json:"time"`
	Version      string    `json:"version"`
	Started      time.Time `json:"started"`
	Mode         string    `json:"mode"`                 // "enforce" or "shadow"
	StoreLost    string    `json:"store_lost,omitempty"` // why Redis does not answer, while it is lost
	OnStoreLoss  string    `json:"on_store_loss"`        // what becomes of calls meanwhile: "deny", "allow" or "share"
	Totals       Totals    `json:"totals"`
	Models       []Row     `json:"models"`        // those first whose calls are harmed most, 200 at most
	Projects     []Row     `json:"projects"`      // as many as were asked for, in the same order
	ModelCount   int       `json:"model_count"`   // of all models that are known
	ProjectCount int       `json:"project_count"` // of all projects that are known
	OfFleet
}

// Totals is what became of the calls of all projects in the last minute, and how many wait now.
type Totals struct {
	Passed  int64 `json:"passed"`
	Failed  int64 `json:"failed"` // of those that have passed
	Denied  int64 `json:"denied"`
	Refused int64 `json:"refused"` // the gateway did not accept them
	Waiting int   `json:"waiting"`
}

// Row is where a model or a project stands. The figures of a project include those of the projects
// below it.
type Row struct {
	Name     string    `json:"name"`
	Harm     string    `json:"harm,omitempty"`    // the worst that happens to its calls: "blocked", "denied", "waiting", "near" or ""
	Pressure float64   `json:"pressure"`          // the largest part of a limit of its own that is used, not of a share; 0 if nothing is limited
	Closest  string    `json:"closest,omitempty"` // the name of the dimension in which that is
	Paused   bool      `json:"paused,omitempty"`  // an operator has paused it
	Mode     string    `json:"mode,omitempty"`    // "shadow": its limits deny nothing
	Pause    *RowPause `json:"pause,omitempty"`   // the provider takes no calls of the model
	Weight   int       `json:"weight,omitempty"`  // of a project beside others

	Dimensions []Dimension `json:"dimensions"` // empty if nothing is limited, or while the store does not answer

	Waiting     int     `json:"waiting"`              // calls that wait
	LongestWait float64 `json:"longest_wait_seconds"` // of the calls that wait now

	Minute      Minute            `json:"minute"`
	DeniedBy    []figures.Denials `json:"denied_by"`        // by which limits calls were denied in 15 minutes, the most first
	Spark       []int64           `json:"spark"`            // calls that passed in each of the last 15 minutes, oldest first
	SparkDenied []int64           `json:"spark_denied"`     // calls that were denied
	Estimated   int64             `json:"estimated_tokens"` // reserved for the calls of 15 minutes whose usage was reported
	Actual      int64             `json:"actual_tokens"`    // used by these calls

	Provider []ProviderLimit `json:"provider,omitempty"` // what the provider of the model has last reported
}

// Dimension is one limit of a model or a project, or a project's share of a limit of a model.
type Dimension struct {
	Name      string    `json:"name"`            // the limit, as decisions name it: "max_tpm", "requests_per_minute", "max_tpm_share"
	Setting   string    `json:"setting"`         // the field that sets it: "max_tpm", "requests_per_minute"; empty for a share
	Unit      string    `json:"unit"`            // "requests", "tokens", "dollars", or "calls" at a time
	Model     string    `json:"model,omitempty"` // of a share: the model whose limit is shared
	Limit     float64   `json:"limit"`
	Used      float64   `json:"used"`
	Remaining float64   `json:"remaining"`
	Reserved  float64   `json:"reserved,omitempty"` // the part of Used that calls under way hold, if the limit reserves the most of a call
	ResetsAt  time.Time `json:"resets_at,omitzero"` // when nothing is used any more, if nothing else passes; only if that is longer than a minute
	Lent      float64   `json:"lent,omitempty"`     // what others may use of it; of a model: what is lent in all
	Borrowed  float64   `json:"borrowed,omitempty"` // what was used of others' parts; of a model: what is borrowed in all
}

// RowPause is a pause of a model, which its provider has asked for.
type RowPause struct {
	Reason    string    `json:"reason"`
	Until     time.Time `json:"until"`
	Remaining float64   `json:"remaining_seconds"`
}

// Minute is what became of the calls of the last minute.
type Minute struct {
	Passed  int64        `json:"passed"` // calls that were sent to a provider
	Failed  int64        `json:"failed"` // those of them that the provider has not answered with a success
	Denied  int64        `json:"denied"`
	Refused int64        `json:"refused"` // the gateway did not accept them: not allowed, or the store did not answer
	Tokens  int64        `json:"tokens"`
	Dollars price.Amount `json:"dollars"`
}

// ProviderLimit is what the provider of a model has last reported about one of its limits.
type ProviderLimit struct {
	Dimension string    `json:"dimension"` // "max_rpm", "max_tpm", …
	Limit     int64     `json:"limit"`     // 0 if the provider does not say
	Remaining int64     `json:"remaining"` // -1 if the provider does not say
	UsedHere  int       `json:"used_here"` // what the gateway had counted then
	At        time.Time `json:"at"`
}

// OverviewDelta is how an [Overview] has changed within a second. Rows are whole.
type OverviewDelta struct {
	Time         time.Time `json:"time"`
	Mode         string    `json:"mode"`
	StoreLost    string    `json:"store_lost"` // empty, and not missing, when the store is back
	Totals       Totals    `json:"totals"`
	Models       []Row     `json:"models"`        // those that have changed or are new
	Projects     []Row     `json:"projects"`      // those that have changed or are new
	GoneModels   []string  `json:"gone_models"`   // those that are not in the overview any more
	GoneProjects []string  `json:"gone_projects"` // those that are not in the overview any more
	ModelCount   int       `json:"model_count"`
	ProjectCount int       `json:"project_count"`
	Gateways     []string  `json:"gateways"` // as of an Overview, but never missing
	Silent       []string  `json:"silent"`
}

// ProjectRows is a part of the rows of all projects.
type ProjectRows struct {
	Total    int   `json:"total"` // how many projects match
	Projects []Row `json:"projects"`
}

// rowCounts are the numbers of projects that an overview may have.
var rowCounts = []int{10, 25, 50, 100, 200}

const (
	defaultRows = 50
	maxModels   = 200
)

// rowCount returns how many projects a client asks for.
func rowCount(r *http.Request) (int, error) {
	q, err := parameters(r, "projects")
	if err != nil {
		return 0, err
	}
	if !q.Has("projects") {
		return defaultRows, nil
	}
	n, err := strconv.Atoi(q.Get("projects"))
	if err != nil || !slices.Contains(rowCounts, n) {
		return 0, problemf(http.StatusBadRequest, "projects is %.40q: it must be one of %v", q.Get("projects"), rowCounts)
	}
	return n, nil
}

func (a *Admin) overview(r *http.Request) (any, error) {
	n, err := rowCount(r)
	if err != nil {
		return nil, err
	}
	a.lookout.look(r.Context(), false)
	return a.lookout.overview(n), nil
}

// overview returns what the last look has seen, with n projects.
func (l *lookout) overview(n int) Overview {
	l.mu.Lock()
	defer l.mu.Unlock()
	models, projects := l.models.list, l.projects.list
	o := Overview{
		Time: l.at, Version: l.admin.version, Started: l.admin.started.UTC(), Mode: l.admin.gateway.Mode(), Totals: l.totals,
		OnStoreLoss: l.admin.gateway.Config().OnStoreLoss,
		Models:      rowsOf(models[:min(len(models), maxModels)], l.switchModel), Projects: rowsOf(projects[:min(len(projects), n)], l.switchProject),
		ModelCount: len(models), ProjectCount: len(projects), OfFleet: l.fleet,
	}
	if err := l.admin.gateway.StoreLost(); err != nil {
		o.StoreLost = message.Plain(err)
	}
	return o
}

// switchModel fills in what an operator has switched of a model.
func (l *lookout) switchModel(row *Row) {
	row.Paused = l.admin.gateway.Controls().State().Model(row.Name).Paused
	row.Mode = shownMode(l.admin.gateway.ModelMode(row.Name))
}

// switchProject fills in what an operator has switched of a project.
func (l *lookout) switchProject(row *Row) {
	row.Paused = l.admin.gateway.Controls().State().PausedAt(row.Name) != ""
	row.Mode = shownMode(l.admin.gateway.ProjectMode(row.Name))
}

// shownMode returns the mode that a row has: none for the usual one.
func shownMode(mode string) string {
	if mode == config.ModeEnforce {
		return ""
	}
	return mode
}

// Overview returns where models and projects stand, with so many projects: 10, 25, 50, 100 or 200.
func (c *Client) Overview(ctx context.Context, projects int) (Overview, error) {
	return get[Overview](ctx, c, http.MethodGet, "/v1/overview?projects="+strconv.Itoa(projects), nil)
}
