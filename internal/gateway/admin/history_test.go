package admin

import (
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/figures"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// total adds up the points of a history.
func (h *History) total() (p Point) {
	for _, each := range h.Points {
		p.Passed += each.Passed
		p.Denied += each.Denied
		p.Input += each.Input
		p.Output += each.Output
		p.Dollars += each.Dollars
	}
	return p
}

// The history of a project, of a model, with a key, and of all, by minute and from the books, counts the
// same calls.
func TestHistory(t *testing.T) {
	t.Setenv("PROVIDER_KEY", "sk-provider")
	r := newRig(t, strings.Replace(usual, "base_url: MOCK", "base_url: MOCK\n    key: {env: PROVIDER_KEY}", 1)+"keys: required\n")
	keys := map[string]IssuedKey{}
	for _, id := range []string{"search", "search/inner", "small"} {
		keys[id] = as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "`+id+`"}`))
	}
	call := func(id, model string) {
		r.callAs(t, model, "Authorization", "Bearer "+keys[id].Secret, "X-Mock", "output=9")
	}
	for range 3 { // of small, one is denied
		call("search", "gpt-4o")
		call("search/inner", "gpt-6-mini")
		call("small", "gpt-4o")
	}
	r.settle(t)
	for _, c := range []struct {
		of             string
		passed, denied int64
	}{
		{"", 8, 1},
		{"project=search", 6, 0},
		{"project=search/inner", 3, 0},
		{"project=small", 2, 1},
		{"project=sear", 0, 0},
		{"model=gpt-4o", 5, 1},
		{"model=openai/gpt-6*", 3, 0},
		{"key=" + keys["small"].ID, 2, 1},
		{"project=search&model=gpt-4o", 3, 0},
		{"project=small&model=openai/gpt-6*", 0, 0},
	} {
		var before Point
		for _, by := range []string{"minute", "hour", "day"} {
			var h History
			read := func() bool { // denials are booked a second later
				h = as[History](t, r.want(t, 200, "GET", "/v1/history?by="+by+"&"+c.of, ""))
				return h.total().Denied == c.denied
			}
			testkit.Eventually(t, "the denials are booked", read)
			sum := h.total()
			if sum.Passed != c.passed || sum.Denied != c.denied || (sum.Input > 0) != (c.passed > 0) || h.By != by {
				t.Errorf("%s by %s: %+v", c.of, by, sum)
			}
			if by != "minute" && sum.Output != before.Output || sum.Output != c.passed*9 {
				t.Errorf("%s by %s: %+v, and by minute %+v", c.of, by, sum, before)
			}
			before = sum
		}
	}
}

// Points follow each other without gaps, and those of minutes say which limits have denied calls.
func TestHistoryHasNoGaps(t *testing.T) {
	r := newRig(t, usual)
	for range 3 {
		r.call(t, "small", "gpt-4o")
	}
	for by, step := range map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour} {
		asked := time.Now()
		h := as[History](t, r.want(t, 200, "GET", "/v1/history?by="+by, ""))
		for i, p := range h.Points {
			if want := h.Points[0].Time.Add(time.Duration(i) * step); !p.Time.Equal(want) || !want.Equal(want.Truncate(step)) {
				t.Errorf("by %s: point %d is of %v", by, i, p.Time)
			}
		}
		if last := h.Points[len(h.Points)-1].Time; asked.Sub(last) > step || h.Points[0].Time.After(h.Since.Add(time.Minute)) {
			t.Errorf("by %s: from %v to %v", by, h.Points[0].Time, last)
		}
		by15 := as[History](t, r.want(t, 200, "GET", "/v1/history?by="+by+"&since=15m", ""))
		if n := len(by15.Points); by == "minute" && (n < 15 || n > 16) || by != "minute" && n > 2 {
			t.Errorf("by %s: %d points of 15 minutes", by, n)
		}
	}
	h := as[History](t, r.want(t, 200, "GET", "/v1/history?model=gpt-4o", ""))
	denied := map[string]int64{}
	for _, p := range h.Points {
		for _, d := range p.DeniedBy {
			denied[d.Limit] += d.Count
		}
	}
	testkit.Equal(t, "what has denied calls", map[string]int64{"requests_per_minute": 1}, denied)
}

// Without books there are only minutes.
func TestHistoryWithoutBooks(t *testing.T) {
	r := newRig(t, usual+"usage: off\n")
	r.want(t, 200, "GET", "/v1/history", "")
	if a := r.want(t, 404, "GET", "/v1/history?by=hour", ""); !strings.Contains(a.text, "usage: off") {
		t.Error(a.text)
	}
}

// The matrix has a cell for each project and model, those with the most tokens first.
func TestMatrix(t *testing.T) {
	r := newRig(t, usual)
	count := func(project, model, key string, c figures.Call) {
		r.gateway.Figures().Count(figures.Name{Project: project, Model: model, Key: key}, &c)
	}
	count("a", "gpt-4o", "k1", figures.Call{Input: 10, Output: 20, Dollars: 5e8})
	count("a", "gpt-4o", "k2", figures.Call{Input: 15, Dollars: 5e8})
	count("a", "gpt-5", "", figures.Call{Denied: true, Limit: "max_rpm"})
	count("a/b", "gpt-4o", "", figures.Call{Input: 150})
	count("a", "", "", figures.Call{}) // called no model
	m := as[Matrix](t, r.want(t, 200, "GET", "/v1/matrix", ""))
	if m.Minutes != 15 || m.Total != 3 {
		t.Errorf("%+v", m)
	}
	testkit.Equal(t, "the cells", []Cell{
		{Project: "a/b", Model: "gpt-4o", Calls: 1, Tokens: 150, Sum: 150},
		{Project: "a", Model: "gpt-4o", Calls: 2, Tokens: 45, Sum: 45, Dollars: 1e9},
		{Project: "a", Model: "gpt-5", Denied: 1},
	}, m.Cells)
	if m = as[Matrix](t, r.want(t, 200, "GET", "/v1/matrix?limit=1", "")); len(m.Cells) != 1 || m.Total != 3 {
		t.Errorf("%+v", m)
	}
}
