package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/store"
	"github.com/redis/rueidis"
)

// counting is an arithmetic that counts how often it was asked about a key.
const counting = `
local KEYS, counts
local function begin(keys) KEYS, counts = keys, {} end
local function run(sec, ns, base, body)
	if body == 'time' then return sec .. ' ' .. ns end
	if body == 'read' then return redis.call('GET', KEYS[base]) or '0' end
	local n = (counts[KEYS[base]] or tonumber(redis.call('GET', KEYS[base]) or 0)) + 1
	if body == 'fail' then error('as it was told') end
	if body == 'call' then redis.call('NONSENSE') end
	counts[KEYS[base]] = n
	return tostring(n)
end
local function flush()
	for key, n in pairs(counts) do redis.call('SET', key, n) end
end
`

// patient is a timeout that no test waits for: it is longer than a fault.
const patient = time.Minute

func dial(t testing.TB, addrs ...string) rueidis.Client {
	t.Helper()
	return connect(t, rueidis.ClientOption{InitAddress: addrs})
}

// connect returns a client that is closed when the test ends.
func connect(t testing.TB, option rueidis.ClientOption) rueidis.Client {
	t.Helper()
	option.DisableCache = true
	client, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// linkTest is a link with a server.
type linkTest struct {
	*link
	t              *testing.T
	server         *redistest.Server
	proxy          *redistest.Proxy
	changes        chan change
	pendingChanges atomic.Int32 // changes at the moment
}

func newLinkTest(t *testing.T, timeout time.Duration) *linkTest {
	t.Helper()
	x := &linkTest{t: t, server: redistest.New(t), changes: make(chan change, 1000)}
	x.proxy = redistest.NewProxy(t, x.server.Addr)
	x.link = newLink(dial(t, x.proxy.Addr), linkConfig{
		namespace: "test", timeout: timeout, script: counting, changed: func(c change) {
			if x.pendingChanges.Add(1) != 1 {
				t.Error("two changes at a time")
			}
			x.changes <- c
			x.pendingChanges.Add(-1)
		},
	})
	t.Cleanup(x.close)
	return x
}

// wait sets how long calls wait for their answers from now on. The link is idle.
func (x *linkTest) wait(timeout time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cfg.timeout = timeout
}

func linkKey(key string) string { return fmt.Sprintf("test:{0}:%d:%s", len(key), key) }

func countOp(key string) *op { return &op{keys: []string{linkKey(key)}, body: []byte("count")} }

// counted checks that a key was counted up to n, by asking the server itself.
func (x *linkTest) counted(key string, n int) {
	x.t.Helper()
	got, err := x.server.Do("GET", linkKey(key))
	if got == nil {
		got = "0"
	}
	if err != nil || got != strconv.Itoa(n) {
		x.t.Errorf("%s was counted up to %v, %v; want %d", key, got, err, n)
	}
}

// count checks that the next count of a key is n.
func (x *linkTest) count(key string, n int) {
	x.t.Helper()
	o := countOp(key)
	if err := x.do(x.t.Context(), o); err != nil || string(o.answer) != strconv.Itoa(n) {
		x.t.Fatalf("%s, %v; want %d", o.answer, err, n)
	}
}

// change checks the next change.
func (x *linkTest) change(lost bool) change {
	x.t.Helper()
	c := <-x.changes
	if c.lost != lost || lost != errors.Is(c.err, ErrLost) {
		x.t.Fatalf("%+v; want lost %v", c, lost)
	}
	return c
}

// hold lets ops wait in the first queue until release is called.
func (x *linkTest) hold() (release func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := &x.queues[0]
	if q.sending {
		x.t.Fatal("the queue is busy")
	}
	q.sending = true
	return func() { x.running.Go(func() { x.run(q) }) }
}

// idle waits until the first queue sends nothing.
func (x *linkTest) idle() {
	x.until(func() bool { return !x.queues[0].sending })
}

// pollEvery is the time between two looks at what a test waits for.
const pollEvery = 100 * time.Microsecond

// until waits until a condition holds, under the link's lock.
func (x *linkTest) until(so func() bool) {
	for {
		x.mu.Lock()
		is := so()
		x.mu.Unlock()
		if is {
			return
		}
		time.Sleep(pollEvery)
	}
}

func TestLinkOps(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	two := []string{linkKey("a"), linkKey("b")}
	for _, c := range []struct {
		body string
		keys []string
		want string // an answer, or part of an error
	}{
		{"count", two, "1"},
		{"count", two[:1], "2"},
		{"count", two[1:], "1"},
		{"read", two[:1], "2"},
		{"fail", two, "as it was told"},
		{"call", two, "command called from script"}, // Redis and Valkey have different words before it
		{"read", two[1:], "1"},
	} {
		o := &op{keys: c.keys, body: []byte(c.body), reads: c.body == "read"}
		err := x.do(t.Context(), o)
		switch {
		case err == nil && string(o.answer) == c.want && o.at > 0:
		case err != nil && strings.HasPrefix(err.Error(), "ratelimit: ") && strings.Contains(err.Error(), c.want) && !errors.Is(err, ErrLost):
		default:
			t.Errorf("%s of %v: %q at %d, %v", c.body, c.keys, o.answer, o.at, err)
		}
	}
	if x.lost(0) != nil {
		t.Error("lost")
	}
}

// Ops that wait together are sent together, and an error of one does not affect another.
func TestLinkCombining(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	x.count("first", 1) // loads the library
	x.idle()
	if _, err := x.server.Do("CONFIG", "RESETSTAT"); err != nil {
		t.Fatal(err)
	}
	release := x.hold()
	const callers = 2*maxBatchOps + 10
	answers := map[string]int{}
	failed := 0
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			o := countOp("key")
			if i%10 == 0 {
				o.keys = append(o.keys, linkKey("another"), linkKey("third"))
				o.body = []byte("fail")
			}
			err := x.do(t.Context(), o)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed++
				return
			}
			answers[string(o.answer)]++
		})
	}
	x.until(func() bool { return x.queued == callers })
	release()
	all.Wait()
	counted := callers - failed
	if failed != (callers+9)/10 || len(answers) != counted {
		t.Errorf("%d failed, %d of %d answers differ", failed, len(answers), counted)
	}
	x.counted("key", counted)
	stats, err := x.server.Do("INFO", "commandstats")
	if err != nil || !strings.Contains(stats.(string), "cmdstat_fcall:calls=3,") {
		t.Error(stats, err)
	}
}

