package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"github.com/redis/rueidis"
)

// newNodesClient returns a client of a new server.
func newNodesClient(t *testing.T) rueidis.Client {
	t.Helper()
	option, err := rueidis.ParseURL(redistest.New(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func startNodes(client rueidis.Client, namespace string, interval time.Duration) *nodes {
	n := newNodes(client, namespace, interval)
	n.start()
	return n
}

// ranks fails unless all nodes agree on how many they are, and each has a rank.
func ranks(t *testing.T, all ...*nodes) {
	t.Helper()
	had := map[int]bool{}
	for _, n := range all {
		n.announceOnce(t.Context())
		s, known := n.share()
		rank, of := s.rank, s.nodes
		if !known || of != len(all) || rank < 0 || rank >= of || had[rank] {
			t.Fatalf("rank %d of %d, known is %v; want one of %d apart from %v", rank, of, known, len(all), had)
		}
		had[rank] = true
	}
}

// Nodes find each other in Redis, and notice nodes that leave or were silent for long.
func TestNodes(t *testing.T) {
	client := newNodesClient(t)
	const interval = time.Minute
	var all []*nodes
	for i := range 3 {
		n := startNodes(client, "test", interval)
		if s, known := n.share(); !known || s.nodes != i+1 {
			t.Errorf("node %d has heard of %d, known is %v", i, s.nodes, known)
		}
		all = append(all, n)
	}
	other := startNodes(client, "other", interval)
	ranks(t, all...)
	ranks(t, other)
	other.close()

	now, err := client.Do(t.Context(), client.B().Time().Build()).AsIntSlice()
	if err != nil {
		t.Fatal(err)
	}
	join := func(id string, silent time.Duration) {
		t.Helper()
		at := float64(now[0]*1000 - silent.Milliseconds())
		if err := client.Do(t.Context(), client.B().Zadd().Key("test:nodes").ScoreMember().ScoreMember(at, id).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	join("silent for long", 6*interval)
	join("silent", 4*interval)
	all[0].announceOnce(t.Context())
	if s, _ := all[0].share(); s.nodes != 4 {
		t.Errorf("heard of %d; want the three and the one that was silent for a while", s.nodes)
	}
	join("silent", 6*interval)
	ranks(t, all...)

	all[1].close()
	ranks(t, all[0], all[2])
	all[0].close()
	all[2].close()
	left, err := client.Do(t.Context(), client.B().Exists().Key("test:nodes").Build()).AsInt64()
	if err != nil || left != 0 {
		t.Errorf("%d sets are left, %v", left, err)
	}
}

// The set expires some time after all nodes were killed.
func TestNodesExpire(t *testing.T) {
	client := newNodesClient(t)
	n := startNodes(client, "test", time.Minute)
	ms, err := client.Do(t.Context(), client.B().Pttl().Key("test:nodes").Build()).AsInt64()
	if err != nil || ms <= 0 || ms > (5*time.Minute).Milliseconds() {
		t.Errorf("it lasts %d ms, %v", ms, err)
	}
	n.close()
}

// Nodes announce themselves every interval. A failure changes nothing.
func TestNodesGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 2 * time.Second
		steps := []struct {
			living []string // nil: it fails
			want   string
		}{
			{nil, "0 of 0 false"},
			{nil, "0 of 0 false"},
			{[]string{"b"}, "0 of 1 true"},
			{[]string{"c", "b", "a"}, "1 of 3 true"},
			{nil, "1 of 3 true"},
			{[]string{"a", "c"}, "1 of 3 true"}, // this node was removed itself
			{[]string{"a", "b"}, "1 of 2 true"},
		}
		var count atomic.Int64
		n := &nodes{id: "b", interval: interval, ready: func() bool { return true }}
		n.announce = func(ctx context.Context, _ bool) (all []announced, err error) {
			step := steps[count.Add(1)-1]
			if step.living == nil {
				return nil, errors.New("no answer")
			}
			for _, id := range step.living {
				all = append(all, announced{id: id})
			}
			return all, nil
		}
		withdrawn := 0
		n.withdraw = func(ctx context.Context) error {
			withdrawn++
			<-ctx.Done() // no answer until the timeout
			return ctx.Err()
		}
		n.start()
		for i, step := range steps {
			synctest.Wait()
			s, known := n.share()
			rank, of := s.rank, s.nodes
			if got := fmt.Sprint(rank, " of ", of, " ", known); got != step.want || count.Load() != int64(i+1) {
				t.Errorf("step %d: %s after %d announcements; want %s", i, got, count.Load(), step.want)
			}
			if i < len(steps)-1 {
				time.Sleep(interval)
			}
		}
		n.close()
		time.Sleep(10 * interval)
		if count.Load() != int64(len(steps)) || withdrawn != 1 {
			t.Errorf("%d announcements, withdrawn %d times", count.Load(), withdrawn)
		}
	})
}
