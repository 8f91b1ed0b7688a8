package gateway

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// However a path is escaped, the request is charged as a call of a model, or refused.
func TestSpellings(t *testing.T) {
	r := newRig(t, `
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 1}}}
  gemini: {base_url: MOCK, models: {gemini-2.5-pro: {max_rpm: 1}}}
  azure: {base_url: MOCK, kind: azure, models: {gpt: {max_rpm: 1}}}
defaults: {max_wait: 0s}
`, mockprovider.Config{})
	for path, body := range map[string]string{
		chat:     hello,
		generate: `{"contents":[{"parts":[{"text":"Hi"}]}]}`,
		"/azure/openai/deployments/gpt/chat/completions": hello,
	} {
		if a := r.post(t, path, body); a.status != 200 {
			t.Fatalf("%s: %d %s", path, a.status, a.body)
		}
		provider := path[:strings.Index(path[1:], "/")+1]
		for range 300 {
			spelled := provider + escaped(path[len(provider):])
			if a := r.post(t, spelled, body); a.status != 429 && a.status != 400 {
				t.Fatalf("%s: %d %s", spelled, a.status, a.body)
			}
		}
	}
	for _, spelled := range []string{"/azure/openai/Deployments/gpt/Chat/COMPLETIONS", "/openai/v1//chat/completions/", "/openai/v1/chat%2Fcompletions", "/openai/v1/Chat/Completions"} {
		if a := r.post(t, spelled, hello); a.status != 429 && a.status != 400 {
			t.Errorf("%s: %d %s", spelled, a.status, a.body)
		}
	}
}

// escaped returns a path with some characters escaped.
func escaped(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if rand.IntN(8) == 0 {
			fmt.Fprintf(&b, "%%%02X", path[i])
		} else {
			b.WriteByte(path[i])
		}
	}
	return b.String()
}

// A body in which a server could find another model than the gateway does is refused.
func TestTwoModels(t *testing.T) {
	r := newRig(t, oneOfEach, mockprovider.Config{})
	for body, want := range map[string]int{
		`{"model":"cheap","MODEL":"dear","messages":[]}`:       400,
		`{"Model":"dear","messages":[]}`:                       400,
		`{"model":"cheap","model":"dear","messages":[]}`:       400,
		`{"model":"cheap","mod\u0065l":"dear","messages":[]}`:  400,
		`{"model":"cheap","model":"cheap","messages":[]}`:      200,
		`{"model":"cheap","messages":[],"x":{"Model":"dear"}}`: 200,
	} {
		if a := r.post(t, chat, body); a.status != want {
			t.Errorf("%s: %d %s", body, a.status, a.body)
		}
	}
}

// A field of the wrong type is refused: some servers take 1 and "true" for true, and would
// send a stream that the gateway does not meter.
func TestSettingsAreOfTheirType(t *testing.T) {
	upstream := newSeen()
	r := newRigBefore(t, oneOfEach, upstream)
	for _, c := range []struct{ path, field string }{
		{chat, `"stream":1`}, {chat, `"stream":"true"`},
		{chat, `"stream":true,"stream_options":0`}, {chat, `"stream":true,"stream_options":""`}, {chat, `"stream":true,"stream_options":[]`},
		{chat, `"stream":true,"stream_options":{"include_usage":0}`}, {chat, `"stream":true,"stream_options":{"include_usage":""}`},
		{chat, `"stream":true,"Stream":false`}, {chat, `"stream":false,"stream":true`}, {chat, `"n":"3"`},
		{messages, `"stream":1`}, {messages, `"max_tokens":"5"`}, {"/local/api/chat", `"stream":0`}, {"/local/api/chat", `"STREAM":false`},
		{generate, `"generationConfig":{"candidateCount":"3"}`}, {"/openai/v1/responses", `"stream":"yes"`},
	} {
		a := r.post(t, c.path, `{"model":"gpt-4o",`+c.field+`}`)
		if a.status != 400 || !strings.Contains(a.body, "must") || r.last(t).Outcome != Refused {
			t.Errorf("%s: %s: %d %s", c.path, c.field, a.status, a.body)
		}
	}
	if n := len(upstream.requests); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}
