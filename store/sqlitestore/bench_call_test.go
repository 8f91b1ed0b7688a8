//go:build unix

package sqlitestore

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// BenchmarkCall is the calls of one caller, over a project and a model, each of which is booked and settled with the next
// one. Beside it is the least that SQLite does for a transaction: one row of as many bytes. What counts is the CPU.
func BenchmarkCall(b *testing.B) {
	b.Run("take and settle", func(b *testing.B) {
		s := open(b)
		windows := []limit.Limit{limit.PerMinute(1 << 40), limit.PerHour(1 << 40), limit.PerDay(1 << 40)}
		for i := range windows {
			windows[i] = windows[i].Using(limit.SlidingLog)
		}
		charges := []store.Charge{
			{Key: "project/requests", Limits: windows, N: 1},
			{Key: "project/tokens", Limits: windows, N: 700},
			{Key: "model/requests", Limits: []limit.Limit{windows[0], limit.PerDay(1 << 40).Using(limit.FixedWindow)}, N: 1},
			{Key: "model/tokens", Limits: windows[:1], N: 700},
		}
		entry := &books.Entry{Owner: books.Owner{Project: "acme", Model: "model"}, Amounts: books.Amounts{books.Requests: 1}}
		benchCPU(b, func() error {
			r, _, err := s.Take(context.Background(), charges)
			if err == nil {
				inside(s).SettleLater(r, []int64{1, 500, 1, 500}, entry, func(error) {})
			}
			return err
		})
	})
	b.Run("a row", func(b *testing.B) {
		s := open(b)
		row := make([]byte, 400)
		id := int64(1)
		benchCPU(b, func() error {
			id++
			_, begun := s.do.beginImmediate.Exec()
			_, added := s.do.addRow.Exec(id, row, 0, nil)
			_, committed := s.do.commit.Exec()
			s.trimLog()
			return errors.Join(begun, added, committed)
		})
	})
}

// benchCPU runs fn, and reports the CPU that it takes.
func benchCPU(b *testing.B, fn func() error) {
	used := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := used()
	for range b.N {
		if err := fn(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(used()-before)/float64(b.N), "cpu-ns/op")
}
