// Package llmhttptest is what the tests of the transport share, with SDKs and without: a
// provider, a limiter in front of it, and what the limiter has counted.
package llmhttptest

import (
	"net/http"
	"path/filepath"
	"testing"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/llmhttp"
	"dappco.re/go/core/go-ratelimit/mockprovider"
)

// Model is the one that tests call, but for those that compare several.
const Model = "some-model"

// Ample is a quota that no test exceeds.
var Ample = ratelimit.ModelQuota{MaxRPM: 100_000, MaxTPM: 1_000_000_000, MaxConcurrent: 20_000}

// World is a provider, a limiter, and clients of both.
type World struct {
	t       *testing.T
	Server  *mockprovider.Server
	Direct  *http.Transport // to the provider, past the limiter
	Limiter *ratelimit.RateLimiter
	Events  *Recorder
	Client  *http.Client // through the limiter
}

// New starts a provider, and returns it with a limiter of one model before it.
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
func NewLimiter(t *testing.T, quota ratelimit.ModelQuota, observer ratelimit.Observer) *ratelimit.RateLimiter {
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

// Through returns a client that the limiter limits.
func (w *World) Through(options ...llmhttp.Option) *http.Client {
	return &http.Client{Transport: llmhttp.New(w.Direct, w.Limiter, options...)}
}

// Unused expects that nothing is charged, and that nothing has reached the provider.
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

// Settled expects that all calls have come to an end: each that has reached the
// provider is settled, with as many tokens as the provider has sent, and none holds
// a place.
func (w *World) Settled() {
	w.t.Helper()
	used := w.Ended()
	sent := w.Server.Totals()[Model]
	if used.Input != sent.Input || used.Output != sent.Output {
		w.t.Errorf("%d and %d tokens are settled; the provider has sent %+v", used.Input, used.Output, sent)
	}
}

// Ended expects that each call that has reached the provider is settled, and none
// holds a place. It returns what all calls have used, as far as that is known.
func (w *World) Ended() (used ratelimit.Tokens) {
	w.t.Helper()
	sent := w.Server.Totals()[Model]
	counts := map[ratelimit.EventKind]int{}
	for _, e := range w.Events.All() {
		counts[e.Kind]++
		if e.Kind == ratelimit.EventSettled {
			used.Input += max(e.Used.Input, 0)
			used.Output += max(e.Used.Output, 0)
		}
	}
	if n := counts[ratelimit.EventSettled]; n != sent.Requests+sent.Refused {
		w.t.Errorf("%d calls are settled; the provider has had %+v", n, sent)
	}
	if admitted, ended := counts[ratelimit.EventAdmitted], counts[ratelimit.EventSettled]+counts[ratelimit.EventCancelled]; admitted != ended {
		w.t.Errorf("%d calls were admitted, %d have ended", admitted, ended)
	}
	if n := w.Limiter.Stats(Model).Concurrent; n != 0 {
		w.t.Errorf("%d places are held", n)
	}
	return used
}
