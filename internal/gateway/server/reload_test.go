package server

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// During reloads of every kind, no call fails, and every call is counted.
func TestReloadUnderLoad(t *testing.T) {
	r := start(t, mock(), basic)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	defer client.CloseIdleConnections()
	var passed atomic.Int64
	var stopped atomic.Bool
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for !stopped.Load() {
				status, err := r.call(client)
				if err != nil || status != http.StatusOK {
					t.Errorf("a call: %d, %v", status, err)
					return
				}
				passed.Add(1)
			}
		})
	}
	for i := range 20 {
		r.edit(t, fmt.Sprintf("max_rpm: 100_00%d", i%2), fmt.Sprintf("max_rpm: 100_00%d", (i+1)%2))
		if status, text := r.reload(t); status >= 300 {
			t.Errorf("reload: %d %s", status, text)
		}
	}
	r.signals <- syscall.SIGHUP
	r.log.await(t, "was reloaded", 21)
	stopped.Store(true)
	callers.Wait()
	if used := int64(r.Gateway.Models().Stats("m").RPM); used != passed.Load() || used == 0 {
		t.Errorf("%d requests are counted, %d have passed", used, passed.Load())
	}
}

// A change of the file reloads the configuration.
func TestReloadOnChange(t *testing.T) {
	r := start(t, mock(), basic)
	r.edit(t, "100_000", "7")
	r.log.await(t, "was reloaded", 1)
	if q, _ := r.Gateway.Models().Quota("m"); q.MaxRPM != 7 {
		t.Errorf("the quota is %+v", q)
	}
}

// An invalid configuration changes nothing. The admin API, the log and the metrics report it.
func TestBadReloadKeepsTheOld(t *testing.T) {
	files := newPair(t)
	for _, c := range []struct{ name, old, new, want string }{
		{"a field that there is not", "state: memory", "stat: memory", "gateway.yaml:4:1"},
		{"another address", "listen: 127.0.0.1:0", "listen: 127.0.0.1:1", "restart"},
		{"another state", "state: memory", "state: /tmp/other.db", "restart"},
		{"TLS", "state: memory", "state: memory\ntls: {cert: " + files.cert + ", key: " + files.key + "}", "restart"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := start(t, mock(), basic)
			old := r.Gateway.Config()
			r.edit(t, c.old, c.new)
			r.edit(t, "100_000", "7")
			if status, text := r.reload(t); status < 400 || !strings.Contains(text, c.want) {
				t.Errorf("reload: %d %s, want %q", status, text, c.want)
			}
			r.log.await(t, "the old one stays", 1)
			if r.Gateway.Config() != old {
				t.Error("the configuration has changed")
			}
			if q, _ := r.Gateway.Models().Quota("m"); q.MaxRPM != 100_000 {
				t.Errorf("the quota is %+v", q)
			}
			if text := fetch(t, r.admin+"/metrics"); !strings.Contains(text, `ratelimit_gateway_reloads_total{result="failed"} 1`) {
				t.Error("the metrics do not count it")
			}
			if status, err := r.call(http.DefaultClient); err != nil || status != http.StatusOK {
				t.Errorf("a call: %d, %v", status, err)
			}
		})
	}
}

// The log warns of settings that change only at a restart.
func TestReloadWarnsOfWhatNeedsARestart(t *testing.T) {
	r := start(t, mock(), basic)
	r.edit(t, "drain: 20s", "drain: 21s, idle_timeout: 7s")
	if status, text := r.reload(t); status >= 300 {
		t.Fatalf("reload: %d %s", status, text)
	}
	r.log.await(t, "gateway is restarted", 1)
}

// The level bounds what is logged. The audit of changes is logged at every level.
func TestLogLevel(t *testing.T) {
	r := start(t, mock(), basic+"log: {level: error}\n")
	if _, err := r.call(http.DefaultClient); err != nil {
		t.Fatal(err)
	}
	if r.log.String() != "" {
		t.Errorf("it logs %s", r.log)
	}
	r.edit(t, "level: error", "level: off")
	if status, text := r.reload(t); status >= 300 {
		t.Fatalf("reload: %d %s", status, text)
	}
	r.edit(t, "level: off", "level: nonsense")
	r.reload(t)
	if text := r.log.without("audit"); text != "" {
		t.Errorf("it logs %s", text)
	}
}

// An emptied file, as a failed template leaves it, does not lift the limits.
func TestReloadOfAnEmptyFile(t *testing.T) {
	const text = "providers: {openai: {models: {m: {max_rpm: 7}}}}"
	for _, c := range []struct {
		name, before, after string
		refused             bool
	}{
		{"emptied", text, "", true},
		{"all of it commented out", text, "# " + text, true},
		{"without fields", text, "{}", true},
		{"meant", text, "keys: off", false},
		{"empty before", "# nothing", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := startOver(t, c.before)
			r.write(t, c.after)
			status, answer := r.reload(t)
			if refused := status == http.StatusUnprocessableEntity && strings.Contains(answer, "is empty now"); refused != c.refused || !refused && status >= 300 {
				t.Errorf("reload: %d %s", status, answer)
			}
			if q, _ := r.Gateway.Models().Quota("m"); (q.MaxRPM == 7) != c.refused {
				t.Errorf("the quota is %+v", q)
			}
		})
	}
}

// The log says how many projects and models a reload has changed.
func TestReloadCountsChanges(t *testing.T) {
	r := start(t, mock(), basic+"projects: {a: {weight: 2}, b: {weight: 2}, c: {weight: 2}}\n")
	r.edit(t, "{a: {weight: 2}, b: {weight: 2}, ", "{b: {weight: 3}, d: {}, e: {}, ")
	r.edit(t, "      m: {max_rpm: 100_000}", "      n: {max_rpm: 100_000}")
	if status, text := r.reload(t); status >= 300 {
		t.Fatalf("reload: %d %s", status, text)
	}
	r.log.await(t, `"keys":"off","projects":{"added":2,"removed":1,"changed":1},"models":{"added":1,"removed":1,"changed":0}`, 1)
}

// A gateway without a file logs that a signal had nothing to reload.
func TestReloadWithoutFile(t *testing.T) {
	r := &running{
		signals: make(chan os.Signal, 1), log: new(logged), ended: make(chan error, 1),
		over: config.Overrides{Listen: "127.0.0.1:0", Admin: "off", State: config.Memory},
	}
	r.run(t)
	r.signals <- syscall.SIGHUP
	r.log.await(t, "started without a file", 1)
	if err := r.stop(t); err != nil || strings.Contains(r.log.String(), "was reloaded") {
		t.Errorf("%v; the log:\n%s", err, r.log)
	}
}

// A file that was edited is read by itself, and the audit log says what that has changed: limits that were set at run time,
// too. A file that cannot be read is in the log as well.
func TestAutomaticReloadsAreAudited(t *testing.T) {
	r := start(t, mock(), basic)
	audited := func(text string) func() bool {
		return func() bool { return strings.Contains(fetch(t, r.admin+"/v1/audit"), text) }
	}
	r.edit(t, "100_000", "70_000")
	testkit.Eventually(t, "the reload is in the audit log", audited(`"who":"gateway file","action":"config.reload"`))
	text := fetch(t, r.admin+"/v1/audit")
	if !strings.Contains(text, `"max_rpm":100000`) || !strings.Contains(text, `"max_rpm":70000`) || !strings.Contains(text, `"result":"done"`) {
		t.Error(text)
	}
	r.edit(t, "70_000", "lots")
	testkit.Eventually(t, "the failed reload is in the audit log", audited(`"result":"failed","error":"`))
}
