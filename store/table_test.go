package store

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/limit"
)

// spentUntil returns what is in use until a time after 0.
func spentUntil(full int64) (p purse) {
	p.Spend(limit.PlanOf([]limit.Limit{limit.New(1, time.Duration(full)).Using(limit.SlidingLog)}), 0, 1, make([]limit.Verdict, 1))
	return p
}

// A table holds what a map would, and has about as many chains as keys.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tab := table{}
		want := map[string]*entry{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now := rapid.Int64Range(0, 100).Draw(t, "now")
			switch rapid.SampledFrom([]string{"insert", "sweep", "forget"}).Draw(t, "do") {
			case "insert":
				for range rapid.IntRange(1, 200).Draw(t, "keys") {
					key := fmt.Sprint(rapid.IntRange(0, 1000).Draw(t, "key"))
					if want[key] == nil {
						want[key] = &entry{key: key, purse: spentUntil(rapid.Int64Range(1, 100).Draw(t, "full"))}
						tab.insert(hashOf(key), want[key])
					}
				}
			case "sweep":
				chains := tab.chains
				tab.sweep(now, int(chains))
				held := map[string]bool{}
				for e := range tab.all() {
					held[e.key] = true
				}
				for key, e := range want {
					if now < e.purse.FullAt() && !held[key] {
						t.Fatalf("%q was forgotten at %d", key, now)
					}
					if !held[key] {
						delete(want, key)
					}
				}
			case "forget":
				prefix := rapid.SampledFrom([]string{"1", "2", "33"}).Draw(t, "prefix")
				gone := func(e *entry) bool { return len(e.key) >= len(prefix) && e.key[:len(prefix)] == prefix }
				for chain := range tab.chains {
					tab.forget(chain, gone)
				}
				for key, e := range want {
					if gone(e) {
						delete(want, key)
					}
				}
			}
			sameTable(t, &tab, want)
		}
		for range 4 * int(tab.chains) { // and all of it goes in the end
			tab.sweep(1000, 1)
		}
		sameTable(t, &tab, nil)
		if tab.chains > 1 || len(tab.pages) > 1 {
			t.Fatalf("%d chains, on %d pages, of nothing", tab.chains, len(tab.pages))
		}
	})
}

func sameTable(t *rapid.T, tab *table, want map[string]*entry) {
	t.Helper()
	n := 0
	for e := range tab.all() {
		n++
		if want[e.key] != e {
			t.Fatalf("%q should be gone", e.key)
		}
	}
	if n != len(want) || tab.keys != uint64(n) {
		t.Fatalf("%d keys, and %d are listed; want %d", tab.keys, n, len(want))
	}
	for key, e := range want {
		if tab.find(hashOf(key), key) != e {
			t.Fatalf("%q is not found", key)
		}
	}
	if tab.find(hashOf("none"), "none") != nil {
		t.Fatal("a key is found that is not there")
	}
	if most := uint64(len(tab.pages) * pageLen); tab.chains > most || tab.chains+pageLen <= most || tab.chains < tab.keys {
		t.Fatalf("%d chains, on %d pages, for %d keys", tab.chains, len(tab.pages), tab.keys)
	}
}

// Chains stay short.
func TestTableChains(t *testing.T) {
	tab := table{}
	for i := range 100_000 {
		key := fmt.Sprint(i)
		tab.insert(hashOf(key), &entry{key: key})
	}
	longest := 0
	for chain := range tab.chains {
		n := 0
		for e := *tab.chain(chain); e != nil; e = e.next {
			n++
		}
		longest = max(longest, n)
	}
	if longest > 20 {
		t.Errorf("a chain of %d", longest)
	}
}

// Shards do not share cache lines, nor do they with what all calls read.
func TestShardsStandApart(t *testing.T) {
	var m Memory
	if size, at := unsafe.Sizeof(m.shards[0]), unsafe.Offsetof(m.shards); size != 128 || at != 128 {
		t.Errorf("shards of %d bytes begin at %d", size, at)
	}
	if size := unsafe.Sizeof(entry{}); size > 72 {
		t.Errorf("an entry takes %d bytes", size)
	}
}

// Keys that differ only after their last slash are in one shard, and so are those of a tree of projects.
// Other keys are spread over all.
func TestShardOf(t *testing.T) {
	var shards [shards]int
	for i := range 5000 {
		scope := fmt.Sprint("project/", i)
		shard := shardOf(scope + "/requests")
		if shardOf(scope+"/tokens") != shard {
			t.Fatalf("the keys of %s are in two shards", scope)
		}
		if shardOf(scope+"%2Fsearch%2Falice/requests") != shard || shardOf(scope+"%2Fads/dollars") != shard {
			t.Fatalf("the keys of projects below %s are in other shards", scope)
		}
		shards[shardOf(fmt.Sprintf("model/openai%%2F%d/requests", i))]++
		shards[shard]++
		shards[shardOf(fmt.Sprint("key ", i))]++
		shards[shardOf(fmt.Sprint("/", i))]++
	}
	if most, least := slices.Max(shards[:]), slices.Min(shards[:]); most > 2*least {
		t.Errorf("%d of 20,000 keys in one shard, %d in another", most, least)
	}
}

// A walk meets every entry that is there all the time, however the table grows and would shrink meanwhile,
// and the table shrinks after it.
func TestWalk(t *testing.T) {
	m := NewMemory()
	s := &m.shards[3]
	const stay = 2000
	for i := range stay {
		key := fmt.Sprint("stays ", i)
		s.table.insert(hashOf(key), &entry{key: key, purse: spentUntil(1000)})
	}
	added := 0
	add := func(n int) {
		for range n {
			key := fmt.Sprint("goes ", added)
			added++
			s.table.insert(hashOf(key), &entry{key: key, purse: spentUntil(1)})
		}
	}
	add(8 * stay)
	met := map[string]bool{}
	visits := 0
	m.walk(func(tab *table, chain uint64) {
		for e := *tab.chain(chain); e != nil; e = e.next {
			met[e.key] = true
		}
		visits++
		if visits == 3*stay {
			tab.sweep(500, int(tab.chains))
			tab.sweep(500, int(tab.chains))
		} else if visits%10 == 0 {
			add(1)
		}
	})
	for i := range stay {
		if key := fmt.Sprint("stays ", i); !met[key] {
			t.Fatalf("%q was not met", key)
		}
	}
	for range 3 {
		s.table.sweep(500, int(s.table.chains))
	}
	if s.table.keys != stay || s.table.chains > 2*stay {
		t.Errorf("%d keys in %d chains after the walk", s.table.keys, s.table.chains)
	}
}

// all returns every entry, in no order.
func (t *table) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for i := range t.chains {
			for e := *t.chain(i); e != nil; e = e.next {
				if !yield(e) {
					return
				}
			}
		}
	}
}
