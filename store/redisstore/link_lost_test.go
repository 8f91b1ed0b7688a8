package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"github.com/redis/rueidis"
)

// serverDoAll runs commands on the server itself.
func serverDoAll(t *testing.T, s *redistest.Server, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if _, err := s.Do(strings.Fields(c)...); err != nil {
			t.Fatal(c, err)
		}
	}
}

// Whatever is wrong with the server: callers get an error in time, then at once, and everything
// works again when the server does.
func TestLinkLostAndBack(t *testing.T) {
	t.Parallel()
	do := func(commands ...string) func(*linkTest) {
		return func(x *linkTest) { serverDoAll(x.t, x.server, commands...) }
	}
	heal := func(x *linkTest) { x.proxy.Heal() }
	for _, c := range []struct {
		name string
		lose func(*linkTest)
		why  string // in the error: one of these, by what a busy machine notices first
		back func(*linkTest)
	}{
		{"out of memory", do("CONFIG SET maxmemory 1"), "raise the server's maxmemory", do("CONFIG SET maxmemory 0")},
		{"a replica", do("REPLICAOF 127.0.0.1 1"), "connect to its master", do("REPLICAOF NO ONE")},
		{"too few replicas", do("CONFIG SET min-replicas-to-write 1"), "min-replicas-to-write", do("CONFIG SET min-replicas-to-write 0")},
		{"no permission", do("ACL SETUSER default -@scripting"), "the user needs", do("ACL SETUSER default +@scripting")},
		{"no permission to write", do("ACL SETUSER default -set"), "can't run this command|no permissions to run", do("ACL SETUSER default +set")},
		{"killed", func(x *linkTest) { x.server.Kill() }, "no connection|no answer", func(x *linkTest) {
			if err := x.server.Restart(); err != nil {
				x.t.Fatal(err)
			}
		}},
		{"paused", func(x *linkTest) { x.server.Pause() }, "no answer", func(x *linkTest) { x.server.Resume() }},
		{"cut", func(x *linkTest) { x.proxy.Cut() }, "no connection|no answer", heal},
		{"stalled", func(x *linkTest) { x.proxy.Stall() }, "no answer", heal},
		{"answers are lost", func(x *linkTest) { x.proxy.StallAnswers() }, "no answer", heal},
		{"slow", func(x *linkTest) { x.proxy.Delay(patient) }, "no answer", heal},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			x := newLinkTest(t, patient)
			// As New has it for such a timeout: the client closes a connection that is silent for so long.
			x.client = connect(t, rueidis.ClientOption{InitAddress: []string{x.proxy.Addr}, ConnWriteTimeout: time.Second})
			for range 2 {
				x.count("before", 1)
				serverDoAll(t, x.server, "DEL "+linkKey("before"))
				x.idle()
				x.wait(500 * time.Millisecond)
				c.lose(x)
				o := countOp("key")
				late := 0
				o.late = func(r result) {
					if r.err == nil {
						late++
					}
				}
				if err := x.do(t.Context(), o); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), x.proxy.Addr) || !regexp.MustCompile(c.why).MatchString(err.Error()) {
					t.Error(err)
				}
				lost := x.change(true)
				if !regexp.MustCompile(c.why).MatchString(lost.err.Error()) {
					t.Errorf("%v; want %s", lost.err, c.why)
				}
				if x.lost(0) == nil {
					t.Error("not lost")
				}
				var all sync.WaitGroup
				for range 100 {
					all.Go(func() {
						if err := x.do(t.Context(), countOp("key")); err != lost.err {
							t.Error(err)
						}
					})
				}
				all.Wait()
				c.back(x)
				x.change(false)
				if x.lost(0) != nil {
					t.Error("lost")
				}
				x.idle()
				x.counted("key", late)
				if o.unanswered != (late == 1) || late > 1 {
					t.Errorf("unanswered %v, and answered late %d times", o.unanswered, late)
				}
				serverDoAll(t, x.server, "DEL "+linkKey("key"))
				x.wait(patient)
			}
			if len(x.changes) > 0 {
				t.Errorf("%+v", <-x.changes)
			}
			if c.name == "slow" && time.Since(start) > patient {
				t.Error("it waited for the answers")
			}
		})
	}
}

// The link waits for a server that will serve soon.
func TestLinkTransientErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lose, code, back string }{
		{"REPLICAOF 127.0.0.1 1", "READONLY", "REPLICAOF NO ONE"},
		{"CONFIG SET min-replicas-to-write 1", "NOREPLICAS", "CONFIG SET min-replicas-to-write 0"},
	} {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			x := newLinkTest(t, patient)
			x.count("key", 1)
			serverDoAll(t, x.server, c.lose)
			o := countOp("key")
			done := make(chan error)
			go func() { done <- x.do(t.Context(), o) }()
			for refused := false; !refused; {
				stats, err := x.server.Do("INFO", "errorstats")
				if err != nil {
					t.Fatal(err)
				}
				refused = strings.Contains(stats.(string), "errorstat_"+c.code)
			}
			serverDoAll(t, x.server, c.back)
			if err := <-done; err != nil || string(o.answer) != "2" {
				t.Error(string(o.answer), err)
			}
			if len(x.changes) > 0 {
				t.Errorf("%+v", <-x.changes)
			}
		})
	}
}

