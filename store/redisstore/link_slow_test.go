package redisstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"github.com/redis/rueidis"
)

// slow is a client of a slow server. A command that is given up closes the connection, and the next one needs another.
type slow struct {
	rueidis.Client
	batch, probe rueidis.RedisResult // the answers to a batch with one op, and to one without any

	mu            sync.Mutex
	connect, call time.Duration // how long the server takes for a connection, and for a command
	connected     bool
}

func (s *slow) Do(ctx context.Context, c rueidis.Completed) rueidis.RedisResult {
	s.mu.Lock()
	takes := s.call
	if !s.connected {
		takes += s.connect
	}
	s.mu.Unlock()
	err := ctx.Err()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	s.connected = err == nil
	s.mu.Unlock()
	switch {
	case err != nil:
		return rueidis.NewErrorResult(err)
	case c.Commands()[2] == "2": // a marker and the birth mark, and no key
		return s.probe
	}
	return s.batch
}

// A connection may take longer to make than calls wait, and the server is back. If answers take longer, it stays lost.
// Either way a change that was sent to it has its answer.
func TestLinkSlow(t *testing.T) {
	t.Parallel()
	const quick = 10 * time.Millisecond
	for _, c := range []struct {
		name          string
		connect, call time.Duration
		reads         bool // only the prober goes on
		back          bool
	}{
		{"connection", time.Second, quick, false, true},
		{"connection of the prober", time.Second, quick, true, true},
		{"answers", 0, 300 * time.Millisecond, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client := dial(t, redistest.New(t).Addr)
			answer := func(text string) rueidis.RedisResult {
				return client.Do(t.Context(), client.B().Echo().Message(text).Build())
			}
			server := &slow{
				Client: client, connect: c.connect, call: c.call,
				batch: answer("1 born 7 0 1\n5"), probe: answer("1 born 7 0\n"),
			}
			synctest.Test(t, func(t *testing.T) {
				l := newLink(server, linkConfig{namespace: "test", timeout: 250 * time.Millisecond, script: counting})
				defer l.close()
				o, late := countOp("key"), make(chan result, 1)
				o.reads, o.late = c.reads, func(r result) { late <- r }
				if err := l.do(t.Context(), o); !errors.Is(err, ErrLost) {
					t.Error(err)
				}
				synctest.Wait()
				if l.lost(0) == nil {
					t.Error("not lost")
				}
				if !c.reads {
					if r := <-late; r.err != nil || string(r.answer) != "5" {
						t.Errorf("answered late: %q, %v", r.answer, r.err)
					}
				}
				time.Sleep(3 * time.Second)
				if err := l.lost(0); (err == nil) != c.back {
					t.Error(err)
				}
				server.mu.Lock()
				server.call = quick
				server.mu.Unlock()
				time.Sleep(3 * time.Second)
				if err := l.lost(0); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
