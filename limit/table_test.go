package limit

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// tableSegments returns the segments of a table.
func tableSegments[V any](t *table[V]) (all []*segment[V]) {
	d := t.directory.Load()
	for i := range d.segments {
		if g := d.segments[i].Load(); len(all) == 0 || all[len(all)-1] != g {
			all = append(all, g)
		}
	}
	return all
}

func tableSlots[V any](t *table[V]) (n int) {
	for _, g := range tableSegments(t) {
		n += len(g.slots)
	}
	return n
}

// tableLock locks a counter of a segment that is up to date, as a decision
// does.
func tableLock[V any](t *table[V], hash uint64, make bool) lockedSlot[V] {
	for {
		h := t.lock(hash, make)
		now := clock()
		if t.current(h, now, false) {
			return h
		}
		h.unlock()
		t.rebase(h.segment, now)
	}
}

// tableModel is the naive model of a table: a map that forgets nothing in use.
type tableModel struct {
	table *table[int]
	known map[uint64]*tableCounter
}

type tableCounter struct {
	value   int
	until   int64 // by clock
	awaited bool
}

func newTableModel(unit uint64) *tableModel {
	return &tableModel{newTable[int](unit, until), map[uint64]*tableCounter{}}
}

// check compares the counter of a hash in the table with that of the model.
func (m *tableModel) check(t rapid.TB, hash uint64, h lockedSlot[int]) {
	want := m.known[hash]
	inUse := want != nil && (want.awaited || want.until > clock())
	if h.slot == nil {
		if inUse {
			t.Fatalf("%x: in use until %d, at %d forgotten", hash, want.until, clock())
		}
		return
	}
	if got := h.slot.hash.Load(); got != hash {
		t.Fatalf("%x: locked the slot of %x", hash, got)
	}
	switch value := h.slot.value; {
	case want == nil && value != 0:
		t.Fatalf("%x: has %d, and was never used", hash, value)
	case inUse && value != want.value:
		t.Fatalf("%x: has %d, want %d", hash, value, want.value)
	case want != nil && value != 0 && value != want.value:
		t.Fatalf("%x: has %d, want %d or nothing", hash, value, want.value)
	}
	if inUse && want.until > clock() {
		if got := m.table.ticks(h.segment, want.until); h.word&until != got {
			t.Fatalf("%x: in use until %d, want %d", hash, h.word&until, got)
		}
	}
	if got := h.word&awaited != 0; inUse && got != want.awaited {
		t.Fatalf("%x: awaited %v, want %v", hash, got, want.awaited)
	}
}

// put sets a counter to be in use for a while.
func (m *tableModel) put(t rapid.TB, hash uint64, value int, use time.Duration, wait bool) {
	h := tableLock(m.table, hash, true)
	m.check(t, hash, h)
	c := &tableCounter{value, clock() + int64(use), wait}
	h.slot.value = c.value
	h.set(m.table.ticks(h.segment, c.until))
	h.setAwaited(c.awaited)
	h.unlock()
	m.known[hash] = c
}

func (m *tableModel) checkAll(t rapid.TB) {
	inUse := 0
	for hash, c := range m.known {
		h := tableLock(m.table, hash, false)
		m.check(t, hash, h)
		h.unlock()
		if c.awaited || c.until > clock() {
			inUse++
		}
	}
	if got := m.table.len(); got < inUse {
		t.Fatalf("len is %d with %d in use", got, inUse)
	}
}

// tableHash draws a hash: one of few, which have the same upper bits and whose search
// begins at the same slot; one of few that differ in the upper bits only; or any.
func tableHash(t *rapid.T) uint64 {
	switch n := rapid.Uint64Range(1, 150).Draw(t, "hash"); rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return n
	case 1:
		return n<<56 | 1
	default:
		return n * 0x9e3779b97f4a7c15
	}
}

