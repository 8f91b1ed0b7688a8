package admit

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// FuzzPlainFields compares the headers for a plain limiter's decision with ones that are
// written with big numbers, for limits of every kind, valid or not.
func FuzzPlainFields(f *testing.F) {
	f.Add(int64(10), int64(time.Second), int64(10), uint8(limit.GCRA), int64(9), int64(time.Second), true)
	f.Add(int64(math.MaxInt64), int64(5*time.Microsecond), int64(1), uint8(limit.FixedWindow), int64(math.MinInt64), int64(math.MaxInt64), false)
	f.Add(int64(0), int64(0), int64(-1), uint8(200), int64(1e15), int64(1), false)
	f.Add(int64(-5), int64(math.MinInt64), int64(7), uint8(101), int64(0), int64(0), false)
	f.Add(int64(1000), int64(24*time.Hour), int64(1000), uint8(102), int64(0), int64(time.Hour+1), true)
	f.Fuzz(func(t *testing.T, count, period, burst int64, kind uint8, remaining, until int64, allowed bool) {
		l := limit.New(count, time.Duration(period)).WithBurst(burst)
		switch kind {
		case 101:
			l = l.Anchored()
		case 102:
			l = l.ResetAt(time.Duration(until), nil)
		default:
			l = l.Using(limit.Algorithm(kind))
		}
		d := limit.Decision{Allowed: allowed, Limit: l, Remaining: remaining, ResetAfter: time.Duration(until)}
		if !allowed {
			d.RetryAfter = max(time.Duration(until), 1)
			until = int64(d.RetryAfter)
		}
		var p Policies
		for range 2 { // once without the cache, and once with it
			var r Result
			h := http.Header{}
			r.setPlain(d, &p)
			p.SetHeaders(h, &r)
			if allowed && l == (limit.Limit{}) {
				if len(h) > 0 {
					t.Errorf("the key has no limit, but the headers are %v", h)
				}
				return
			}
			windows := r.Windows()
			name := windows[0].Window.Name
			if !allowed && r.Decision.Limit != name {
				t.Errorf("exceeded: %q, in the headers: %q", r.Decision.Limit, name)
			}
			if parsed, err := limit.Parse(name); l.Validate() == nil && (err != nil || parsed != l) {
				t.Errorf("%q is not the name of %v: %v, %v", name, l, parsed, err)
			}
			if strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
				t.Errorf("%q has to be escaped", name)
			}
			if got, want := h.Get("RateLimit"), wantedLimits(windows, time.Duration(until)); got != want {
				t.Errorf("RateLimit: %s, want %s", got, want)
			}
			if got, want := h.Get("RateLimit-Policy"), wantedPolicy(windows); got != want {
				t.Errorf("RateLimit-Policy: %s, want %s", got, want)
			}
		}
	})
}
