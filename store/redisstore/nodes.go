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

// nodes announces this node to the others, and knows how many nodes are alive. All nodes share a sorted
// set in Redis, which maps each node to the time of its last announcement, in milliseconds of the
// server's clock. A node that was silent for five intervals is removed from the set.
//
// While Redis cannot be asked, what was last known stays.
type nodes struct {
	id       string
	interval time.Duration
	announce func(ctx context.Context) (living []string, err error)
	withdraw func(ctx context.Context) error

	current atomic.Pointer[share] // this node's share; nil while it is unknown
	stop    context.CancelFunc
	done    chan struct{}
}

// maxMissed is the number of intervals after which a silent node counts as ended.
const maxMissed = 5

// announcement is the script that announces a node. Its arguments are the node, and the number of
// milliseconds for which a node may be silent. It returns the nodes that are alive.
var announcement = rueidis.NewLuaScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZRANGE', KEYS[1], 0, -1)
`)

// newNodes announces this node, waiting for at most an interval, and then again in every interval.
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

// announceOnce announces the node, and updates its share by the number of nodes that are alive.
func (n *nodes) announceOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.interval)
	defer cancel()
	living, err := n.announce(ctx)
	if err != nil {
		return
	}
	slices.Sort(living) // all nodes have the same order
	if rank, ok := slices.BinarySearch(living, n.id); ok {
		n.current.Store(&share{rank, len(living)})
	}
}

// share returns this node's share, if it is known.
func (n *nodes) share() (s share, known bool) {
	if current := n.current.Load(); current != nil {
		return *current, true
	}
	return share{}, false
}

// close removes the node from the set, so that the others have its share at once. It waits for at most
// an interval.
func (n *nodes) close() {
	n.stop()
	<-n.done
	ctx, cancel := context.WithTimeout(context.Background(), n.interval)
	defer cancel()
	n.withdraw(ctx) // after an error, it is removed once it was silent for long enough
}
