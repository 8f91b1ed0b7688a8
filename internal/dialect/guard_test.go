package dialect_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// pieces returns readers of a text in pieces of several sizes.
func pieces(text string) map[string]io.Reader {
	return map[string]io.Reader{
		"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)),
		"halves": iotest.HalfReader(strings.NewReader(text)), "at the end": iotest.DataErrReader(strings.NewReader(text)),
	}
}

// closing counts how often it was closed.
type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

func always(int) bool { return true }

func TestGuardHandsOnEverything(t *testing.T) {
	for _, s := range meterStreams {
		for how, stream := range pieces(s.body) {
			m := dialect.NewMeter(s.api, nil)
			source := &closing{Reader: stream}
			g := m.Guard(source, false, always, nil)
			got, err := io.ReadAll(g)
			if string(got) != s.body || err != nil || g.Cut() || source.closed != 0 {
				t.Errorf("%s, %s: %q, %v, want %q", s.name, how, got, err, s.body)
			}
			if used := m.Usage(); used != s.want {
				t.Errorf("%s, %s: %+v, want %+v", s.name, how, used, s.want)
			}
		}
	}
}

func TestGuardHidesUsage(t *testing.T) {
	for _, body := range []string{
		textChunk + usageChunk + doneChunk, usageChunk, textChunk + strings.TrimRight(usageChunk, "\n"), textChunk + llamaChunk + doneChunk,
		vllmChunk + usageChunk + doneChunk, crlf(textChunk + usageChunk + doneChunk),
		strings.ReplaceAll(textChunk+usageChunk+doneChunk, "\n", "\r"),
	} {
		want, _ := io.ReadAll(dialect.NewMeter(dialect.Chat, nil).Hide(strings.NewReader(body)))
		for how, stream := range pieces(body) {
			got, err := io.ReadAll(dialect.NewMeter(dialect.Chat, nil).Guard(&closing{Reader: stream}, true, always, nil))
			if string(got) != string(want) || err != nil {
				t.Errorf("%q, %s: %q, %v, want %q", body, how, got, err, want)
			}
		}
	}
}

// An event is handed on as soon as it has come, whatever follows.
func TestGuardKeepsNoWholeEvent(t *testing.T) {
	for _, c := range []struct {
		api  dialect.API
		body string
	}{
		{dialect.Chat, textChunk}, {dialect.Chat, crlf(textChunk)}, {dialect.OllamaChat, `{"message":{"content":"Hello"},"done":false}` + "\n"},
		{dialect.Generate, `[{"candidates":[{"content":{"parts":[{"text":"Hello"}]}}]}`},
	} {
		in, out := io.Pipe()
		g := dialect.NewMeter(c.api, nil).Guard(in, false, always, nil)
		go func() { io.WriteString(out, c.body) }() // and nothing more
		got := make([]byte, len(c.body))
		if _, err := io.ReadFull(g, got); string(got) != c.body || err != nil {
			t.Errorf("%q: %q, %v", c.body, got, err)
		}
		in.Close()
	}
}

func TestMeterMostOutputIsABound(t *testing.T) {
	for _, s := range meterStreams {
		if s.fault != "" || strings.Contains(s.body, "response.audio.delta") { // not all that was generated has come, or comes as text
			continue
		}
		m := dialect.NewMeter(s.api, nil)
		io.WriteString(m, s.body)
		if got := m.MostOutput(); got < s.truth {
			t.Errorf("%s: at most %d tokens: %d were generated", s.name, got, s.truth)
		}
	}
}

