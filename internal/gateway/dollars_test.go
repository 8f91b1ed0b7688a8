package gateway

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// priced is a gateway with prices of round numbers, and a project with a budget of a cent.
const priced = `
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 100_000, max_tpm: 100_000_000}}}
prices:
  gpt-4o: {input: 2, cached_input: 0.20, output: 10}
defaults: {max_wait: 0s}
projects:
  acme: {dollars: 0.01, reserve: expected}
`

// hello38 is a call whose prompt has 38 tokens at the mock provider.
var hello38 = `{"model":"gpt-4o","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"` + strings.Repeat(" word", 37) + `"}]}`

// spentOf returns what a project has spent of its first limit.
func spentOf(t *testing.T, r *rig, id string) price.Amount {
	t.Helper()
	r.settled(t)
	d, err := r.Projects().Peek(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	w := d.Windows()[0]
	return price.Amount(w.Window.Count - w.Remaining)
}

// However many calls there are at once, a budget in dollars is not exceeded, and every stream is
// settled at what each of its parts costs.
func TestBudgetInDollars(t *testing.T) {
	r := newRig(t, priced, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
		return mockprovider.Reply{Output: 20, Cached: 30}
	}})
	const cost = 8*2_000 + 30*200 + 20*10_000
	var all sync.WaitGroup
	var passed atomic.Int64
	for range 300 {
		all.Go(func() {
			switch a := r.post(t, chat, hello38, "X-Project-ID", "acme"); {
			case a.status == http.StatusOK:
				passed.Add(1)
			case a.status != http.StatusPaymentRequired || !strings.Contains(a.body, `project \"acme\" has $0.`) || a.header.Get("X-Should-Retry") != "false":
				t.Errorf("%d %v: %s", a.status, a.header, a.body)
			}
		})
	}
	all.Wait()
	n := passed.Load()
	if spent := spentOf(t, r, "acme"); n == 0 || spent != price.Amount(n*cost) || spent > price.Dollar/100 {
		t.Errorf("%d calls have cost %v; want %v for each", n, spent, price.Amount(cost))
	}
}

// A model without a price, and a request that may cost something, are refused where dollars are
// limited, unless the configuration says what they cost.
func TestUnpriced(t *testing.T) {
	image := `{"model":"gpt-image-9","prompt":"a cat"}`
	for unpriced, want := range map[string]struct {
		status int
		spent  price.Amount
	}{
		"deny":                           {http.StatusForbidden, 0},
		"free":                           {http.StatusOK, 0},
		"{request: 0.001}":               {http.StatusOK, price.Dollar / 1000},
		"{input: 1, request: 0.001}":     {http.StatusOK, price.Dollar/1000 + 3*1_000},
		"[{request: 0.001}]":             {http.StatusOK, price.Dollar / 1000},
		"{output: 0.5, request: 0.0001}": {http.StatusOK, price.Dollar/10_000 + 4*500},
	} {
		r := newRigBefore(t, priced+"unpriced: "+unpriced+"\n", newSeen())
		a := r.post(t, chat, `{"model":"unheard-of","messages":[{"role":"user","content":"hello"}]}`, "X-Project-ID", "acme")
		if a.status != want.status {
			t.Errorf("unpriced: %s: %d %s", unpriced, a.status, a.body)
		}
		if says := `the price of model \"unheard-of\" is not known, and project \"acme\" has a limit in dollars`; want.status != http.StatusOK && !strings.Contains(a.body, says) {
			t.Errorf("unpriced: %s: %s; want %s", unpriced, a.body, says)
		}
		if spent := spentOf(t, r, "acme"); spent != want.spent {
			t.Errorf("unpriced: %s: %v is spent, want %v", unpriced, spent, want.spent)
		}
		if a := r.post(t, "/openai/v1/whatever", image, "X-Project-ID", "acme"); a.status != want.status {
			t.Errorf("an image with unpriced: %s: %d %s", unpriced, a.status, a.body)
		}
		for _, free := range []answer{
			r.do(t, http.MethodGet, "/openai/v1/models", "", "X-Project-ID", "acme"),
			r.post(t, "/openai/v1/whatever", image, "X-Project-ID", "without-a-budget"),
		} {
			if free.status != http.StatusOK {
				t.Errorf("unpriced: %s: %d %s", unpriced, free.status, free.body)
			}
		}
	}
}

