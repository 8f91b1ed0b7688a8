package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// A budget of a dollar, in calls that may cost $0.123 and cost $0.005 on the average; and as many tokens a minute as
// that is.
const (
	spenderWorkers = 60
	spenderMost    = 8_192 // the max_tokens of each call
	spenderMean    = 330   // tokens of an answer, on the average
	spenderTokens  = 66_667
	spenderTime    = 12 * time.Second // for which workers make calls on a limit in tokens: their streams take a third of a second

	nanosOfInput  = 3_000 // nanodollars a token
	nanosOfOutput = 15_000
	nanosOfBudget = 1_000_000_000
	nanosOfCall   = spenderMost*nanosOfOutput + spenderPrompt*nanosOfInput // the most that a call can cost

	spenderPrompt = 1_000 // bytes of a request's prompt, and so the most tokens
)

// spender is a gateway with a budget, which workers use up.
type spender struct {
	name    string
	project string  // its settings
	tokens  bool    // the budget is in tokens, and the answers are streams
	gemini  bool    // the provider is Gemini, whose streams say with each event what was used
	least   float64 // percent of the budget that is required; 0: nothing is
}

var spenders = []spender{
	{name: "dollars, expected", project: "dollars: 1, reserve: expected"},
	{name: "dollars, most, calls wait and fit", project: "dollars: 1, max_wait: 60s, fit: true", least: 97},
	{name: "dollars, most, calls wait", project: "dollars: 1, max_wait: 60s", least: 100 - 100*float64(nanosOfCall)/nanosOfBudget},
	{name: "dollars, most, calls do not wait", project: "dollars: 1, max_wait: 0s", least: 100 - 100*float64(nanosOfCall)/nanosOfBudget},
	{name: "tokens, expected", project: spenderMinute, tokens: true},
	{name: "tokens, most", project: spenderMinute + ", reserve: most", tokens: true},
	{name: "tokens, cut", project: spenderMinute + ", on_overrun: cut", tokens: true},
	{name: "tokens, cut, Gemini's", project: spenderMinute + ", on_overrun: cut", tokens: true, gemini: true, least: 95},
}

// spenderMinute is the limit of the spenders in tokens.
var spenderMinute = fmt.Sprintf("tokens_per_minute: %d, max_wait: 0s", spenderTokens)

// proxy returns the gateway of the spender.
func (s spender) proxy() proxy {
	return proxy{name: s.name, kind: ours, start: func(upstream string) (door, error) {
		text := `
listen: 127.0.0.1:0
admin: {listen: "off"}
state: %s
keys: required
providers: {mock: {kind: ` + s.kind() + `, base_url: "http://%s", key: {env: BENCHMARKS_PROVIDER_KEY}, models: {"*": {max_rpm: 1_000_000}}}}
prices: {"*": {input: 3, output: 15}}
projects: {search: {` + s.project + `}}
log: {level: "off"}
`
		r, err := runGateway(text, "memory", upstream)
		if err != nil {
			return door{}, err
		}
		secret, _, err := r.Gateway.Keys().Create(context.Background(), "search", "benchmarks", time.Hour)
		return door{Address: r.Clients.String(), Path: "/mock", Secret: secret}, err
	}}
}

// kind returns the kind of the provider. Of neither does a model's quota reserve max_tokens.
func (s spender) kind() string {
	if s.gemini {
		return "gemini"
	}
	return "compatible"
}

// spenderProxies are the gateways of all spenders.
func spenderProxies() (all []proxy) {
	for _, s := range spenders {
		all = append(all, s.proxy())
	}
	return all
}

// spentBudget is what became of a budget.
type spentBudget struct {
	calls  int
	used   int64 // nanodollars, or tokens
	budget int64
	took   time.Duration
}

