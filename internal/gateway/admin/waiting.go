package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
)

// WaitingList is the calls that wait for their turn, those first that pass first, as
// far as that is known.
type WaitingList struct {
	Waiting []Waiting `json:"waiting"`
	More    bool      `json:"more,omitempty"` // there are more
	OfFleet
}

// Waiting is a call that waits.
type Waiting struct {
	ID       string    `json:"id"`
	Project  string    `json:"project,omitempty"` // with the user, if the call has one
	Model    string    `json:"model"`             // the name of the quota; empty: the request is no call of a model
	Key      string    `json:"key,omitempty"`
	Run      string    `json:"run,omitempty"`
	Since    time.Time `json:"since"`
	Waited   float64   `json:"waited_seconds"`
	Limit    string    `json:"limit,omitempty"`    // that the call waits for, or the calls before it do
	Scope    string    `json:"scope,omitempty"`    // of the limit, as in AskedLimit; empty if the call waits behind others
	Owner    string    `json:"owner,omitempty"`    // of the limit
	Position int       `json:"position"`           // among the calls that wait for the model at its gateway, from 1
	PassesAt time.Time `json:"passes_at,omitzero"` // when the limit lets the call pass, as far as is known
	Until    time.Time `json:"until,omitzero"`     // when the call gives up
	Tokens   int64     `json:"tokens"`             // that it asks for
	Gateway  string    `json:"gateway,omitempty"`  // where the call waits, if there are several
}

func (a *Admin) waiting(r *http.Request) (any, error) {
	q, err := parameters(r, "project", "model", "key", "limit")
	if err != nil {
		return nil, err
	}
	n, err := pageSize(q)
	if err != nil {
		return nil, err
	}
	all, err := gather[[]Waiting](r.Context(), a, "waiting", q)
	if err != nil {
		return nil, err
	}
	list := WaitingList{Waiting: []Waiting{}, OfFleet: all.OfFleet}
	for i, of := range all.answers {
		for k := range of {
			of[k].Gateway = all.name(i)
		}
		list.Waiting = append(list.Waiting, of...)
	}
	slices.SortStableFunc(list.Waiting, byTurn)
	list.More = len(list.Waiting) > n
	if list.More {
		list.Waiting = list.Waiting[:n]
	}
	return list, nil
}

// ownWaiting returns the calls that wait at one gateway: one more than a page has, at most.
func (a *Admin) ownWaiting(q url.Values) (any, error) {
	f, err := filterOf(q)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	list := []Waiting{}
	for _, w := range a.gateway.Waiting(f) {
		list = append(list, newWaiting(&w, now))
	}
	slices.SortStableFunc(list, byTurn)
	return list[:min(len(list), maxPage+1)], nil
}

// byTurn orders calls that wait: those of one model together, those first that pass first.
func byTurn(a, b Waiting) int {
	return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Position, b.Position), a.Since.Compare(b.Since))
}

func newWaiting(w *gateway.Waiting, now time.Time) Waiting {
	one := Waiting{
		ID: w.ID, Project: w.Project, Model: w.Model, Key: w.Key, Run: w.Run, Since: w.Since, Waited: max(now.Sub(w.Since), 0).Seconds(),
		Limit: w.Limit, Position: w.Position, PassesAt: w.PassesAt, Until: w.Until, Tokens: w.Tokens,
	}
	if w.Known {
		rec := gateway.Record{Project: strings.TrimSuffix(w.Project, "/"+w.User), User: w.User, Quota: w.Model}
		one.Scope, one.Owner = rec.ScopeOf(w.Owner)
	}
	return one
}
