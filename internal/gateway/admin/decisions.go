package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
)

// DecisionList is a page of the last requests, oldest first.
type DecisionList struct {
	Decisions []Decision `json:"decisions"`
	Next      uint64     `json:"next"` // the parameter after of the next page
	OfFleet
}

// Decision is what became of a request.
type Decision struct {
	gateway.Record
	Waited   float64 `json:"waited_seconds"`
	Upstream float64 `json:"upstream_seconds"` // from sending the request to the beginning of the response
	Took     float64 `json:"took_seconds"`
	Gateway  string  `json:"gateway,omitempty"` // that has decided, where there are several
}

func newDecision(rec gateway.Record) Decision {
	return Decision{Record: rec, Waited: rec.Waited.Seconds(), Upstream: rec.Upstream.Seconds(), Took: rec.Took.Seconds()}
}

func (a *Admin) decisions(r *http.Request) (any, error) {
	q, err := parameters(r, "project", "model", "key", "outcome", "since", "after", "limit")
	if err != nil {
		return nil, err
	}
	all, err := gather[[]Decision](r.Context(), a, "decisions", q)
	if err != nil {
		return nil, err
	}
	list := DecisionList{Decisions: []Decision{}, OfFleet: all.OfFleet}
	for i, of := range all.answers {
		for k := range of {
			of[k].Gateway = all.name(i)
		}
		list.Decisions = append(list.Decisions, of...)
	}
	seq := func(d Decision) uint64 { return d.Seq }
	slices.SortStableFunc(list.Decisions, func(x, y Decision) int { return cmp.Compare(x.Seq, y.Seq) })
	list.Decisions, list.Next, err = pageAfter(q, func(after uint64, n int) []Decision { return firstAfter(list.Decisions, seq, after, n) }, seq)
	return list, err
}

// ownDecisions returns the page of one gateway.
func (a *Admin) ownDecisions(q url.Values) (any, error) {
	f, err := filterOf(q)
	if err != nil {
		return nil, err
	}
	recent := func(seq uint64, n int) []gateway.Record { return a.gateway.RecentBy(f, seq, n) }
	list, _, err := pageAfter(q, recent, func(rec gateway.Record) uint64 { return rec.Seq })
	if err != nil {
		return nil, err
	}
	decisions := make([]Decision, len(list))
	for i, rec := range list {
		decisions[i] = newDecision(rec)
	}
	return decisions, nil
}

// outcomes are all outcomes of requests.
var outcomes = []gateway.Outcome{gateway.Passed, gateway.Denied, gateway.Refused, gateway.Throttled, gateway.Failed, gateway.Cut, gateway.Left, gateway.Lost}

// filterOf returns which requests a client asks for.
func filterOf(q url.Values) (f gateway.Filter, err error) {
	f = gateway.Filter{Project: q.Get("project"), Model: q.Get("model"), Key: q.Get("key")}
	if f.Outcomes, err = among("outcome", q.Get("outcome"), outcomes); err != nil {
		return f, err
	}
	if q.Get("since") != "" {
		if f.Since, err = books.ParseTime(q.Get("since"), time.Now()); err != nil {
			return f, invalid(err)
		}
	}
	return f, nil
}

// among returns the words of a parameter, which have commas between them: nil if it is empty. It refuses
// all but the known ones, and those that are there twice: each event is compared with all.
func among[T ~string](name, value string, known []T) (list []T, err error) {
	if value == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(value, ",") {
		if !slices.Contains(known, T(word)) {
			return nil, problemf(http.StatusBadRequest, "%s is %.40q: it must be some of %s, with commas between them", name, word, joined(known))
		}
		if slices.Contains(list, T(word)) {
			return nil, problemf(http.StatusBadRequest, "%s has %s twice: once is enough", name, word)
		}
		list = append(list, T(word))
	}
	return list, nil
}

// joined returns words with commas between them.
func joined[T ~string](words []T) string {
	var all []string
	for _, word := range words {
		all = append(all, string(word))
	}
	return strings.Join(all, ", ")
}
