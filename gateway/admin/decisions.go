package admin

import (
	"net/http"

	"dappco.re/go/core/go-ratelimit/gateway"
)

// DecisionList is a page of the last requests, oldest first.
type DecisionList struct {
	Decisions []Decision `json:"decisions"`
	Next      uint64     `json:"next"` // the parameter after of the next page
}

// Decision is what became of a request.
type Decision struct {
	gateway.Record
	Waited   float64 `json:"waited_seconds"`
	Upstream float64 `json:"upstream_seconds"` // from sending the request to the beginning of the response
	Took     float64 `json:"took_seconds"`
}

func (a *Admin) decisions(r *http.Request) (any, error) {
	q, err := parameters(r, "project", "after", "limit")
	if err != nil {
		return nil, err
	}
	recent := func(seq uint64, n int) []gateway.Record { return a.gateway.Recent(q.Get("project"), seq, n) }
	list, next, err := pageAfter(q, recent, func(rec gateway.Record) uint64 { return rec.Seq })
	if err != nil {
		return nil, err
	}
	decisions := make([]Decision, len(list))
	for i, rec := range list {
		decisions[i] = Decision{rec, rec.Waited.Seconds(), rec.Upstream.Seconds(), rec.Took.Seconds()}
	}
	return DecisionList{decisions, next}, nil
}
