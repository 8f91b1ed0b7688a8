package redisstore

import (
	"context"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// silentWire fails at once, like a link that knows that Redis is lost.
type silentWire struct{ *fakeConn }

func (silentWire) Take(context.Context, []store.Charge) (store.Receipt, []limit.Decision, error) {
	return nil, nil, ErrLost
}

func (silentWire) Peek(context.Context, []store.Charge) ([]limit.Decision, error) {
	return nil, ErrLost
}

// BenchmarkLost compares a decision while Redis is lost with one of the store in memory.
func BenchmarkLost(b *testing.B) {
	benchTakes(b, "memory", store.NewMemory())
	benchTakes(b, "share", newFallback(silentWire{}, Share, nodesAt(share{1, 3}), nil))
	benchTakes(b, "allow", newFallback(silentWire{}, Allow, nil, nil))
}

// benchTakes takes of two keys, one after another and in parallel.
func benchTakes(b *testing.B, name string, s store.Store) {
	charges := []store.Charge{
		{Key: "gpt-4o/requests", Limits: []limit.Limit{limit.PerMinute(1 << 40), limit.PerDay(1 << 40).Using(limit.FixedWindow)}, N: 1},
		{Key: "gpt-4o/tokens", Limits: []limit.Limit{limit.PerMinute(1 << 40)}, N: 1000},
	}
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		var took []time.Duration
		for b.Loop() {
			began := time.Now()
			if _, _, err := s.Take(b.Context(), charges); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
	})
	b.Run(name+"/parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, _, err := s.Take(b.Context(), charges); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// BenchmarkRecordAnswer measures the cost of recording Redis's answers.
func BenchmarkRecordAnswer(b *testing.B) {
	k := newObservations()
	limits := []limit.Limit{limit.PerMinute(1 << 40), limit.PerDay(1 << 40).Using(limit.FixedWindow)}
	charges := []store.Charge{{Key: "gpt-4o/requests", Limits: limits, N: 1}}
	var a limit.Account
	impose(&a, limits, 1, 1)
	decisions := decisionsOf(&a, 1, limits)
	b.ReportAllocs()
	for b.Loop() {
		k.record(charges, k.beginTake(charges, true), decisions, 1)
	}
}
