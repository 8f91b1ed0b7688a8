package redisstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Whatever answers get lost while nodes acquire, use and end leases: what was used is charged in
// the end, or more, and no more was used than the limit.
func TestLeasesWhileAnswersGetLost(t *testing.T) {
	server := redistest.New(t)
	client := dialed(t, server.URL())
	for _, l := range []limit.Limit{
		limit.PerHour(800),
		limit.PerHour(800).Using(limit.FixedWindow),
		limit.PerHour(800).Using(limit.SlidingLog),
	} {
		t.Run(l.String(), func(t *testing.T) {
			d := newLender(t, client)
			var used, lost atomic.Int64
			var nodes sync.WaitGroup
			for seed := range uint64(2) {
				proxy := redistest.NewProxy(t, server.Addr)
				r := newRemote(dialed(t, proxy.URL()), d.namespace, 50*time.Millisecond, d.at.Load, nil)
				node := &leaser{newLeases(newFallback(r, Deny, nil, nil), r, time.Minute), t}
				nodes.Go(func() {
					var takers sync.WaitGroup
					for i := range uint64(2) {
						random := rand.New(rand.NewPCG(seed, i))
						takers.Go(func() {
							for range 300 {
								fault := random.IntN(200)
								switch fault {
								case 0:
									proxy.StallAnswers()
								case 1:
									proxy.Cut()
								case 2, 3, 4, 5, 6, 7, 8, 9:
									proxy.DropAnswer()
								}
								receipt, _, err := node.Take(t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}, N: 1}})
								if fault < 2 {
									proxy.Heal()
								}
								switch {
								case errors.Is(err, ErrLost):
									lost.Add(1)
									awaitHealed(r.link)
								case err != nil:
									t.Error(err)
								case receipt != nil:
									used.Add(1)
								}
							}
						})
					}
					takers.Wait()
					proxy.Heal()
					node.leases.Close()
				})
			}
			nodes.Wait()
			d.pass(time.Minute)
			d.takes(0, l)
			decisions, err := d.Peek(t.Context(), []store.Charge{{Key: "key", Limits: []limit.Limit{l}}})
			if err != nil {
				t.Fatal(err)
			}
			drained := l.Count() / 60 // of a bucket, in a minute
			if left := decisions[0].Remaining; used.Load() == 0 || used.Load() > 800 || left > 800-used.Load()+drained {
				t.Errorf("%d were spent of 800, and %d are left; %d were lost", used.Load(), left, lost.Load())
			}
			t.Logf("%d spent, %d calls lost, %d charged for nothing", used.Load(), lost.Load(), 800-used.Load()-decisions[0].Remaining)
		})
	}
}

// awaitHealed waits until the server is not lost.
func awaitHealed(l *link) {
	healed := l.healed(l.queue(0).breaker)
	if l.lost(0) != nil {
		<-healed
	}
}

// In a cluster each key is leased in its own slot.
func TestLeasesInACluster(t *testing.T) {
	d := newLender(t, dialed(t, redistest.NewCluster(t, 3).URL()))
	node := d.leaser(time.Minute)
	l := limit.PerHour(160)
	var charges []store.Charge
	for i := range 4 {
		charges = append(charges, store.Charge{Key: fmt.Sprint("key ", i), Limits: []limit.Limit{l}, N: 1})
	}
	charges[0].Key = "key"
	for i := range hotTakes + 5 {
		r, _, err := node.Take(t.Context(), charges)
		if err != nil || r == nil {
			t.Fatal(r, err)
		}
		if _, leased := r.(*leaseReceipt); leased != (i >= hotTakes-1) {
			t.Errorf("take %d is from leases: %v", i, leased)
		}
	}
	d.wantLeft(160-7-10, "while it is leased", l)
	node.leases.Close()
	d.wantLeft(160-13, "when all was given back", l)
}
