package project

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/price"
)

// RunLimit is what one run of an agent may use in total: all calls of a project that name the
// same run, by [Call].Run. Zero in any field is unlimited.
type RunLimit struct {
	Dollars price.Amount `json:"dollars,omitempty"`
	Tokens  int          `json:"tokens,omitempty"` // prompt and output together
	Calls   int          `json:"calls,omitempty"`

	// Reserve says whether calls reserve the most that they can use of the dollars and tokens, which is
	// the default, or what is expected of them.
	Reserve Reserve `json:"reserve,omitempty"`

	// OnOverrun says what becomes of a stream that uses more than it has reserved, if Reserve is [ReserveExpected].
	// By default, it goes on, and what it uses is a debt.
	OnOverrun OnOverrun `json:"on_overrun,omitempty"`

	// Expires is how long after its first call a run is forgotten. Zero is 24 hours.
	Expires time.Duration `json:"expires,omitempty"`
}

// The names of the limits of a run.
const (
	RunCalls   = "runs.calls"
	RunTokens  = "runs.tokens"
	RunDollars = "runs.dollars"
)

// DefaultRunExpires is how long a run is kept whose limit does not say.
const DefaultRunExpires = 24 * time.Hour

// maxRunExpires is how long a run may be kept.
const maxRunExpires = 366 * 24 * time.Hour

// Validate returns what is wrong with the limit and what is allowed, or nil.
func (r RunLimit) Validate() error {
	if r.Expires < 0 || r.Expires > maxRunExpires || r.Expires > 0 && r.Expires < time.Minute {
		return fmt.Errorf("ratelimit: Expires is %v: it must be from %v to %v, or 0, which is %v", r.Expires, time.Minute, maxRunExpires, DefaultRunExpires)
	}
	if err := check(runFields, &r, kind.Run); err != nil {
		return err
	}
	if err := r.Reserve.Validate(); err != nil {
		return fmt.Errorf("ratelimit: Reserve: %s", message.Plain(err))
	}
	if err := r.OnOverrun.Validate(); err != nil {
		return fmt.Errorf("ratelimit: OnOverrun: %s", message.Plain(err))
	}
	return nil
}

// runFields finds the limits in a RunLimit.
var runFields = kind.NewFields[RunLimit](kind.Run)

// newRunPlan returns the plan of every run, or nil if nothing limits it.
func newRunPlan(r RunLimit) (*plan, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if r.Expires == 0 {
		r.Expires = DefaultRunExpires
	}
	hard := r.Reserve != ReserveExpected
	p := &plan{mostTokens: hard, mostDollars: hard, cut: r.OnOverrun == OverrunCut}
	for _, k := range kind.Of(kind.Run) {
		if n := runFields.Get(&r, k); n > 0 {
			p.add(k, limit.New(n, r.Expires).Anchored(), false)
		}
	}
	if p.windows == nil {
		return nil, nil
	}
	for i := range p.windows {
		p.windows[i].Run, p.limits[i].Budget = true, true
	}
	return p, p.prepare()
}

// SetRuns sets what each run may use, for this limiter alone: no store keeps it. What runs have
// used stays, unless Expires changes: then all runs begin anew.
func (l *Limiter) SetRuns(each RunLimit) error {
	p, err := newRunPlan(each)
	if err != nil {
		return err
	}
	l.setting.Lock()
	defer l.setting.Unlock()
	l.runPlan.Store(p)
	l.runs.update()
	return nil
}

// CheckRun returns what is wrong with the id of a run and what is allowed, or nil. An id has 1 to 128
// bytes of visible ASCII.
func CheckRun(id string) error { return checkName("run", id) }

// appendRun appends the scope of a run. Runs of the same id are different ones in different
// projects, so that no project can use up a run of another.
func (l *Limiter) appendRun(scopes []*engine.Scope, projectID, run string) ([]*engine.Scope, error) {
	if err := CheckRun(run); err != nil {
		return nil, err
	}
	if err := CheckID(projectID); err != nil {
		return nil, err
	}
	scope, err := l.runs.of(run + " " + projectID)
	if err != nil {
		return nil, err
	}
	return append(scopes, scope), nil
}

// newRunScope returns the scope of a run of a project, whose ids have a space between them.
func (l *Limiter) newRunScope(id string) (*engine.Scope, error) {
	run, projectID, _ := strings.Cut(id, " ")
	return l.engine.NewOwn("run/"+url.PathEscape(projectID)+"/"+url.PathEscape(run)+"/", "run "+run), nil
}

// planOfRun returns the plan of every run.
func (l *Limiter) planOfRun(string) *plan {
	if p := l.runPlan.Load(); p != nil {
		return p
	}
	return l.inner
}
