package llmhttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/llmhttptest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llmhttp"
)

// Instead of letting calls wait, the transport asks the SDK to: it comes back by
// itself, in time, and passes.
func TestRejectedSDKsComeBack(t *testing.T) {
	for _, c := range []struct {
		name string
		busy time.Duration // until the minute has passed
		call func(context.Context, *http.Client) error
	}{
		{"openai", 5 * time.Second, func(ctx context.Context, client *http.Client) error { // it waits 8 s at most
			sdk := newOpenAI(client)
			_, err := sdk.Chat.Completions.New(ctx, chatParams)
			return err
		}},
		{"openai-stream", 5 * time.Second, func(ctx context.Context, client *http.Client) error {
			sdk := newOpenAI(client)
			stream := sdk.Chat.Completions.NewStreaming(ctx, chatParams)
			defer stream.Close()
			for stream.Next() {
			}
			return stream.Err()
		}},
		{"anthropic", 50 * time.Second, func(ctx context.Context, client *http.Client) error {
			sdk := newAnthropic(client)
			_, err := sdk.Messages.New(ctx, messageParams)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := llmhttptest.New(t, mockprovider.Config{}, ratelimit.ModelQuota{MaxRPM: 1, MaxTPM: 1_000_000}, llmhttp.Reject())
				if err := c.call(t.Context(), w.Client); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute - c.busy)
				began := time.Now()
				if err := c.call(t.Context(), w.Client); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < c.busy || took > c.busy+time.Second {
					t.Errorf("it took %v, want %v", took, c.busy)
				}
				synctest.Wait()
				w.Settled()
				if n, sent := w.Events.Count(event.Denied), w.Server.Totals()[model]; n != 1 || sent.Requests != 2 || sent.Refused != 0 {
					t.Errorf("%d denials, and the provider has had %+v", n, sent)
				}
			})
		})
	}
}

// What it would not help to try again is not tried again by SDKs. A prompt that
// Anthropic may have cached is never too large.
func TestRejectedForLong(t *testing.T) {
	for _, c := range []struct {
		name              string
		quota             ratelimit.ModelQuota
		openAI, anthropic int // status
	}{
		{"day", ratelimit.ModelQuota{MaxRPD: 1}, 429, 429},
		{"never", ratelimit.ModelQuota{MaxTPM: 1000}, 400, 200},
	} {
		for _, options := range [][]llmhttp.Option{nil, {llmhttp.Reject()}} {
			t.Run(fmt.Sprintf("%s/%d", c.name, len(options)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := llmhttptest.New(t, mockprovider.Config{}, c.quota, options...)
					sdk := newOpenAI(w.Client)
					if c.openAI == 429 {
						if _, err := sdk.Chat.Completions.New(t.Context(), chatParams); err != nil {
							t.Fatal(err)
						}
					}
					params := chatParams
					params.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage(strings.Repeat("a long story ", 1000))}
					_, err := sdk.Chat.Completions.New(t.Context(), params)
					var said *openai.Error
					if !errors.As(err, &said) || said.StatusCode != c.openAI {
						t.Errorf("OpenAI's SDK says %v", err)
					}
					claude := newAnthropic(w.Client)
					long := messageParams
					long.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(strings.Repeat("a long story ", 1000)))}
					_, err = claude.Messages.New(t.Context(), long)
					var wrong *anthropic.Error
					if c.anthropic == 200 && err != nil || c.anthropic != 200 && (!errors.As(err, &wrong) || wrong.StatusCode != c.anthropic) {
						t.Errorf("Anthropic's SDK says %v", err)
					}
					if sent := w.Server.Totals()[model].Requests; sent != 1 {
						t.Errorf("the provider has had %d calls", sent)
					}
				})
			})
		}
	}
}
