package gateway_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// An SDK shows the same through the gateway as without it, and what is settled is what
// the provider has sent.
func TestSame(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample))
		for _, call := range slices.Concat(every, s.calls) {
			for _, mock := range []string{"", "output=60", "output=500", "reasoning=20 output=9", "cached=5 cache-write=2 output=3", "output=5 delay=1ms"} {
				without, with := s.both(t, r, call, mock)
				if without.Error != nil || len(without.Shown) == 0 {
					t.Fatalf("%s with %q is no call that works: %+v", call, mock, without.Error)
				}
				compare(t, call, mock, without, with)
				r.settled(t)
			}
		}
	})
}

// Errors keep their status, headers and body, and are the SDK's own.
func TestErrors(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample))
		for _, c := range []struct {
			mock   string
			status int
		}{
			{"status=400", 400}, {"status=401", 401}, {"status=403", 403}, {"status=404", 404}, {"status=500", 500},
			{"status=503 retry-after=1ms", 503}, {"status=529 retry-after=1ms", 529}, {"status=429 retry-after=1ms", 429},
		} {
			for _, call := range []string{"whole", "stream"} {
				r.unpaused(t, s.model)
				without, with := s.both(t, r, call, c.mock)
				compare(t, call, c.mock, without, with)
				if got, want := with.Error, s.faults(c.status); got == nil || got.Status != c.status || got.Type != want {
					t.Errorf("%s with %q: %+v, not %s", call, c.mock, got, want)
				}
			}
		}
		r.settled(t)
	})
}

// unpaused waits until no pause that the provider has asked for holds up a model.
func (r *rig) unpaused(t *testing.T, model string) {
	t.Helper()
	testkit.Eventually(t, "the model is not paused", func() bool { return r.Models().Decide(model, 1).Allowed })
}

// Streams that go wrong do so for the SDK as they do without the gateway.
func TestFaults(t *testing.T) {
	overEach(t, func(t *testing.T, s *sdk) {
		r := newRig(t, with(ample))
		for _, mock := range []string{"fault=reset after=6", "fault=end after=6", "fault=error after=6"} {
			without, with := s.both(t, r, "stream", mock)
			compare(t, "stream", mock, without, with)
		}
		r.idle(t)
		const allowed = 60 // one stream ends without an error and without usage: it is charged all that it allows
		used, sent := r.used()[s.model], r.provider.Totals()[s.model]
		if used.Input > sent.Input || used.Output > max(sent.Output, allowed) {
			t.Errorf("%+v is settled; the provider has sent %+v", used, sent)
		}
		if n := r.Models().Stats(s.model).Concurrent; n != 0 {
			t.Errorf("%d places are held", n)
		}
	})
}

// both makes a call without the gateway, and through it.
func (s *sdk) both(t *testing.T, r *rig, call, mock string) (without, with answer) {
	t.Helper()
	past, through := r.past(s, call), r.through(s, call)
	past.Mock, through.Mock = mock, mock
	return s.do(t, past).cleaned(past.Base), s.do(t, through).cleaned(through.Base)
}

func compare(t *testing.T, call, mock string, without, with answer) {
	t.Helper()
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("%s with %q: without (-) and with (+) the gateway:\n%s", call, mock, diff)
	}
}

// differing are headers that may differ: those of the connection and of the time, and those of the gateway's own, for
// limits and for browsers.
var differing = []string{"connection", "keep-alive", "transfer-encoding", "content-length", "date", "ratelimit", "ratelimit-policy", "x-gateway-request-id", "content-security-policy", "x-content-type-options"}

// cleaned returns an answer without what may differ.
func (a answer) cleaned(base string) answer {
	for i, text := range a.Shown {
		a.Shown[i] = cleanedText(text)
	}
	if a.Error != nil {
		a.Error.Message = strings.ReplaceAll(a.Error.Message, base, "BASE")
		maps.DeleteFunc(a.Error.Headers, mayDiffer)
	}
	return a
}

// cleanedText returns JSON without what may differ: headers, and that a chunk says that
// it does not report usage.
func cleanedText(text string) string {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return text
	}
	if object, ok := value.(map[string]any); ok {
		if usage, told := object["usage"]; told && usage == nil {
			delete(object, "usage")
		}
		if response, ok := object["sdkHttpResponse"].(map[string]any); ok {
			deleteHeaders(response["headers"])
		}
	}
	cleaned, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return string(cleaned)
}

func deleteHeaders(headers any) {
	all, _ := headers.(map[string]any)
	maps.DeleteFunc(all, func(name string, value any) bool { return mayDiffer(name, fmt.Sprint(value)) })
}

// mayDiffer reports whether a header may differ. Where the provider gives a request no id,
// the gateway's is there.
func mayDiffer(name, value string) bool {
	return slices.Contains(differing, strings.ToLower(name)) || strings.HasSuffix(strings.ToLower(name), "request-id") && strings.Contains(value, "gw_")
}
