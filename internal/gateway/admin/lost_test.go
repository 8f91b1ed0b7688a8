package admin

import (
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// While Redis does not answer, the API returns what it has in memory, and refuses changes.
func TestStoreIsLost(t *testing.T) {
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	url := strings.Replace(proxy.PatientURL(), "redis://", "redis://user:hunter2@", 1)
	if _, err := server.Do("ACL", "SETUSER", "user", "on", ">hunter2", "allkeys", "allchannels", "+@all"); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, strings.Replace(usual, "state: memory", "state: "+url, 1))
	r.want(t, 200, "GET", "/readyz", "")
	created := as[IssuedKey](t, r.want(t, 201, "POST", "/v1/keys", `{"project": "search"}`))
	if s := as[State](t, r.get(t, "/v1/state")); s.Store != "redis" || s.Models[0].Usage == nil || s.Projects[0].Windows == nil {
		t.Errorf("%+v", s)
	}
	proxy.Cut()
	r.want(t, 503, "GET", "/readyz", "")
	r.want(t, 200, "GET", "/healthz", "")
	s := as[State](t, r.get(t, "/v1/state"))
	if s.Ready || s.Reason == "" || s.Models[0].Usage != nil || s.Projects[0].Windows != nil {
		t.Errorf("%+v", s)
	}
	for _, c := range [][3]string{
		{"PUT", "/v1/quotas/gpt-4o", `{"max_rpm": 5}`},
		{"PUT", "/v1/projects/search", `{"requests_per_day": 9}`},
		{"DELETE", "/v1/projects/search", ``},
		{"POST", "/v1/reset", `{"project": "search"}`},
		{"POST", "/v1/reset", `{"model": "gpt-4o"}`},
		{"POST", "/v1/keys", `{"project": "search"}`},
		{"DELETE", "/v1/keys/" + created.ID, ``},
	} {
		r.want(t, 503, c[0], c[1], c[2])
	}
	for _, path := range []string{"/v1/state", "/v1/config", "/v1/audit?limit=1000", "/readyz"} {
		if a := r.get(t, path); strings.Contains(a.text, "hunter2") {
			t.Errorf("%s has the password: %s", path, a.text)
		}
	}
	if strings.Contains(r.logged.String(), "hunter2") {
		t.Error("the log has the password")
	}
	if q, _ := r.gateway.Models().Quota("gpt-4o"); q.MaxRPM != 100 {
		t.Errorf("the quota is %+v", q)
	}
}

// The state says that Redis is lost, in every mode of on_store_loss, and that it is back.
func TestStateReportsLoss(t *testing.T) {
	for mode, ready := range map[string]bool{"deny": false, "allow": true, "share": true} {
		t.Run(mode, func(t *testing.T) {
			proxy := redistest.NewProxy(t, redistest.New(t).Addr)
			r := newRig(t, strings.Replace(usual, "state: memory", "state: "+proxy.PatientURL()+"\non_store_loss: "+mode, 1))
			r.stateOnce(t, func(s State) bool { return s.StoreLost == "" && s.Ready }) // a busy machine may have lost Redis for a moment
			proxy.Cut()
			s := r.stateOnce(t, func(s State) bool { return s.StoreLost != "" })
			if s.Ready != ready || s.OnStoreLoss != mode {
				t.Errorf("%+v", s)
			}
			proxy.Heal()
			r.stateOnce(t, func(s State) bool { return s.StoreLost == "" && s.Ready })
			for _, line := range []string{`"level":"ERROR","msg":"Redis is lost","on_store_loss":"` + mode + `","error":"ratelimit: cannot reach Redis: `, `"level":"WARN","msg":"Redis is back"`} {
				if !strings.Contains(r.logged.String(), line) {
					t.Errorf("the log lacks %s: %s", line, r.logged)
				}
			}
		})
	}
}

// The log reports keys that a restarted, empty Redis has lost.
func TestVanishedKeysAreReported(t *testing.T) {
	server := redistest.New(t)
	proxy := redistest.NewProxy(t, server.Addr)
	r := newRig(t, strings.Replace(usual, "state: memory", "state: "+proxy.PatientURL(), 1))
	for range 2 {
		r.want(t, 201, "POST", "/v1/keys", `{"project": "search"}`)
	}
	proxy.Cut()
	if _, err := server.Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	proxy.Heal()
	r.stateOnce(t, func(State) bool { return len(r.gateway.Keys().List()) == 0 })
	if !strings.Contains(r.logged.String(), `"level":"ERROR","msg":"virtual keys have vanished from the state: clients that send them are refused","keys":2`) {
		t.Errorf("the log has %s", r.logged)
	}
}

// The log warns at the start about a Redis that keeps nothing when it is restarted.
func TestUnsavedRedisIsReported(t *testing.T) {
	for persistence, want := range map[string]bool{"no": true, "yes": false} {
		server := redistest.New(t, "--appendonly", persistence)
		r := newRig(t, strings.Replace(usual, "state: memory", "state: "+server.PatientURL(), 1))
		line := `"level":"WARN","msg":"Redis forgets limits, budgets, usage and virtual keys when it is restarted","error":"ratelimit: ` + server.Addr + `: appendonly is no"`
		if want {
			testkit.Eventually(t, "a warning", func() bool { return strings.Contains(r.logged.String(), line) })
		} else if strings.Contains(r.logged.String(), "forgets") {
			t.Errorf("the log has %s", r.logged)
		}
	}
}

// stateOnce waits until the state meets a condition, and returns it.
func (r *rig) stateOnce(t *testing.T, is func(State) bool) State {
	t.Helper()
	for late := time.Now().Add(testkit.Patience); ; time.Sleep(time.Millisecond) {
		s := as[State](t, r.get(t, "/v1/state"))
		if is(s) {
			return s
		}
		if time.Now().After(late) {
			t.Fatalf("it stays %+v", s)
		}
	}
}

// A stranger does not have the store asked with every probe: what was last found out counts for a
// second. A caller with the token always gets the present state.
func TestStrangersProbeACache(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.New(t).Addr)
	r := newRig(t, strings.Replace(withToken(t), "state: memory", "state: "+proxy.PatientURL(), 1))
	testkit.Eventually(t, "the gateway is ready", func() bool { return r.get(t, "/readyz").status == 200 })
	found := time.Now()
	proxy.Cut()
	if a := r.send(t, "GET", "/readyz", "", "Authorization", "Bearer "+secretToken); a.status != 503 {
		t.Errorf("with the token: %d %s", a.status, a.text)
	}
	if a := r.get(t, "/readyz"); a.status != 200 && time.Since(found) < time.Second {
		t.Errorf("the store is asked again at once: %d %s", a.status, a.text)
	}
	testkit.Eventually(t, "a stranger finds out", func() bool { return r.get(t, "/readyz").status == 503 })
}
