package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/project"
)

// cutting is a configuration of every dialect. TOKENS stands for the limit of each project in tokens a minute.
const cutting = `
providers:
  openai: {base_url: MOCK, models: {"*": {}}}
  anthropic: {base_url: MOCK, models: {"*": {}}}
  gemini: {base_url: MOCK, models: {"*": {}}}
  mistral: {kind: mistral, base_url: MOCK, models: {"*": {}}}
  cohere: {kind: cohere, base_url: MOCK, models: {"*": {}}}
  bedrock: {kind: bedrock, base_url: MOCK, models: {"*": {}}}
  ollama: {kind: ollama, base_url: MOCK, models: {"*": {}}}
defaults: {tokens_per_minute: TOKENS, on_overrun: cut, max_wait: 0s}
projects:
  indebted: {on_overrun: debt}
`

func cuttingAt(tokens int) string {
	return strings.Replace(cutting, "TOKENS", fmt.Sprint(tokens), 1)
}

// cutDialects are streams, and the last thing that a client gets of one that is cut off, with WHY for the reason.
var cutDialects = []struct{ name, path, body, last string }{
	{"chat", chat, `{"model":"gpt-4o","stream":true,"max_tokens":2000,"messages":[{"role":"user","content":"Hi"}]}`,
		`data: {"error":{"code":"rate_limit_exceeded","message":"WHY","param":null,"type":"tokens"}}` + "\n\ndata: [DONE]\n\n"},
	{"chat with usage", chat, `{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"max_tokens":2000,"messages":[{"role":"user","content":"Hi"}]}`,
		`data: {"error":{"code":"rate_limit_exceeded","message":"WHY","param":null,"type":"tokens"}}` + "\n\ndata: [DONE]\n\n"},
	{"responses", responses, `{"model":"gpt-4o","stream":true,"max_output_tokens":2000,"input":"Hi"}`, `"object":"response","output":[],"status":"failed"},"sequence_number":1,"type":"response.failed"}` + "\n\n"},
	{"messages", messages, `{"model":"claude-sonnet-4-5","stream":true,"max_tokens":2000,"messages":[{"role":"user","content":"Hi"}]}`,
		"event: error\ndata: " + `{"error":{"message":"WHY","type":"rate_limit_error"},"request_id":"ID","type":"error"}` + "\n\n"},
	{"gemini", "/gemini/v1beta/models/gemini-2.0-flash:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":2000}}`,
		`"message":"WHY","status":"RESOURCE_EXHAUSTED"}}` + "\n\n"},
	{"gemini's array", "/gemini/v1beta/models/gemini-2.0-flash:streamGenerateContent", `{"contents":[{"parts":[{"text":"Hi"}]}],"generationConfig":{"maxOutputTokens":2000}}`,
		`"message":"WHY","status":"RESOURCE_EXHAUSTED"}}]`},
	{"mistral", "/mistral/v1/chat/completions", `{"model":"mistral-large-latest","stream":true,"stream_options":{"include_usage":true},"max_tokens":2000,"messages":[{"role":"user","content":"Hi"}]}`,
		`"message":"WHY","object":"error","param":null,"type":"tokens"}` + "\n\ndata: [DONE]\n\n"},
	{"cohere", "/cohere/v2/chat", `{"model":"command-a-03-2025","stream":true,"max_tokens":2000,"messages":[{"role":"user","content":"Hi"}]}`,
		"event: message-end\ndata: " + `{"delta":{"error":"WHY","finish_reason":"ERROR"},"type":"message-end"}` + "\n\n"},
	{"ollama", "/ollama/api/chat", `{"model":"llama3.2","options":{"num_predict":2000},"messages":[{"role":"user","content":"Hi"}]}`, `{"error":"WHY"}` + "\n"},
	{"converse", "/bedrock/model/anthropic.claude-sonnet-4-5-v1%3A0/converse-stream", `{"messages":[{"role":"user","content":[{"text":"Hi"}]}],"inferenceConfig":{"maxTokens":2000}}`, `{"message":"WHY"}`},
	{"invoke", "/bedrock/model/anthropic.claude-sonnet-4-5-v1%3A0/invoke-with-response-stream", `{"max_tokens":2000,"messages":[{"role":"user","content":"Hi"}]}`, `{"message":"WHY"}`},
}

// waits are how long a client has to wait, which depends on how long its stream has taken.
var waits = regexp.MustCompile(`in [0-9ms]+s`)

// longScript answers with as many tokens as the call allows.
func longScript(c mockprovider.Call) mockprovider.Reply {
	return mockprovider.Reply{Output: c.MaxOutput}
}

// A stream that a limit has no more tokens for ends with an error in the form of its provider. The client has got no more
// than the limit has, and the project is charged for no more.
func TestStreamsAreCut(t *testing.T) {
	const most = 1500
	r := newRig(t, cuttingAt(most), mockprovider.Config{Script: longScript})
	for _, c := range cutDialects {
		t.Run(c.name, func(t *testing.T) {
			name := strings.ReplaceAll(t.Name(), "/", "-")
			got := r.post(t, c.path, c.body, fieldProject, name)
			body := got.body
			if c.name == "converse" || c.name == "invoke" {
				body = frames(t, body)
			}
			body = waits.ReplaceAllString(body, "in a moment")
			why := `cut off: the limit \"tokens_per_minute\" of project \"` + name + `\" has no more for this answer: try again in a moment`
			want := strings.NewReplacer("WHY", why, "ID", r.last(t).ID).Replace(c.last)
			if got.status != 200 || !strings.HasSuffix(body, want) || strings.Count(body, " the") < 10 {
				t.Errorf("%d, it ends with %q; want %q", got.status, body[max(len(body)-500, 0):], want)
			}
			if n := strings.Count(body, " the"); 4*n > most { // each is a token
				t.Errorf("%d times the", n)
			}
			rec := r.last(t)
			if rec.Outcome != Cut || rec.Limit != "tokens_per_minute" || rec.Owner != name || !strings.HasPrefix(rec.Error, "cut off: ") {
				t.Errorf("%+v", rec)
			}
			if n := r.charged(t, name); n > most || n < most/2 {
				t.Errorf("%d tokens are charged", n)
			}
		})
	}
}

