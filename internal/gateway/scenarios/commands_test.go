package scenarios

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// adminOf returns the address of a proxy that asks the admin APIs of gateways in turn, and leaves out those that have
// ended.
func adminOf(t *testing.T, all ...*process) string {
	var turn atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		for {
			p := all[int(turn.Add(1))%len(all)]
			select {
			case <-p.ended:
			default:
				target, err := url.Parse(p.admin)
				if err != nil {
					t.Error(err)
				}
				r.SetURL(target)
				return
			}
		}
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// Behind a proxy that asks two gateways in turn, the commands of an operator see one system, whichever gateway has served a
// call or made a change. They go on when one of the two is killed.
func TestCommandsOfAFleet(t *testing.T) {
	p := newProvider(t)
	file, state := written(t, small, p), lasting["redis"](t)
	a, b := launch(t, file, state), launch(t, file, state)
	base := adminOf(t, a, b)
	run := func(args ...string) string {
		out, err := exec.Command(program, append(args, "--admin", base)...).CombinedOutput()
		if err != nil {
			return err.Error() + ": " + string(out)
		}
		return string(out)
	}
	twice := func(what string, as func(shown string) bool, args ...string) { // so that each gateway is asked
		t.Helper()
		for range 2 {
			testkit.Eventually(t, what, func() bool { return as(run(args...)) })
		}
	}
	names := func(all ...string) func(string) bool {
		return func(shown string) bool {
			for _, each := range all {
				if !strings.Contains(shown, each) {
					return false
				}
			}
			return true
		}
	}
	overview := func(passed int64, gateways int) func(string) bool {
		return func(shown string) bool {
			var o admin.Overview
			return json.Unmarshal([]byte(shown), &o) == nil && o.Totals.Passed == passed && len(o.Gateways) == gateways
		}
	}

	followed := exec.Command(program, "tail", "--json", "--kind", "change", "--admin", base)
	events, err := followed.StdoutPipe()
	if err != nil || followed.Start() != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { followed.Process.Kill(); followed.Wait() })

	one, two := call{model: "requests"}.must(t, &a.gatewayURLs, 200), call{model: "requests"}.must(t, &b.gatewayURLs, 200)
	ids := []string{one.header.Get("X-Gateway-Request-Id"), two.header.Get("X-Gateway-Request-Id")}
	twice("top counts the calls of both", overview(2, 2), "top", "--json")
	for _, id := range ids {
		twice("explain knows the calls of both", names(id, "requests"), "explain", id)
	}
	run("project", "set", "one", "requests_per_minute=5")
	run("project", "set", "two", "requests_per_minute=6")
	twice("audit has the changes of both", names("one", "two"), "audit")
	seen, n := make(chan error, 1), 6
	go func() { seen <- json.NewDecoder(events).Decode(new(any)) }()
	testkit.Eventually(t, "tail shows a change", func() bool {
		n++
		run("project", "set", "one", fmt.Sprint("requests_per_minute=", n))
		select {
		case err := <-seen:
			return err == nil
		default:
			return false
		}
	})

	b.signal(t, syscall.SIGKILL)
	b.wait(t)
	twice("top goes on with the calls of the gateway that is left", overview(1, 1), "top", "--json")
	twice("explain, too", names(ids[0], "requests"), "explain", ids[0])
	twice("audit has the changes of the gateway that was killed", names("one", "two"), "audit")
}
