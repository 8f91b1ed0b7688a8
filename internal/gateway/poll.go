package gateway

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// Bounds of how the gateway fetches responses of calls in the background that no client has fetched.
const (
	pollEvery   = time.Minute      // how often it looks for such calls, and how old each is at least
	maxPollWait = time.Hour        // how long it waits at most before it asks for a response again
	pollTimeout = 30 * time.Second // for one response
	maxPolled   = 1000             // how many responses it asks for in a minute
)

// polled is when a response is asked for again, and how long the wait before that is.
type polled struct {
	next time.Time
	wait time.Duration
}

// pollDue fetches responses every minute, until ctx ends.
func (o *openBatches) pollDue(ctx context.Context) {
	again := time.NewTicker(pollEvery)
	defer again.Stop()
	for {
		select {
		case <-again.C:
			o.poll(ctx, time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// poll fetches the responses of open calls that it has not asked for lately, one after another: each settles its call.
// The store has the list of these calls, so that any gateway that shares it goes on after a restart. A provider that
// does not answer is left alone until the next time.
func (o *openBatches) poll(ctx context.Context, now time.Time) {
	names, err := o.vault.DueDeposits(ctx, now.Add(-pollEvery).UnixNano(), maxOpenBatches)
	if err != nil {
		return // it is asked again in a minute
	}
	waits, failed, asked := map[string]polled{}, map[string]bool{}, 0
	for _, name := range names {
		provider, id, ok := readResponseName(name)
		if !ok {
			continue
		}
		p := o.polls[name]
		if !now.Before(p.next) && !failed[provider] && asked < maxPolled && ctx.Err() == nil {
			asked++
			p.wait = min(max(2*p.wait, pollEvery), maxPollWait)
			p.next = now.Add(p.wait)
			switch o.fetch(ctx, name, provider, id) {
			case fetchEnded:
				p.next = now.Add(maxBatchAge)
			case fetchFailed:
				failed[provider] = true
			}
		}
		waits[name] = p
	}
	o.polls = waits
}

// fetched is what the gateway has learned of a response.
type fetched uint8

const (
	fetchPending fetched = iota // it has not ended
	fetchEnded                  // it has ended, or the gateway cannot fetch it
	fetchFailed                 // the provider has not answered, or not with a response
)

// fetch asks the provider for the response of an open call, with the account of the gateway's that the call was made
// with, and settles the call if the response has ended.
func (o *openBatches) fetch(ctx context.Context, name, provider, id string) fetched {
	open, err := o.of(name)
	if err != nil {
		return fetchFailed
	}
	s := o.g.setup.Load()
	upstream := s.upstreams[provider]
	if open == nil || upstream == nil {
		return fetchEnded
	}
	path, api := open.Where()
	where, err := url.Parse(path)
	if err != nil || path == "" {
		return fetchEnded
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	x := &exchange{
		g: o.g, setup: s, cfg: s.cfg, ctx: ctx, upstream: upstream, target: *where,
		r: &http.Request{Method: http.MethodGet, Header: http.Header{}}, Record: Record{Provider: provider},
	}
	if !x.usesGatewayAccount(upstream.deployments[0]) {
		return fetchEnded
	}
	response, err := x.send(upstream.deployments[0], http.NoBody, 0)
	if err != nil {
		return fetchFailed
	}
	defer response.Body.Close()
	switch status := response.StatusCode; {
	case status >= http.StatusInternalServerError || dialect.MayThrottle(status):
		return fetchFailed
	case status != http.StatusOK:
		return fetchEnded
	}
	body := newResponseReader(x, api, id, response)
	if _, err := io.Copy(io.Discard, io.LimitReader(body, maxPassed)); err != nil {
		return fetchFailed
	}
	if body.ended {
		return fetchEnded
	}
	return fetchPending
}

// readResponseName reads what responseName has written.
func readResponseName(name string) (provider, id string, ok bool) {
	rest, ok := strings.CutPrefix(name, "response/")
	provider, id, cut := strings.Cut(rest, "/")
	provider, err := url.PathUnescape(provider)
	return provider, id, ok && cut && err == nil
}
