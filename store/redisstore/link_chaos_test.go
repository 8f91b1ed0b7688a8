package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Whatever goes wrong in whatever order: each op happens once or not at all, and its caller learns
// which.
func TestLinkChaos(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, 250*time.Millisecond) // a busy machine answers sooner
	server := func(command string) func() { return func() { serverDoAll(t, x.server, command) } }
	faults := []struct{ begin, end func() }{
		{x.proxy.DropAnswer, x.proxy.Heal},
		{func() { x.proxy.ResetAfter(rand.IntN(100)) }, x.proxy.Heal},
		{x.proxy.Cut, x.proxy.Heal},
		{x.proxy.Stall, x.proxy.Heal},
		{x.proxy.StallAnswers, x.proxy.Heal},
		{func() { x.proxy.Delay(300 * time.Millisecond) }, x.proxy.Heal},
		{x.server.Pause, x.server.Resume},
		{server("FUNCTION FLUSH"), func() {}},
		{server("CONFIG SET maxmemory 1"), server("CONFIG SET maxmemory 0")},
		{server("REPLICAOF 127.0.0.1 1"), server("REPLICAOF NO ONE")},
	}
	var (
		happened, owed atomic.Int64
		answers        sync.Map
		turns          = make(chan bool)
		all            sync.WaitGroup
	)
	happens := func(answer []byte) {
		happened.Add(1)
		if _, twice := answers.LoadOrStore(string(answer), true); twice {
			t.Errorf("two ops were answered %s", answer)
		}
	}
	for range 16 {
		all.Go(func() {
			for range turns {
				o := countOp("key")
				o.late = func(r result) {
					if r.err == nil {
						owed.Add(-1)
						happens(r.answer)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(200*time.Millisecond))
				err := x.do(ctx, o)
				cancel()
				switch {
				case err == nil:
					happens(o.answer)
				case !errors.Is(err, ErrLost) && !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				case o.unanswered:
					owed.Add(1)
				}
			}
		})
	}
	for range 3 {
		for _, i := range rand.Perm(len(faults)) {
			faults[i].begin()
			for range 200 {
				turns <- true
			}
			faults[i].end()
			for until := happened.Load() + 50; happened.Load() < until; {
				// Calls that fail at once would keep the prober from the only processor.
				x.until(func() bool { return x.queues[0].breaker.err == nil })
				turns <- true
			}
		}
	}
	close(turns)
	all.Wait()
	x.idle()
	if owed.Load() != 0 {
		t.Errorf("%d ops may have happened, and nobody knows", owed.Load())
	}
	x.counted("key", int(happened.Load()))
}
