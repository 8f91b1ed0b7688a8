// Package llmhttp_test tests the transport with the SDKs that providers publish, as they
// are: all that they are given is an HTTP client.
package llmhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start")) // which Gemini's SDK starts
}

const model = llmhttptest.Model

var ample = llmhttptest.Ample

// sdkCall is a call with an SDK. It returns all that the SDK has shown.
type sdkCall struct {
	name string
	call func(ctx context.Context, client *http.Client) []string
}

// sdkReply is what the provider replies. It is exact if it reports all that was used.
type sdkReply struct {
	name  string
	exact bool
	reply func(mockprovider.Call) mockprovider.Reply
}

// transparent makes each call with each reply, past the limiter and through it, each
// time with a clock and a provider that have just begun. What the SDK shows must be
// the same, and what it has used must be what is settled.
func transparent(t *testing.T, calls []sdkCall, replies []sdkReply) {
	for _, c := range calls {
		for _, r := range replies {
			t.Run(c.name+"/"+r.name, func(t *testing.T) {
				var without, with []string
				config := mockprovider.Config{Script: r.reply}
				synctest.Test(t, func(t *testing.T) {
					w := llmhttptest.New(t, config, ample)
					without = c.call(t.Context(), &http.Client{Transport: w.Direct})
				})
				synctest.Test(t, func(t *testing.T) {
					w := llmhttptest.New(t, config, ample)
					with = c.call(t.Context(), w.Client)
					synctest.Wait()
					if r.exact && !strings.HasPrefix(r.name, "500") { // after which a call keeps the tokens that it was expected to use
						w.Settled()
					} else if used, sent := w.Ended(), w.Server.Totals()[model]; sent.Refused == 0 && (used.Output > sent.Output || used.Input > sent.Input) {
						t.Errorf("%+v is settled; the provider has sent %+v", used, sent)
					}
				})
				if len(without) == 0 {
					t.Fatal("the SDK has shown nothing")
				}
				if diff := cmp.Diff(seen(without), seen(with)); diff != "" {
					t.Errorf("without (-) and with (+) the transport:\n%s", diff)
				}
			})
		}
	}
}

// differs is what may differ: an SDK comes back after a time that is drawn by lot,
// and a chunk may say that it does not report usage.
var differs = regexp.MustCompile(`"Date":\["[^"]*"\],|Date: .*\n|,"usage":null`)

// seen returns what the SDK has shown, without what may differ.
func seen(shown []string) []string {
	list := make([]string, len(shown))
	for i, text := range shown {
		list[i] = differs.ReplaceAllString(text, "")
	}
	return list
}

// shownError is an error as an SDK shows it.
func shownError(err error, response *http.Response) string {
	text := fmt.Sprintf("error: %v", err)
	if response == nil {
		return text
	}
	var headers []string
	for name, values := range response.Header {
		headers = append(headers, name+": "+strings.Join(values, ","))
	}
	slices.Sort(headers)
	return fmt.Sprintf("%s\n%s\n%s", text, response.Status, strings.Join(headers, "\n"))
}
