package llm

import (
	"strings"
	"testing"
)

// The searches of a request are those that its tools allow, however their types are written, and however many they are.
func TestMostSearches(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`{"type":"web_search","max_uses":4503599627370496},`, 4096), ",") // 2^64 in all
	for tools, want := range map[string]int64{
		`{"type":"web_search"}`:                  10,
		`{"type":"web_search","max_uses":3}`:     3,
		`{"type":"web\u005fsearch_20250305"}`:    10,
		`{"type":"function","name":"a"}`:         0,
		`{"type":["web_search"]}`:                0, // which is no type
		`{"\u0074ype":"web_search_preview"}`:     10,
		`{"type":"web_search","max_uses":"2"}`:   10,
		many:                                     mostCounted,
		many + `,` + `{"type":"web_search_new"}`: mostCounted,
	} {
		body := []byte(`{"model":"m","tools":[` + tools + `]}`)
		for _, e := range []Endpoint{{Provider: OpenAI, API: Responses}, {Provider: Anthropic, API: Messages}} {
			if r, err := e.Read(body); err != nil || r.Units[WebSearches] != want {
				t.Errorf("%.60s of %s: %d searches, want %d; %v", tools, e.API, r.Units[WebSearches], want, err)
			}
		}
	}
}
