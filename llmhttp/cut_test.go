package llmhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llmhttp"
	"dappco.re/go/core/go-ratelimit/project"
)

// A stream that its project has no more tokens for ends with an error in the provider's form, and the provider sees that
// its client has left. Nothing stays reserved, and no more than the limit is used.
func TestStreamsAreCut(t *testing.T) {
	const most = 1500
	synctest.Test(t, func(t *testing.T) {
		w := llmhttptest.New(t, mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
			return mockprovider.Reply{Output: c.MaxOutput, Delay: 10 * time.Millisecond}
		}}, ample)
		limiter, err := w.Limiter.NewProjects(project.Config{Default: &project.Limit{TokensPerMinute: most, OnOverrun: project.OverrunCut}})
		if err != nil {
			t.Fatal(err)
		}
		client := w.Through(llmhttp.Projects(limiter, func(*http.Request) string { return "p" }))
		for i, tokens := range []string{"100", "5000"} {
			response, err := client.Post("https://api.anthropic.com/v1/messages", "application/json", strings.NewReader(
				`{"model":"some-model","stream":true,"max_tokens":`+tokens+`,"messages":[{"role":"user","content":"Hi"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			if err != nil {
				t.Error(err)
			}
			response.Body.Close()
			synctest.Wait()
			end, cut := string(text[max(len(text)-300, 0):]), i == 1
			if strings.HasSuffix(end, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n") == cut ||
				strings.Contains(end, `event: error`+"\n"+`data: {"error":{"message":"cut off: the limit \"tokens_per_minute\" of project \"p\" has no more for this answer`) != cut {
				t.Errorf("%s tokens: the stream ends with %q", tokens, end)
			}
		}
		if used := w.Server.Totals()["some-model"]; used.Input+used.Output > most || used.Output < 200 {
			t.Errorf("the provider has used %+v", used)
		}
		d, err := limiter.Peek(t.Context(), "p")
		if s := d.Windows()[0]; err != nil || s.Used > most || s.Reserved != 0 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
