package gateway

import (
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
)

// Searches that a provider makes for a call are reserved by what the request allows, settled by what the answer reports,
// and in the books and on the bill beside the tokens.
func TestSearchesAreBilled(t *testing.T) {
	const claude, gpt = `{"model":"claude-opus-5-5","max_tokens":50,"messages":[{"role":"user","content":"news?"}],`, `{"model":"gpt-5.4","max_output_tokens":50,"input":"news?",`
	for _, c := range []struct {
		path, body    string
		input, output int64 // nanodollars for a token
		web, files    int64 // that are billed
	}{
		{"/anthropic/v1/messages", claude + `"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":5}]}`, 4_000, 20_000, 3, 0},
		{"/anthropic/v1/messages", claude + `"tools":[{"type":"web_search_20250305","name":"web_search"}],"stream":true}`, 4_000, 20_000, 3, 0},
		{"/openai/v1/responses", gpt + `"tools":[{"type":"web_search"},{"type":"file_search","vector_store_ids":["STORE"]}],"max_tool_calls":4}`, 2_500, 15_000, 3, 2},
		{"/openai/v1/responses", gpt + `"tools":[{"type":"web_search_preview"}],"stream":true}`, 2_500, 15_000, 3, 0},
		{"/openai/v1/responses", gpt + `"tools":[{"type":"function","name":"web_search","parameters":{}}]}`, 2_500, 15_000, 0, 0},
	} {
		r := newRig(t, mediaRig, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply { return mockprovider.Reply{WebSearches: 3, FileSearches: 2} }})
		c.body = strings.Replace(c.body, "STORE", r.newStore(t), 1)
		if a := r.post(t, c.path, c.body, "X-Project-ID", "acme"); a.status != http.StatusOK {
			t.Errorf("%s %s: %d %s", c.path, c.body, a.status, a.body)
			continue
		}
		got := r.usage(t, books.Query{Project: "acme"}).Total
		totals := r.provider.Totals()
		delete(totals, dialect.VectorStore)
		for model, total := range totals {
			bill := int64(total.Input)*c.input + int64(total.Output)*c.output + c.web*10_000_000 + c.files*2_500_000
			want := books.Amounts{books.Requests: 1, books.Input: int64(total.Input), books.Output: int64(total.Output), books.Nanodollars: bill, books.Beside + llm.WebSearches: c.web, books.Beside + llm.FileSearches: c.files}
			if got != want || total.Units[llm.WebSearches] != c.web || int64(spentOf(t, r, "acme")) != bill {
				t.Errorf("%s of %s:\n%v is booked; want\n%v", c.body, model, got, want)
			}
		}
	}
}

// A budget reserves the searches that a call may make, and a model without a price for them denies calls that search, and
// no others.
func TestSearchesAreReserved(t *testing.T) {
	const yaml = `
providers: {anthropic: {base_url: MOCK}}
prices: {claude-t: {input: 0, output: 0, web_searches: 10}, claude-u: {input: 1, output: 1}}
projects: {acme: {dollars: 0.04}, few: {web_searches_per_day: 4}}
`
	r := newRig(t, yaml, mockprovider.Config{})
	call := func(project, model, tool string) answer {
		return r.post(t, "/anthropic/v1/messages", `{"model":"`+model+`","max_tokens":50,"messages":[{"role":"user","content":"news?"}],"tools":[`+tool+`]}`, "X-Project-ID", project)
	}
	const five, four = `{"type":"web_search_20250305","name":"web_search","max_uses":5}`, `{"type":"web_search_20250305","name":"web_search","max_uses":4}`
	for _, c := range []struct {
		project, model, tool string
		status               int
	}{
		{"acme", "claude-t", four, 200}, {"acme", "claude-t", five, 429}, {"few", "claude-t", four, 200}, {"few", "claude-t", five, 429},
		{"acme", "claude-u", four, 403}, {"acme", "claude-u", "", 200}, {"few", "claude-u", four, 200},
	} {
		if a := call(c.project, c.model, c.tool); a.status != c.status {
			t.Errorf("%+v: %d %s", c, a.status, a.body)
		} else if c.status == 403 && !strings.Contains(a.body, "a thousand web searches") {
			t.Errorf("%+v: %s", c, a.body)
		}
	}
	if spent := spentOf(t, r, "acme"); spent >= price.Dollar/100 {
		t.Errorf("%v is spent, although nothing was searched", spent)
	}
}

// A batch of which all calls search maps alone costs the price of maps. One that searches the web, too, costs that of the
// web: its results do not say which of the calls they are of.
func TestMapsInABatch(t *testing.T) {
	const mapsPrice, webPrice = 25_000_000, 35_000_000
	one := func(tool string) string {
		return `{"request":{"contents":[{"parts":[{"text":"Hello"}]}],"generationConfig":{"maxOutputTokens":100},"tools":[{"` + tool + `":{}}]}}`
	}
	for calls, each := range map[string]int{
		one("googleMaps") + "," + one("googleMaps"):   mapsPrice,
		one("googleMaps") + "," + one("googleSearch"): webPrice,
	} {
		r := newRig(t, "providers: {gemini: {base_url: MOCK}}\nprojects: {acme: {dollars: 10}}\n", mockprovider.Config{})
		name := field(t, r.post(t, "/gemini/v1beta/models/gemini-2.5-flash:batchGenerateContent", `{"batch":{"inputConfig":{"requests":{"requests":[`+calls+`]}}}}`, "X-Project-ID", "acme"), "name")
		r.do(t, "GET", "/gemini/v1beta/"+name, "", "X-Project-ID", "acme", "X-Mock", "places=3 web-searches=3")
		totals := r.provider.Totals()["gemini-2.5-flash"]
		want := price.Amount(totals.Input*150 + totals.Output*1_250 + 2*each)
		if got := spentOf(t, r, "acme"); got != want || totals.Units[llm.WebSearches] != 2 || !r.noBatches(t) {
			t.Errorf("%s: %v are charged, want %v of %+v", calls, got, want, totals)
		}
	}
}
