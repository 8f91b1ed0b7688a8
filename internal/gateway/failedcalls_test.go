package gateway

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/price"
)

// outage is a gateway whose project has a budget of 17 cents.
const outage = `
providers:
  openai: {base_url: MOCK, models: {gpt-5.5: {max_rpm: 100_000}}}
prices:
  gpt-5.5: {input: 5, cached_input: 0.50, output: 30}
defaults: {max_wait: 0s}
projects:
  acme: {dollars: 0.17, reserve: expected}
`

// failsOnDemand is a provider that answers a prompt with "fail" with 500, and any other with one token.
var failsOnDemand = mockprovider.Config{Script: func(c mockprovider.Call) mockprovider.Reply {
	if strings.Contains(string(c.Body), "fail") {
		return mockprovider.Reply{Status: http.StatusInternalServerError}
	}
	return mockprovider.Reply{Output: 1}
}}

const (
	short = `{"model":"gpt-5.5","messages":[{"role":"user","content":"short"}]}`
	fails = `{"model":"gpt-5.5","messages":[{"role":"user","content":"fail"}]}`
)

// failAtOnce sends a number of calls at once, which the provider answers with 500.
func (r *rig) failAtOnce(t *testing.T, calls int) {
	t.Helper()
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if a := r.post(t, chat, fails, fieldProject, "acme"); a.status != http.StatusInternalServerError {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
}

// An outage must not empty a budget without one answer. Once, a 500 cost seven times what was reserved
// for it, because short answers had lowered the reservation alone: a total of $0.17 stood at $0.26 after
// 20 calls.
func TestFailedCallsAreFree(t *testing.T) {
	r := newRig(t, outage, failsOnDemand)
	for range 64 {
		r.post(t, chat, short, fieldProject, "acme")
	}
	before := spentOf(t, r, "acme")
	r.failAtOnce(t, 20)
	if after := spentOf(t, r, "acme"); after != before || before == 0 {
		t.Errorf("%v is spent, and %v after 20 calls that failed", before, after)
	}
}

// With failed_calls: reserved, and for a project that has too many of them in a minute, a call that
// failed costs what it had reserved, and no more.
func TestFailedCallsCostWhatTheyReserved(t *testing.T) {
	for name, c := range map[string]struct {
		setting string
		free    int // how many calls fail before those that cost something
	}{
		"reserved":                 {"defaults: {failed_calls: reserved, ", 0},
		"more than 60 in a minute": {"defaults: {", 60},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, strings.Replace(strings.Replace(outage, "defaults: {", c.setting, 1), "0.17", "100", 1), failsOnDemand)
			for range 64 {
				r.post(t, chat, short, fieldProject, "acme")
			}
			before := spentOf(t, r, "acme")
			r.failAtOnce(t, c.free)
			if after := spentOf(t, r, "acme"); after != before {
				t.Errorf("%v is spent, and %v after %d calls that failed", before, after, c.free)
			}
			r.failAtOnce(t, 20)
			const reserved = 90 * price.Dollar / 1_000_000 * 15 // 1 token of output, and the prompt at the dearest
			if more := spentOf(t, r, "acme") - before; more <= 0 || more > 20*reserved {
				t.Errorf("20 calls that failed cost %v", more)
			}
		})
	}
}

// The page of a key holder shows usage beyond a limit as it is, and not only up to the limit.
func TestMeShowsWhatIsUsedBeyondALimit(t *testing.T) {
	r := newRig(t, outage, mockprovider.Config{Script: func(mockprovider.Call) mockprovider.Reply { return mockprovider.Reply{Reasoning: 9_999, Output: 1} }})
	r.post(t, chat, short, fieldProject, "acme")
	r.settled(t)
	a := r.do(t, http.MethodGet, "/ratelimit/v1/me", "", fieldProject, "acme")
	if !strings.Contains(a.body, `"used": 0.300015`) || !strings.Contains(a.body, `"left": 0.00`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}