// Whatever is done to a table, it has the counters that a map would have, as long as
// they are in use: through growth, splits, sweeps and rebasing.
func TestTableIsAMap(t *testing.T) {
	for _, unit := range []uint64{1, 65521} {
		inBubble(t, fmt.Sprint(unit), func(t *testing.T) {
			// Nothing may call Deadline of a bubble's T, so rapid gets a T without
			// that method.
			type noDeadline struct{ testing.TB }
			rapid.Check(noDeadline{t}, func(t *rapid.T) {
				m := newTableModel(unit)
				random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				duration := rapid.SampledFrom([]time.Duration{0, 1, time.Millisecond, time.Second, time.Minute, time.Hour})
				t.Repeat(map[string]func(*rapid.T){
					"put": func(t *rapid.T) {
						m.put(t, tableHash(t), 1+random.IntN(1000), duration.Draw(t, "use"), false)
					},
					"await": func(t *rapid.T) {
						m.put(t, tableHash(t), 1+random.IntN(1000), duration.Draw(t, "use"), rapid.Bool().Draw(t, "yes"))
					},
					"look": func(t *rapid.T) {
						hash := tableHash(t)
						h := tableLock(m.table, hash, false)
						m.check(t, hash, h)
						h.unlock()
					},
					"many": func(t *rapid.T) {
						use := duration.Draw(t, "use")
						for range rapid.IntRange(1, 600).Draw(t, "count") {
							m.put(t, max(random.Uint64(), 1), 1+random.IntN(1000), use, false)
						}
					},
					"sleep": func(t *rapid.T) { time.Sleep(duration.Draw(t, "time")) },
					"sleep long": func(t *rapid.T) {
						time.Sleep(time.Duration(rapid.IntRange(1, 200).Draw(t, "hours")) * time.Hour)
					},
					"sweep": func(t *rapid.T) {
						for range rapid.IntRange(1, 10).Draw(t, "times") {
							m.table.sweep(clock())
						}
					},
					"rebase": func(t *rapid.T) {
						for _, g := range tableSegments(m.table) {
							m.table.rebase(g, clock())
						}
					},
					"": func(t *rapid.T) {
						if random.IntN(4) == 0 {
							m.checkAll(t)
						}
					},
				})
				m.checkAll(t)
			})
		})
	}
}

// Counters in use survive all growth, and the table is no larger than it must be.
func TestTableGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 20000
		m := newTableModel(1)
		for i := range uint64(keys) {
			m.put(t, (i+1)*0x9e3779b97f4a7c15, int(i)+1, time.Hour, false)
		}
		m.checkAll(t)
		if got := m.table.len(); got != keys {
			t.Errorf("len is %d, want %d", got, keys)
		}
		if got := tableSlots(m.table); got > keys*2 {
			t.Errorf("%d slots for %d counters", got, keys)
		}
		for _, g := range tableSegments(m.table) {
			if g.used > 2*largestSegment {
				t.Errorf("a segment of %d", g.used)
			}
			for i := range g.slots {
				if hash := g.slots[i].hash.Load(); hash != 0 && g.depth > 0 && hash>>(64-g.depth) != g.prefix {
					t.Fatalf("%x is in the segment of %x/%d", hash, g.prefix, g.depth)
				}
			}
		}
	})
}

// Counters that are full make room for others: if keys come and go, the table needs
// room only for those that are in use at one time.
func TestTableReusesIdleSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTableModel(1)
		m.put(t, 12345, 77, 1000*time.Hour, false)
		for i := range uint64(50000) {
			m.put(t, (i+1)*0x9e3779b97f4a7c15|1, int(i)+1, time.Millisecond, false)
			if i%5 == 0 {
				time.Sleep(2 * time.Second)
			}
		}
		if got := tableSlots(m.table); got > 64 {
			t.Errorf("%d slots, of which 6 are in use", got)
		}
		h := tableLock(m.table, 12345, false)
		m.check(t, 12345, h)
		h.unlock()
	})
}

// A sweep forgets the counters that are full, frees their memory, and keeps the rest.
func TestTableShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTableModel(1)
		for i := range uint64(20000) {
			use := time.Second
			if i%100 == 0 {
				use = 10 * time.Hour
			}
			m.put(t, (i+1)*0x9e3779b97f4a7c15, int(i)+1, use, i%1000 == 1)
		}
		grown := tableSlots(m.table)
		time.Sleep(time.Hour)
		for range 2 * len(m.table.directory.Load().segments) {
			m.table.sweep(clock())
			time.Sleep(time.Millisecond)
		}
		if got := m.table.len(); got < 220 || got > 500 {
			t.Errorf("len is %d with 220 in use", got)
		}
		if got := tableSlots(m.table); got > grown/10 {
			t.Errorf("%d slots of %d are left", got, grown)
		}
		m.checkAll(t)
	})
}

// Two keys with one hash share one counter: stricter, never laxer.
func TestEqualHashesShareACounter(t *testing.T) {
	for _, limits := range [][]Limit{{PerDay(5)}, {PerDay(5), roomy}} {
		inBubble(t, fmt.Sprint(limits), func(t *testing.T) {
			l := NewLimiter(itself[int], limits...)
			ask := func() bool { // for any key whose hash is 42
				return decide([]demand{{book: l.parts[0].book, hash: 42, limits: limits, n: 1}}, toTake, present, nil).Allowed
			}
			for i := range 8 {
				if ask() != (i < 5) {
					t.Errorf("request %d of 5 that may pass", i)
				}
			}
			if l.Len() != 1 {
				t.Errorf("%d counters", l.Len())
			}
		})
	}
}