// However answers get lost, every op happens once.
func TestLinkOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault func(*redistest.Proxy)
	}{
		{"an answer is lost", (*redistest.Proxy).DropAnswer},
		{"a reset before the answer", func(p *redistest.Proxy) { p.ResetAfter(0) }},
		{"a reset within the time", func(p *redistest.Proxy) { p.ResetAfter(9) }},
		{"a reset within the answers", func(p *redistest.Proxy) { p.ResetAfter(40) }},
		{"cut for a moment", func(p *redistest.Proxy) { p.Cut(); p.Heal() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newLinkTest(t, patient)
			const rounds, callers, each = 20, 8, 10
			var mu sync.Mutex
			answers := map[string]bool{}
			for range rounds {
				c.fault(x.proxy)
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						for range each {
							o := countOp("key")
							if err := x.do(t.Context(), o); err != nil {
								t.Error(err)
							}
							mu.Lock()
							answers[string(o.answer)] = true
							mu.Unlock()
						}
					})
				}
				all.Wait()
			}
			const n = rounds * callers * each
			x.counted("key", n)
			if len(answers) != n {
				t.Errorf("%d of %d answers differ", len(answers), n)
			}
			if x.lost(0) != nil {
				t.Error("lost")
			}
		})
	}
}

// A caller that leaves before its op is sent has done nothing.
func TestLinkLeaveBefore(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.do(ended, countOp("key")); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "ratelimit: not asked: ") {
		t.Error(err)
	}
	release := x.hold()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	left := make(chan error)
	for range 3 {
		go func() { left <- x.do(ctx, countOp("key")) }()
	}
	stay := countOp("key")
	stayed := make(chan error)
	x.until(func() bool { return x.queued == 3 })
	go func() { stayed <- x.do(t.Context(), stay) }()
	x.until(func() bool { return x.queued == 4 })
	cancel()
	for range 3 {
		if err := <-left; !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "ratelimit: not asked: ") {
			t.Error(err)
		}
	}
	x.until(func() bool { return x.queued == 1 })
	release()
	if err := <-stayed; err != nil || string(stay.answer) != "1" {
		t.Error(string(stay.answer), err)
	}
	x.idle()
	x.counted("key", 1)
}

