package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// benchStreams are typical chunks of streams.
var benchStreams = []struct {
	name  string
	api   dialect.API
	chunk string
}{
	{"chat", dialect.Chat, sse(delta(`"content":" world"`))},
	{"chat, tool call", dialect.Chat, sse(delta(`"tool_calls":[{"index":0,"function":{"arguments":"{\"location\":\"P"}}]`))},
	{"messages", dialect.Messages, named(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ello frien"}}`)},
	{"responses", dialect.Responses, named(`{"type":"response.output_text.delta","sequence_number":21,"item_id":"msg_67c9fdcf37fc8190ba82116e33fb28c5","output_index":0,"content_index":0,"delta":" dream","logprobs":[],"obfuscation":"hBvXlVsZCn"}`)},
	{"generate", dialect.Generate, sse(`{"candidates": [{"content": {"parts": [{"text": " upon a time in a land far away"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 7,"candidatesTokenCount": 40,"totalTokenCount": 47,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 7}]},"modelVersion": "gemini-3.5-flash","responseId": "mXe9aK"}`)},
	{"ollama", dialect.OllamaChat, `{"model":"qwen3","created_at":"2026-11-15T10:00:00.123456Z","message":{"role":"assistant","content":" sky"},"done":false}` + "\n"},
	{"whole text", dialect.Chat, sse(delta(`"content":"` + strings.Repeat("All happy families are alike; every unhappy one\\n", 200) + `"`))},
	{"embedding", dialect.Embeddings, `{"data":[{"embedding":[` + strings.Repeat("-0.0028842222,", 1536) + `0]}],"usage":{"prompt_tokens":8,"total_tokens":8}}`},
}

func BenchmarkMeter(b *testing.B) {
	for _, s := range benchStreams {
		b.Run(fmt.Sprintf("%s/%dB", s.name, len(s.chunk)), func(b *testing.B) {
			m, p := dialect.NewMeter(s.api, nil), []byte(s.chunk)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = m.Write(p)
			}
		})
	}
}

func BenchmarkHide(b *testing.B) {
	p := []byte(sse(delta(`"content":" world"`)))
	r := dialect.NewMeter(dialect.Chat, nil).Hide(&chunks{p})
	buf := make([]byte, 4096)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		if n, err := r.Read(buf); n != len(p) || err != nil {
			b.Fatal(n, err)
		}
	}
}

// chunks is an endless stream of one chunk.
type chunks struct{ p []byte }

func (c *chunks) Read(p []byte) (int, error) { return copy(p, c.p), nil }