// What a model has no price for beside tokens costs what unpriced says of it, and all else what the model's price says:
// nothing is free because another part has no price, and the model can be called without that part.
func TestUnpricedParts(t *testing.T) {
	const search, both = `"tools":[{"type":"web_search"}]`, `"tools":[{"type":"web_search"},{"type":"code_interpreter","container":{"type":"auto"}}]`
	const stored = `"prompt":{"id":"pmpt_1"}`
	for _, c := range []struct {
		unpriced, asks string
		status         int
		container      price.Amount // beside what the price of the model has; -1: what was reserved stays
	}{
		{"deny", search, http.StatusOK, 0},
		{"deny", both, http.StatusForbidden, 0},
		{"{request: 0.04}", both, http.StatusForbidden, 0},
		{"free", both, http.StatusOK, 0},
		{"{containers: 0.05}", both, http.StatusOK, price.Dollar / 20},
		{"{containers: 0.05}", stored, http.StatusOK, price.Dollar / 20},
		{"deny", stored, http.StatusOK, -1},
	} {
		r := newRig(t, "providers: {openai: {base_url: MOCK}}\nprices: {m-t: {input: 1, output: 2, web_searches: 10, context: 1_000_000, max_output: 100}}\nprojects: {acme: {dollars: 10}}\nunpriced: "+c.unpriced+"\n", mockprovider.Config{})
		a := r.post(t, "/openai/v1/responses", `{"model":"m-t","input":"a","max_output_tokens":50,`+c.asks+`}`, "X-Project-ID", "acme", "X-Mock", "web-searches=2 code-runs=3")
		if a.status != c.status || a.status == http.StatusForbidden && !strings.Contains(a.body, "a price for a container in prices of the model, or in unpriced") {
			t.Errorf("%+v: %d %s", c, a.status, a.body)
		}
		total, spent := r.provider.Totals()["m-t"], spentOf(t, r, "acme")
		priced := price.Amount(total.Input*1_000+total.Output*2_000) + price.Amount(total.Units[llm.WebSearches]*10_000_000)
		if c.container >= 0 && spent != priced+c.container || c.container < 0 && spent <= priced {
			t.Errorf("%+v: %v is spent, want %v", c, spent, priced+c.container)
		}
	}
}

// New prices hold for calls that come after a reload.
func TestReloadOfPrices(t *testing.T) {
	handler := newSeen()
	r := newRigBefore(t, strings.Replace(priced, "{dollars: 0.01,", "{dollars: 10,", 1), handler)
	call := `{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}`
	r.post(t, chat, call, "X-Project-ID", "acme")
	before := spentOf(t, r, "acme")
	cfg := gatewaytest.Config(t, strings.Replace(strings.Replace(priced, "{dollars: 0.01,", "{dollars: 10,", 1), "output: 10}", "output: 1_000, request: 1}", 1), r.Config().Providers["openai"].Deployments[""].BaseURL)
	if err := r.Reload(cfg); err != nil {
		t.Fatal(err)
	}
	r.post(t, chat, call, "X-Project-ID", "acme")
	if after := spentOf(t, r, "acme") - before; before != 3*2_000+4*10_000 || after != price.Dollar+3*2_000+4*1_000_000 {
		t.Errorf("a call costs %v before the reload, and %v after it", before, after)
	}
}

