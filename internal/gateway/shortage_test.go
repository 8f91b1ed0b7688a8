package gateway

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// A refusal says how much of which limit is left, and its headers say the same.
func TestDenialsSayWhatIsLeftAndNeeded(t *testing.T) {
	calls := func(maxTokens int) string {
		return fmt.Sprintf(`{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"Hi"}]}`, maxTokens)
	}
	long := fmt.Sprintf(`{"model":"gpt-4o","messages":[{"role":"user","content":"%s"}]}`, strings.Repeat("word ", 4000))
	for name, c := range map[string]struct {
		yaml, path, body string
		status           int
		kind, says       string
		remaining        string // the unit of the header that must have the same number as the message
	}{
		"tokens of a project": {"projects: {p: {tokens_per_minute: 3000, max_wait: 0s}}", chat, calls(2990), 429, "tokens",
			`^not sent: project "p" has ([\d,]+) of its 3,000 tokens a minute left, and this call needs [\d,]+ \(prompt \d+, answer up to [\d,]+\): try again in [\dms]+$`, "Tokens"},
		"requests of a project": {"projects: {p: {requests_per_minute: 1, max_wait: 0s}}", chat, calls(10), 429, "requests",
			`^not sent: project "p" has (0) of its 1 requests a minute left: try again in [\dms]+$`, "Requests"},
		"a month of a project, and a request that is no call": {"projects: {p: {requests_per_hour: 1, max_wait: 0s}}", "/openai/v1/files", "x", 429, "usage_limit_reached",
			`^not sent: project "p" has (0) of its 1 requests an hour left: try again in [\dhms]+$`, ""},
		"tokens of a model": {"projects: {p: {max_wait: 0s}}", chat, calls(1990), 429, "tokens",
			`^not sent: model "gpt-4o" has ([\d,]+) of its 2,000 tokens a minute left, and this call needs [\d,]+ \(prompt \d+, answer up to [\d,]+\): try again in [\dms]+$`, "Tokens"},
		"a prompt that never fits its project": {"projects: {p: {tokens_per_day: 100}}", chat, long, 400, "invalid_request_error",
			`^not sent: project "p" may use 100 tokens a day, and this call needs [\d,]+ for its prompt: it can never pass$`, ""},
		"a prompt that never fits its model": {"projects: {p: {}}", chat, strings.Replace(long, "word ", "more words ", 200), 400, "invalid_request_error",
			`^not sent: model "gpt-4o" may use 2,000 tokens a minute, and this call needs [\d,]+ for its prompt: it can never pass$`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			yaml := "providers: {openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 100, max_tpm: 2000}}}}\n"
			if !strings.Contains(name, "model") {
				yaml = strings.Replace(yaml, "2000", "200000", 1)
			}
			r := newRig(t, yaml+c.yaml, mockprovider.Config{})
			a := r.post(t, c.path, c.body, "X-Project-ID", "p")
			if c.status == 429 {
				a = r.post(t, c.path, c.body, "X-Project-ID", "p")
			}
			var said struct {
				Error struct{ Type, Message string }
			}
			if err := json.Unmarshal([]byte(a.body), &said); err != nil {
				t.Fatal(err)
			}
			match := regexp.MustCompile(c.says).FindStringSubmatch(said.Error.Message)
			if a.status != c.status || said.Error.Type != c.kind || match == nil {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if c.remaining == "" {
				return
			}
			if got := a.header.Get("X-Ratelimit-Remaining-" + c.remaining); got != strings.ReplaceAll(match[1], ",", "") {
				t.Errorf("%s are left by the header: %s", got, said.Error.Message)
			}
		})
	}
}
