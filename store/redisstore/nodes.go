package redisstore

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// nodes tells the other nodes that this one lives, and hears which others do. They
// meet in a sorted set in Redis: node to when it was last there, in the server's
// milliseconds. Who was silent for five intervals is taken out of it.
//
// Failures change nothing: what was last heard stands.
type nodes struct {
	id       string
	interval time.Duration
	announce func(ctx context.Context) (living []string, err error)
	withdraw func(ctx context.Context) error

	current atomic.Pointer[share] // nil: nothing was
	stop    context.CancelFunc
	done    chan struct{}
}

// maxMissed is after how many intervals a node is taken to have ended.
const maxMissed = 5

// announcement is run with a node and for how many milliseconds it may be silent.
var announcement = rueidis.NewLuaScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZRANGE', KEYS[1], 0, -1)
`)

// newNodes announces this node, waiting for an interval at most, and goes on to do
// so every interval.
func newNodes(client rueidis.Client, namespace string, interval time.Duration) *nodes {
	id, key := rand.Text(), namespace+":nodes"
	silent := strconv.FormatInt(max((maxMissed*interval).Milliseconds(), 1), 10)
	n := &nodes{
		id:       id,
		interval: interval,
		announce: func(ctx context.Context) ([]string, error) {
			return announcement.Exec(ctx, client, []string{key}, []string{id, silent}).AsStrSlice()
		},
		withdraw: func(ctx context.Context) error {
			return client.Do(ctx, client.B().Zrem().Key(key).Member(id).Build()).Error()
		},
	}
	n.start()
	return n
}

func (n *nodes) start() {
	ctx, stop := context.WithCancel(context.Background())
	n.stop, n.done = stop, make(chan struct{})
	n.announceOnce(ctx)
	go n.run(ctx)
}

func (n *nodes) run(ctx context.Context) {
	defer close(n.done)
	ticker := time.NewTicker(n.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			n.announceOnce(ctx)
		}
	}
}

// announceOnce announces the node, and hears which others live.
func (n *nodes) announceOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.interval)
	defer cancel()
	living, err := n.announce(ctx)
	if err != nil {
		return
	}
	slices.Sort(living) // in one order at all nodes
	if rank, ok := slices.BinarySearch(living, n.id); ok {
		n.current.Store(&share{rank, len(living)})
	}
}

// share returns which of how many nodes this one is, if that was ever heard.
func (n *nodes) share() (rank, of int, known bool) {
	p := n.current.Load()
	if p == nil {
		return 0, 0, false
	}
	return p.rank, p.nodes, true
}

// close takes the node out of the set, so that the others have its part at once.
// It waits for that for an interval at most.
func (n *nodes) close() {
	n.stop()
	<-n.done
	ctx, cancel := context.WithTimeout(context.Background(), n.interval)
	defer cancel()
	n.withdraw(ctx) // or else it is taken out when it has been silent
}
