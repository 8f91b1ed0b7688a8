package httplimit_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"go.uber.org/goleak"

	"dappco.re/go/core/go-ratelimit/httplimit"
	"dappco.re/go/core/go-ratelimit/project"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// FuzzFields reads what the middleware says with a library for structured fields (RFC
// 9651): the library would write the same, and the numbers are the limit's.
func FuzzFields(f *testing.F) {
	f.Add(2, 100, 1000, 5000, 300)
	f.Add(1, 0, 0, 0, 1)
	f.Add(0, 0, 0, 0, 7)
	f.Add(1<<53, 1_000_000_000_000_000, 999_999_999_999_999, 1, 1)
	f.Add(60, 10_000, 100, 5000, 101) // never
	f.Fuzz(func(t *testing.T, minute, day, tokensMinute, tokensMonth, tokens int) {
		l := project.Limit{RequestsPerMinute: minute, RequestsPerDay: day, TokensPerMinute: tokensMinute, TokensPerMonth: tokensMonth}
		if l.Validate() != nil || tokens < 1 {
			t.Skip()
		}
		limiter, err := project.NewWithConfig(project.Config{Default: &l})
		if err != nil {
			t.Fatal(err)
		}
		defer limiter.Close()
		cost := func(*http.Request) (int, int, error) { return 1, tokens, nil }
		h := httplimit.Middleware(limiter, httplimit.Cost(cost))(http.HandlerFunc(hello))
		for range 3 {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
			r.Header.Set(httplimit.HeaderProjectID, "p")
			h.ServeHTTP(w, r)
			policies := read(t, w.Header(), "RateLimit-Policy")
			want := wanted(l)
			never := w.Code == http.StatusBadRequest && strings.Contains(w.Body.String(), "#quota-exceeded")
			if w.Code == http.StatusBadRequest && !never { // more tokens than there can be
				want = nil
			}
			if got := slices.Sorted(maps.Keys(policies)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
				t.Errorf("policies of %v, want %v", got, want)
			}
			for name, policy := range policies {
				policy.is(t, name, "q", min(want[name].count, largest))
				policy.is(t, name, "w", want[name].seconds)
				if want[name].tokens {
					policy.is(t, name, "qu", "tokens")
				}
				policy.isAll(t, name)
			}
			limits := read(t, w.Header(), "RateLimit")
			if passed := w.Code == http.StatusOK; passed && len(limits) != len(want) || !passed && want != nil && len(limits) == 0 {
				t.Errorf("%d: %d limits of %d windows", w.Code, len(limits), len(want))
			}
			for name, limit := range limits {
				limit.between(t, name, "r", 0, min(want[name].count, largest))
				if !never {
					limit.between(t, name, "t", 1, want[name].seconds)
				}
				limit.isAll(t, name)
			}
		}
	})
}

// largest is the largest integer of a structured field.
const largest = 999_999_999_999_999

// window is what a policy has to say.
type window struct {
	count, seconds int64
	tokens         bool
}

// wanted returns the windows of a limit, by their names.
func wanted(l project.Limit) map[string]window {
	all := map[string]window{
		"requests_per_minute": {int64(l.RequestsPerMinute), 60, false},
		"requests_per_day":    {int64(l.RequestsPerDay), 24 * 3600, false},
		"tokens_per_minute":   {int64(l.TokensPerMinute), 60, true},
		"tokens_per_month":    {int64(l.TokensPerMonth), 30 * 24 * 3600, true},
	}
	maps.DeleteFunc(all, func(_ string, w window) bool { return w.count == 0 })
	return all
}

// member is the parameters of one of a field's members.
type member map[string]any

// read reads a field as a structured list of strings.
func read(t *testing.T, h http.Header, field string) map[string]member {
	t.Helper()
	values := h.Values(field)
	if len(values) == 0 {
		return nil
	}
	list, err := httpsfv.UnmarshalList(values)
	if err != nil {
		t.Fatalf("%s: %q: %v", field, values, err)
	}
	if again, err := httpsfv.Marshal(list); err != nil || len(values) != 1 || again != values[0] {
		t.Errorf("%s: %q; the library writes %q, %v", field, values, again, err)
	}
	members := map[string]member{}
	for _, each := range list {
		item := each.(httpsfv.Item)
		m := member{}
		for _, key := range item.Params.Names() {
			m[key], _ = item.Params.Get(key)
		}
		members[item.Value.(string)] = m
	}
	return members
}

// is expects a parameter, and takes it out.
func (m member) is(t *testing.T, name, key string, want any) {
	t.Helper()
	if m[key] != want {
		t.Errorf("%s: %s is %v, want %v", name, key, m[key], want)
	}
	delete(m, key)
}

// between expects an integer, and takes it out.
func (m member) between(t *testing.T, name, key string, least, most int64) {
	t.Helper()
	if n, ok := m[key].(int64); !ok || n < least || n > most {
		t.Errorf("%s: %s is %v, want %d to %d", name, key, m[key], least, most)
	}
	delete(m, key)
}

// isAll expects that there is no other parameter.
func (m member) isAll(t *testing.T, name string) {
	t.Helper()
	if len(m) != 0 {
		t.Errorf("%s has %v, which is not documented", name, m)
	}
}
