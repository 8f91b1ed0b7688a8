// Package llmhttptest has what the tests of package llmhttp have in common, with SDKs and without: a
// provider, a limiter in front of it, and checks of what the limiter has counted.
package llmhttptest

import (
	"net/http"
	"path/filepath"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/llmhttp"
)

// Model is the model that tests call, unless they compare several models.
const Model = "some-model"

// Ample is a quota that no test exceeds.
var Ample = ratelimit.ModelQuota{MaxRPM: 100_000, MaxTPM: 1_000_000_000, MaxConcurrent: 20_000}

// World is a provider, a limiter in front of it, and clients.
type World struct {
	t       *testing.T
	Server  *mockprovider.Server
	Direct  *http.Transport // sends calls to the provider without the limiter
	Limiter *ratelimit.RateLimiter
	Events  *Recorder    // the events of the limiter
	Client  *http.Client // sends calls through the limiter
}

// New starts a provider, and a limiter of one model in front of it.
func New(t *testing.T, config mockprovider.Config, quota ratelimit.ModelQuota, options ...llmhttp.Option) *World {
	t.Helper()
	w := &World{t: t, Server: mockprovider.New(config), Events: &Recorder{}}
	direct, stop := w.Server.InMemory()
	t.Cleanup(stop)
	w.Direct, w.Limiter = direct, NewLimiter(t, quota, w.Events)
	w.Client = w.Through(options...)
	return w
}

// NewLimiter returns a limiter of one model.
func NewLimiter(t *testing.T, quota ratelimit.ModelQuota, observer event.Observer) *ratelimit.RateLimiter {
	t.Helper()
	limiter, err := ratelimit.NewWithConfig(ratelimit.Config{
		FilePath: filepath.Join(t.TempDir(), "none.yaml"), Observer: observer,
		Quotas: map[string]ratelimit.ModelQuota{Model: quota},
	})
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

// Through returns a client that sends calls through the limiter.
func (w *World) Through(options ...llmhttp.Option) *http.Client {
	return &http.Client{Transport: llmhttp.New(w.Direct, w.Limiter, options...)}
}

// Unused fails the test if anything was charged, or if any call has reached the provider.
func (w *World) Unused() {
	w.t.Helper()
	s := w.Limiter.Stats(Model)
	if s.RPM != 0 || s.TPM != 0 || s.RPD != 0 || s.Concurrent != 0 {
		w.t.Errorf("%+v is charged", s)
	}
	if sent := w.Server.Totals(); len(sent) != 0 {
		w.t.Errorf("the provider has had %+v", sent)
	}
}

// Settled does what Ended does. It also fails the test unless the calls were settled with as many
// tokens as the provider has reported.
func (w *World) Settled() {
	w.t.Helper()
	used := w.Ended()
	sent := w.Server.Totals()[Model]
	if used.Input != sent.Input || used.Output != sent.Output {
		w.t.Errorf("%d and %d tokens are settled; the provider has sent %+v", used.Input, used.Output, sent)
	}
}

// Ended fails the test unless all calls have ended: each call that has reached the provider was
// settled, and none holds a slot. It returns what all calls have used, as far as that is known.
func (w *World) Ended() (used ratelimit.Tokens) {
	w.t.Helper()
	sent := w.Server.Totals()[Model]
	counts := map[event.Kind]int{}
	for _, e := range w.Events.All() {
		counts[e.Kind]++
		if e.Kind == event.Settled {
			used.Input += max(e.Used.Input, 0)
			used.Output += max(e.Used.Output, 0)
		}
	}
	if n := counts[event.Settled]; n != sent.Requests+sent.Refused {
		w.t.Errorf("%d calls are settled; the provider has had %+v", n, sent)
	}
	if admitted, ended := counts[event.Admitted], counts[event.Settled]+counts[event.Cancelled]; admitted != ended {
		w.t.Errorf("%d calls were admitted, %d have ended", admitted, ended)
	}
	if n := w.Limiter.Stats(Model).Concurrent; n != 0 {
		w.t.Errorf("%d slots are held", n)
	}
	return used
}
