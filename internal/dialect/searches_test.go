package dialect

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

// The searches of a request are those that its tools allow, however their types are written, and however many they are.
func TestMostSearches(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`{"type":"web_search","max_uses":4503599627370496},`, 4096), ",") // 2^64 in all
	for tools, want := range map[string]int64{
		`{"type":"web_search"}`:                            10,
		`{"type":"web_search","max_uses":3}`:               3,
		`{"type":"web\u005fsearch_20250305"}`:              10,
		`{"type":"function","name":"a"}`:                   0,
		`{"type":["web_search"]}`:                          0, // which is no type
		`{"\u0074ype":"web_search_preview"}`:               10,
		`{"type":"web_search","max_uses":"2"}`:             10,
		many:                                               mostCounted,
		`{"type":"web_search","type":"function"}`:          10,
		`{"type":"web_search","max_uses":50,"max_uses":1}`: 50,
		many + `,` + `{"type":"web_search_new"}`:           mostCounted,
	} {
		body := []byte(`{"model":"m","tools":[` + tools + `]}`)
		for _, e := range []Endpoint{{Provider: OpenAI, API: Responses}, {Provider: Anthropic, API: Messages}} {
			if r, err := e.Read(body); err != nil || r.Units[llm.WebSearches] != want {
				t.Errorf("%.60s of %s: %d searches, want %d; %v", tools, e.API, r.Units[llm.WebSearches], want, err)
			}
		}
	}
}

// Fields that servers may read in another way do not make a request cheaper: those that come twice or in another case are
// refused, and times that are far away count as far away.
func TestHostileBodies(t *testing.T) {
	cache, read := Endpoint{Provider: Gemini, API: CachedContents}, Endpoint{Provider: Mistral, API: OCR}
	const kept = `{"model":"models/gemini-2.5-flash","contents":[{"parts":[{"text":"a b c d e f"}]}]`
	for _, c := range []struct {
		endpoint Endpoint
		body     string
		unit     int
		least    int64 // -1: it is refused, or nobody knows
	}{
		{cache, kept + `}`, llm.TokenHours, 6},
		{cache, kept + `,"ttl":"86400s"}`, llm.TokenHours, 6 * 24},
		{cache, kept + `,"expireTime":"9999-01-01T00:00:00Z"}`, llm.TokenHours, 1_000_000},
		{cache, kept + `,"ttl":"9000000000s"}`, llm.TokenHours, 1_000_000},
		{cache, kept + `,"ttl":"86400s","ttl":"1s"}`, llm.TokenHours, -1},
		{cache, kept + `,"TTL":"1s","ttl":"86400s"}`, llm.TokenHours, -1},
		{cache, kept + `,"ttl":"86400s","TTL":"1s"}`, llm.TokenHours, -1},
		{cache, kept + `,"ttl":"1s","expireTime":"2100-01-01T00:00:00Z"}`, llm.TokenHours, -1},
		{cache, kept + `,"expire_time":"2100-01-01T00:00:00Z","expireTime":"2000-01-01T00:00:00Z"}`, llm.TokenHours, -1},
		{cache, kept + `,"ttl":3600}`, llm.TokenHours, -1},
		{read, `{"model":"m","pages":[1,2]}`, llm.Pages, 2},
		{read, `{"model":"m","pages":[1,2,3],"pages":[1]}`, llm.Pages, -1},
		{read, `{"model":"m","Pages":[1]}`, llm.Pages, -1},
		{read, `{"model":"m","pages":"0-500"}`, llm.Pages, 1000},
		{Endpoint{Provider: Gemini, API: Generate, Model: "gemini-3"}, `{"contents":[],"tools":{"googleSearch":{}}}`, llm.WebSearches, 10},
	} {
		r, err := c.endpoint.Read([]byte(c.body))
		refused := err != nil || r.Wrong != "" || r.Units[c.unit] < 0
		if c.least < 0 && !refused || c.least >= 0 && (refused || r.Units[c.unit] < c.least) {
			t.Errorf("%s: %d, %q, %v; want %d at least", c.body, r.Units[c.unit], r.Wrong, err, c.least)
		}
	}
}
