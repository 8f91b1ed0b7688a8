package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

// A lost master takes its own part of the keyspace with it, and no other.
func TestLinkCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t, 3, "--cluster-require-full-coverage", "no")
	changes := make(chan change, 1000)
	l := newLink(dial(t, cluster.Addrs()...), linkConfig{ // masters that live answer much sooner, even those on a busy machine
		namespace: "test", timeout: 10 * time.Second, script: counting, cluster: true,
		changed: func(c change) { changes <- c },
	})
	defer l.close()
	dead := cluster.Servers[1]
	var alive, orphaned []int
	taken := map[int]bool{} // groups that the dead master has a part of
	for part := range parts {
		slot := slotOf(strconv.Itoa(part))
		answer, err := cluster.Servers[0].Do("CLUSTER", "KEYSLOT", fmt.Sprintf("test:{%d}:1:a", part))
		if err != nil || answer != int64(slot) {
			t.Fatal(part, slot, answer, err)
		}
		if server := int(slot) * 3 / 16384; cluster.Servers[server] == dead {
			orphaned = append(orphaned, part)
			taken[groupOf(part)] = true
		} else {
			alive = append(alive, part)
		}
	}
	ask := func(parts []int) (errs []error) {
		var mu sync.Mutex
		for some := range slices.Chunk(parts, 64) {
			var all sync.WaitGroup
			for _, part := range some {
				all.Go(func() {
					err := l.do(t.Context(), &op{part: part, keys: []string{fmt.Sprintf("test:{%d}:1:a", part)}, body: []byte("count")})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						errs = append(errs, err)
					}
				})
			}
			all.Wait()
		}
		return errs
	}
	if errs := append(ask(alive), ask(orphaned)...); len(errs) > 0 {
		t.Fatal(len(errs), errs[0])
	}
	dead.Kill()
	if errs := ask(orphaned); len(errs) != len(orphaned) || !errors.Is(errs[0], ErrLost) {
		t.Fatal(len(errs), errs)
	}
	var unaffected []int
	for _, part := range alive {
		if !taken[groupOf(part)] {
			unaffected = append(unaffected, part)
		}
	}
	if len(unaffected) < len(alive)*9/10 {
		t.Fatal(len(unaffected), len(alive))
	}
	for range 3 {
		if errs := ask(unaffected); len(errs) > 0 {
			t.Fatal(len(errs), errs[0])
		}
	}
	for range taken {
		if c := <-changes; !c.lost || !taken[c.group] {
			t.Fatalf("%+v", c)
		}
	}
	if err := dead.Restart(); err != nil {
		t.Fatal(err)
	}
	for range taken {
		if c := <-changes; c.lost || !taken[c.group] {
			t.Fatalf("%+v", c)
		}
	}
	if errs := append(ask(alive), ask(orphaned)...); len(errs) > 0 {
		t.Fatal(len(errs), errs[0])
	}
}

func TestLinkSlotOf(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]uint16{"": 0, "123456789": 0x31c3 % 16384, "a": 15495, "b": 3300} {
		if got := slotOf(tag); got != want {
			t.Errorf("%q: %d; want %d", tag, got, want)
		}
	}
}
