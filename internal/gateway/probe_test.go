package gateway

import (
	"errors"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// Load balancers can probe the listener to which they send clients, without a key.
func TestProbesNeedNoKey(t *testing.T) {
	t.Setenv("PROBE_TEST_KEY", "secret")
	r := newRig(t, "keys: required\nproviders: {openai: {base_url: MOCK, key: {env: PROBE_TEST_KEY}}}", mockprovider.Config{})
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := r.do(t, "GET", path, ""); a.status != 200 || a.body != `{"status":"ok"}` {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
		if a := r.do(t, "HEAD", path, ""); a.status != 200 || a.body != "" {
			t.Errorf("HEAD %s: %d %s", path, a.status, a.body)
		}
		if a := r.post(t, path, "{}"); a.status != 401 {
			t.Errorf("POST %s: %d %s", path, a.status, a.body)
		}
	}
	if all := r.Recent("", 0, maxRecent); len(all) != 2 {
		t.Errorf("probes were recorded: %+v", all)
	}
	r.Drain()
	if a := r.do(t, "GET", "/readyz", ""); a.status != 503 || a.body != `{"status":"not ready"}` {
		t.Errorf("while it stops: %d %s", a.status, a.body)
	}
	if a := r.do(t, "GET", "/healthz", ""); a.status != 200 {
		t.Errorf("while it stops: %d %s", a.status, a.body)
	}
}

// Probes ask the store once a second at most, however many come.
func TestProbesAskTheStoreOnceASecond(t *testing.T) {
	r := newRig(t, "providers: {openai: {base_url: MOCK}}", mockprovider.Config{})
	if err := r.Readiness(); err != nil {
		t.Fatal(err)
	}
	at := r.probed.at
	r.probed.err = errors.New("as it was")
	for range 5 {
		if err := r.Readiness(); err == nil || err.Error() != "as it was" {
			t.Errorf("the store is asked again at once: %v", err)
		}
	}
	r.probed.at = at.Add(-2 * readyTimeout)
	if err := r.Readiness(); err != nil {
		t.Errorf("the store is not asked again: %v", err)
	}
}
