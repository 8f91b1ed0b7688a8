package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// otelStore has the metrics of a store that can be lost.
type otelStore struct {
	groups lostGroups

	losses, decisions, keys, charged, missed metric.Int64Counter

	decided map[redisstore.StoreLoss]otelDecided
}

// otelDecided has the attributes of decisions without the store.
type otelDecided struct{ admitted, denied []metric.AddOption }

func newOtelStore(in *instruments) *otelStore {
	s := &otelStore{
		losses:    in.counter("ratelimit.store.losses", "{loss}", "How often the store, or a part of a cluster, was lost."),
		decisions: in.counter("ratelimit.store.decisions", "{decision}", "Decisions without the store, by what the limiter does while it is lost."),
		keys:      in.counter("ratelimit.store.reconciled.keys", "{key}", "Keys that were charged, once the store was back, with what had been admitted without it."),
		charged:   in.counter("ratelimit.store.reconciled.units", "{unit}", "What these keys were charged with, in requests and tokens together."),
		missed:    in.counter("ratelimit.store.missed_events", "{event}", "Events of the store that were dropped because observers took too long: other metrics of the store lack them."),
		decided:   map[redisstore.StoreLoss]otelDecided{},
	}
	in.gauge("ratelimit.store.lost", "{part}", "Whether the store is lost: 0 or 1. In a cluster, how many of its 64 parts are.", s.groups.count)
	for _, mode := range storeModes {
		s.decided[mode] = otelDecided{
			addOf(keyMode.String(string(mode)), keyOutcome.String(outcomeNames[admitted])),
			addOf(keyMode.String(string(mode)), keyOutcome.String(outcomeNames[denied])),
		}
	}
	return s
}

func (s *otelStore) observe(ctx context.Context, e *redisstore.Event) {
	delta := s.groups.record(e)
	count(ctx, s.missed, delta.missed)
	count(ctx, s.losses, delta.losses)
	count(ctx, s.keys, delta.keys)
	count(ctx, s.charged, delta.charged)
	if by, ok := s.decided[delta.mode]; ok {
		count(ctx, s.decisions, delta.admitted, by.admitted...)
		count(ctx, s.decisions, delta.denied, by.denied...)
	}
}

// count adds to a counter, which cannot decrease.
func count(ctx context.Context, to metric.Int64Counter, n int64, as ...metric.AddOption) {
	if n > 0 {
		to.Add(ctx, n, as...)
	}
}
