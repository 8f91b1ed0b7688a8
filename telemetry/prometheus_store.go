package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// promStore has the metrics of a store that can be lost.
type promStore struct {
	groups lostGroups
	lost   prometheus.GaugeFunc

	losses, keys, charged, missed prometheus.Counter

	decisions *prometheus.CounterVec
	decided   map[redisstore.StoreLoss]decided
}

// decided counts decisions without the store.
type decided struct{ admitted, denied prometheus.Counter }

func newPromStore() *promStore {
	s := &promStore{
		losses:    counter("store_losses_total", "How often the store, or a part of a cluster, was lost."),
		keys:      counter("store_reconciled_keys_total", "Keys that were charged, once the store was back, with what had been admitted without it."),
		charged:   counter("store_reconciled_units_total", "What these keys were charged with, in requests and tokens together."),
		missed:    counter("store_missed_events_total", "Events of the store that were dropped because observers took too long: other metrics of the store lack them."),
		decisions: counters("store_lost_decisions_total", "Decisions without the store, by what the limiter does while it is lost.", "mode", "outcome"),
		decided:   map[redisstore.StoreLoss]decided{},
	}
	s.lost = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "store_lost",
		Help: "Whether the store is lost: 0 or 1. In a cluster, how many of its 64 parts are.",
	}, func() float64 { return float64(s.groups.count()) })
	for _, mode := range storeModes {
		s.decided[mode] = decided{
			s.decisions.WithLabelValues(string(mode), outcomeNames[admitted]),
			s.decisions.WithLabelValues(string(mode), outcomeNames[denied]),
		}
	}
	return s
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

func (s *promStore) parts() []prometheus.Collector {
	return []prometheus.Collector{s.lost, s.losses, s.decisions, s.keys, s.charged, s.missed}
}

func (s *promStore) observe(e *redisstore.Event) {
	delta := s.groups.record(e)
	add(s.missed, delta.missed)
	add(s.losses, delta.losses)
	add(s.keys, delta.keys)
	add(s.charged, delta.charged)
	if by, ok := s.decided[delta.mode]; ok {
		add(by.admitted, delta.admitted)
		add(by.denied, delta.denied)
	}
}
