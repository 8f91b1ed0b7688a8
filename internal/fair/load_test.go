package fair

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
)

// client is a project in a simulated load: workers that call, wait until the call passes,
// and call again after a pause.
type client struct {
	name      string
	terms     Terms
	group     *Group
	workers   int
	pause     time.Duration
	size      func() int64
	from      time.Duration // when it comes
	dedicated bool
	on        func(t time.Duration) bool

	queue []int64 // the sizes of calls that wait
	waits Waiting // the last of them
	asked bool    // the first of them has asked
}

// world is one model with a sliding window, simulated call by call.
type world struct {
	t       *testing.T
	pool    *Pool
	quota   int64
	clients []*client
	now     time.Duration
	log     []service // the calls of the last minute are its end
	first   int       // the index in log of the first call of the last minute
	used    int64
	events  events
}

type service struct {
	at     time.Duration
	client *client
	n      int64
}

type event struct {
	at     time.Duration
	client *client // that calls; nil: those that wait ask again
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any          { old := *e; x := old[len(old)-1]; *e = old[:len(old)-1]; return x }

const poll = 100 * time.Millisecond

// simulate lets clients use a model for some time.
func simulate(t *testing.T, quota int64, reserve int64, clients []*client, until time.Duration) *world {
	w := &world{t: t, quota: quota, clients: clients}
	w.pool = NewPool([]limit.Limit{limit.New(quota, time.Minute).Using(limit.SlidingLog)}, reserve)
	var dedicated Dedicated
	terms := map[string]Terms{}
	for _, c := range clients {
		if c.dedicated {
			terms[c.name] = c.terms
		}
		for k := range c.workers {
			heap.Push(&w.events, event{c.from + time.Duration(k)*time.Millisecond, c})
		}
	}
	dedicated.Set(terms)
	w.pool.Follow(&dedicated)
	heap.Push(&w.events, event{})
	for len(w.events) > 0 {
		e := heap.Pop(&w.events).(event)
		if w.now = e.at; w.now >= until {
			break
		}
		switch {
		case e.client == nil:
			heap.Push(&w.events, event{w.now + poll, nil})
		case e.client.on != nil && !e.client.on(w.now):
			heap.Push(&w.events, event{w.now + time.Second/2, e.client})
			continue
		default:
			e.client.queue = append(e.client.queue, e.client.size())
			e.client.waits = w.pool.Wait(e.client.who(), e.client.terms, w.clock())
		}
		w.serve()
	}
	return w
}

func (w *world) clock() int64 { return 1_700_000_040e9 + int64(w.now) }

// serve lets those who wait ask in turn, until nobody passes.
func (w *world) serve() {
	for ; w.first < len(w.log) && w.log[w.first].at <= w.now-time.Minute; w.first++ {
		w.used -= w.log[w.first].n
	}
	for passed := true; passed; {
		passed = false
		for _, c := range w.clients {
			if len(c.queue) > 0 && w.take(c) {
				passed = true
			}
		}
	}
}

func (w *world) take(c *client) bool {
	n := c.queue[0]
	amounts := []Amount{{N: n, Count: w.quota}}
	denied := w.pool.Take(c.who(), c.terms, w.clock(), amounts, c.asked).Denied
	c.asked = true
	switch {
	case w.used+n > w.quota && !denied:
		w.pool.GiveBack(c.who(), w.clock(), amounts, true)
		return false
	case w.used+n > w.quota, denied && !w.pool.Lend(c.who(), w.clock(), amounts, []int64{w.used}):
		return false
	}
	c.queue, c.asked = c.queue[1:], false
	c.waits.Leave(w.clock())
	w.used += n
	w.log = append(w.log, service{w.now, c, n})
	heap.Push(&w.events, event{w.now + c.pause, c})
	return true
}

// parts returns the part of the quota that each client had of some minutes, and all together.
func (w *world) parts(from, to time.Duration) (parts map[string]float64, all float64) {
	parts = map[string]float64{}
	whole := float64(w.quota) * (to - from).Minutes()
	for _, s := range w.log {
		if s.at >= from && s.at < to {
			parts[s.client.name] += float64(s.n) / whole
			all += float64(s.n) / whole
		}
	}
	return parts, all
}

func named(name string) *Who { return &Who{Name: name} }

func (c *client) who() *Who { return &Who{Name: c.name, Group: c.group} }

func one() int64 { return 1 }

func of(n int64) func() int64 { return func() int64 { return n } }

func TestLoads(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(sizes ...int64) func() int64 { return func() int64 { return sizes[r.IntN(len(sizes))] } }
	weight := func(n int) Terms { return Terms{Weight: n} }
	for _, load := range []struct {
		name    string
		quota   int64
		clients []*client
		want    map[string]float64
	}{
		{"a hog", 60, []*client{
			{name: "search", terms: weight(3), workers: 3, pause: time.Second / 2, size: one},
			{name: "chat", terms: weight(2), workers: 2, pause: time.Second / 2, size: one},
			{name: "batch", terms: weight(1), workers: 20, size: one},
		}, map[string]float64{"search": 3. / 6, "chat": 2. / 6, "batch": 1. / 6}},
		{"large and small", 100_000, []*client{
			{name: "large", workers: 10, pause: time.Second / 10, size: of(8000)},
			{name: "small", workers: 10, pause: time.Second / 10, size: of(2000)},
		}, map[string]float64{"large": .5, "small": .5}},
		{"mixed sizes", 100_000, []*client{
			{name: "a", workers: 6, pause: time.Second / 2, size: pick(100, 200, 4000)},
			{name: "b", workers: 6, pause: time.Second / 3, size: pick(1000, 3000)},
		}, map[string]float64{"a": .5, "b": .5}},
		{"thirds", 100, []*client{
			{name: "a", workers: 4, pause: time.Second / 10, size: one},
			{name: "b", workers: 4, pause: time.Second / 10, size: one},
			{name: "c", workers: 4, pause: time.Second / 10, size: one},
		}, map[string]float64{"a": 1. / 3, "b": 1. / 3, "c": 1. / 3}},
		{"below its share", 60, []*client{
			{name: "hog", workers: 20, size: one},
			{name: "steady", workers: 1, pause: 3 * time.Second, size: one},
		}, map[string]float64{"hog": 2. / 3, "steady": 1. / 3}},
		{"now and then", 60, []*client{
			{name: "hog", workers: 20, size: one},
			{name: "rare", workers: 1, pause: 20 * time.Second, size: one},
		}, map[string]float64{"hog": .95, "rare": .05}},
		{"alone", 60, []*client{{name: "hog", workers: 20, size: one}}, map[string]float64{"hog": 1}},
		{"alone, a large call", 100, []*client{{name: "hog", workers: 2, size: of(100)}}, map[string]float64{"hog": 1}},
	} {
		for _, after := range []time.Duration{0, 50 * time.Second} {
			t.Run(load.name+" after "+after.String(), func(t *testing.T) {
				last := testkit.Rounds(6, 10)
				clients := []*client{{name: "early", workers: 1, pause: time.Hour, size: one}} // with whom the first window begins
				for _, c := range load.clients {
					each := *c
					each.from += after
					clients = append(clients, &each)
				}
				w := simulate(t, load.quota, 0, clients, time.Duration(last)*time.Minute)
				for m := 2; m+2 <= last; m++ {
					parts, all := w.parts(time.Duration(m)*time.Minute, time.Duration(m+2)*time.Minute)
					t.Logf("from minute %d: %v of %.3f", m, parts, all)
					for name, want := range load.want {
						if got := parts[name]; math.Abs(got-want) > .05 {
							t.Errorf("from minute %d: %s has %.3f of the quota, want %.3f", m, name, got, want)
						}
					}
					if all < .95 {
						t.Errorf("from minute %d: %.3f of the quota is used", m, all)
					}
				}
				if _, all := w.parts(2*time.Minute, time.Duration(last)*time.Minute); all < .97 {
					t.Errorf("%.3f of the quota is used", all)
				}
			})
		}
	}
}