// frames returns the payloads of AWS's event stream, and expects that the last message is an exception.
func frames(t *testing.T, body string) (payloads string) {
	t.Helper()
	last := ""
	for b := []byte(body); len(b) > 0; {
		size, headers := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
		last = string(b[12 : 12+headers])
		payload := b[12+headers : size-4]
		b = b[size:]
		if encoded, ok := bytes.CutPrefix(payload, []byte(`{"bytes":"`)); ok {
			payload, _ = base64.StdEncoding.DecodeString(string(encoded[:bytes.IndexByte(encoded, '"')]))
		}
		payloads += string(payload)
	}
	if !strings.Contains(last, ":exception-type\x07\x00\x13throttlingException") {
		t.Errorf("the last message has the headers %q", last)
	}
	return payloads
}

// dates are what two streams differ in.
var dates = regexp.MustCompile(`mock\d+|"created(_at)?":[^,]*,`)

// undated returns the length of a body without its dates, because some are in base64.
func undated(body string) int { return len(dates.ReplaceAllString(body, "")) }

// Streams that the limit has enough for are the same as without a limit that cuts, and are charged what they have used.
func TestStreamsThatAreNotCut(t *testing.T) {
	script := func(mockprovider.Call) mockprovider.Reply { return mockprovider.Reply{Output: 300} }
	with := newRig(t, cuttingAt(90_000), mockprovider.Config{Script: script})
	for i, c := range cutDialects {
		name := fmt.Sprint("p", i)
		cut, debt := with.post(t, c.path, c.body, fieldProject, name), with.post(t, c.path, c.body, fieldProject, "indebted")
		if cut.status != 200 || undated(cut.body) != undated(debt.body) || cut.header.Get("Content-Type") != debt.header.Get("Content-Type") {
			t.Errorf("%s: %d, %d bytes, want %d: %q", c.name, cut.status, len(cut.body), len(debt.body), cut.body[max(len(cut.body)-300, 0):])
		}
		if n := with.charged(t, name); n < 300 || n > 330 {
			t.Errorf("%s: %d tokens are charged", c.name, n)
		}
	}
}

// Of an answer that nobody can cut, the most is reserved: one that does not come as a stream, or whose reasoning is
// hidden.
func TestWhatCannotBeCutReservesTheMost(t *testing.T) {
	r := newRig(t, cuttingAt(1500), mockprovider.Config{})
	for _, body := range []string{
		`{"model":"gpt-4o","max_tokens":2000,"messages":[{"role":"user","content":"Hi"}]}`,
		`{"model":"gpt-5","stream":true,"max_tokens":2000,"messages":[{"role":"user","content":"Hi"}]}`,
	} {
		if got := r.post(t, chat, body, fieldProject, "p"); got.status != 400 || !strings.Contains(got.body, "it can never pass") {
			t.Errorf("%d %s", got.status, got.body)
		}
		if got := r.post(t, chat, strings.Replace(body, "2000", "1000", 1), fieldProject, "p"); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if got := r.post(t, chat, streamed, fieldProject, "p"); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// When a client leaves a stream that extends, nothing stays reserved beyond what is charged.
func TestLeavingAStreamThatExtends(t *testing.T) {
	r := newRig(t, cuttingAt(100_000)+"server: {read_on: 1m}\n", mockprovider.Config{Script: longScript})
	streams := cutDialects[:5] // those whose events have lines
	for _, c := range streams {
		r.leaveAfter(t, "the", c.path, c.body, "leaver")
	}
	r.settled(t)
	d, err := r.Projects().Peek(t.Context(), "leaver")
	if err != nil {
		t.Fatal(err)
	}
	windows := d.Windows()
	if i := slices.IndexFunc(windows, func(w project.Standing) bool { return w.Window.Unit == project.Tokens }); windows[i].Reserved != 0 || windows[i].Used < int64(2000*len(streams)) {
		t.Errorf("%+v", windows[i])
	}
}
