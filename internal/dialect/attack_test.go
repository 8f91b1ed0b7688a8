package dialect

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Numbers and fields that are huge, negative, repeated or misspelt never make a request cheaper than what a server may
// read in it: it reserves the most, nobody knows what it uses, or it is refused.
func TestUnitsOfHostileRequests(t *testing.T) {
	const unknown = int64(-1)
	for _, c := range []struct {
		path, body string
		unit       int
		least      int64 // unknown: it must be unknown, or the request must be refused
	}{
		{"/v1/images/generations", `{"model":"dall-e-2","prompt":"a","n":-5}`, llm.Images, 1},
		{"/v1/images/generations", `{"model":"dall-e-2","prompt":"a","n":99999999999999999999}`, llm.Images, 1000},
		{"/v1/images/generations", `{"model":"dall-e-2","prompt":"a","n":10,"n":1}`, llm.Images, 10},
		{"/v1/images/generations", `{"model":"dall-e-2","prompt":"a","n":"10"}`, llm.Images, 10},
		{"/v1/images/generations", `{"model":"dall-e-2","prompt":"a","N":10}`, llm.Images, 10},
		{"/v1/images/generations", `{"model":"dall-e-2","prompt":"a","n":1e1}`, llm.Images, 10},
		{"/v1/audio/speech", `{"model":"tts-1","input":"a long text","input":"a"}`, llm.Characters, 11},
		{"/v1/audio/speech", `{"model":"tts-1","input":"a long text","INPUT":"a"}`, llm.Characters, 11},
		{"/v1/audio/speech", `{"model":"tts-1","input":["a long text"]}`, llm.Characters, unknown},
		{"/v1/videos", `{"model":"sora-2","prompt":"a","seconds":"-4"}`, llm.VideoSeconds, unknown},
		{"/v1/videos", `{"model":"sora-2","prompt":"a","seconds":"99999999999"}`, llm.VideoSeconds, unknown},
		{"/v1/videos", `{"model":"sora-2","prompt":"a","seconds":12}`, llm.VideoSeconds, 12},
		{"/v1/videos", `{"model":"sora-2","prompt":"a","seconds":"12","seconds":"4"}`, llm.VideoSeconds, 12},
		{"/v1/containers", `{"name":"a","memory_limit":"64g","memory_limit":"1g"}`, llm.Containers, 64},
		{"/v1/containers/", `{"name":"a","memory_limit":"6\u0034g"}`, llm.Containers, 64},
		{"/v1/containers", `{"name":"a","memory_limit":"128g"}`, llm.Containers, unknown},
		{"/v1/containers", `{"name":"a","memory_limit":64}`, llm.Containers, 64},
		{"/v1beta/models/veo-3.1-generate-preview:predictLongRunning", `{"instances":[{"prompt":"a"}],"parameters":{"durationSeconds":-8}}`, llm.VideoSeconds, 8},
		{"/v1beta/models/veo-3.1-generate-preview:predictLongRunning", `{"instances":[{},{}],"parameters":{"durationSeconds":99999999999999999999,"sampleCount":99999999999}}`, llm.VideoSeconds, 1_000_000},
		{"/v1beta/models/imagen-4.0-generate-001:predict", `{"instances":[{"prompt":"a"}],"parameters":{"sampleCount":-1}}`, llm.Images, 1},
		{"/v1beta/models/imagen-4.0-generate-001:predict", `{"instances":[{"prompt":"a"}],"parameters":{"sampleCount":4},"parameters":{"sampleCount":1}}`, llm.Images, 4},
		{"/v1beta/cachedContents", `{"model":"models/g","contents":[],"ttl":"-5s"}`, llm.TokenHours, 1},
		{"/v1beta/cachedContents", `{"model":"models/g","contents":[],"ttl":"5s","expireTime":"2999-01-01T00:00:00Z"}`, llm.TokenHours, unknown},
		{"/v1/responses", `{"model":"m","input":"a","tools":[{"type":"web_search"}],"max_tool_calls":-3}`, llm.WebSearches, 10},
		{"/v1/messages", `{"model":"m","messages":[],"tools":[{"type":"web_search_20250305","max_uses":-3}]}`, llm.WebSearches, 1},
		{"/v1/messages", `{"model":"m","messages":[],"tools":[{"type":"web_search_20250305","max_uses":9,"max_uses":1}]}`, llm.WebSearches, 9},
	} {
		e, ok := Recognize(http.MethodPost, &url.URL{Path: c.path})
		if !ok {
			t.Errorf("%s is no call", c.path)
			continue
		}
		r, err := e.Read([]byte(c.body))
		if err != nil || r.Wrong != "" || r.Ambiguous {
			continue // refused
		}
		if got := r.Units[c.unit]; got < c.least && got >= 0 || c.least == unknown && got >= 0 {
			t.Errorf("%s %s: %d", c.path, c.body, got)
		}
	}
}

// Images that a request names in a list are a part of its prompt, wherever they are.
func TestImagesOfEdits(t *testing.T) {
	m := llm.Maxima{Context: 1 << 20, Output: 1000}
	for _, image := range []string{`{"image_url":"https://example.com/a.png"}`, `{"file_id":"file-1"}`, `{"image_url":"data:image/png;base64,` + strings.Repeat("A", 4000) + `"}`} {
		r, err := Endpoint{Provider: OpenAI, API: ImageGeneration}.Read([]byte(`{"model":"gpt-image-2","prompt":"a","images":[` + image + `,` + image + `]}`))
		if input, _, ok := r.Most(m); err != nil || ok && input < 2*6_500 {
			t.Errorf("%s: a prompt of %d tokens (%v)", image[:30], input, err)
		}
	}
}
