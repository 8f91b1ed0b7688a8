package admin

import (
	"context"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/control"
)

// Term is for how long a change at run time holds, and why it was made.
type Term struct {
	Until  string    `json:"until"`            // "reload": until the configuration is next read; "forever"; or "time"
	Ends   time.Time `json:"ends_at,omitzero"` // of "time"
	Reason string    `json:"reason,omitempty"`
}

// termOf returns the term of a project, a model or a key, or nil if nobody has given one.
func (a *Admin) termOf(kind, name string) *Term {
	t := a.gateway.Controls().State().Term(kind, name)
	switch {
	case !t.Until.IsZero():
		return &Term{"time", t.Until.UTC(), t.Reason}
	case t.Limit != nil || t.Quota != nil:
		return &Term{Until: "forever", Reason: t.Reason}
	case t.Reason != "":
		return &Term{Until: "reload", Reason: t.Reason}
	}
	return nil
}

// asked is for how long a client wants a change to hold.
type askedTerm struct {
	reason  string
	until   time.Time // zero: see forever
	forever bool
}

// readTerm reads the parameters until and reason of a change.
func readTerm(q url.Values, now time.Time) (ask askedTerm, err error) {
	ask.reason = q.Get("reason")
	if err := invalid(control.CheckReason(ask.reason)); err != nil {
		return ask, err
	}
	switch text := q.Get("until"); text {
	case "", "reload":
	case "forever":
		ask.forever = true
	default:
		ago, wrong := books.ParseTime(text, now)
		length := now.Sub(ago)
		if wrong != nil || length < time.Second || length > 366*24*time.Hour {
			return ask, problemf(http.StatusBadRequest, "until is %.40q: it must be reload, forever, or a time such as 30m, 2h or 7d, of at most 366 days", text)
		}
		ask.until = now.Add(length).Truncate(time.Second).UTC() // as it is read from the store
	}
	return ask, nil
}

// holds reports whether the change stays when the configuration is read.
func (ask *askedTerm) holds() bool { return ask.forever || !ask.until.IsZero() }

// endReasons forgets why changes were made that a reload has undone.
func (a *Admin) endReasons(changed []gateway.Changed) {
	board := a.gateway.Controls()
	for _, c := range changed {
		kind := control.ProjectTerm
		if c.Kind == gateway.KindModel {
			kind = control.ModelTerm
		}
		if t := board.State().Term(kind, c.Name); t.Reason != "" && t.Limit == nil && t.Quota == nil && t.Until.IsZero() {
			if err := board.SetTerm(context.Background(), kind, c.Name, control.Term{}); err != nil {
				a.log.Warn("the reason of a change that is undone stays", "of", c.Name, "error", err)
			}
		}
	}
}

// expiry ends changes whose time is over. Its zero value is ready to use.
type expiry struct {
	mu    sync.Mutex
	timer *time.Timer
}

// watch sets the timer to the next end of a change.
func (a *Admin) watchTerms(s *control.State) {
	var next time.Time
	s.Terms(func(_ string, t control.Term) {
		if !t.Until.IsZero() && (next.IsZero() || t.Until.Before(next)) {
			next = t.Until
		}
	})
	a.expiry.mu.Lock()
	defer a.expiry.mu.Unlock()
	if a.expiry.timer != nil {
		a.expiry.timer.Stop()
		a.expiry.timer = nil
	}
	if !next.IsZero() {
		a.expiry.timer = time.AfterFunc(max(time.Until(next), 0), a.endTerms)
	}
}

// retryTerms is when changes are ended whose end could not be stored.
const retryTerms = 10 * time.Second

// endTerms ends the changes whose time is over.
func (a *Admin) endTerms() {
	due := map[string]control.Term{}
	a.gateway.Controls().State().Terms(func(key string, t control.Term) {
		if !t.Until.IsZero() && !time.Now().Before(t.Until) {
			due[key] = t
		}
	})
	for key, t := range due {
		if err := a.endTerm(context.Background(), key, t); err != nil && !a.gateway.Closed() {
			a.log.Warn("a change whose time is over could not be ended", "of", key, "error", err)
			a.expiry.mu.Lock()
			a.expiry.timer = time.AfterFunc(retryTerms, a.endTerms)
			a.expiry.mu.Unlock()
		}
	}
}

// endTerm ends one change, unless another gateway has, and records it. The term is removed last: if the store fails
// before, or the gateway dies, the next try finds the term and does it all again.
func (a *Admin) endTerm(ctx context.Context, key string, t control.Term) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	board := a.gateway.Controls()
	if err := board.Load(ctx); err != nil {
		return err
	}
	kind, name, _ := strings.Cut(key, "/")
	if !reflect.DeepEqual(board.State().Term(kind+"/", name), t) {
		return nil // it has ended, or an operator has made another change
	}
	e := Entry{Who: "gateway expiry", Action: "change.end", Subject: name, Reason: t.Reason, Result: done}
	var err error
	if e.Before, e.After, err = a.putBack(ctx, kind+"/", name, t); err != nil {
		return err
	}
	if won, err := board.EndTerm(ctx, key, t); err != nil || !won {
		return err
	}
	if err := a.audit.write(&e); err != nil {
		a.log.Error("audit: the end of a change cannot be recorded", "error", err, "of", key)
	}
	return nil
}

// putBack makes a project, a model or a key what it was before a change whose time is over: what the configuration says,
// if that names it.
func (a *Admin) putBack(ctx context.Context, kind, name string, t control.Term) (before, after any, err error) {
	board := a.gateway.Controls()
	switch kind {
	case control.KeyTerm:
		return KeySettings{Paused: true}, KeySettings{}, board.SetKey(ctx, name, control.Key{})
	case control.ModelTerm:
		if m := board.State().Model(name); t.Resume && m.Paused {
			m.Paused = false
			err = board.SetModel(ctx, name, m)
		}
		if t.Quota == nil || err != nil {
			return QuotaSettings{Model: control.Model{Paused: true}}, QuotaSettings{}, err
		}
		to := a.gateway.ConfiguredQuota(name, t.QuotaBefore)
		return newQuota(*t.Quota), newQuota(to), a.gateway.Models().SetQuota(name, to)
	}
	if p := board.State().Project(name); t.Resume && p.Paused {
		p.Paused = false
		err = board.SetProject(ctx, name, p)
	}
	if t.Limit == nil || err != nil {
		return ProjectSettings{Project: control.Project{Paused: true}}, ProjectSettings{}, err
	}
	return a.putBackLimit(ctx, name, t)
}

// putBackLimit is putBack of the limit of a project. A limit that is not as the change has left it stays: an operator has
// changed it since, or it was put back.
func (a *Admin) putBackLimit(ctx context.Context, name string, t control.Term) (before, after any, err error) {
	limits, to := a.gateway.Projects(), t.LimitBefore
	if configured := a.gateway.Config().Projects[name]; configured != nil {
		to = &configured.Limit
	}
	if err = limits.Load(ctx); err != nil {
		return nil, nil, err
	}
	left := *t.Limit
	if t.LimitEarlier != nil && limits.Limit(name) == *t.LimitEarlier { // the gateway died before it made the change
		left = *t.LimitEarlier
	}
	if to != nil {
		_, err = limits.ReplaceLimit(ctx, name, left, *to)
		return left, *to, err
	}
	if limits.Limit(name) == left {
		err = limits.UnsetLimit(name)
	}
	return left, nil, err
}
