package admin

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

// While Redis is lost and calls are decided without it, nobody knows what the fleet has used. So no figure is shown
// anywhere: the part of the other gateways would count as used.
func TestNothingIsInvented(t *testing.T) {
	for _, mode := range []string{"allow", "share"} {
		t.Run(mode, func(t *testing.T) {
			proxy := redistest.NewProxy(t, redistest.New(t).Addr)
			yaml := strings.Replace(usual, "state: memory", "state: "+proxy.PatientURL()+"\non_store_loss: "+mode, 1)
			yaml = strings.Replace(yaml, "small: {", "small: {dollars: 5, ", 1)
			r := newRig(t, yaml)
			newRig(t, yaml) // has half of every limit while Redis is lost
			if status, limits := r.limitsOf(t, "search"); status != 200 || !strings.Contains(limits, "requests_per_minute") {
				t.Fatalf("a call before: %d, RateLimit is %q", status, limits)
			}
			if _, limits := r.limitsOf(t, "small"); strings.Contains(strings.Split(limits, `"dollars"`)[1], ";t=") {
				t.Errorf("a budget that does not reset has a time at which it does: %q", limits)
			}
			proxy.Cut()
			s := r.stateOnce(t, func(s State) bool { return s.StoreLost != "" })
			for _, m := range s.Models {
				if m.Usage != nil {
					t.Errorf("%s: %+v", m.Name, m.Usage)
				}
			}
			for _, p := range s.Projects {
				if p.Windows != nil {
					t.Errorf("%s: %+v", p.ID, p.Windows)
				}
			}
			o := as[Overview](t, r.get(t, "/v1/overview"))
			for _, row := range append(o.Models, o.Projects...) {
				if row.Pressure != 0 || len(row.Dimensions) != 0 {
					t.Errorf("%s: %v of %+v", row.Name, row.Pressure, row.Dimensions)
				}
			}
			if o.OnStoreLoss != mode {
				t.Errorf("what happens to calls: %q", o.OnStoreLoss)
			}
			if me := r.fromGateway(t, "/ratelimit/v1/me"); strings.Count(me, `"used": null`) != 2 || strings.Count(me, `"left": null`) != 2 {
				t.Errorf("me: %s", me)
			}
			if m := r.get(t, "/metrics").text; strings.Contains(m, "ratelimit_used{") {
				t.Errorf("metrics: %s", m)
			}
			if status, limits := r.limitsOf(t, "search"); status != 200 || limits != "" {
				t.Errorf("a call: %d, RateLimit is %q", status, limits)
			}
			a := as[Answer](t, r.want(t, 200, "POST", "/v1/decide", `{"model": "gpt-4o", "project": "search"}`))
			for _, l := range a.Limits {
				if !l.Unknown || l.Remaining != 0 {
					t.Errorf("%+v", l)
				}
			}
		})
	}
}

// limitsOf calls a model as a project, and returns the status and the header RateLimit.
func (r *rig) limitsOf(t *testing.T, project string) (status int, limits string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.clients+"/openai/v1/chat/completions",
		strings.NewReader(`{"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 5}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Project-ID", project)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	r.settle(t)
	return resp.StatusCode, resp.Header.Get("RateLimit")
}

// fromGateway returns what the gateway itself answers to project search.
func (r *rig) fromGateway(t *testing.T, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.clients+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Project-ID", "search")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}
