package redisstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
)

// killing is callers that take until they are denied, while the server is killed and started again.
type killing struct {
	*testing.T
	server *redistest.Server
	limit  limit.Limit
	n      int64 // the amount of each take, which is settled for one
	long   bool  // the server is dead until it is known to be lost

	passed  atomic.Int64
	callers int64
	before  int64 // what had been admitted when the server was killed
	apart   int64 // how much more one of the nodes knew of that than the other
}

// serveAndKill runs it. All callers see a server that serves, dies, and serves again.
func (k *killing) serveAndKill() {
	k.Helper()
	var all sync.WaitGroup
	var nodes []*node
	some := make(chan struct{})
	for range 2 {
		n := newNode(k.T, k.server.URL(), Config{Namespace: k.Name()})
		nodes = append(nodes, n)
		for range 6 {
			k.callers++
			all.Go(func() {
				for k.takes(n) {
					if k.passed.Add(1) == k.limit.Count()/4 {
						close(some)
					}
				}
			})
		}
	}
	<-some
	k.server.Kill()
	k.before, k.apart = k.passed.Load(), k.knows(nodes[0])-k.knows(nodes[1])
	for _, n := range nodes {
		for k.long && n.link().lost(0) == nil {
			time.Sleep(pollEvery)
		}
	}
	if err := k.server.Restart(); err != nil {
		k.Fatal(err)
	}
	all.Wait()
	for _, n := range nodes {
		n.awaitHealed()
	}
}

// knows returns how much was used when the server last answered a node.
func (k *killing) knows(n *node) int64 {
	for _, o := range n.fallback().ledgers.observedIn(func(string) bool { return true }) {
		account := o.account()
		return account.Check(k.limit, n.link().now(), 0).Used
	}
	return 0
}

// takes takes and settles, and returns false if it is denied.
func (k *killing) takes(n *node) bool {
	for {
		r, _, err := n.Take(k.Context(), one("key", k.limit, k.n))
		switch {
		case errors.Is(err, ErrLost):
			awaitBack(n.Store)
			continue
		case err != nil:
			k.Error(err)
			return false
		case r == nil:
			return false
		}
		for k.n > 1 {
			err := n.Settle(k.Context(), r, []int64{1})
			if err == nil {
				break
			}
			if !errors.Is(err, ErrLost) {
				k.Error(err)
				return false
			}
			awaitBack(n.Store)
		}
		return true
	}
}

// A server that is killed under load, and syncs every write, loses nothing that was admitted, and
// charges nothing twice.
func TestKilledAndDurable(t *testing.T) {
	t.Parallel()
	for i, kind := range []string{"fixed window", "sliding log", "sliding counter", "anchored"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := &killing{T: t, server: redistest.New(t, "--appendonly", "yes", "--appendfsync", "always"), limit: everyKind(600)[kind], n: 2, long: i%2 == 0}
			k.serveAndKill()
			if n := k.passed.Load(); n < k.limit.Count()-2*k.callers || n > k.limit.Count() {
				t.Errorf("%d have passed of %v", n, k.limit)
			}
			direct := opened(t, k.server.URL(), Config{Namespace: t.Name(), Timeout: time.Minute})
			wantLeft(t, direct, "key", k.limit, k.limit.Count()-k.passed.Load())
		})
	}
}

// A server that is killed and is up to a second behind admits at most what was admitted before once
// more. If it keeps nothing, nodes put back what they know. What one of them is admitted before the other has put back
// what it knows more is not counted twice.
func TestKilledAndForgetful(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		keeps bool
	}{
		"nothing is kept": {nil, false},
		"every second":    {[]string{"--appendonly", "yes", "--appendfsync", "everysec"}, true},
	} {
		for _, kind := range []string{"gcra", "sliding log"} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				k := &killing{T: t, server: redistest.New(t, c.args...), limit: everyKind(600)[kind], n: 1, long: kind == "gcra"}
				k.serveAndKill()
				count := k.limit.Count()
				least, most := count-2*k.callers, count+k.callers // callers that had passed and did not know it yet
				if !c.keeps {
					most += max(k.apart, -k.apart)
				}
				if c.keeps {
					most += k.before
				}
				if n := k.passed.Load(); n < least || n > most {
					t.Errorf("%d have passed of %v, %d before it was killed; want %d to %d", n, k.limit, k.before, least, most)
				}
			})
		}
	}
}
