package gateway

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// The calls of spenders may cost $0.123 each, and cost $0.005 on the average.
const (
	spenders      = 60
	spenderMost   = 8_192 // tokens
	spenderMean   = 330
	nanosOfInput  = 3_000 // nanodollars a token
	nanosOfOutput = 15_000
	nanosOfDollar = 1_000_000_000
)

// spent is how much of a budget was used, as the provider has counted it.
type spent struct {
	nanos, tokens int64
	dearest       int64 // the most that a call could cost, in nanodollars
	calls         int64
	took          time.Duration
}

// spend lets workers make calls on a project's budget in simulated time: until each of them is denied, or streams for
// almost a minute.
func spend(t *testing.T, limits string, streams bool) (total spent) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var nanos, tokens, calls, dearest atomic.Int64
		provider := mockprovider.New(mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
			n := calls.Add(1)
			length := min(answerLength(int(n)), c.MaxOutput)
			dearest.Store(max(dearest.Load(), int64(len(c.Body))*nanosOfInput+spenderMost*nanosOfOutput))
			tokens.Add(int64(c.Prompt))
			nanos.Add(int64(c.Prompt) * nanosOfInput)
			count := func(n int) bool {
				tokens.Add(int64(n))
				nanos.Add(int64(n) * nanosOfOutput)
				return true
			}
			if streams {
				return mockprovider.Reply{Output: length, Chunk: 4, Event: count, Delay: 40 * time.Millisecond}
			}
			count(length)
			return mockprovider.Reply{Output: 1, Hidden: length - 1, Delay: time.Duration(length) * 10 * time.Millisecond}
		}})
		transport, stop := provider.InMemory()
		defer stop()
		g, err := New(gatewaytest.Config(t, fmt.Sprintf(`
providers: {local: {base_url: MOCK, models: {m: {max_rpm: 1_000_000}}}}
prices: {m: {input: 3, output: 15}}
projects: {p: {%s}}
`, limits), "http://127.0.0.1:1"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		g.setup.Load().upstreams["local"].deployments[0].transport = transport
		began := time.Now()
		var tasks sync.WaitGroup
		for range spenders {
			tasks.Go(func() {
				for time.Since(began) < 55*time.Second || !streams {
					if !passes(t, g, streams) {
						if !streams {
							return
						}
						time.Sleep(time.Second)
					}
				}
			})
		}
		tasks.Wait()
		total = spent{nanos.Load(), tokens.Load(), dearest.Load(), calls.Load(), time.Since(began)}
		t.Logf("%s: %d calls, %d nanodollars, %d tokens in %v", limits, total.calls, total.nanos, total.tokens, total.took)
	})
	return total
}

// passes makes a call, and reports whether it has passed.
func passes(t *testing.T, g *Gateway, stream bool) bool {
	body := fmt.Sprintf(`{"model":"m","max_tokens":%d,"stream":%v,"messages":[{"role":"user","content":"Tell me of the sea."}]}`, spenderMost, stream)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/local/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Project-ID", "p")
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	switch w.Code {
	case http.StatusOK:
		return true
	case http.StatusPaymentRequired, http.StatusTooManyRequests:
	default:
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	return false
}

// answerLength returns how many tokens the answer to a call has: exponential, and the same in every run.
func answerLength(call int) int {
	dice := rand.New(rand.NewPCG(1, uint64(call)))
	return min(max(int(math.Round(dice.ExpFloat64()*spenderMean)), 1), spenderMost)
}

// Without waiting, what is left of a budget is less than the dearest call could cost.
func TestABudgetIsUsedWithoutWaiting(t *testing.T) {
	got := spend(t, "dollars: 1, max_wait: 0s", false)
	if got.nanos > nanosOfDollar || got.nanos < nanosOfDollar-got.dearest {
		t.Errorf("$1 is used to %d nanodollars, where a call costs %d at most", got.nanos, got.dearest)
	}
}

// Calls that may wait, wait for what others have reserved, and those that are fitted use a budget up to its end.
func TestABudgetIsUsedUpToItsEnd(t *testing.T) {
	got := spend(t, "dollars: 1, max_wait: 10m, fit: true", false)
	if got.nanos > nanosOfDollar || got.nanos < nanosOfDollar*97/100 {
		t.Errorf("$1 is used to %d nanodollars", got.nanos)
	}
}
