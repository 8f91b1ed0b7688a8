package gateway

import (
	"fmt"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// A quota counts tokens by its weights, to the last token; its project counts them one by one.
func TestTokenWeights(t *testing.T) {
	const body = `{"model":"gpt-4o","messages":[{"role":"user","content":"Say something long, please."}]%s}`
	for name, c := range map[string]struct {
		count, mock, more string
		counted           func(used mockprovider.Totals) int
	}{
		"output five times": {"{output: 5}", "output=200", "", func(u mockprovider.Totals) int { return u.Input + 5*u.Output }},
		"streamed":          {"{output: 5}", "output=200", `,"stream":true`, func(u mockprovider.Totals) int { return u.Input + 5*u.Output }},
		"reasoning once":    {"{output: 5, reasoning: 1}", "output=200 reasoning=50", "", func(u mockprovider.Totals) int { return u.Input + 5*u.Output - 4*u.Reasoning }},
		"a tenth of what is cached": {"{cached_input: 0.1}", "output=200 cached=3", "", func(u mockprovider.Totals) int {
			return u.Input - u.Cached + 1 + u.Output // 0.3, rounded up
		}},
	} {
		t.Run(name, func(t *testing.T) {
			call := func(r *rig) int {
				return r.post(t, chat, fmt.Sprintf(body, c.more), "X-Project-ID", "p", "X-Mock", c.mock).status
			}
			const yaml = "providers: {openai: {base_url: MOCK, models: {gpt-4o: {max_tpm: %d, count: %s}}}}\nprojects: {p: {max_wait: 0s, tokens_per_minute: 100_000}}\n"
			first := newRig(t, fmt.Sprintf(yaml, 100_000, c.count), mockprovider.Config{})
			if status := call(first); status != 200 {
				t.Fatal(status)
			}
			first.settled(t)
			counted := c.counted(first.provider.Totals()["gpt-4o"])

			r := newRig(t, fmt.Sprintf(yaml, counted, c.count), mockprovider.Config{}) // just enough for one call
			if status := call(r); status != 200 {
				t.Fatal(status)
			}
			r.settled(t)
			if got := r.Models().Stats("gpt-4o"); got.TPM != counted {
				t.Errorf("%d of %d used", got.TPM, counted)
			}
			used := r.provider.Totals()["gpt-4o"]
			d, err := r.limits.Projects.Peek(t.Context(), "p")
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range d.Windows() {
				if w.Window.Unit == "tokens" && w.Remaining != int64(100_000-used.Input-used.Output) {
					t.Errorf("the project has %d left of %s", w.Remaining, w.Window.Name)
				}
			}
			if status := call(r); status != 429 {
				t.Errorf("one more call: %d", status)
			}
		})
	}
}
