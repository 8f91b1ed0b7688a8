package redisstore

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// nodes announces this node to the others, and knows how many nodes are alive. All nodes share a sorted
// set in Redis, which maps each node to the time of its last announcement, in milliseconds of the
// server's clock. A node that was silent for five intervals is removed from the set.
//
// While Redis cannot be asked, what was last known stays. It also stays until the node has recovered
// from that: see recovery.
type nodes struct {
	id       string
	interval time.Duration
	announce func(ctx context.Context, ready bool) ([]announced, error)
	withdraw func(ctx context.Context) error
	ready    func() bool // reports whether Redis was charged for all that this node has admitted without it

	current  atomic.Pointer[share] // this node's share; nil while it is unknown
	recovery recovery
	again    chan struct{} // gets a value when the node is to announce itself at once
	stop     context.CancelFunc
	done     chan struct{}
}

// announced is the last announcement of a node.
type announced struct {
	id    string
	at    int64 // in milliseconds of the server's clock
	ready bool  // the node had charged Redis for all that it had admitted without it
}

// maxMissed is the number of intervals after which a silent node counts as ended.
const maxMissed = 5

// announcement is the script that announces a node. Its arguments are the node, the number of
// milliseconds for which a node may be silent, and 0.5 if the node is ready, which is added to the time.
// It returns the nodes that are alive, and when each has announced itself.
var announcement = rueidis.NewLuaScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], string.format('%.1f', now + ARGV[3]), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
`)

// newNodes returns nodes that start announces.
func newNodes(client rueidis.Client, namespace string, interval time.Duration) *nodes {
	id, key := rand.Text(), namespace+":nodes"
	silent := strconv.FormatInt(max((maxMissed*interval).Milliseconds(), 1), 10)
	return &nodes{
		id:       id,
		interval: interval,
		announce: func(ctx context.Context, ready bool) ([]announced, error) {
			half := "0"
			if ready {
				half = "0.5"
			}
			return readAnnounced(announcement.Exec(ctx, client, []string{key}, []string{id, silent, half}).AsStrSlice())
		},
		withdraw: func(ctx context.Context) error {
			return client.Do(ctx, client.B().Zrem().Key(key).Member(id).Build()).Error()
		},
		ready: func() bool { return true },
	}
}

// readAnnounced decodes the answer of the script: each node, and then its time.
func readAnnounced(answer []string, err error) (all []announced, _ error) {
	for pair := range slices.Chunk(answer, 2) {
		ms, half, _ := strings.Cut(pair[len(pair)-1], ".")
		at, fault := strconv.ParseInt(ms, 10, 64)
		if fault != nil {
			return nil, fault
		}
		all = append(all, announced{id: pair[0], at: at, ready: half != ""})
	}
	return all, err
}

// start announces this node, waiting for at most an interval, and then again in every interval.
func (n *nodes) start() {
	ctx, stop := context.WithCancel(context.Background())
	n.again, n.stop, n.done = make(chan struct{}, 1), stop, make(chan struct{})
	n.announceOnce(ctx)
	go n.run(ctx)
}

func (n *nodes) run(ctx context.Context) {
	defer close(n.done)
	for {
		wait := time.NewTimer(n.interval)
		if n.recovery.underWay() {
			wait.Reset(n.interval / 20)
		}
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-n.again:
			wait.Stop()
		case <-wait.C:
		}
		n.announceOnce(ctx)
	}
}

// announceOnce announces the node, and updates its share by the number of nodes that are alive.
func (n *nodes) announceOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.interval)
	defer cancel()
	attempt := n.recovery.attempt()
	all, err := n.announce(ctx, n.ready())
	if err == nil && n.recovery.observe(n.id, all, attempt) {
		n.setShare(all)
	}
}

// setShare updates this node's share.
func (n *nodes) setShare(all []announced) {
	var living []string
	for _, a := range all {
		living = append(living, a.id)
	}
	slices.Sort(living) // all nodes have the same order
	if rank, ok := slices.BinarySearch(living, n.id); ok {
		n.current.Store(&share{rank, len(living)})
	}
}

// lost begins the recovery of a group of the keyspace, which is lost.
func (n *nodes) lost(group int) { n.recovery.begin(group) }

// back says that all groups can be asked again: the recovery ends once the other nodes are ready too.
func (n *nodes) back() {
	n.recovery.back(time.Now().Add(maxMissed * n.interval))
	select {
	case n.again <- struct{}{}:
	default:
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
