package scenarios

import (
	"strings"
	"sync"
	"syscall"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// counted has limits whose counts a restart must keep.
const counted = `
providers:
  openai:
    base_url: MOCK
    models:
      requests: {max_rpm: 100}
      tokens: {max_tpm: 10000}
defaults: {max_wait: 0s}
server: {drain: 30s}
`

const (
	workers = 8
	perCall = 64 // tokens of output

	countedRequests = 100
	countedTokens   = 10_000
	midLoad         = 50 // calls
)

// hammer lets workers send one call after another, half of them for each model, until each
// gets another answer than 200. end returns these answers by status; 0 is no answer.
func hammer(g *gatewayURLs) (end func() (last map[int]int)) {
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
				if a.status == 503 && strings.Contains(a.body, "limits cannot be checked") {
					continue // on a busy machine, Redis may not answer in time
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

// within expects that as many calls have come as the limits allow, and that at most so many
// are missing as were lost on the way.
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

// A restart under load lets requests in progress finish, refuses others, and keeps all
// counts.
func TestRestart(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		file := written(t, counted, p)
		g := launch(t, file, state)
		p.blockAfter(midLoad)
		ended := hammer(&g.gatewayURLs)
		testkit.Eventually(t, "all workers wait", func() bool { return p.blocks(workers) })
		g.signal(t, syscall.SIGTERM)
		g.log.Await(t, "draining: new requests are refused")
		if a := (call{model: "requests"}).must(t, &g.gatewayURLs, 503); a.header.Get("Retry-After") == "" {
			t.Errorf("a new call gets %v", a.header)
		}
		served := len(p.arrivals(""))
		p.release()
		last := ended()
		g.wait(t)
		if g.err != nil {
			t.Errorf("%v\n%s", g.err, g.log)
		}
		if last[503]+last[0] != workers || len(p.arrivals("")) != served {
			t.Errorf("the workers have ended with %v; %d calls have come, %d before", last, len(p.arrivals("")), served)
		}
		again := launch(t, file, state)
		if last := hammer(&again.gatewayURLs)(); last[429] != workers {
			t.Errorf("afterwards, the workers have ended with %v", last)
		}
		within(t, p, 0)
	})
}

// A gateway that is killed under load, at any moment, loses the count of no call that it has
// sent to the provider.
func TestKill(t *testing.T) {
	for name, blocked := range map[string]bool{"while all are sent": true, "at any moment": false} {
		t.Run(name, func(t *testing.T) {
			onLasting(t, func(t *testing.T, state string) {
				p := newProvider(t)
				file := written(t, counted, p)
				g := launch(t, file, state)
				lost := workers
				if blocked {
					lost = 0
					p.blockAfter(midLoad)
				}
				ended := hammer(&g.gatewayURLs)
				testkit.Eventually(t, "it is in mid-load", func() bool {
					return len(p.arrivals("")) >= midLoad && (p.blocks(workers) || !blocked)
				})
				g.signal(t, syscall.SIGKILL)
				g.wait(t)
				p.release()
				if last := ended(); last[0] == 0 {
					t.Errorf("the workers have ended with %v", last)
				}
				again := launch(t, file, state)
				if last := hammer(&again.gatewayURLs)(); last[429] != workers {
					t.Errorf("afterwards, the workers have ended with %v", last)
				}
				within(t, p, lost)
			})
		})
	}
}