func TestLinkOutcomes(t *testing.T) {
	t.Parallel()
	client := dial(t, redistest.New(t).Addr)
	replied := func(text string) error {
		script := "return redis.error_reply(ARGV[1])"
		return client.Do(t.Context(), client.B().Eval().Script(script).Numkeys(0).Arg(text).Build()).Error()
	}
	for _, c := range []struct {
		err  error
		want outcome
	}{
		{io.EOF, outcomeUnknown},
		{context.DeadlineExceeded, outcomeUnknown},
		{&net.OpError{Op: "read", Err: io.EOF}, outcomeUnknown},
		{&net.OpError{Op: "dial", Err: io.EOF}, outcomeNotRun},
		{replied("LOADING the data"), outcomeNotRun},
		{replied("MASTERDOWN for now"), outcomeNotRun},
		{replied("CLUSTERDOWN for now"), outcomeNotRun},
		{replied("MOVED 1 elsewhere"), outcomeNotRun},
		{replied("READONLY"), outcomeNotRun},
		{replied("ERR Function not found"), outcomeNotRun}, // its slot has just moved, or somebody flushes functions
		{replied("LATE 1700000000 12"), outcomeTooLate},
		{replied("LATE without a time"), outcomeRejected},
		{replied("STALE by now"), outcomeRejected},
		{replied("OOM there is"), outcomeRejected},
		{replied("MISCONF there is"), outcomeRejected},
		{replied("NOAUTH given"), outcomeRejected},
		{replied("ERR of any other kind"), outcomeRejected},
		{malformed{io.EOF}, outcomeRejected},
	} {
		if got := outcomeOf(c.err); got != c.want {
			t.Errorf("%v: %d; want %d", c.err, got, c.want)
		}
	}
}

// An op that the server rejects has not happened, and does not happen later. But if its caller has left
// and knows that it may happen, it does happen.
func TestLinkFinishesUnwaitedOps(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	x.count("key", 1)
	x.idle()
	release := x.hold()
	left, leave := context.WithCancel(t.Context())
	defer leave()
	owed, own, sentOff := countOp("owed"), countOp("own"), countOp("sent off")
	answers := make(chan string, 10)
	owed.late = func(r result) { answers <- "owed " + string(r.answer) }
	own.late = func(r result) { answers <- "own " + string(r.answer) }
	sentOff.late = func(r result) { answers <- "sent off " + string(r.answer) }
	gone, refused := make(chan error), make(chan error)
	go func() { gone <- x.do(left, owed) }()
	go func() { refused <- x.do(t.Context(), own) }()
	if err := x.send(sentOff); err != nil {
		t.Fatal(err)
	}
	x.until(func() bool { return x.queued == 3 })
	serverDoAll(t, x.server, "CONFIG SET maxmemory 1")
	x.server.Pause()
	release()
	x.until(func() bool { return owed.state == opSent })
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) || !owed.unanswered {
		t.Error(err, owed.unanswered)
	}
	x.server.Resume()
	if err := <-refused; !errors.Is(err, ErrLost) || own.unanswered {
		t.Error(err, own.unanswered)
	}
	x.change(true)

	x.mu.Lock() // the link looks for the server all the time
	reads := x.newBatch(&x.queues[0])
	x.mu.Unlock()
	reads.reads = true
	x.sendBatch(reads)
	if x.lost(0) == nil {
		t.Error("a server that can only read is back")
	}

	serverDoAll(t, x.server, "CONFIG SET maxmemory 0")
	x.change(false)
	x.idle()
	close(answers)
	var all []string
	for a := range answers {
		all = append(all, a)
	}
	slices.Sort(all)
	if !slices.Equal(all, []string{"owed 1", "sent off 1"}) {
		t.Error(all)
	}
	x.counted("own", 0)
	x.counted("owed", 1)
	x.counted("sent off", 1)
}

// hooked is a client that runs a function when it is asked for its nodes. The link asks for them
// between an error of the server and the answer to the waiting callers.
type hooked struct {
	rueidis.Client
	hook func()
}

func (h hooked) Nodes() map[string]rueidis.Client {
	h.hook()
	return h.Client.Nodes()
}

// If a caller leaves just when the server has rejected its op, its error says that the op may happen.
// The op does happen: otherwise a settlement would be lost.
func TestLinkLeftWhileRefused(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	x.count("key", 1)
	x.idle()
	left, leave := context.WithCancel(t.Context())
	defer leave()
	o := countOp("key")
	late := ""
	o.late = func(r result) { late = string(r.answer) }
	x.client = hooked{x.client, func() {
		leave()
		x.until(func() bool { return o.state == opFinished })
	}}
	serverDoAll(t, x.server, "CONFIG SET maxmemory 1")
	if err := x.do(left, o); !errors.Is(err, context.Canceled) || !o.unanswered {
		t.Error(err, o.unanswered)
	}
	x.change(true)
	serverDoAll(t, x.server, "CONFIG SET maxmemory 0")
	x.change(false)
	x.idle()
	if late != "2" {
		t.Errorf("answered late: %q; want 2", late)
	}
	x.counted("key", 2)
}

// Callers that wait when the server is lost are answered at once.
func TestLinkLostWhileWaiting(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	release := x.hold()
	defer release()
	results := make(chan error)
	for range 10 {
		go func() { results <- x.do(t.Context(), countOp("key")) }()
	}
	x.until(func() bool { return x.queued == 10 })
	want := fmt.Errorf("%w: for a test", ErrLost)
	x.trip(&x.queues[0], want)
	for range 10 {
		if err := <-results; err != want {
			t.Error(err)
		}
	}
	x.change(true)
	x.change(false) // the prober has found it
	x.counted("key", 0)
}

// Changes are reported in order, however fast they come.
func TestLinkChanges(t *testing.T) {
	t.Parallel()
	x := newLinkTest(t, patient)
	for range 100 {
		x.trip(&x.queues[0], ErrLost)
		x.mu.Lock()
		x.heal(x.queues[0].breaker)
		x.mu.Unlock()
	}
	for range 100 {
		x.change(true)
		x.change(false)
	}
}
