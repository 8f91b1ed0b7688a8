package redistest

import (
	"testing"

	"github.com/redis/rueidis"
)

func TestSentinel(t *testing.T) {
	t.Parallel()
	n := NewSentinel(t)
	option, err := rueidis.ParseURL(n.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, option)
	if err := client.Do(t.Context(), client.B().Set().Key("key").Value("value").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	first := n.Master()
	if first != n.Servers[0] {
		t.Fatal(first, n.Servers)
	}
	expect(t, first, "value", "GET", "key")
	second := n.Failover(t)
	if second != n.Servers[1] {
		t.Fatal(second, n.Servers)
	}
	expect(t, second, "value", "GET", "key")
	expect(t, second, "OK", "SET", "key", "other")
}

func TestSentinelPromotes(t *testing.T) {
	t.Parallel()
	n := NewSentinel(t)
	n.Sentinels[0].Kill() // two are enough
	old := n.Master()
	old.Kill()
	now := n.AwaitMaster(t, old)
	if now == old {
		t.Fatal(now)
	}
	if err := old.Restart(); err != nil {
		t.Fatal(err)
	}
	doOrFail(t, now, "SET", "key", "value")
	n.AwaitReplica(t)
	expect(t, old, "value", "GET", "key")
}