// If a slot is given to another hash between finding and locking it, locking leaves
// it as it is, even if its word has not changed: here both words are zero.
func TestLockLooksAtTheHashAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable[int](1, until)
		const mine, other = 5 << 40, 6 << 40 // the search for both begins at the same slot
		h := table.lock(mine, true)
		h.unlock() // not in use: its word is zero
		g, found := table.find(mine)
		h = table.lock(other, true)
		h.unlock()
		if h.slot != found || found.word.Load() != 0 {
			t.Fatal("the slot was not taken for the other hash")
		}
		if _, ok := g.lock(found, mine); ok {
			t.Error("locked the counter of another hash")
		}
		if found.word.Load() != 0 {
			t.Error("left another's counter locked")
		}
		if h, ok := g.lock(found, other); !ok {
			t.Error("the counter is not to be locked by its own hash")
		} else {
			h.unlock()
		}
		if h := table.lock(mine, false); h.slot != nil {
			t.Error("the first hash is still there")
		}
	})
}

// The slot of a counter that is locked or awaited is not given to another hash, however
// old the counter is.
func TestLockedSlotsAreNotReused(t *testing.T) {
	for _, unit := range []uint64{1, 65521} {
		for _, age := range []time.Duration{0, 10 * time.Second, 15 * time.Hour, 25 * time.Hour, 45 * time.Hour, 75 * time.Hour, 1000 * time.Hour} {
			inBubble(t, fmt.Sprintf("%d %v", unit, age), func(t *testing.T) {
				table := newTable[int](unit, until)
				waits := table.lock(1<<40, true)
				waits.setAwaited(true)
				waits.slot.value = 1
				waits.unlock()
				time.Sleep(age)
				works := table.lock(2<<40, true)
				works.slot.value = 2
				for hash := uint64(3); hash < 8; hash++ {
					h := table.lock(hash<<40, true)
					if h.slot == works.slot || h.slot == waits.slot {
						t.Fatal("took a slot that is locked or awaited")
					}
					h.unlock()
				}
				works.unlock()
				h := tableLock(table, 1<<40, false)
				if h.slot == nil || h.slot.value != 1 || h.word&awaited == 0 {
					t.Error("a counter that a call waits for was forgotten")
				}
				h.unlock()
			})
		}
	}
}

// Many goroutines lock few counters that are full, so that slots are given to one hash
// after another: no two goroutines have locked the same counter, and none finds the
// value of another hash.
func TestTableLocksExclude(t *testing.T) {
	const hashes = 40
	table := newTable[uint64](1, until)
	var holders [hashes]atomic.Int64
	inParallel(goroutines, func(i int) {
		random := rand.New(rand.NewPCG(uint64(i), 5))
		for range 3000 {
			k := random.Uint64N(hashes)
			hash := (k + 1) << 40
			h := table.lock(hash, true)
			if n := holders[k].Add(1); n != 1 {
				t.Errorf("%d hold one counter", n)
			}
			if h.slot.hash.Load() != hash || h.slot.value != 0 && h.slot.value != hash {
				t.Error("holds the counter of another hash")
			}
			h.slot.value = hash
			holders[k].Add(-1)
			h.unlock()
		}
	})
}

// If a key is used again just when its slot is given to another key, both pass once,
// and neither is charged for the other.
func TestSlotTakenWhileItsKeyComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(itself[int], PerSecond(1))
		for round := range 3000 {
			old, fresh := round, round+1
			time.Sleep(5 * time.Second) // nothing is in use
			var passed [2]bool
			inParallel(2, func(i int) {
				passed[i] = l.Allow([]int{old, fresh}[i])
			})
			if !passed[0] || !passed[1] || l.Allow(old) || l.Allow(fresh) {
				t.Fatalf("round %d: one key is charged for another", round)
			}
		}
	})
}

// Counters in use lose nothing while the table grows, is split, swept and rebased.
func TestTableLosesNothing(t *testing.T) {
	const hashes, each = 3000, 2000
	table := newTable[int](1, until)
	inParallel(8, func(i int) {
		random := rand.New(rand.NewPCG(uint64(i), 6))
		for k := range each {
			if k%250 == 0 {
				tableChurn(table)
			}
			hash := (1 + random.Uint64N(hashes)) * 0x9e3779b97f4a7c15
			h := table.lock(hash, true)
			h.slot.value++
			h.set(table.ticks(h.segment, clock()+int64(time.Hour)))
			h.unlock()
			idle := table.lock(max(random.Uint64(), 1), true) // forgotten at once
			idle.unlock()
		}
	})
	sum := 0
	for i := range uint64(hashes) {
		if h := table.lock((i+1)*0x9e3779b97f4a7c15, false); h.slot != nil {
			sum += h.slot.value
			h.unlock()
		}
	}
	if sum != 8*each {
		t.Errorf("%d of %d are left", sum, 8*each)
	}
}

