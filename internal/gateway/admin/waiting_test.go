package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

const patient = `
state: memory
providers:
  openai:
    base_url: MOCK
    models: {once: {max_rpm: 1}, free: {max_rpm: 1000}}
defaults: {max_wait: 10m}
users: {header: X-User-ID}
projects:
  acme: {requests_per_minute: 1}
  heavy: {weight: 3}
`

// waiter is calls that wait at a gateway.
type waiter struct {
	r    *rig
	ctx  context.Context
	all  sync.WaitGroup
	left context.CancelFunc
}

func newWaiter(t *testing.T, r *rig) *waiter {
	w := &waiter{r: r}
	w.ctx, w.left = context.WithCancel(t.Context())
	t.Cleanup(w.leave)
	return w
}

// leave lets all calls give up.
func (w *waiter) leave() {
	w.left()
	w.all.Wait()
}

// waits sends a call, and returns when it is one of n that wait.
func (w *waiter) waits(t *testing.T, n int, model string, headers ...string) {
	t.Helper()
	body := fmt.Sprintf(`{"model": %q, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}`, model)
	req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, w.r.clients+"/openai/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w.all.Go(func() {
		if resp, err := http.DefaultTransport.RoundTrip(req); err == nil {
			resp.Body.Close()
		}
	})
	testkit.Eventually(t, fmt.Sprintf("%d calls stand in line, and it is known what for", n), func() bool {
		list := w.r.line(t, "")
		return len(list) == n && list[len(list)-1].Limit != "" && w.r.gateway.Models().Waiting(model) == n
	})
}

// line returns the calls that wait.
func (r *rig) line(t testing.TB, query string) []Waiting {
	t.Helper()
	return as[WaitingList](t, r.want(t, 200, "GET", "/v1/waiting?"+query, "")).Waiting
}

// The line says who waits, since when, for which limit of whom, until when, and in which order.
func TestTheLine(t *testing.T) {
	r := newRig(t, patient)
	w := newWaiter(t, r)
	testkit.Equal(t, "nobody", []Waiting{}, r.line(t, ""))
	r.asks(t, "once", "X-Project-ID", "first")
	began := time.Now().Add(-time.Millisecond)
	for i, id := range []string{"a", "b", "a/c"} {
		w.waits(t, i+1, "once", "X-Project-ID", id, "X-User-ID", "ann")
	}
	list := r.line(t, "")
	for i, want := range []string{"a/ann", "b/ann", "a/c/ann"} {
		one := list[i]
		if one.Position != i+1 || one.Project != want || one.Model != "once" || one.Limit != "max_rpm" || !strings.HasPrefix(one.ID, "gw_") || one.Tokens < 2 {
			t.Errorf("%d: %+v", i+1, one)
		}
		if one.Since.Before(began) || one.Since.After(time.Now()) || one.Waited < 0 || one.Until.Sub(one.Since).Round(time.Second) != 10*time.Minute {
			t.Errorf("%d: %+v", i+1, one)
		}
	}
	if first := list[0]; first.Scope != "model" || first.Owner != "once" || time.Until(first.PassesAt) <= 0 || time.Until(first.PassesAt) > 65*time.Second {
		t.Errorf("the first: %+v", first)
	}
	for query, want := range map[string]int{"project=a": 2, "project=a/c": 1, "project=a/ann": 1, "model=once": 3, "model=free": 0, "key=nobody": 0, "limit=2": 2} {
		if got := r.line(t, query); len(got) != want {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if a := r.want(t, 200, "GET", "/v1/waiting?limit=2", ""); !strings.Contains(a.text, `"more":true`) {
		t.Error(a.text)
	}
	if got := r.line(t, "project=b"); got[0].Position != 2 { // among all
		t.Errorf("%+v", got)
	}
	w.leave()
	testkit.Eventually(t, "nobody waits any more", func() bool { return len(r.line(t, "")) == 0 })
}

// A call that waits for its own project says so, also if it is no call of a model.
func TestTheLineOfAProject(t *testing.T) {
	r := newRig(t, patient)
	w := newWaiter(t, r)
	r.asks(t, "free", "X-Project-ID", "acme")
	w.waits(t, 1, "free", "X-Project-ID", "acme/search")
	one := r.line(t, "")[0]
	if one.Limit != "requests_per_minute" || one.Scope != "project" || one.Owner != "acme" || one.PassesAt.IsZero() || one.Position != 1 {
		t.Errorf("%+v", one)
	}
	w.waits(t, 2, "free", "X-Project-ID", "acme/search")
	if list := r.line(t, ""); list[1].Position != 2 || list[1].Limit != "requests_per_minute" {
		t.Errorf("%+v", list)
	}
}

// Bad parameters are refused with what is allowed.
func TestTheLineRefuses(t *testing.T) {
	r := newRig(t, patient)
	for query, says := range map[string]string{"limit=x": "from 1 to 1000", "who=me": "unknown parameter"} {
		if a := r.want(t, 400, "GET", "/v1/waiting?"+query, ""); !strings.Contains(a.text, says) {
			t.Errorf("%s: %s", query, a.text)
		}
	}
}
