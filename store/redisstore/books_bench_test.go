package redisstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// BenchmarkSettle measures the CPU of this process for calls by 64 goroutines that are settled, with an
// entry in the books of one of 500 owners and without.
func BenchmarkSettle(b *testing.B) {
	server := redistest.New(b)
	limits := []limit.Limit{limit.PerMinute(1 << 40).Anchored(), limit.PerDay(1 << 40).Anchored()}
	entries := make([]books.Entry, 500)
	for i := range entries {
		entries[i].Owner = books.Owner{Project: fmt.Sprint("acme/team-", i%100), Model: fmt.Sprint("openai/gpt-6-", i/100), Key: fmt.Sprint("key", i%100)}
		entries[i].Amounts = books.Amounts{books.Requests: 1, books.Input: 900, books.Output: 300}
	}
	for _, booked := range []bool{false, true} {
		b.Run(fmt.Sprint("booked=", booked), func(b *testing.B) {
			s, err := New(Config{URL: server.URL(), Timeout: 5 * time.Second, Namespace: fmt.Sprint(booked, b.N)})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			before := cpuTime()
			var calls atomic.Int64
			var all sync.WaitGroup
			for range 64 {
				all.Go(func() {
					for i := calls.Add(1); i <= int64(b.N); i = calls.Add(1) {
						r, _, err := s.Take(b.Context(), []store.Charge{{Key: "model/requests", Limits: limits, N: 1}, {Key: "model/tokens", Limits: limits, N: 1200}})
						if err == nil && booked {
							err = s.SettleBooked(b.Context(), r, []int64{1, 900}, &entries[i%500])
						} else if err == nil {
							err = s.Settle(b.Context(), r, []int64{1, 900})
						}
						if err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(cpuTime()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime returns how much CPU this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
