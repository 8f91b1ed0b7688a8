package gateway

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// door is a provider that records when calls arrive. Each takes up to two seconds on its way.
type door struct {
	mu       sync.Mutex
	arrivals []time.Time
}

func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep([]time.Duration{0, 2 * time.Second, rand.N(2 * time.Second)}[rand.IntN(3)])
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	d.mu.Lock()
	d.arrivals = append(d.arrivals, time.Now())
	d.mu.Unlock()
	body := `{"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// most returns the largest number of calls that arrived within 60 seconds.
func (d *door) most() (most int) {
	slices.SortFunc(d.arrivals, time.Time.Compare)
	first := 0
	for i, at := range d.arrivals {
		for !at.Before(d.arrivals[first].Add(time.Minute)) {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// With the default margin, no more calls than the quota arrive at the provider within any
// minute. With margin: 0s more do, which shows that the test can fail.
func TestNoMinuteAtTheProviderHoldsMore(t *testing.T) {
	for _, margin := range []string{"", "margin: 0s, "} {
		for _, state := range []string{"memory", "sqlite"} {
			t.Run(state+"/"+margin, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if state == "sqlite" {
						state = filepath.Join(t.TempDir(), "state.db")
					}
					g, err := New(gatewaytest.Config(t, fmt.Sprintf(`
state: %s
defaults: {max_wait: 5m}
providers: {openai: {%sbase_url: MOCK, models: {gpt-4o: {max_rpm: 50}}}}
`, state, margin), "http://127.0.0.1:1"), Options{})
					if err != nil {
						t.Fatal(err)
					}
					if most := pressed(t, g).most(); (most > 50) != (margin != "") {
						t.Errorf("%d of 50 a minute arrive in a minute", most)
					}
					if err := g.Close(); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// pressed sends more calls than the quota admits, for some minutes.
func pressed(t *testing.T, g *Gateway) *door {
	d := new(door)
	for _, to := range g.setup.Load().upstreams["openai"].deployments {
		to.transport = d
	}
	stop := time.Now().Add(4 * time.Minute)
	var wg sync.WaitGroup
	for range 60 {
		wg.Go(func() {
			for time.Now().Before(stop) {
				r := httptest.NewRequest("POST", "http://127.0.0.1"+chat, bytes.NewBufferString(`{"model":"gpt-4o","max_tokens":4,"messages":[]}`))
				w := httptest.NewRecorder()
				g.ServeHTTP(w, r)
				if w.Code != 200 {
					t.Errorf("%d %s", w.Code, w.Body)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := len(d.arrivals); n < 180 {
		t.Errorf("%d calls arrive in 4 minutes of 50 each", n)
	}
	return d
}

// The Retry-After of a refusal includes the margin.
func TestRefusalsKnowTheMargin(t *testing.T) {
	for margin, longer := range map[string]bool{"30s": true, "0s": false} {
		r := newRig(t, "defaults: {max_wait: 0s}\nproviders: {openai: {margin: "+margin+", base_url: MOCK, models: {gpt-4o: {max_rpm: 1}}}}", mockprovider.Config{})
		r.post(t, chat, hello)
		got := r.post(t, chat, hello)
		after, err := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != 429 || err != nil || (after > 60) != longer {
			t.Errorf("%s: %d, Retry-After %q", margin, got.status, got.header.Get("Retry-After"))
		}
		if reset, err := time.ParseDuration(got.header.Get("X-Ratelimit-Reset-Requests")); err != nil || (reset > time.Minute) != longer {
			t.Errorf("%s: it resets in %q", margin, got.header.Get("X-Ratelimit-Reset-Requests"))
		}
	}
}

// The margin is always the configuration's, even if the state has another or none. Changing
// it resets neither usage nor learned maxima.
func TestMarginOfTheConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	old, err := ratelimit.NewWithSQLiteConfig(path, ratelimit.Config{Quotas: map[string]ratelimit.ModelQuota{
		"o3-mini": {MaxRPM: 7, MaxRPD: 10}, "learner": {MaxRPM: 70, MaxRPD: 10, Auto: true}, "gpt-4-turbo": {},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"o3-mini", "learner"} {
		old.RecordUsage(model, 3, 4)
	}
	if err := old.Persist(); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	file := func(margin string) string {
		return "state: " + path + "\nproviders: {openai: {" + margin + "base_url: MOCK, models: {learner: {max_rpm: 5, max_rpd: 10, auto: true}}}}"
	}
	r := newRig(t, file(""), mockprovider.Config{})
	want := func(margin time.Duration) {
		t.Helper()
		for model, most := range map[string]int{"o3-mini": 7, "learner": 70} {
			q, _ := r.Models().Quota(model)
			testkit.Equal(t, "the quota of "+model, ratelimit.ModelQuota{MaxRPM: most, MaxRPD: 10, Auto: model == "learner", Margin: margin}, q)
			if s := r.Models().Stats(model); s.RPM != 1 || s.RPD != 1 {
				t.Errorf("%s: %+v is used", model, s)
			}
		}
		q, _ := r.Models().Quota("gpt-4-turbo")
		testkit.Equal(t, "the quota that was lifted", ratelimit.ModelQuota{}, q)
	}
	want(2 * time.Second)
	for text, margin := range map[string]time.Duration{"margin: 5s, ": 5 * time.Second, "margin: 0s, ": 0} {
		if err := r.Reload(r.again(t, file(text))); err != nil {
			t.Fatal(err)
		}
		want(margin)
	}
}
