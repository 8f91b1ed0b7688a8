package httplimit

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/project"
)

// A request waits on its own goroutine, so no other is left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLimiter(t testing.TB, l project.Limit) *project.Limiter {
	t.Helper()
	return configured(t, project.Config{Default: &l})
}

func configured(t testing.TB, cfg project.Config) *project.Limiter {
	t.Helper()
	limiter, err := project.NewWithConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { limiter.Close() })
	return limiter
}

// fine is a handler that counts its calls.
type fine struct{ calls atomic.Int32 }

func (f *fine) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	f.calls.Add(1)
	w.Write([]byte("fine"))
}

// request returns a request of project p.
func request(method string) *http.Request {
	r := httptest.NewRequest(method, "/", nil)
	r.Header.Set(HeaderProjectID, "p")
	return r
}

// do serves a request in memory.
func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// used returns how many requests of project p were charged to its first window.
func used(t testing.TB, limiter *project.Limiter) int64 {
	t.Helper()
	d, err := limiter.Peek(context.Background(), "p")
	if err != nil {
		t.Fatal(err)
	}
	first := d.Windows()[0]
	return first.Window.Count - first.Remaining
}

// member is a member of a header that is a list, with the parameters that ours may have.
type member struct {
	name    string
	r, t    int64 // -1: missing
	q, w    int64
	qu      string
	strange string // other parameters
}

// aMember matches a member of a header. In interop, a library for structured fields reads the
// same.
var (
	aMember    = regexp.MustCompile(`^"([A-Za-z0-9/:_. -]+)"((?:;[a-z]+=(?:[0-9]+|"[a-z]+"))*)$`)
	aParameter = regexp.MustCompile(`;([a-z]+)=([0-9]+|"[a-z]+")`)
)

// parse reads a header that is a list.
func parse(t testing.TB, h http.Header, field string) (all []member) {
	t.Helper()
	for _, value := range h.Values(field) {
		for text := range strings.SplitSeq(value, ", ") {
			all = append(all, parseMember(t, text))
		}
	}
	return all
}

func parseMember(t testing.TB, text string) member {
	t.Helper()
	found := aMember.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("%q is no member of a list", text)
	}
	m := member{name: found[1], r: -1, t: -1, q: -1, w: -1}
	numbers := map[string]*int64{"r": &m.r, "t": &m.t, "q": &m.q, "w": &m.w}
	for _, p := range aParameter.FindAllStringSubmatch(found[2], -1) {
		key, value := p[1], p[2]
		if key == "qu" {
			m.qu = strings.Trim(value, `"`)
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if numbers[key] == nil || err != nil {
			m.strange += key
			continue
		}
		*numbers[key] = n
	}
	return m
}

// parseProblem reads the body of a refusal.
func parseProblem(t testing.TB, h http.Header, body []byte) (p problem) {
	t.Helper()
	if got := h.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type is %q: %s", got, body)
	}
	if got := h.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control is %q", got)
	}
	if err := json.Unmarshal(body, &p); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return p
}

// recorder is an observer that records events.
type recorder struct{ testkit.Recorder[event.Event] }

// count returns how many events there were of a kind, with or without Shadow.
func (r *recorder) count(kind event.Kind, shadow bool) int {
	return r.Count(func(e event.Event) bool { return e.Kind == kind && e.Shadow == shadow })
}