// Headers distinguish the levels of the tree, and name the tightest.
func TestHeadersOfLevels(t *testing.T) {
	r := newRigBefore(t, priced+`
  acme/search: {requests_per_day: 10}
  acme/*: {requests_per_day: 10}
`, newSeen())
	a := r.post(t, chat, `{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":"hello"}]}`, "X-Project-ID", "acme/search")
	for field, want := range map[string]string{
		"RateLimit-Policy":         `"requests_per_day";q=10;w=86400, "acme:dollars";q=10000000;qu="nanodollars"`,
		"RateLimit":                `"requests_per_day";r=9;t=86400, "acme:dollars";r=`,
		"X-Gateway-Tightest-Limit": `"requests_per_day";r=9;t=86400`,
	} {
		if got := a.header.Get(field); a.status != http.StatusOK || !strings.HasPrefix(got, want) {
			t.Errorf("%d, %s: %s, want %s", a.status, field, got, want)
		}
	}
	large := `{"model":"gpt-4o","max_tokens":990,"messages":[{"role":"user","content":"hello"}]}`
	r.post(t, chat, large, "X-Project-ID", "acme")
	a = r.post(t, chat, large, "X-Project-ID", "acme/chat")
	if got := a.header.Get("X-Gateway-Tightest-Limit"); a.status != http.StatusOK || !strings.HasPrefix(got, `"acme:dollars";r=`) {
		t.Errorf("%d, %s: %s", a.status, got, a.body)
	}
}

// The worked example of docs/gateway.md: what a stream reserves, and what it costs in the end.
func TestWorkedExampleOfAStream(t *testing.T) {
	var r *rig
	spent := func() price.Amount {
		d, err := r.Projects().Peek(t.Context(), "acme")
		if err != nil {
			t.Error(err)
			return 0
		}
		return price.Amount(d.Windows()[0].Window.Count - d.Windows()[0].Remaining)
	}
	reserved := make(chan price.Amount, 1)
	r = newRig(t, priced, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
		reserved <- spent()
		return mockprovider.Reply{Output: 20, Cached: 30}
	}})
	if a := r.post(t, chat, hello38, "X-Project-ID", "acme"); a.status != http.StatusOK {
		t.Fatal(a.body)
	}
	r.settled(t)
	if before, after := <-reserved, spent(); before.String() != "$0.001154" || after.String() != "$0.000222" {
		t.Errorf("%v is reserved, and %v is settled", before, after)
	}
}

// A request for a cheaper service tier lowers the price only if the answer says that it was served there,
// and one for a dearer tier raises it unless the answer says that it was not. Once, "service_tier" of the
// request halved the price of every answer that names no tier, and Anthropic's speed had no price.
func TestOnlyTheProviderLowersAPrice(t *testing.T) {
	var told atomic.Value
	r := newRig(t, `
providers:
  openai: {base_url: MOCK}
  anthropic: {base_url: MOCK}
prices:
  gpt-4o: {input: 2, output: 10, flex: 50%, priority: 200%}
  claude-opus-4-6: {input: 5, output: 25, fast: 600%}
projects: {acme: {dollars: 10}}
`, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
		return mockprovider.Reply{Output: 20, Parts: mockprovider.Parts{Tier: told.Load().(string)}}
	}})
	gpt := func(tier string) string {
		return strings.NewReplacer(`"stream":true,`, "", `{"model"`, `{"service_tier":"`+tier+`","model"`).Replace(hello38)
	}
	claude := func(speed string) string {
		return strings.NewReplacer(`"stream":true,`, "", `{"model":"gpt-4o"`, `{"speed":"`+speed+`","model":"claude-opus-4-6"`).Replace(hello38)
	}
	const usual, fast price.Amount = 38*2_000 + 20*10_000, 38*30_000 + 20*150_000
	for _, c := range []struct {
		path, body, told string
		want             price.Amount
	}{
		{chat, gpt("flex"), "", usual}, {chat, gpt("batch"), "default", usual}, {chat, gpt("flex"), "flex", usual / 2},
		{chat, gpt("priority"), "", 2 * usual}, {chat, gpt("priority"), "default", usual},
		{messages, claude("fast"), "", fast}, {messages, claude("fast"), "fast", fast}, {messages, claude("standard"), "", fast / 6},
	} {
		told.Store(c.told)
		before := spentOf(t, r, "acme")
		if a := r.post(t, c.path, c.body, "X-Project-ID", "acme"); a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if got := spentOf(t, r, "acme") - before; got != c.want {
			t.Errorf("%.60s, answered with %q: it costs %v, want %v", c.body, c.told, got, c.want)
		}
	}
}
