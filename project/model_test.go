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
	places           int64 // among the calls that are under way
}

func (u *used) of(w project.Window) int64 {
	switch {
	case w.Tokens:
		return u.tokens
	case w.Name == concurrent:
		return u.places
	}
	return u.requests
}

const concurrent = "concurrent-project"

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
	running int64
}

// windows returns what a limit limits, in order: last the calls at a time, of which
// each has its place for ten minutes at most.
func windows(l project.Limit) (all []project.Window) {
	for _, w := range []project.Window{
		{Name: "minute", Count: int64(l.RequestsPerMinute), Period: time.Minute},
		{Name: "hour", Count: int64(l.RequestsPerHour), Period: time.Hour},
		{Name: "day", Count: int64(l.RequestsPerDay), Period: 24 * time.Hour},
		{Name: "tokens-minute", Tokens: true, Count: int64(l.TokensPerMinute), Period: time.Minute},
		{Name: "tokens-hour", Tokens: true, Count: int64(l.TokensPerHour), Period: time.Hour},
		{Name: "tokens-day", Tokens: true, Count: int64(l.TokensPerDay), Period: 24 * time.Hour},
		{Name: "tokens-month", Tokens: true, Count: int64(l.TokensPerMonth), Period: 30 * 24 * time.Hour},
		{Name: concurrent, Count: int64(l.MaxConcurrent), Period: 10 * time.Minute},
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
			sum += u.of(w)
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
		if u.of(w) > 0 {
			last = max(last, time.Duration(u.at+int64(w.Period)-now))
		}
	}
	return last
}

// take answers a call, and charges it if it passes. One that asks for no tokens, or
// for no place, is not asked whether it may have any. peek charges nothing.
func (n *naive) take(asks used, peek bool) (*used, answer) {
	a := answer{allowed: true}
	now := asks.at
	var asked []project.Window
	for _, w := range windows(n.limit) {
		if asks.of(w) > 0 {
			asked = append(asked, w)
		}
	}
	for _, w := range asked {
		retry := n.retry(w, now, asks.of(w))
		if w.Name == concurrent {
			retry = min(retry, time.Second) // nobody knows
		} else {
			a.windows = append(a.windows, said{name: w.Name, retry: retry})
		}
		if retry > a.retry {
			a.allowed, a.by, a.retry = false, w.Name, retry
		}
	}
	if n.limit.MaxConcurrent == 0 {
		asks.places = 0 // they are not counted
	}
	if a.allowed && !peek {
		n.uses = append(n.uses, &asks)
	}
	for i, w := range asked {
		if w.Name == concurrent {
			a.running = min(n.sum(w, now), w.Count)
			continue
		}
		a.windows[i].remaining = max(w.Count-n.sum(w, now), 0)
		a.windows[i].reset = n.reset(w, now)
	}
	return &asks, a
}

// heard returns what a limiter has said, in the same form.
func heard(d project.Decision, of project.Limit) (a answer) {
	a = answer{allowed: d.Allowed, by: d.Exceeded, retry: d.RetryAfter, running: d.Concurrent}
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
