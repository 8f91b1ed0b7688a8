package main

import (
	"net/http"
	"strings"
	"testing"
)

func TestEveryMiddlewareLimitsAndTells(t *testing.T) {
	for _, m := range middlewares() {
		if m.kind == floor {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			h := m.wrap(spent, handler)
			defer instance{close: h.close}.stop()
			x, other := newExchange("project-a"), newExchange("project-b")
			for _, step := range []struct {
				what   string
				of     *exchange
				status int
			}{
				{"the only request of a project", x, http.StatusOK},
				{"one too many", x, http.StatusTooManyRequests},
				{"another project's", other, http.StatusOK},
				{"one too many of that", other, http.StatusTooManyRequests},
			} {
				if passed := step.of.serve(h.Handler); passed != (step.status == http.StatusOK) || step.of.answer.status != step.status {
					t.Errorf("%s: passed %v with status %d, want %d", step.what, passed, step.of.answer.status, step.status)
				}
				if !tells(step.of.answer.header) {
					t.Errorf("%s: no header says what is left: %v", step.what, step.of.answer.header)
				}
			}
		})
	}
}

// tells reports whether a header is about rate limits, in whatever form.
func tells(h http.Header) bool {
	for name := range h {
		if strings.Contains(strings.ToLower(name), "ratelimit") {
			return true
		}
	}
	return false
}

func TestAnExchangeLeavesNothingBehind(t *testing.T) {
	x := newExchange("project-a")
	talkative := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Left", "over")
		w.WriteHeader(http.StatusOK)
	})
	silent := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	if !x.serve(talkative) || x.serve(silent) || len(x.answer.header) > 0 {
		t.Errorf("the second answer is %d with %v, want none", x.answer.status, x.answer.header)
	}
}

func TestMiddlewareChecks(t *testing.T) {
	for _, test := range []struct {
		name         string
		us, httprate float64 // whole costs, of which 100 are the bare handler's
		allocs       float64
		want         []bool // twice as fast, little over bare, few allocations
		measured     string
	}{
		{"all is well", 600, 1200, 2, []bool{true, true, true}, "2.00x, 2.20x without the handler's own cost"},
		{"not twice as fast as a whole", 600, 1190, 2, []bool{false, true, true}, "1.98x, 2.18x without the handler's own cost"},
		{"too much over bare", 1600, 4000, 2, []bool{true, false, true}, "2.50x, 2.60x without the handler's own cost"},
		{"just below", 1599, 4000, 2, []bool{true, true, true}, "2.50x, 2.60x without the handler's own cost"},
		{"an allocation too many", 600, 1200, 3, []bool{true, true, false}, "2.00x, 2.20x without the handler's own cost"},
	} {
		t.Run(test.name, func(t *testing.T) {
			us, them, bare := row{value: test.us}, row{value: test.httprate}, row{value: 100}
			checks := append([]check{fasterOverBare("here", us, them, bare)}, overBareChecks("here", us.value-bare.value, test.allocs)...)
			for i, c := range checks {
				if c.pass != test.want[i] {
					t.Errorf("%s: %s: pass %v, want %v", c.figure, c.measured, c.pass, test.want[i])
				}
			}
			if checks[0].measured != test.measured {
				t.Errorf("measured %q, want %q", checks[0].measured, test.measured)
			}
		})
	}
}
