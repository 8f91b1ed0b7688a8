package httplimit

import (
	"net/http"
	"testing"

	"dappco.re/go/core/go-ratelimit/project"
)

// sink is a ResponseWriter whose header is reused, so that it allocates nothing.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             {}

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

// rounds returns a function that serves one request with h.
func rounds(h http.Handler) func() {
	r, w := request("GET"), &sink{http.Header{}}
	return func() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

var plenty = project.Limit{RequestsPerMinute: 1e9, RequestsPerHour: 1e10, RequestsPerDay: 1e11}

// A request that passes costs one allocation: the value of RateLimit with its slice.
func TestAllocations(t *testing.T) {
	bare := testing.AllocsPerRun(1000, rounds(nothing))
	h := Middleware(newLimiter(t, plenty))(nothing)
	if got := testing.AllocsPerRun(1000, rounds(h)) - bare; got > 1 {
		t.Errorf("%v allocations", got)
	}
	skipping := Middleware(newLimiter(t, plenty), Skip(func(*http.Request) bool { return true }))(nothing)
	if got := testing.AllocsPerRun(1000, rounds(skipping)) - bare; got > 0 {
		t.Errorf("%v allocations to skip", got)
	}
}

func BenchmarkMiddleware(b *testing.B) {
	tokens := func(*http.Request) (int, int, error) { return 1, 100, nil }
	for _, c := range []struct {
		name string
		h    http.Handler
	}{
		{"bare", nothing},
		{"allowed", Middleware(newLimiter(b, plenty))(nothing)},
		{"allowed, without fields", Middleware(newLimiter(b, plenty), Shadow())(nothing)},
		{"allowed, with tokens", Middleware(newLimiter(b, plenty), Cost(tokens))(nothing)},
		{"denied", Middleware(newLimiter(b, project.Limit{RequestsPerDay: 1}))(nothing)},
	} {
		b.Run(c.name, func(b *testing.B) {
			round := rounds(c.h)
			b.ReportAllocs()
			for b.Loop() {
				round()
			}
		})
	}
}
