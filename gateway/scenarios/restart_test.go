package scenarios

import (
	"sync"
	"syscall"
	"testing"
)

// counted is limits that a restart must not lose count of.
const counted = `
providers:
  openai:
    base_url: MOCK
    models:
      requests: {max_rpm: 200}
      tokens: {max_tpm: 20000}
defaults: {max_wait: 0s}
server: {drain: 30s}
`

const (
	workers = 8
	perCall = 64 // tokens of output

	countedRequests = 200
	countedTokens   = 20_000
	midLoad         = 100 // calls
)

// hammer lets workers make one call after the other, half of them of each model, until
// each has got an answer that is not 200: those are returned at the end, 0 being none.
func hammer(g *door) (end func() (last map[int]int)) {
	var tasks sync.WaitGroup
	var mu sync.Mutex
	last := map[int]int{}
	for i := range workers {
		c := call{model: []string{"requests", "tokens"}[i%2], output: perCall, text: "hello", stream: i%4 < 2}
		tasks.Go(func() {
			for {
				a, err := c.to(g)
				if err != nil {
					a.status = 0
				}
				if a.status != 200 {
					mu.Lock()
					last[a.status]++
					mu.Unlock()
					return
				}
			}
		})
	}
	return func() map[int]int {
		tasks.Wait()
		return last
	}
}

// within expects that no more has come than the limits, and, unless some of it was lost
// on the way, all that they have room for.
func within(t *testing.T, p *provider, lost int) {
	t.Helper()
	requests, tokens := p.mostAMinute("requests"), p.mostAMinute("tokens")*p.tokens("tokens")/max(p.Totals()["tokens"].Requests, 1)
	if requests > countedRequests || len(p.arrivals("requests")) < countedRequests-lost {
		t.Errorf("%d requests have come within a minute, of %d; the limit is %d", requests, len(p.arrivals("requests")), countedRequests)
	}
	if tokens > countedTokens || tokens < countedTokens-(lost+workers)*2*perCall {
		t.Errorf("%d tokens were used within a minute; the limit is %d", tokens, countedTokens)
	}
}

// A restart in mid-load lets those finish who are being served, turns others away, and
// loses count of none.
func TestRestart(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		file := written(t, counted, p)
		g := launch(t, file, state, anywhere)
		p.holdAfter(midLoad)
		ended := hammer(&g.door)
		until(t, "all workers wait", func() bool { return p.holds(workers) })
		g.tell(t, syscall.SIGTERM)
		g.log.await(t, "draining: new requests are refused", 1)
		if a := (call{model: "requests"}).must(t, &g.door, 503); a.header.Get("Retry-After") == "" {
			t.Errorf("who comes now is told %v", a.header)
		}
		served := len(p.arrivals(""))
		p.release()
		last := ended()
		if g.wait(t); g.err != nil {
			t.Errorf("%v\n%s", g.err, g.log)
		}
		if last[503]+last[0] != workers || len(p.arrivals("")) != served {
			t.Errorf("the workers have ended with %v; %d calls have come, %d before", last, len(p.arrivals("")), served)
		}
		again := launch(t, file, state, g.address())
		if last := hammer(&again.door)(); last[429] != workers {
			t.Errorf("afterwards, the workers have ended with %v", last)
		}
		within(t, p, 0)
	})
}

// A gateway that is killed in mid-load has lost count of none that it has let in: those
// that the provider was sent, and at any moment.
func TestKill(t *testing.T) {
	for name, held := range map[string]bool{"while all are sent": true, "at any moment": false} {
		t.Run(name, func(t *testing.T) {
			onLasting(t, func(t *testing.T, state string) {
				p := newProvider(t)
				file := written(t, counted, p)
				g := launch(t, file, state, anywhere)
				lost := workers
				if held {
					lost = 0
					p.holdAfter(midLoad)
				}
				ended := hammer(&g.door)
				until(t, "it is in mid-load", func() bool {
					return len(p.arrivals("")) >= midLoad && (p.holds(workers) || !held)
				})
				g.tell(t, syscall.SIGKILL)
				g.wait(t)
				p.release()
				if last := ended(); last[0] == 0 {
					t.Errorf("the workers have ended with %v", last)
				}
				again := launch(t, file, state, g.address())
				if last := hammer(&again.door)(); last[429] != workers {
					t.Errorf("afterwards, the workers have ended with %v", last)
				}
				within(t, p, lost)
			})
		})
	}
}
