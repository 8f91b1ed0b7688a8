package dialect_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

var (
	usageChunk = sse(chunk(`[]`, `{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17}`))
	textChunk  = sse(delta(`"content":"Hello"`))
	doneChunk  = sse("[DONE]")

	llamaChunk = sse(`{"choices":[],"created":1794733200,"id":"chatcmpl-x","model":"qwen3","system_fingerprint":"b6000-x","object":"chat.completion.chunk",` +
		`"usage":{"completion_tokens":6,"prompt_tokens":11,"total_tokens":17},"timings":{"prompt_n":11,"prompt_ms":30.5,"predicted_n":6,"predicted_per_second":92.1}}`)
	llamaFirst = sse(`{"timings":{"prompt_n":11},"choices":[],"usage":{"completion_tokens":6,"prompt_tokens":11,"total_tokens":17}}`)
	vllmChunk  = sse(`{"id":"chatcmpl-x","object":"chat.completion.chunk","created":1794733200,"model":"m","choices":[{"index":0,"delta":{"content":"Hello"},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":11,"total_tokens":12,"completion_tokens":1}}`)
	lastChunk  = sse(chunk(`[{"index":0,"delta":{},"finish_reason":"stop"}]`, `{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17}`))
	groqChunk  = sse(`{"id":"chatcmpl-x","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"x_groq":{"id":"req_x","usage":{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17}}}`)
	fullChunk  = sse(`{"id":"x","provider":"Mock","model":"m","object":"chat.completion.chunk","created":1,"choices":[],"system_fingerprint":null,"service_tier":"default","obfuscation":"a8","usage":{"prompt_tokens":11,"completion_tokens":6,"total_tokens":17}}`)
)

func TestHide(t *testing.T) {
	azure := sse(`{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false}}}]}`)
	long := sse(chunk(`[]`, `{"prompt_tokens":11,"completion_tokens":6,"x":"`+strings.Repeat("x", 9000)+`"}`))
	var all string
	for _, s := range meterStreams {
		if s.api != dialect.Chat && s.api != dialect.Completions {
			all += s.body + "\n\n"
		}
	}
	for _, tt := range []struct {
		name, body, want string
	}{
		{"nothing", "", ""},
		{"the usual", textChunk + usageChunk + doneChunk, textChunk + doneChunk},
		{"at the beginning", usageChunk + doneChunk, doneChunk},
		{"alone", usageChunk, ""},
		{"without its end", textChunk + strings.TrimRight(usageChunk, "\n"), textChunk},
		{"twice", textChunk + usageChunk + usageChunk + textChunk, textChunk + textChunk},
		{"with a comment and an id", textChunk + ": x\nid: 1\n" + usageChunk + textChunk, textChunk + textChunk},
		{"CR LF", crlf(textChunk + usageChunk + doneChunk), crlf(textChunk + doneChunk)},
		{"CR", strings.ReplaceAll(textChunk+usageChunk+doneChunk, "\n", "\r"), strings.ReplaceAll(textChunk+doneChunk, "\n", "\r")},
		{"after a byte order mark and space", "\ufeff\n\n" + usageChunk + doneChunk, "\ufeff\n\n" + doneChunk},
		{"after a byte order mark", "\ufeff" + usageChunk + doneChunk, "\ufeff" + doneChunk},
		{"Azure's filter results", azure + textChunk + usageChunk, azure + textChunk},
		{"usage is null", sse(chunk(`[]`, `null`)), sse(chunk(`[]`, `null`))},
		{"usage with an error", sse(`{"choices":[],"usage":{},"error":{"code":429}}`), sse(`{"choices":[],"usage":{},"error":{"code":429}}`)},
		{"an error with usage", sse(`{"error":{"code":429},"choices":[],"usage":{}}`), sse(`{"error":{"code":429},"choices":[],"usage":{}}`)},
		{"usage with choices", sse(chunk(`[{}]`, `{}`)), sse(chunk(`[{}]`, `{}`))},
		{"too long to be held", textChunk + long + doneChunk, textChunk + long + doneChunk},
		{"a broken one", "data: {\"choices\":[],\"usage\":{}\n\n", "data: {\"choices\":[],\"usage\":{}\n\n"},
		{"cut", textChunk + usageChunk[:60], textChunk + usageChunk[:60]},
		{"llama.cpp's timings", textChunk + llamaChunk + doneChunk, textChunk + llamaChunk + doneChunk},
		{"timings before the usage", textChunk + llamaFirst + doneChunk, textChunk + llamaFirst + doneChunk},
		{"a name with an escape", textChunk + sse(`{"choices":[],"\u0074imings":{},"usage":{}}`), textChunk + sse(`{"choices":[],"\u0074imings":{},"usage":{}}`)},
		{"vLLM's continuous usage", vllmChunk + usageChunk + doneChunk, vllmChunk + usageChunk + doneChunk},
		{"vLLM's continuous usage, without its end", vllmChunk + strings.TrimRight(usageChunk, "\n"), vllmChunk + strings.TrimRight(usageChunk, "\n")},
		{"usage beside the end", lastChunk + usageChunk + doneChunk, lastChunk + usageChunk + doneChunk},
		{"Groq's", groqChunk + doneChunk, groqChunk + doneChunk},
		{"all that every chunk has", textChunk + fullChunk + doneChunk, textChunk + doneChunk},
		{"no stream", `{"choices":[],"usage":{}}`, `{"choices":[],"usage":{}}`},
		{"other APIs", all, all},
	} {
		for size := range 12 {
			m := dialect.NewMeter(dialect.Chat, nil)
			got, err := readBy(m.Hide(strings.NewReader(tt.body)), func() int { return 1 << size })
			if err != io.EOF || got != tt.want {
				t.Errorf("%s, by %d: got %q, %v, want %q", tt.name, 1<<size, got, err, tt.want)
			}
			if got, want := (metered{m.Usage(), m.Fault()}), meter(dialect.Chat, nil, tt.body); got != want {
				t.Errorf("%s, by %d: metered %+v, want %+v", tt.name, 1<<size, got, want)
			}
		}
		m := dialect.NewMeter(dialect.Chat, nil)
		got, err := io.ReadAll(m.Hide(iotest.DataErrReader(iotest.OneByteReader(strings.NewReader(tt.body)))))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s, that comes by bytes: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
		if err := iotest.TestReader(dialect.NewMeter(dialect.Chat, nil).Hide(strings.NewReader(tt.body)), []byte(tt.want)); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

// Bytes that may be forwarded are forwarded before more comes.
func TestHideDelaysNothing(t *testing.T) {
	for _, tt := range []struct{ name, come, want string }{
		{"an event", textChunk, textChunk},
		{"events", textChunk + usageChunk + textChunk, textChunk + textChunk},
		{"an event with CR LF", crlf(textChunk), crlf(textChunk)},
		{"an event with choices, as far as it has come", textChunk[:len(textChunk)-40], textChunk[:len(textChunk)-40]},
		{"an event, and one that may be hidden", textChunk + usageChunk[:100], textChunk},
		{"a comment", ": OPENROUTER PROCESSING\n\n", ": OPENROUTER PROCESSING\n\n"},
		{"the end", doneChunk, doneChunk},
		{"what is no object", "data: [DONE", "data: [DONE"},
		{"what is no JSON", "data: what", "data: what"},
		{"a value without usage", `data: {"choices":[]}`, `data: {"choices":[]}`},
		{"usage that is null", `data: {"usage":null,"choices":[`, `data: {"usage":null,"choices":[`},
		{"what is no stream", `{"choices":[],`, `{"choices":[],`},
		{"an event in pieces", textChunk[:200], textChunk[:200]},
	} {
		r := dialect.NewMeter(dialect.Chat, nil).Hide(&until{t, inPieces{[]string{tt.come}}})
		p := make([]byte, 4096)
		if n, err := r.Read(p); err != nil || string(p[:n]) != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.name, p[:n], err, tt.want)
		}
	}

	// The LF of the CR that has ended an event comes later.
	split := crlf(textChunk)
	r := dialect.NewMeter(dialect.Chat, nil).Hide(&until{t, inPieces{[]string{split[:len(split)-1], "\n"}}})
	p := make([]byte, 4096)
	for _, want := range []string{split[:len(split)-1], "\n"} {
		if n, err := r.Read(p); err != nil || string(p[:n]) != want {
			t.Errorf("got %q, %v, want %q", p[:n], err, want)
		}
	}
}

