package redisstore

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/store"
	"github.com/redis/rueidis"
)

// broken is a client whose connection breaks whenever it is used.
type broken struct {
	rueidis.Client
	err      error // of every command; nil: io.EOF
	mu       sync.Mutex
	commands [][]string
}

func (b *broken) Do(_ context.Context, c rueidis.Completed) rueidis.RedisResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commands = append(b.commands, slices.Clone(c.Commands()))
	return rueidis.NewErrorResult(cmp.Or(b.err, io.EOF))
}

// A batch that may have run is sent again unchanged, less and less often, and given up before its
// marker may have expired.
func TestLinkUnresolved(t *testing.T) {
	t.Parallel()
	client := &broken{Client: dial(t, redistest.New(t).Addr)}
	synctest.Test(t, func(t *testing.T) {
		lost := 0
		l := newLink(client, linkConfig{namespace: "test", timeout: time.Second, script: counting, changed: func(c change) {
			if !c.lost || !errors.Is(c.err, io.EOF) {
				t.Errorf("%+v", c)
			}
			lost++
		}})
		defer l.close()
		start := time.Now()
		o := countOp("key")
		o.late = func(r result) {
			if r.err == nil || r.notRun {
				t.Errorf("there was no answer: %+v", r)
			}
		}
		if err := l.do(t.Context(), o); !errors.Is(err, ErrLost) || time.Since(start) != time.Second {
			t.Error(err, time.Since(start))
		}
		time.Sleep(resendFor - 2*time.Second)
		if !busy(l) {
			t.Error("given up")
		}
		time.Sleep(3 * time.Second)
		if busy(l) {
			t.Error("not given up")
		}
		if l.lost(0) == nil || lost != 1 {
			t.Error("lost once", lost)
		}
	})
	var tries, probes int
	for _, c := range client.commands {
		if c[2] == "2" { // a marker and the birth mark, and no key
			probes++
			continue
		}
		tries++
		if !slices.Equal(c, client.commands[0]) {
			t.Error(c)
		}
	}
	if tries < 45 || tries > 100 || probes < 40 || probes > 100 {
		t.Error(tries, probes)
	}
}

// Callers of a batch that may have run learn so when the link is closed.
func TestLinkCloseUnresolved(t *testing.T) {
	t.Parallel()
	client := &broken{Client: dial(t, redistest.New(t).Addr)}
	synctest.Test(t, func(t *testing.T) {
		l := newLink(client, linkConfig{namespace: "test", timeout: time.Second, script: counting})
		time.AfterFunc(time.Second/2, l.close)
		o := countOp("key")
		if err := l.do(t.Context(), o); !errors.Is(err, store.ErrClosed) || !o.unanswered {
			t.Error(err, o.unanswered)
		}
	})
}

// A settlement whose caller has left, and that never reached the server, has not happened. One that
// may have reached it counts as done.
func TestFateOfSettlements(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err      error
		happened bool
	}{
		"no connection":     {&net.OpError{Op: "dial", Err: io.EOF}, false},
		"broken connection": {io.EOF, true},
	} {
		client := &broken{Client: dial(t, redistest.New(t).Addr), err: test.err}
		synctest.Test(t, func(t *testing.T) {
			r := newRemote(client, "test", time.Second, nil, nil)
			defer r.Close()
			err := r.do(t.Context(), countOp("key"))
			u, ok := errors.AsType[unanswered](err)
			if !ok || !errors.Is(err, ErrLost) {
				t.Fatalf("%s: %v", name, err)
			}
			<-u.fate.done
			if u.fate.happened != test.happened {
				t.Errorf("%s: happened: %v; want %v", name, u.fate.happened, test.happened)
			}
		})
	}
}

func busy(l *link) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queues[0].sending
}