// A caller that leaves after its op was sent gets the answer through late. The end of a context
// does not open the breaker.
func TestLinkLeaveAfter(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	x.count("key", 1)
	x.idle()
	x.proxy.StallAnswers()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := countOp("key")
	answers := make(chan string, 10)
	var before int64
	o.late = func(r result) {
		if x.now() < before {
			t.Error("an old answer has put the clock back")
		}
		answers <- string(r.answer)
		further := countOp("key")
		further.late = func(r result) { answers <- string(r.answer) }
		if err := x.send(further); err != nil {
			t.Error(err)
		}
	}
	left := make(chan error)
	go func() { left <- x.do(ctx, o) }()
	x.until(func() bool { return o.state == opSent })
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "not asked") {
		t.Error(err)
	}
	if x.lost(0) != nil {
		t.Error("lost")
	}
	for at := x.now(); before < at+int64(20*time.Millisecond); before = x.now() {
		runtime.Gosched() // the answer grows old
	}
	x.proxy.Heal()
	if a, b := <-answers, <-answers; a != "2" || b != "3" {
		t.Error(a, b)
	}
	x.idle()
	x.counted("key", 3)
	if len(answers) > 0 || len(x.changes) > 0 {
		t.Error("more is said than happened")
	}
}

// An op that is given up because the server is silent happens once, or not at all, and late is
// called if it has happened.
func TestLinkLate(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	x.count("key", 1)
	x.idle()
	x.wait(500 * time.Millisecond)
	x.proxy.Stall()
	o := countOp("key")
	answers := make(chan string, 10)
	o.late = func(r result) { answers <- string(r.answer) }
	if err := x.do(t.Context(), o); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), x.proxy.Addr) {
		t.Error(err)
	}
	x.change(true)
	x.proxy.Heal()
	if a := <-answers; a != "2" {
		t.Error(a)
	}
	x.change(false)
	x.idle()
	x.wait(patient)
	x.count("key", 3)
	x.idle()
	x.counted("key", 3)
	if len(answers) > 0 {
		t.Error("late twice")
	}
}

func TestLinkNoScript(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	for i := range 3 {
		x.count("key", i+1)
		if _, err := x.server.Do("FUNCTION", "FLUSH"); err != nil {
			t.Fatal(err)
		}
	}
}

// More ops than a link holds fail at once.
func TestLinkOverload(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	x.hold()
	for range maxQueued {
		if err := x.send(countOp("key")); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.do(t.Context(), countOp("key")); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "overloaded") {
		t.Error(err)
	}
	if x.lost(0) != nil {
		t.Error("lost")
	}
	o := &op{keys: make([]string, maxKeys+1)}
	if err := x.do(t.Context(), o); err == nil || !strings.Contains(err.Error(), "65535") {
		t.Error(err)
	}
}

func TestLinkClose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fault   func(*redistest.Proxy)
		timeout time.Duration
		want    []error // of the op that is under way: one of these
	}{
		{"an answer comes", func(p *redistest.Proxy) { p.Delay(20 * time.Millisecond) }, patient, []error{nil}},
		{"no connection", (*redistest.Proxy).Cut, patient, []error{store.ErrClosed}},
		{"no answer", (*redistest.Proxy).Stall, 500 * time.Millisecond, []error{store.ErrClosed, ErrLost}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := newLinkTest(t, c.timeout)
			x.count("key", 1)
			x.idle()
			c.fault(x.proxy)
			o := countOp("key")
			underway := make(chan error)
			go func() { underway <- x.do(t.Context(), o) }()
			x.until(func() bool { return o.state == opSent })
			waits := make(chan error)
			go func() { waits <- x.do(t.Context(), countOp("key")) }()
			x.until(func() bool { return x.queued == 1 })
			x.close()
			if err := <-waits; !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
			err := <-underway
			if !slices.ContainsFunc(c.want, func(want error) bool { return errors.Is(err, want) }) {
				t.Error(err)
			}
			if err := x.do(t.Context(), countOp("key")); !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
			if err := x.send(countOp("key")); !errors.Is(err, store.ErrClosed) {
				t.Error(err)
			}
			x.close()
		})
	}
}

// A given clock is used whatever the server's.
func TestLinkClock(t *testing.T) {
	t.Parallel()
	now := int64(1_700_000_000_000_000_123)
	l := newLink(dial(t, redistest.New(t).Addr), linkConfig{
		namespace: "test", timeout: patient, script: counting, clock: func() int64 { return now },
	})
	defer l.close()
	for _, step := range []int64{0, 1, 999_999_999, 3600e9, -7200e9} {
		now += step
		o := &op{keys: []string{linkKey("key")}, body: []byte("time")}
		if err := l.do(t.Context(), o); err != nil || o.at != now || l.now() != now {
			t.Error(o.at, l.now(), now, err)
		}
		if want := fmt.Sprint(now/1e9, now%1e9); string(o.answer) != want {
			t.Errorf("%s; want %s", o.answer, want)
		}
	}
}