// The same by way of a limiter: for every key exactly the limit passes, while keys come
// and go and the table is rebuilt all the time.
func TestKeysLoseNothingWhileTheTableChanges(t *testing.T) {
	for _, limits := range [][]Limit{{PerDay(10)}, {PerDay(10), roomy}} {
		t.Run(fmt.Sprint(limits), func(t *testing.T) {
			const keys = 700
			l := NewLimiter(itself[int], limits...)
			var admitted [keys]atomic.Int64
			inParallel(8, func(i int) {
				for try := range 2 {
					for k := range keys {
						if k%175 == i {
							tableChurn(l.parts[0].book.words)
							tableChurn(l.parts[0].book.cells)
						}
						key := (k*7 + i*131) % keys
						if throughAnyDoor(l, i+try, key, 1) {
							admitted[key].Add(1)
						}
						l.Take(keys+k, 0) // uses nothing
					}
				}
			})
			for key := range keys {
				if got := admitted[key].Load(); got != 10 {
					t.Fatalf("key %d: admitted %d of 10", key, got)
				}
			}
		})
	}
}

// tableChurn moves all counters of a table, and sweeps it.
func tableChurn[V any](t *table[V]) {
	if t == nil {
		return
	}
	for _, g := range tableSegments(t) {
		t.rebase(g, clock())
	}
	t.sweepAt.Store(0)
	t.sweep(clock())
	t.len()
}

// A word counts parts of a nanosecond, and has room for some hours of them. Over days
// with and without requests, it decides as a counter does that has no such bound.
func TestWordsOverDays(t *testing.T) {
	for _, l := range []Limit{PerHour(65521), New(65521, 4*time.Hour), PerHour(60), PerDay(13), New(9973, 24*time.Hour)} {
		for _, pause := range []time.Duration{20 * time.Minute, 3 * time.Hour, 9*time.Hour + 46*time.Minute, 19*time.Hour + 33*time.Minute, 39 * time.Hour, 78*time.Hour + 12*time.Minute + 30*time.Second, 400 * time.Hour} {
			inBubble(t, fmt.Sprintf("%d per %v every %v", l.Count(), l.Period(), pause), func(t *testing.T) {
				word, wide := NewLimiter(itself[int], l), NewLimiter(itself[int], l, roomy)
				if word.parts[0].book.words == nil {
					t.Fatalf("%v is not in one word", l)
				}
				for i := range 60 {
					n := l.Burst() / int64(1+i%4)
					if got, want := word.Take(0, n), wide.Take(0, n); got != want {
						t.Fatalf("step %d, Take(%d):\n got %+v\nwant %+v", i, n, got, want)
					}
					time.Sleep(pause / time.Duration(1+i%3))
					if got, want := word.Peek(0), wide.Peek(0); got != want {
						t.Fatalf("step %d, Peek:\n got %+v\nwant %+v", i, got, want)
					}
					word.Allow(i + 1) // another key of the same segment
				}
			})
		}
	}
}

// A clock that goes back grants nothing, and freezes nothing. Inside a bubble
// it is decades earlier than outside.
func TestClockGoesBack(t *testing.T) {
	for _, count := range []int64{3, 65537} {
		for _, period := range []time.Duration{time.Minute, time.Hour} {
			for _, w := range everyWay(count, period) {
				for _, keys := range []int{1, 100} {
					t.Run(fmt.Sprintf("%d by %s, %d keys", count, w.name, keys), func(t *testing.T) {
						l := NewLimiter(itself[int], w.limits...)
						for key := range keys {
							l.AllowN(key, count)
						}
						synctest.Test(t, func(t *testing.T) {
							for key := range keys {
								if d := l.Take(key, 1); d.Allowed || d.RetryAfter > 2*period+2*time.Second {
									t.Fatalf("key %d: granted or frozen: %+v", key, d)
								}
							}
							time.Sleep(2*period + 2*time.Second)
							for key := range keys {
								if !l.AllowN(key, count) {
									t.Fatalf("key %d: frozen: %+v", key, l.Peek(key))
								}
							}
						})
					})
				}
			}
		}
	}
}
