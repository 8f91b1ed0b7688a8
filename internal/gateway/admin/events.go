package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/message"
)

// eventMissed is the kind of the event in place of those that a follower has missed.
const eventMissed = "missed"

// following is the comment from which on no event is missed.
const following = "following"

// eventsEach is how many events of a gateway a client gets in a second, in batches of eventBatch. The events of a busy
// gateway cost it no more than that, and are more than anybody reads.
const (
	eventsEach = 256
	eventBatch = 64
)

// Threshold is a budget that has reached a threshold.
type Threshold struct {
	Time     time.Time `json:"time"`
	Project  string    `json:"project,omitempty"` // whose call has reached it
	Scope    string    `json:"scope"`             // "project", "key" or "run"
	Owner    string    `json:"owner"`
	Limit    string    `json:"limit"`
	Unit     string    `json:"unit"` // "requests", "tokens" or "nanodollars"
	Percent  int       `json:"percent"`
	Used     int64     `json:"used"`
	Max      int64     `json:"max"`
	ResetsAt time.Time `json:"resets_at,omitzero"`
}

// Pause is a model that its provider takes no calls of for a while, or takes again.
type Pause struct {
	Time     time.Time `json:"time"`
	Model    string    `json:"model"` // the name of the quota
	Provider string    `json:"provider,omitempty"`
	Cause    string    `json:"cause"`
	Until    time.Time `json:"until,omitzero"`           // the end of the pause at the latest; of a resume, none
	Paused   float64   `json:"paused_seconds,omitempty"` // of a resume: how long the pause was
}

// ReloadEvent is a configuration that was read anew, or could not be.
type ReloadEvent struct {
	Time   time.Time `json:"time"`
	Result string    `json:"result"` // "done" or "failed"
	Error  string    `json:"error,omitempty"`
}

// StoreEvent says that the store was lost, or is back.
type StoreEvent struct {
	Time        time.Time `json:"time"`
	State       string    `json:"state"` // "lost" or "back"
	OnStoreLoss string    `json:"on_store_loss"`
	Error       string    `json:"error,omitempty"`
}

// Missed says how many events a client was not sent, because there were too many or it reads too slowly.
type Missed struct {
	Count uint64 `json:"count"`
}

// kinds are all kinds of events.
var kinds = []gateway.EventKind{
	gateway.EventDecision, gateway.EventThreshold, gateway.EventPause, gateway.EventResume, gateway.EventChange, gateway.EventReload, gateway.EventStore,
}

func (a *Admin) events(r *http.Request) (any, error) {
	q, err := parameters(r, "kind", "project", "model", "key", "outcome")
	if err != nil {
		return nil, err
	}
	want, err := wantedEvents(q)
	if err != nil {
		return nil, err
	}
	return stream(func(ctx context.Context, to *feed) error {
		follower, others := a.gateway.Follow(want), newOthers(a, q)
		defer follower.Close()
		first := others.ask(ctx)
		if err := to.comment(following); err != nil {
			return err
		}
		var asking sync.WaitGroup
		defer asking.Wait()
		ctx, end := context.WithCancel(ctx)
		defer end()
		asking.Go(func() { others.run(ctx, first, to) })
		return a.follow(ctx, follower, to)
	}), nil
}

// wantedEvents returns which events a client asks for.
func wantedEvents(q url.Values) (want func(e *gateway.Event) bool, err error) {
	of, err := among("kind", q.Get("kind"), kinds)
	if err != nil {
		return nil, err
	}
	f, err := filterOf(q)
	return func(e *gateway.Event) bool { return (of == nil || slices.Contains(of, e.Kind)) && wants(&f, e) }, err
}

// follow sends a follower's events until its context ends.
func (a *Admin) follow(ctx context.Context, follower *gateway.Follower, to *feed) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-follower.Come():
		}
		events := a.readEvents(follower, eventBatch)
		if err := to.sendAll(events); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(len(events)) * time.Second / eventsEach):
		}
	}
}

// textEvent is an event with its JSON.
type textEvent struct {
	Kind string
	Data json.RawMessage
}

// readEvents returns the next events of a follower, and where some are missing, how many.
func (a *Admin) readEvents(f *gateway.Follower, most int) (all []textEvent) {
	for _, e := range f.Read(most) {
		all = append(all, textEvent{string(e.Kind), e.Text(a.eventValue)})
		if e.Missed > 0 {
			all = append(all, textEvent{eventMissed, marshal(Missed{e.Missed})})
		}
	}
	return all
}

// wants reports whether an event is of the project, the model, the key and the outcome of a filter. An
// event that has none of what the filter is about is not.
func wants(f *gateway.Filter, e *gateway.Event) bool {
	rec := gateway.Record{}
	switch e.Kind {
	case gateway.EventDecision:
		return f.Match(e.Record)
	case gateway.EventThreshold:
		rec.Project = e.Limiter.Project
		if kind, id, _ := strings.Cut(e.Limiter.Budget.Owner, " "); kind == "key" {
			rec.Key = id
		}
	case gateway.EventPause, gateway.EventResume:
		rec.Quota = e.Limiter.Model
	case gateway.EventChange:
		entry := e.Change.(Entry)
		rec = gateway.Record{Project: entry.Subject, Quota: entry.Subject, Key: entry.Subject} // no two of them have the same name, or both are meant
	}
	return f.Match(&rec)
}

// eventValue returns what an event says in JSON.
func (a *Admin) eventValue(e *gateway.Event) any {
	at := e.Time.UTC()
	switch e.Kind {
	case gateway.EventDecision:
		d := newDecision(*e.Record)
		if !a.fleet.Alone() {
			d.Gateway = a.fleet.Name()
		}
		return d
	case gateway.EventThreshold:
		return newThreshold(e.Limiter)
	case gateway.EventPause:
		return Pause{Time: at, Model: e.Limiter.Model, Provider: e.Provider, Cause: string(e.Limiter.Cause), Until: at.Add(e.Limiter.RetryAfter)}
	case gateway.EventResume:
		return Pause{Time: at, Model: e.Limiter.Model, Provider: e.Provider, Cause: string(e.Limiter.Cause), Paused: e.Limiter.Waited.Seconds()}
	case gateway.EventChange:
		return e.Change
	case gateway.EventReload:
		if e.Err != nil {
			return ReloadEvent{at, failed, message.Plain(e.Err)}
		}
		return ReloadEvent{Time: at, Result: done}
	}
	lost := StoreEvent{Time: at, State: "back", OnStoreLoss: a.gateway.Config().OnStoreLoss}
	if e.Err != nil {
		lost.State, lost.Error = "lost", message.Plain(e.Err)
	}
	return lost
}

func newThreshold(e *event.Event) Threshold {
	b := e.Budget
	t := Threshold{
		Time: b.At.UTC(), Project: e.Project, Limit: b.Limit, Unit: b.Unit, Percent: b.Percent, Used: b.Used, Max: b.Max, ResetsAt: b.Resets,
	}
	if t.Unit == "dollars" {
		t.Unit = "nanodollars"
	}
	t.Scope, t.Owner = new(gateway.Record).ScopeOf(b.Owner)
	return t
}
