package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/webhook"
)

// hook is a receiver of messages that fails first.
type hook struct {
	*httptest.Server
	got chan webhook.Message
}

func newHook(t *testing.T, secretText string) *hook {
	secret, err := webhook.ParseSecret(secretText)
	if err != nil {
		t.Fatal(err)
	}
	h, calls := &hook{got: make(chan webhook.Message, 10)}, 0
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var m webhook.Message
		if err := json.Unmarshal(body, &m); err != nil || secret.Verify(r.Header, body, time.Now()) != nil {
			t.Errorf("%s: %v, or it is not signed", body, err)
		}
		h.got <- m
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) next(t *testing.T) webhook.Data {
	t.Helper()
	select {
	case m := <-h.got:
		return m.Data
	case <-time.After(testkit.Patience):
		t.Fatal("no message")
		return webhook.Data{}
	}
}

// A budget that reaches a threshold is logged, counted, and sent to the webhook, which may change.
func TestThresholds(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	t.Setenv("SECRET", secret)
	first, second := newHook(t, secret), newHook(t, secret)
	yaml := func(hook *hook, at string) string {
		return strings.NewReplacer("URL", hook.URL, "AT", at).Replace(`
state: memory
defaults: {max_wait: 0s}
projects: {acme: {requests_per_day: 4}}
thresholds: {at: [AT], webhook: {url: "URL", secret: {env: SECRET}}}
`)
	}
	var log bytes.Buffer
	g, err := New(gatewaytest.Config(t, yaml(first, "50%"), ""), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if ok, err := g.Projects().Allow(t.Context(), "acme"); !ok {
			t.Error(err)
		}
	}
	if d := first.next(t); d.Owner != "acme" || d.Percent != 50 || d.Used != "2" || d.Max != "4" || d.Limit != "requests_per_day" || d.Resets == nil {
		t.Errorf("%+v", d)
	}
	if err := g.Reload(gatewaytest.Config(t, yaml(second, "50%, 75%"), "")); err != nil {
		t.Fatal(err)
	}
	if ok, err := g.Projects().Allow(t.Context(), "acme"); !ok {
		t.Error(err)
	}
	if d := second.next(t); d.Percent != 75 {
		t.Errorf("%+v", d)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	got := gathered(t, g.metrics, "ratelimit_")
	want := map[string]float64{
		"gateway_webhooks_total[done]": 2, "gateway_webhooks_total[failed]": 0,
		"thresholds_total[requests_per_day project 50 acme]": 1, "thresholds_total[requests_per_day project 75 acme]": 1,
	}
	for name := range got {
		if !strings.Contains(name, "webhooks") && !strings.Contains(name, "thresholds_total") {
			delete(got, name)
		}
	}
	testkit.Equal(t, "metrics", want, got)
	for _, line := range []string{
		`level=WARN msg="a budget has reached a threshold" owner=acme limit=requests_per_day percent=50 used="2 requests" max="4 requests" resets=`,
		`percent=75 used="3 requests"`,
	} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("no %s in the log:\n%s", line, &log)
		}
	}
}
