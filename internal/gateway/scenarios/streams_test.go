//go:build unix

package scenarios

import (
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

const (
	streams = 4000            // of one address, beyond 4,096 of which a connection is closed that is slow to send its request
	files   = 2*streams + 500 // open files of this process, and of the gateway
)

// Thousands of streams at the same time all arrive whole. Afterwards the gateway holds no
// connection and no goroutine for them.
func TestManyStreams(t *testing.T) {
	var open syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &open); err != nil || open.Cur < files {
		t.Skipf("it needs %d open files, of %d: see ulimit -n", files, open.Cur)
	}
	c, p := newStreamer(t)
	g := launch(t, written(t, `
providers:
  openai: {base_url: MOCK, models: {m: {max_concurrent: 4000, max_rpd: 1_000_000, max_tpd: 1_000_000_000}}}
defaults: {max_wait: 0s}
log: {sample: 1000}
`, p), "memory")
	before := g.gauge(t, "go_goroutines")
	began := time.Now()
	all := listen(t, &g.gatewayURLs, streams, call{model: "m", stream: true, output: 100})
	t.Logf("%d streams are open after %v", streams, time.Since(began))
	if q := g.quota(t, "m"); c.begun() != streams || q.Usage == nil || q.Usage.Used["max_concurrent"] != streams {
		t.Errorf("%d streams have begun; %+v", c.begun(), q.Usage)
	}
	call{model: "m"}.must(t, &g.gatewayURLs, 429)
	c.finish()
	for i := range all {
		all[i].whole(t)
	}
	t.Logf("all are whole after %v", time.Since(began))
	testkit.Eventually(t, "all requests have ended", func() bool { return g.gauge(t, "ratelimit_gateway_active") == 0 })
	if q := g.quota(t, "m"); q.Usage.Used["max_concurrent"] != 0 || q.Usage.Used["max_rpd"] != streams || q.Usage.Used["max_tpd"] != streams*streamTokens {
		t.Errorf("afterwards: %+v", q.Usage)
	}
	testkit.Eventually(t, "nothing is left of them", func() bool {
		return g.gauge(t, "go_goroutines") <= before+20 && g.gauge(t, "process_open_fds") < 100
	})
	g.stop(t)
}

// gauge returns the value of a metric without labels.
func (g *gatewayURLs) gauge(t *testing.T, name string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(g.fetch(t, "/metrics").body)
	if found == nil {
		t.Fatalf("there is no metric %s", name)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