func TestMeterMostOutput(t *testing.T) {
	text := sse(delta(`"content":"Grüße \ud83d\ude00\n"`)) // 8 bytes, and two escapes of at most 4 bytes each
	for _, c := range []struct {
		name string
		api  dialect.API
		body string
		want int
	}{
		{"nothing", dialect.Chat, "", 0},
		{"text", dialect.Chat, text, 16},
		{"an event without text", dialect.Chat, sse(delta(`"role":"assistant","content":""`)), 1},
		{"unfinished", dialect.Chat, textChunk + strings.TrimRight(textChunk, "}]\n,\"finsh_reao:l"), 10},
		{"reasoning under two names", dialect.Chat, sse(delta(`"reasoning":"abc","reasoning_content":"abcd"`)), 4},
		{"a tool", dialect.Chat, sse(delta(`"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]`)), 3 + 32},
		{"arguments in an object", dialect.Generate, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":17}}}]}}]}`, 1 + len(`"a":17}`) - 1 + 32},
		{"a block", dialect.Messages, named(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`), 33},
		{"the provider's count", dialect.Chat, textChunk + usageChunk, 6},
		{"a count beside an answer", dialect.Chat, vllmChunk, 6},
		{"what cannot be read", dialect.Chat, "data: {{\n\n", 0},
	} {
		m := dialect.NewMeter(c.api, nil)
		io.WriteString(m, c.body)
		if got := m.MostOutput(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	m := dialect.NewMeter(dialect.Chat, nil)
	m.Expect(2)
	io.WriteString(m, textChunk+vllmChunk) // the count may be that of one answer alone
	if got := m.MostOutput(); got != 10 {
		t.Errorf("two answers: %d, want 10", got)
	}
	if got := dialect.NewMeter(dialect.Chat, http.Header{"Content-Encoding": {"br"}}).MostOutput(); got < 1<<30 {
		t.Errorf("a compressed stream has at most %d tokens", got)
	}
}

func TestGuardCuts(t *testing.T) {
	refusal := dialect.Refusal{Status: 429, Message: "no more", Retry: true}
	gemini := `{"candidates":[{"content":{"parts":[{"text":"Hello"}]}}]}`
	ollama := `{"message":{"content":"Hello"},"done":false}` + "\n"
	cohere := `{"event_type":"text-generation","text":"Hello"}` + "\n"
	converse := converseFrames("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hello"}}`)
	for _, c := range []struct {
		name   string
		e      dialect.Endpoint
		event  string
		before string // the first event
		want   string // in place of the third
	}{
		{"chat", dialect.Endpoint{API: dialect.Chat}, textChunk, textChunk, `data: {"error":{"code":"rate_limit_exceeded","message":"no more","param":null,"type":"requests"}}` + "\n\ndata: [DONE]\n\n"},
		{"messages", dialect.Endpoint{API: dialect.Messages}, named(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"Hello"}}`), "",
			"event: error\ndata: " + `{"error":{"message":"no more","type":"rate_limit_error"},"type":"error"}` + "\n\n"},
		{"responses", dialect.Endpoint{API: dialect.Responses}, named(`{"type":"response.output_text.delta","delta":"Hello"}`), "",
			"event: error\ndata: " + `{"code":"rate_limit_exceeded","error":{"code":"rate_limit_exceeded","message":"no more","param":null,"type":"requests"},"message":"no more","param":null,"sequence_number":0,"type":"error"}` + "\n\n" +
				"event: response.failed\ndata: " + `{"response":{"error":{"code":"rate_limit_exceeded","message":"no more"},"object":"response","output":[],"status":"failed"},"sequence_number":1,"type":"response.failed"}` + "\n\n"},
		{"gemini", dialect.Endpoint{API: dialect.Generate}, sse(gemini), "", sse(`{"error":{"code":429,"message":"no more","status":"RESOURCE_EXHAUSTED"}}`)},
		{"gemini's array", dialect.Endpoint{API: dialect.Generate}, ",\r\n" + gemini, "[" + gemini, ",\r\n" + `{"error":{"code":429,"message":"no more","status":"RESOURCE_EXHAUSTED"}}]`},
		{"ollama", dialect.Endpoint{API: dialect.OllamaChat}, ollama, "", `{"error":"no more"}` + "\n"},
		{"cohere", dialect.Endpoint{API: dialect.CohereChat}, named(`{"type":"content-delta","delta":{"message":{"content":{"text":"Hello"}}}}`), "",
			"event: message-end\ndata: " + `{"delta":{"error":"no more","finish_reason":"ERROR"},"type":"message-end"}` + "\n\n"},
		{"cohere's first version", dialect.Endpoint{API: dialect.CohereChat}, cohere, "", `{"error":"no more","event_type":"stream-end","finish_reason":"ERROR","is_finished":true}` + "\n"},
		{"mistral's conversations", dialect.Endpoint{API: dialect.Conversations, Provider: dialect.Mistral}, named(`{"type":"message.output.delta","content":"Hello"}`), "",
			"event: conversation.response.error\ndata: " + `{"code":429,"message":"no more","type":"conversation.response.error"}` + "\n\n"},
		{"interactions", dialect.Endpoint{API: dialect.Interactions}, sse(`{"event_type":"content.delta","delta":{"type":"text","text":"Hello"}}`), "",
			"event: error\ndata: " + `{"error":{"code":429,"message":"no more","status":"RESOURCE_EXHAUSTED"},"event_type":"error"}` + "\n\n"},
		{"bedrock", dialect.Endpoint{API: dialect.Converse}, converse, "",
			frame(`{"message":"no more"}`, ":content-type", "application/json", ":exception-type", "throttlingException", ":message-type", "exception")},
	} {
		if c.before == "" {
			c.before = c.event
		}
		for how, stream := range pieces(c.before + strings.Repeat(c.event, 9)) {
			m := dialect.NewMeter(c.e.API, nil)
			source := &closing{Reader: stream}
			g := m.Guard(source, false, func(most int) bool { return most <= 2*len("Hello") }, func() []byte { return m.Refusal(c.e, refusal) })
			got, err := io.ReadAll(g)
			if want := c.before + c.event + c.want; strings.Join(strings.Fields(string(got)), " ") != strings.Join(strings.Fields(want), " ") || err != nil || !g.Cut() || source.closed != 1 {
				t.Errorf("%s, %s: %q, %v, cut %v, closed %d: want %q", c.name, how, got, err, g.Cut(), source.closed, want)
			}
			if how == "whole" && m.MostOutput() < 10*len("Hello") {
				t.Errorf("%s: %d tokens at most, and everything has come", c.name, m.MostOutput())
			}
		}
	}
}

// Nothing can be put into a stream that is compressed, or whose event has come in part.
func TestGuardBreaksOff(t *testing.T) {
	never := func(int) bool { return false }
	cut := func(err error) bool { return err != nil && strings.Contains(err.Error(), "the stream was cut off") }
	m := dialect.NewMeter(dialect.Chat, http.Header{"Content-Encoding": {"br"}})
	if got, err := io.ReadAll(m.Guard(&closing{Reader: strings.NewReader("xyz")}, false, never, nil)); len(got) > 0 || !cut(err) {
		t.Errorf("%q, %v, want nothing, and that it was cut off", got, err)
	}
	long := "data: " + strings.Repeat(" ", 5<<20) + `{"choices":[{"delta":{"content":"Hello"}}]}` + "\n\n"
	m = dialect.NewMeter(dialect.Chat, nil)
	got, err := io.ReadAll(m.Guard(&closing{Reader: strings.NewReader(long)}, false, func(most int) bool { return most == 0 }, nil))
	if len(got) < 4<<20 || !strings.HasPrefix(long, string(got)) || !cut(err) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
