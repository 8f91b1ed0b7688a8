package gateway_test

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway"
)

// dayUsedUp is a configuration in which a project has a single request a day.
const dayUsedUp = "defaults: {requests_per_day: 1}"

// Each SDK stops at the used-up budget of a day, shows the reason, and does not sleep until the next day.
func TestDayUsedUp(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample, dayUsedUp))
		if a := s.do(t, r.through(s, "whole")); a.Error != nil {
			t.Fatalf("%+v", a.Error)
		}
		k := r.through(s, "whole")
		if s.retries {
			k.Retries = 2
		}
		got := s.do(t, k).Error
		if got == nil || got.Status != 429 || !strings.Contains(got.Message, "not sent: ") || got.Headers["retry-after"] != "" {
			t.Fatalf("%+v", got)
		}
		r.idle(t)
		if all := r.Recent("", 0, 10); len(all) != 2 || all[1].Outcome != gateway.Denied {
			t.Errorf("it was tried again: %+v", all)
		}
	})
}

// Vercel's SDK for Mistral shows the reason only of errors in exactly Mistral's form.
func TestMistralShowsTheReason(t *testing.T) {
	r := newRig(t, with(ample, dayUsedUp))
	k := ask{Call: "whole", Base: r.url + "/mistral/v1", Key: r.key, Model: "mistral-test"}
	if a := nodes["mistral"].do(t, k); a.Error != nil {
		t.Fatalf("%+v", a.Error)
	}
	if got := nodes["mistral"].do(t, k).Error; got == nil || got.Status != 429 || !strings.Contains(got.Message, "1 requests a day left") {
		t.Errorf("%+v", got)
	}
}

// Cohere's SDK for Node.js sleeps for as long as Retry-After says, up to a minute each time. Without it the SDK tries
// again within seconds, and then shows the reason.
func TestCohereDoesNotSleepForADay(t *testing.T) {
	r := newRig(t, with(ample, dayUsedUp))
	k := ask{Call: "whole", Base: r.url + "/cohere", Key: r.key, Model: "command-test", Retries: 1}
	if a := nodes["cohere"].do(t, k); a.Error != nil {
		t.Fatalf("%+v", a.Error)
	}
	if got := nodes["cohere"].do(t, k).Error; got == nil || got.Status != 429 || !strings.Contains(got.Message, "1 requests a day left") {
		t.Errorf("%+v", got)
	}
	r.idle(t)
	for _, rec := range r.Recent("", 0, 10)[1:] {
		if rec.Outcome != gateway.Denied {
			t.Errorf("%+v", rec)
		}
	}
}