// until is a stream that fails the test if it is read to its end.
type until struct {
	t *testing.T
	inPieces
}

func (u *until) Read(p []byte) (int, error) {
	if len(u.pieces) == 0 {
		u.t.Error("more is read before all is handed on")
	}
	return u.inPieces.Read(p)
}

func TestHideErrors(t *testing.T) {
	broken := errors.New("connection reset")
	for _, held := range []string{"", textChunk, usageChunk[:100], textChunk + usageChunk[:200]} {
		r := dialect.NewMeter(dialect.Chat, nil).Hide(io.MultiReader(strings.NewReader(held), iotest.ErrReader(broken)))
		got, err := io.ReadAll(r)
		if string(got) != held || err != broken {
			t.Errorf("got %q, %v, want %q, %v", got, err, held, broken)
		}
		if n, err := r.Read(make([]byte, 1)); n != 0 || err != broken {
			t.Errorf("then got %d, %v", n, err)
		}
	}
	r := dialect.NewMeter(dialect.Chat, nil).Hide(idle{})
	if n, err := r.Read(nil); n != 0 || err != nil {
		t.Errorf("got %d, %v of nothing", n, err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.ErrNoProgress {
		t.Errorf("got %d, %v, want %v", n, err, io.ErrNoProgress)
	}
}

// idle is a stream whose reads return nothing.
type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// A compressed stream passes as it is.
func TestHideCompressed(t *testing.T) {
	body := zip(t, textChunk+usageChunk+doneChunk)
	m := dialect.NewMeter(dialect.Chat, gzipped)
	got, err := io.ReadAll(m.Hide(strings.NewReader(body)))
	if err != nil || string(got) != body {
		t.Errorf("got %q, %v", got, err)
	}
	if got, want := m.Usage(), (llm.Usage{Input: 11, Output: 6, Tier: "standard", Exact: true}); got != want {
		t.Errorf("metered %+v, want %+v", got, want)
	}
}
