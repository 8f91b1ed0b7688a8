package dialect_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// A meter that has read one answer, whole, broken off or compressed, reads the next one as a new meter does.
func TestMeterReset(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":8}}`))
	z.Close()
	answers := []struct {
		name   string
		api    dialect.API
		header http.Header
		body   string
	}{
		{"a whole answer", dialect.Chat, nil, `{"id":"a","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`},
		{"half an answer", dialect.Chat, nil, `{"id":"a","choices":[{"message":{"content":"hi`},
		{"a stream with an error", dialect.Messages, nil, "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"},
		{"a stored response", dialect.Responses, nil, `{"id":"resp_1","status":"completed","output":[],"usage":{"input_tokens":4,"output_tokens":5}}`},
		{"a compressed answer", dialect.Chat, http.Header{"Content-Encoding": {"gzip"}}, zipped.String()},
		{"speech", dialect.Chat, http.Header{"Content-Type": {"audio/mpeg"}}, "ID3"},
		{"embeddings", dialect.Embeddings, nil, `{"data":[],"usage":{"prompt_tokens":6,"total_tokens":6}}`},
	}
	for _, first := range answers {
		for _, second := range answers {
			t.Run(first.name+", "+second.name, func(t *testing.T) {
				used, fresh := dialect.NewMeter(first.api, first.header), dialect.NewMeter(second.api, second.header)
				used.Expect(2)
				used.Write([]byte(first.body))
				used.Usage()
				used.Reset(second.api, second.header)
				used.Write([]byte(second.body))
				fresh.Write([]byte(second.body))
				if got, want := used.Usage(), fresh.Usage(); got != want {
					t.Errorf("usage %+v, of a new meter %+v", got, want)
				}
				if used.Fault() != fresh.Fault() || used.ResponseID() != fresh.ResponseID() || used.Status() != fresh.Status() || used.Ended() != fresh.Ended() {
					t.Errorf("fault %q, id %q, status %q, ended %t", used.Fault(), used.ResponseID(), used.Status(), used.Ended())
				}
			})
		}
	}
}
