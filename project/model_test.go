package project_test

import (
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/project"
)

// naive is a project as anybody would count it on paper: a list of all that it has
// used, and sums over it.
type naive struct {
	limit project.Limit
	uses  []*used
}

// used is what a call has used at a time, in nanoseconds.
type used struct {
	at               int64
	requests, tokens int64
}

func (u *used) of(tokens bool) int64 {
	if tokens {
		return u.tokens
	}
	return u.requests
}

// said is what a window says, or all of them.
type said struct {
	name         string
	remaining    int64
	retry, reset time.Duration
}

type answer struct {
	allowed bool
	by      string
	retry   time.Duration
	windows []said
}

// windows returns what a limit limits, in order.
func windows(l project.Limit) (all []project.Window) {
	for _, w := range []project.Window{
		{Name: "minute", Count: int64(l.RequestsPerMinute), Period: time.Minute},
		{Name: "hour", Count: int64(l.RequestsPerHour), Period: time.Hour},
		{Name: "day", Count: int64(l.RequestsPerDay), Period: 24 * time.Hour},
		{Name: "tokens-minute", Tokens: true, Count: int64(l.TokensPerMinute), Period: time.Minute},
		{Name: "tokens-hour", Tokens: true, Count: int64(l.TokensPerHour), Period: time.Hour},
		{Name: "tokens-day", Tokens: true, Count: int64(l.TokensPerDay), Period: 24 * time.Hour},
	} {
		if w.Count > 0 {
			all = append(all, w)
		}
	}
	return all
}

// sum returns what counts in a window at a time: what was used less than a period
// ago.
func (n *naive) sum(w project.Window, now int64) (sum int64) {
	for _, u := range n.uses {
		if now-u.at < int64(w.Period) {
			sum += u.of(w.Tokens)
		}
	}
	return sum
}

// retry returns when a window lets so much pass: now, or when one of the uses
// leaves.
func (n *naive) retry(w project.Window, now, much int64) time.Duration {
	switch {
	case much > w.Count:
		return project.Never
	case much == 0 || n.sum(w, now)+much <= w.Count:
		return 0
	}
	first := int64(project.Never)
	for _, u := range n.uses {
		leaves := u.at + int64(w.Period)
		if leaves > now && leaves < first && n.sum(w, leaves)+much <= w.Count {
			first = leaves
		}
	}
	return time.Duration(first - now)
}

// reset returns when a window is empty.
func (n *naive) reset(w project.Window, now int64) (last time.Duration) {
	for _, u := range n.uses {
		if u.of(w.Tokens) > 0 {
			last = max(last, time.Duration(u.at+int64(w.Period)-now))
		}
	}
	return last
}

// take answers a call, and charges it if it passes. One that is not told of tokens
// is not asked whether it may have any. peek charges nothing.
func (n *naive) take(now, requests, tokens int64, told, peek bool) (*used, answer) {
	a := answer{allowed: true}
	for _, w := range windows(n.limit) {
		if w.Tokens && !told {
			continue
		}
		much := requests
		if w.Tokens {
			much = tokens
		}
		retry := n.retry(w, now, much)
		if retry > a.retry {
			a.allowed, a.by, a.retry = false, w.Name, retry
		}
		a.windows = append(a.windows, said{name: w.Name, retry: retry})
	}
	u := &used{now, requests, tokens}
	if a.allowed && !peek {
		n.uses = append(n.uses, u)
	}
	i := 0
	for _, w := range windows(n.limit) {
		if w.Tokens && !told {
			continue
		}
		a.windows[i].remaining = max(w.Count-n.sum(w, now), 0)
		a.windows[i].reset = n.reset(w, now)
		i++
	}
	return u, a
}

// heard returns what a limiter has said, in the same form.
func heard(d project.Decision, of project.Limit) (a answer) {
	a = answer{allowed: d.Allowed, by: d.Exceeded, retry: d.RetryAfter}
	for _, s := range d.Windows() {
		name := s.Window.Name
		for _, w := range windows(of) {
			if w.Name == name && w != *s.Window {
				name = fmt.Sprintf("%+v", *s.Window)
			}
		}
		a.windows = append(a.windows, said{name, s.Remaining, s.RetryAfter, s.ResetAfter})
	}
	return a
}
