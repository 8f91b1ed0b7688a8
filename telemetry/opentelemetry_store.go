package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// otelStore is the metrics of a store that can be lost.
type otelStore struct {
	groups lostGroups

	losses, decisions, keys, charged, missed metric.Int64Counter

	decided map[redisstore.StoreLoss]otelDecided
}

// otelDecided is the attributes of what was decided without the store.
type otelDecided struct{ admitted, denied []metric.AddOption }

func newOtelStore(in *instruments) *otelStore {
	s := &otelStore{
		losses:    in.counter("ratelimit.store.losses", "{loss}", "How often the store, or a part of a cluster, was lost."),
		decisions: in.counter("ratelimit.store.decisions", "{decision}", "Decisions that were made without the store, by what it was told to do when lost."),
		keys:      in.counter("ratelimit.store.reconciled.keys", "{key}", "Keys of which the store was charged what had passed without it, once it was back."),
		charged:   in.counter("ratelimit.store.reconciled.units", "{unit}", "What it was charged then, in requests and tokens together."),
		missed:    in.counter("ratelimit.store.missed_events", "{event}", "Events of the store that were dropped because observers took too long: other metrics of the store lack them."),
		decided:   map[redisstore.StoreLoss]otelDecided{},
	}
	in.level("ratelimit.store.lost", "{part}", "Whether the store is lost: 0 or 1. In a cluster, how many of its 64 parts are.", s.groups.count)
	for _, mode := range storeModes {
		s.decided[mode] = otelDecided{
			addOf(keyMode.String(string(mode)), keyOutcome.String(outcomeNames[admitted])),
			addOf(keyMode.String(string(mode)), keyOutcome.String(outcomeNames[denied])),
		}
	}
	return s
}

func (s *otelStore) observe(ctx context.Context, e *redisstore.Event) {
	news := s.groups.note(e)
	count(ctx, s.missed, news.missed)
	count(ctx, s.losses, news.losses)
	count(ctx, s.keys, news.keys)
	count(ctx, s.charged, news.charged)
	if by, ok := s.decided[news.mode]; ok {
		count(ctx, s.decisions, news.admitted, by.admitted...)
		count(ctx, s.decisions, news.denied, by.denied...)
	}
}

// count adds to a counter, which cannot go back.
func count(ctx context.Context, to metric.Int64Counter, n int64, as ...metric.AddOption) {
	if n > 0 {
		to.Add(ctx, n, as...)
	}
}
