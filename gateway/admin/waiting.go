package admin

import (
	"net/http"
	"time"
)

// WaitingList is the calls that wait for their turn in this gateway, those first that pass first, as
// far as that is known.
type WaitingList struct {
	Waiting []Waiting `json:"waiting"`
	More    bool      `json:"more,omitempty"` // there are more
}

// Waiting is a call that waits.
type Waiting struct {
	ID       string    `json:"id"`
	Project  string    `json:"project,omitempty"` // with the user, if the call has one
	Model    string    `json:"model"`             // the name of the quota
	Key      string    `json:"key,omitempty"`
	Run      string    `json:"run,omitempty"`
	Since    time.Time `json:"since"`
	Waited   float64   `json:"waited_seconds"`
	Limit    string    `json:"limit,omitempty"`    // that the call waits for; empty if it waits behind others
	Scope    string    `json:"scope,omitempty"`    // of the limit: "model", "project", "user", "key" or "run"
	Owner    string    `json:"owner,omitempty"`    // of the limit
	Position int       `json:"position"`           // among the calls that wait for the model, from 1
	PassesAt time.Time `json:"passes_at,omitzero"` // when the limit lets the call pass, as far as is known
	Until    time.Time `json:"until,omitzero"`     // when the call gives up
	Tokens   int64     `json:"tokens"`             // that it asks for
}

func (a *Admin) waiting(r *http.Request) (any, error) {
	if _, err := parameters(r, "project", "model", "key", "limit"); err != nil {
		return nil, err
	}
	return WaitingList{Waiting: []Waiting{}}, nil
}
