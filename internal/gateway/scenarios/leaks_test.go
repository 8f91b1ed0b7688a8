package scenarios

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// leaky has one budget for calls that end in every way.
const leaky = `
providers:
  openai: {base_url: MOCK, retries: 1, models: {busy: {max_concurrent: 1}}}
  anthropic: {base_url: MOCK}
  slow: {kind: openai, base_url: MOCK, timeout: 1s}
  gone: {kind: openai, base_url: "http://127.0.0.1:1"}
prices:
  "*": {input: 0, output: 100, request: 0.02}
defaults: {max_wait: 5m}
server: {read_on: 1s}
projects:
  acme: {dollars: 100}
  "acme/*": {dollars: 50}
`

// messages is the path of Anthropic's calls.
const messages = "/anthropic/v1/messages"

// ends are the ways in which a call may end, and what it costs then: what the provider reports,
// nothing if the provider has rejected it, has failed with a 5xx or has never got it, or else what was
// reserved.
var ends = []struct {
	project string
	call    call
	status  int
	cost    price.Amount
}{
	{"whole", call{mock: "output=10"}, 200, cost},
	{"stream", call{mock: "output=10", stream: true}, 200, cost},
	{"claude", call{path: messages, mock: "output=10"}, 200, cost},
	{"claude-stream", call{path: messages, mock: "output=10", stream: true}, 200, cost},
	{"retried", call{mock: "output=10", text: "flaky"}, 200, cost}, // the first attempt was answered with a 500
	{"rejected", call{mock: "status=400"}, 400, 0},
	{"forbidden", call{mock: "status=403", stream: true}, 403, 0},
	{"claude-rejected", call{path: messages, mock: "status=400", stream: true}, 400, 0},
	{"unreached", call{path: "/gone/v1/chat/completions"}, 502, 0},
	{"too-dear", call{output: 1_000_000}, 400, 0},
	{"late", call{path: "/slow/v1/chat/completions", mock: "delay=1h"}, 504, reserved},
	{"reset", call{mock: "fault=reset"}, 502, reserved},
	{"broken", call{mock: "output=10 fault=end after=3", stream: true}, 200, reserved},
	{"claude-broken", call{path: messages, mock: "output=10 fault=end after=3", stream: true}, 200, reserved},
}

// eachEnd is how many calls end in each way.
const eachEnd = 3

// failFirst lets the first attempt of each call fail whose text is flaky.
func failFirst() func(mockprovider.Call) mockprovider.Reply {
	var seen sync.Map
	return func(c mockprovider.Call) mockprovider.Reply {
		if _, again := seen.LoadOrStore(string(c.Body), true); !again && strings.Contains(string(c.Body), "flaky") {
			return mockprovider.Reply{Status: 500, Header: http.Header{"Retry-After": {"0"}}}
		}
		return mockprovider.FromHeader(c)
	}
}

// However calls end, what they have reserved and not used is free again, so no call is refused
// that fits into what is left.
// LiteLLM #27639 and #40050: reservations of calls stay that fail, or whose clients leave, until
// calls are refused although little was spent.
func TestNothingStaysReserved(t *testing.T) {
	onEach(t, func(t *testing.T, state string) {
		p := newProvider(t)
		p.Server = mockprovider.New(mockprovider.Config{Script: failFirst()})
		g := start(t, leaky, state, p)
		want := map[string]price.Amount{
			"acme/left": eachEnd * reserved, "acme/claude-left": eachEnd * reserved, "acme/busy": reserved, "acme/waiting": 0,
		}
		leave(t, g)
		redis := strings.HasPrefix(state, "redis://") // which may not answer in time on a busy machine
		var all sync.WaitGroup
		var mu sync.Mutex
		for _, e := range ends {
			for i := range eachEnd {
				c := e.call.by("acme/" + e.project)
				c.model, c.output, c.text = "m", max(c.output, 100), fmt.Sprint(c.text, i)
				all.Go(func() {
					said, err := c.to(&g.gatewayURLs)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case said.status == e.status:
						want[c.project] += e.cost
					case redis && said.status == 503:
					case redis && said.status == 500 && e.project == "retried": // the second attempt was not admitted
					default:
						t.Errorf("%s: %d %s, %v", e.project, said.status, said.body, err)
					}
				})
			}
		}
		all.Wait()
		sum := price.Amount(0)
		for _, spent := range want {
			sum += spent
		}
		want["acme"] = sum
		g.wantSpent(t, want)

		if err := g.Gateway.Projects().SetLimit("acme", project.Limit{Dollars: sum + 2*cost + reserved}); err != nil {
			t.Fatal(err)
		}
		for _, status := range []int{200, 200, 200, 402} {
			paid.by("acme/last").must(t, &g.gatewayURLs, status)
		}
	})
}

// leave lets clients leave in the middle of their streams, and while they wait for their turns.
func leave(t *testing.T, g *inProcess) {
	t.Helper()
	of := call{model: "m", output: 100, stream: true, mock: "fault=stall after=3"}
	busy := of.by("acme/busy")
	busy.model = "busy"
	leaving, waiting := []*caller{begun(t, g, busy)}, []*caller{}
	for range eachEnd {
		claude := of.by("acme/claude-left")
		claude.path = messages
		leaving = append(leaving, begun(t, g, of.by("acme/left")), begun(t, g, claude))
		waits := connect(t, g.address())
		if _, err := io.WriteString(waits, busy.by("acme/waiting").raw()); err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, waits)
	}
	testkit.Eventually(t, "calls wait", func() bool { return g.Gateway.Models().Waiting("busy") == eachEnd })
	for _, c := range waiting {
		c.Close()
	}
	testkit.Eventually(t, "none waits", func() bool { return g.Gateway.Models().Waiting("busy") == 0 })
	for _, c := range leaving {
		c.Close()
	}
}

// begun returns a caller whose stream has begun.
func begun(t *testing.T, g *inProcess, of call) *caller {
	t.Helper()
	c := connect(t, g.address())
	if said, err := c.send(of.raw()); err != nil || said.StatusCode != 200 {
		t.Fatalf("%+v: %v, %v", of, said, err)
	}
	return c
}
