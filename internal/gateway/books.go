package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
)

// ledger writes to the books what belongs to no settlement, which is the calls that were denied, and
// trims them. Calls that were settled are in the books already: see [call.Call].
type ledger struct {
	gateway *Gateway
	keeper  books.Keeper // nil: the store keeps no books
	stop    context.CancelFunc
	running sync.WaitGroup

	writing sync.Mutex // held while the tally is written: a reader who has held it since misses no denial

	mu     sync.Mutex
	tally  books.Tally // calls that were denied, and are not in the store yet
	flush  *time.Timer // writes the tally a second after its first entry; nil: nothing is to be written
	closed bool
	hour   int64                    // of lines
	lines  map[books.Owner]struct{} // that the denials of the hour have
}

// maxDenied is how many separate lines the denials of an hour may have: see [books.Place]. Clients
// choose the names of users and models, and a denial costs nothing, so denials must leave room for calls
// that were sent.
const maxDenied = books.MaxLines / 10

const (
	flushEvery  = time.Second
	trimEvery   = time.Hour
	bookTimeout = 10 * time.Second
)

func newLedger(g *Gateway) *ledger {
	l := &ledger{gateway: g}
	l.keeper = hidden.Of[books.Keeper](g.limits.Models.Store())
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.running.Go(func() { l.trim(ctx) })
	return l
}

// keeps reports whether calls are booked under a configuration.
func (l *ledger) keeps(cfg *config.Config) bool { return l.keeper != nil && !cfg.Books.Off }

// denied books a call that was denied. Denials are collected, and written once a second.
func (l *ledger) denied(of *books.Owner) {
	if of == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e := books.Entry{Owner: *of, Amounts: books.Amounts{books.Denied: 1}}.Clean()
	if hour := books.HourOf(time.Now().UnixNano()); l.hour != hour {
		l.hour, l.lines = hour, map[books.Owner]struct{}{}
	}
	e.Owner = books.Place(e.Owner, len(l.lines), maxDenied, func(o books.Owner) bool { _, ok := l.lines[o]; return ok })
	l.lines[e.Owner] = struct{}{}
	l.add(e)
}

// add adds an entry to the tally. The caller has locked the ledger.
func (l *ledger) add(e books.Entry) {
	l.tally.Add(&e, books.MaxLines)
	if l.flush == nil && !l.closed {
		l.running.Add(1)
		l.flush = time.AfterFunc(flushEvery, func() {
			defer l.running.Done()
			l.mu.Lock()
			l.flush = nil
			l.mu.Unlock()
			l.write()
		})
	}
}

// write writes the tally to the store. What could not be written stays.
func (l *ledger) write() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	entries := make([]books.Entry, 0, len(l.tally.Lines()))
	for owner, amounts := range l.tally.Lines() {
		entries = append(entries, books.Entry{Owner: owner, Amounts: *amounts})
	}
	l.tally.Clear()
	l.mu.Unlock()
	if len(entries) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), bookTimeout)
	defer cancel()
	if err := l.keeper.Book(ctx, entries); err != nil {
		l.gateway.log.Warn("denied calls could not be recorded yet", "error", err)
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, e := range entries {
			l.add(e)
		}
	}
}

// trim trims the books at the start and every hour, until ctx ends.
func (l *ledger) trim(ctx context.Context) {
	again := time.NewTicker(trimEvery)
	defer again.Stop()
	for {
		if cfg := l.gateway.Config(); l.keeps(cfg) {
			err := l.keeper.TrimBooks(ctx, books.Retention{Hours: cfg.Books.Hours, Days: cfg.Books.Days})
			if err != nil && ctx.Err() == nil {
				l.gateway.log.Warn("old usage cannot be merged or removed", "error", err)
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// close writes what is left.
func (l *ledger) close() {
	l.mu.Lock()
	l.closed = true
	if l.flush != nil && l.flush.Stop() {
		l.running.Done()
	}
	l.mu.Unlock()
	l.stop()
	l.running.Wait()
	l.write()
}

// ErrNoBooks is the error of a gateway that keeps no books.
var ErrNoBooks = errors.New("ratelimit: usage is not kept: the configuration has usage: off")

// Usage returns what the books say. Calls that this gateway has denied are among them at once, those of others after a
// second.
func (g *Gateway) Usage(ctx context.Context, q books.Query) (*books.Summary, error) {
	if !g.books.keeps(g.Config()) {
		return nil, ErrNoBooks
	}
	g.books.write()
	return g.books.keeper.ReadBooks(ctx, q)
}

// owner returns whose line of the books the request is on, or nil if it is not booked.
func (x *exchange) owner() *books.Owner {
	if !x.g.books.keeps(x.cfg) {
		return nil
	}
	model := x.call.Request.Model
	if model != "" {
		model = x.upstream.name + "/" + model
	}
	return &books.Owner{Project: x.call.Project, Model: model, Key: x.Key}
}

// ChargedTo reports whether calls of a model are charged to a quota, at any deployment. The model is
// named as the books name it: PROVIDER/MODEL.
func (g *Gateway) ChargedTo(booked, quota string) bool {
	provider, model, _ := strings.Cut(booked, "/")
	u := g.setup.Load().upstreams[provider]
	return u != nil && slices.ContainsFunc(u.deployments, func(d *deployment) bool { return u.quotaName(model, d.name) == quota })
}
