package httplimit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/httplimit"
	"dappco.re/go/core/go-ratelimit/limit"
)

// FuzzLimitFields reads what Limit says with a library for structured fields, for
// limits of every kind: their names and numbers are the limit's.
func FuzzLimitFields(f *testing.F) {
	f.Add(int64(10), int64(time.Second), int64(10), uint8(limit.GCRA), int64(1))
	f.Add(int64(10), int64(5*time.Microsecond), int64(20), uint8(limit.TokenBucket), int64(20))
	f.Add(int64(1<<62), int64(24*time.Hour), int64(1<<62), uint8(limit.FixedWindow), int64(7))
	f.Add(int64(100), int64(90*time.Second), int64(100), uint8(limit.SlidingLog), int64(101)) // never
	f.Fuzz(func(t *testing.T, count, period, burst int64, algorithm uint8, cost int64) {
		l := limit.New(count, time.Duration(period)).WithBurst(burst).Using(limit.Algorithm(algorithm))
		if l.Validate() != nil {
			t.Skip()
		}
		limiter := limit.NewLimiter(func(*http.Request) string { return "" }, l).WithCost(func(*http.Request) int64 { return cost })
		h := httplimit.Limit(limiter)(http.HandlerFunc(hello))
		for range 3 {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			policies, limits := read(t, w.Header(), "RateLimit-Policy"), read(t, w.Header(), "RateLimit")
			if len(policies) != 1 || len(limits) != 1 {
				t.Fatalf("%d: %v", w.Code, w.Header())
			}
			for name, policy := range policies {
				if parsed, err := limit.Parse(name); err != nil || parsed != l {
					t.Errorf("%q is not the name of %v: %v, %v", name, l, parsed, err)
				}
				policy.is(t, name, "q", min(count, largest))
				policy.is(t, name, "w", min((period-1)/int64(time.Second)+1, largest))
				policy.isAll(t, name)
				told := limits[name]
				told.between(t, name, "r", 0, min(burst, largest))
				if w.Code != http.StatusBadRequest {
					told.between(t, name, "t", 0, largest)
				}
				told.isAll(t, name)
			}
		}
	})
}
