package admin

import (
	"context"
	"net/http"
	"time"
)

// The kinds of events that GET /v1/events sends, each with its value as JSON.
const (
	eventDecision  = "decision"  // a Decision
	eventThreshold = "threshold" // a Threshold
	eventPause     = "pause"     // a Pause
	eventResume    = "resume"    // a Pause
	eventChange    = "change"    // an Entry that is done or has failed
	eventReload    = "reload"    // a ReloadEvent
	eventStore     = "store"     // a StoreEvent
	eventMissed    = "missed"    // a Missed
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

// Missed says how many events a follower was not sent, because it reads too slowly.
type Missed struct {
	Count uint64 `json:"count"`
}

func (a *Admin) events(r *http.Request) (any, error) {
	if _, err := parameters(r, "kind", "project", "model", "key", "outcome"); err != nil {
		return nil, err
	}
	return stream(func(ctx context.Context, f *feed) error {
		<-ctx.Done()
		return nil
	}), nil
}