// budgetUse has workers use up budgets, and measures at the provider how much of each was used.
func budgetUse(b *bench) (result, error) {
	const name = "gateway/budget"
	rep := report{name: name, title: fmt.Sprintf("a budget that %d workers use up, in calls that may cost $%.3f and cost $0.005 on the average",
		spenderWorkers, float64(nanosOfCall)/nanosOfBudget), columns: []string{"calls", "used", "of the limit", "seconds"}}
	var checks []check
	for _, s := range spenders {
		b.step(s.name)
		got, err := s.spend(time.Duration(min(b.shrink, 20)))
		if err != nil {
			return result{}, fmt.Errorf("%s: %w", s.name, err)
		}
		percent := 100 * float64(got.used) / float64(got.budget)
		used := fmt.Sprintf("$%.6f", float64(got.used)/nanosOfBudget)
		if s.tokens {
			used = fmt.Sprintf("%d tokens", got.used)
		}
		rep.rows = append(rep.rows, row{name: s.name, kind: ours, value: percent, cells: []string{
			fmt.Sprint(got.calls), used, fmt.Sprintf("%.2f%%", percent), fmt.Sprintf("%.2f", got.took.Seconds()),
		}})
		if s.least > 0 {
			checks = append(checks, check{
				figure: name + ": " + s.name + ", of the limit", required: fmt.Sprintf("%.1f%% to 100%%", s.least),
				measured: fmt.Sprintf("%.2f%%", percent), pass: percent >= s.least && got.used <= got.budget,
			})
		}
	}
	return result{reports: []report{rep}, checks: checks}, nil
}

// spend lets workers send calls until each worker is denied. times is by how much the provider and the workers are
// faster than in the benchmark: tests have little time.
func (s spender) spend(times time.Duration) (spentBudget, error) {
	var calls, used atomic.Int64
	mock := mockprovider.New(mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
		calls.Add(1)
		length := min(answerLength(int(calls.Load())), c.MaxOutput)
		if s.tokens {
			used.Add(int64(c.Prompt))
			return mockprovider.Reply{Output: length, Chunk: 4, Event: func(tokens int) bool {
				used.Add(int64(tokens))
				return true
			}, Delay: 4 * time.Millisecond / times}
		}
		used.Add(int64(c.Prompt)*nanosOfInput + int64(length)*nanosOfOutput)
		return mockprovider.Reply{Output: 1, Hidden: length - 1, Delay: (20*time.Millisecond + time.Duration(length)*100*time.Microsecond) / times}
	}})
	provider := httptest.NewServer(mock)
	defer provider.Close()
	g, err := s.proxy().run(strings.TrimPrefix(provider.URL, "http://"))
	if err != nil {
		return spentBudget{}, err
	}
	defer g.stop()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: spenderWorkers}}
	defer client.CloseIdleConnections()
	var tasks sync.WaitGroup
	faults := make([]error, spenderWorkers)
	began := time.Now()
	for i := range faults {
		tasks.Go(func() { faults[i] = s.work(client, g.door, spenderTime/times) })
	}
	tasks.Wait()
	for _, err := range faults {
		if err != nil {
			return spentBudget{}, err
		}
	}
	got := spentBudget{int(calls.Load()), used.Load(), nanosOfBudget, time.Since(began)}
	if s.tokens {
		got.budget = spenderTokens
	}
	return got, nil
}

// work sends calls until one is denied; with a limit in tokens, for a duration.
func (s spender) work(client *http.Client, to door, d time.Duration) error {
	path, body := callPath, fmt.Appendf(nil, `{"model":"m","max_tokens":%d,"stream":%v,"messages":[{"role":"user","content":"Tell me of the sea."}]}`, spenderMost, s.tokens)
	if s.gemini {
		path = "/v1beta/models/gemini-2.0-flash:streamGenerateContent?alt=sse"
		body = fmt.Appendf(nil, `{"contents":[{"role":"user","parts":[{"text":"Tell me of the sea."}]}],"generationConfig":{"maxOutputTokens":%d}}`, spenderMost)
	}
	for began := time.Now(); !s.tokens || time.Since(began) < d; {
		r, err := http.NewRequest(http.MethodPost, "http://"+to.Address+to.Path+path, bytes.NewReader(body))
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+to.Secret)
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		switch {
		case err != nil:
			return err
		case answer.StatusCode == http.StatusOK:
		case answer.StatusCode != http.StatusPaymentRequired && answer.StatusCode != http.StatusTooManyRequests:
			return fmt.Errorf("%d: %s", answer.StatusCode, text)
		case !s.tokens:
			return nil
		default:
			time.Sleep(d / 120)
		}
	}
	return nil
}

// answerLength returns the length of the answer to a call, in tokens: exponential, and the same in every run.
func answerLength(call int) int {
	dice := rand.New(rand.NewPCG(1, uint64(call)))
	return min(max(int(math.Round(dice.ExpFloat64()*spenderMean)), 1), spenderMost)
}
