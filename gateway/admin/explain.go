package admin

import (
	"net/http"
	"time"
)

// Explanation is a decision with all limits that were asked, and what would have to change for a
// call that was denied.
type Explanation struct {
	ID       string       `json:"id"`
	Decision Decision     `json:"decision"`
	Limits   []AskedLimit `json:"limits"`   // empty if no limit was asked
	Sentence string       `json:"sentence"` // what became of the call, and why
	Advice   []string     `json:"advice"`   // what would have to change; empty for a call that was admitted
}

// AskedLimit is what one limit has answered to a call.
type AskedLimit struct {
	Scope      string      `json:"scope"`             // "model", "project", "user", "key" or "run"
	Owner      string      `json:"owner"`             // the name of the quota, the path of the project or the user, or the id of the key or the run
	Limit      string      `json:"limit"`             // the name of the limit, such as "tpm" or "tokens-day"
	Setting    string      `json:"setting,omitempty"` // the field that sets it, such as "max_tpm" or "tokens_per_day"
	Unit       string      `json:"unit"`              // "requests", "tokens", "calls" at a time, or "nanodollars"
	Max        int64       `json:"max"`
	Remaining  int64       `json:"remaining_before"` // what was left before the call
	Needed     int64       `json:"needed"`           // what the call needed
	Enough     bool        `json:"enough"`
	Never      bool        `json:"never,omitempty"`               // the call is larger than the limit
	RetryAfter float64     `json:"retry_after_seconds,omitempty"` // until the limit would have let the call pass
	ResetsAt   time.Time   `json:"resets_at,omitzero"`            // when nothing is used of it, if nothing else passes
	Share      *AskedShare `json:"share,omitempty"`               // the project's share of the limit, if that has denied the call
}

// AskedShare is a project's share of a limit of a model that has denied a call.
type AskedShare struct {
	Max      int64 `json:"max"`
	Used     int64 `json:"used"`
	Projects int   `json:"projects"` // how many projects use the model, this one included
}

func (a *Admin) explain(r *http.Request) (any, error) {
	return nil, problemf(http.StatusNotFound, "the request %.80q is not kept any more", r.PathValue("id"))
}
