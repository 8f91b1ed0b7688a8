package llmhttp_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llmhttp"
)

// BenchmarkRoundTrip measures what the transport itself takes for a call of 1 KB and its answer: the provider answers at
// once, in memory. Beside it is the same call without the transport.
func BenchmarkRoundTrip(b *testing.B) {
	const most = 1 << 40
	text := strings.Repeat("It was the best of times, it was the worst of times. ", 16)
	body := fmt.Sprintf(`{"model":%q,"max_tokens":1024,"messages":[{"role":"user","content":%q}]}`, model, text)
	provider := instant{
		body: fmt.Appendf(nil, `{"id":"chatcmpl-1","object":"chat.completion","model":%q,"choices":[{"index":0,"message":{"role":"assistant",`+
			`"content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":200,"completion_tokens":190,"total_tokens":390}}`, model, text),
		header: http.Header{
			"Content-Type":                   {"application/json"},
			"X-Ratelimit-Limit-Requests":     {fmt.Sprint(most)},
			"X-Ratelimit-Limit-Tokens":       {fmt.Sprint(most)},
			"X-Ratelimit-Remaining-Requests": {fmt.Sprint(most - 1)},
			"X-Ratelimit-Remaining-Tokens":   {fmt.Sprint(most - 390)},
			"X-Ratelimit-Reset-Requests":     {"1ms"},
			"X-Ratelimit-Reset-Tokens":       {"6ms"},
		},
	}
	limiter, err := ratelimit.NewWithConfig(ratelimit.Config{
		Quotas: map[string]ratelimit.ModelQuota{model: {MaxRPM: most, MaxTPM: most}}, FilePath: b.TempDir() + "/f",
	})
	if err != nil {
		b.Fatal(err)
	}
	defer limiter.Close()
	for name, transport := range map[string]http.RoundTripper{"bare": provider, "limited": llmhttp.New(provider, limiter)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				request, _ := http.NewRequest(http.MethodPost, "https://api.openai.com/v1/chat/completions", strings.NewReader(body))
				response, err := transport.RoundTrip(request)
				if err != nil || response.StatusCode != http.StatusOK {
					b.Fatal(response, err)
				}
				if _, err := io.Copy(io.Discard, response.Body); err != nil {
					b.Fatal(err)
				}
				response.Body.Close()
			}
		})
	}
}

// instant is a provider that gives every call the same answer.
type instant struct {
	header http.Header
	body   []byte
}

func (p instant) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: p.header, Request: r,
		Body: io.NopCloser(bytes.NewReader(p.body)), ContentLength: int64(len(p.body)),
	}, nil
}
