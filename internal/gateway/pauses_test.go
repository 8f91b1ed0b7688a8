package gateway

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

const briefPauses = `
providers:
  openai: {base_url: MOCK, max_pause: 1s, models: {gpt-4o: {max_rpm: 100}}}
defaults: {max_wait: 20s}
`

// After a 429 that asks for an hour, a single call probes whether the model is back before
// that. Then all waiting calls pass. The log has the beginning and the end of the pause.
func TestLongPausesAreCutAndProbed(t *testing.T) {
	var sent atomic.Int32
	var log bytes.Buffer
	probing, finish := make(chan bool), make(chan bool)
	r := newRig(t, briefPauses, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply {
		switch sent.Add(1) {
		case 1:
			return mockprovider.Reply{Status: 429, RetryAfter: time.Hour}
		case 2:
			probing <- true
			<-finish
		}
		return mockprovider.Reply{}
	}})
	r.log = slog.New(slog.NewJSONHandler(&log, nil)) // in JSON, as the gateway logs it, a time.Duration would be nanoseconds
	if a := r.post(t, chat, hello); a.status != http.StatusTooManyRequests {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var waiting sync.WaitGroup
	for range 5 {
		waiting.Go(func() {
			if a := r.post(t, chat, hello); a.status != http.StatusOK {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	<-probing
	if n := sent.Load(); n != 2 {
		t.Errorf("%d calls were sent before the probe was answered; want one, and the probe", n)
	}
	close(finish)
	waiting.Wait()
	if n := sent.Load(); n != 6 || r.Models().Paused("gpt-4o") != 0 {
		t.Errorf("%d calls were sent, and the model is paused for %v", n, r.Models().Paused("gpt-4o"))
	}
	text := log.String()
	for _, want := range []string{
		`"msg":"a model is paused: its provider has refused a call","model":"gpt-4o","provider":"openai","cause":"rate limit","for":"1s","until":"`,
		`"msg":"a model is not paused any more","model":"gpt-4o","provider":"openai","cause":"rate limit","after":"`,
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("the log has not once %q:\n%s", want, text)
		}
	}
}
