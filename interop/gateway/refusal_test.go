package gateway_test

import (
	"strconv"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
)

// noWait is a configuration in which calls do not wait for their turn.
const noWait = "defaults: {max_wait: 0s}"

// A call that exceeds a limit is refused with what is the provider's own refusal to the
// SDK, says where the limit stands, and does not reach the provider.
func TestRefusal(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		for _, c := range []struct{ call, limits, more string }{
			{"whole", "max_rpm: 2, max_tpm: 1_000_000", noWait},
			{"stream", "max_rpm: 2, max_tpm: 1_000_000", noWait},
			{"whole", ample, "defaults: {max_wait: 0s, requests_per_minute: 2}"},
		} {
			call, r := c.call, newRig(t, with(c.limits, c.more))
			for range 2 {
				if a := s.do(t, r.through(s, call)); a.Error != nil {
					t.Fatalf("%s: %+v", call, a.Error)
				}
			}
			a := s.do(t, r.through(s, call))
			got := a.Error
			if got == nil || got.Status != 429 || got.Type != s.faults(429) || !strings.Contains(got.Message, "not sent: ") || !strings.Contains(got.Message, "try again in ") {
				t.Fatalf("%s: %+v, not %s", call, got, s.faults(429))
			}
			if s.provider != "gemini" { // whose SDKs show no headers
				tells(t, s, got.Headers)
			}
			r.charged(t, s.model, s.model)
			r.settled(t)
		}
	})
}

// tells expects that the headers of a refusal have the limit of two requests a minute,
// and when to come back, as the SDK's provider does.
func tells(t *testing.T, s *sdk, h map[string]string) {
	t.Helper()
	limit, remaining := "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests"
	if s.provider == "anthropic" {
		limit, remaining = "anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining"
	}
	if h[limit] != "2" || h[remaining] != "0" {
		t.Errorf("%s: %q, %s: %q", limit, h[limit], remaining, h[remaining])
	}
	for name, most := range map[string]int{"retry-after": 62, "retry-after-ms": 62_000} { // with the margin
		if n, err := strconv.Atoi(h[name]); err != nil || n < most/2 || n > most {
			t.Errorf("%s: %q", name, h[name])
		}
	}
}

// A call that can never pass is refused at once, and is not tried again.
func TestNever(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample, "defaults: {tokens_per_minute: 2}"))
		k := r.through(s, "whole")
		k.Retries = 2
		got := s.do(t, k).Error
		want := 400
		if s.provider == "anthropic" {
			want = 429
		}
		if got == nil || got.Status != want || !strings.Contains(got.Message, "can never pass") {
			t.Fatalf("%+v", got)
		}
		r.idle(t)
		if all := r.Recent("", 0, 10); len(all) != 1 || all[0].Outcome != gateway.Denied || len(r.provider.received()) != 0 {
			t.Errorf("%+v", all)
		}
	})
}

// An SDK comes back by itself after as long as the gateway has answered: 700 ms, which is
// longer than its own first rest. Those that do not heed it come back sooner, and are
// refused until then.
func TestRetry(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample, noWait))
		overloaded := r.through(s, "whole")
		overloaded.Mock = "status=503 retry-after=700ms"
		if got := s.do(t, overloaded).Error; got == nil || got.Status != 503 {
			t.Fatalf("%+v", got)
		}
		again := r.through(s, "whole")
		again.Retries = 2
		if !s.retries {
			again.Retries = 10
		}
		if a := s.do(t, again); a.Error != nil {
			t.Fatalf("%+v", a.Error)
		}
		r.idle(t)
		var outcomes []gateway.Outcome
		for _, rec := range r.Recent("", 0, 100) {
			outcomes = append(outcomes, rec.Outcome)
		}
		last := len(outcomes) - 1
		if outcomes[1] != gateway.Denied || outcomes[last] != gateway.Passed || s.retries && last != 2 {
			t.Errorf("what became of the calls: %v", outcomes)
		}
		if n := len(r.provider.received()); n != 2 {
			t.Errorf("the provider has got %d calls", n)
		}
		r.settled(t)
	})
}

// A call that may wait is not refused: the SDK sees nothing of it.
func TestWait(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample))
		overloaded := r.through(s, "whole")
		overloaded.Mock = "status=503 retry-after=50ms"
		s.do(t, overloaded)
		if a := s.do(t, r.through(s, "stream")); a.Error != nil {
			t.Fatalf("%+v", a.Error)
		}
		r.settled(t)
	})
}

// What the gateway refuses itself is the SDK's own error, and reaches nobody.
func TestRefused(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample, "projects: {acme: {models: [allowed]}}"))
		for _, c := range []struct {
			what   string
			status int
			ask    func(*ask)
		}{
			{"another's key", 401, func(k *ask) { k.Key = "someone-elses" }},
			{"a key that is too long", 401, func(k *ask) { k.Key += "x" }},
			{"a key that nobody made", 401, func(k *ask) { k.Key = "rl-unknown-secret" }},
			{"a model that the project may not call", 403, func(*ask) {}},
			{"a provider that there is not", 404, func(k *ask) { k.Base = r.url + "/nobody" + s.root }},
			{"a provider that is down", 502, func(k *ask) { k.Base, k.Model = r.url+"/down"+s.root, "allowed" }},
		} {
			for _, call := range []string{"whole", "stream"} {
				k := r.through(s, call)
				c.ask(&k)
				if got := s.do(t, k).Error; got == nil || got.Status != c.status || got.Type != s.faults(c.status) {
					t.Errorf("%s: %s: %+v, not %s", c.what, call, got, s.faults(c.status))
				}
			}
		}
		r.idle(t)
		if n := len(r.provider.received()); n != 0 {
			t.Errorf("the provider has got %d calls", n)
		}
	})
}
