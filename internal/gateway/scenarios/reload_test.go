package scenarios

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

func replaced(text string, pairs ...string) string {
	return strings.NewReplacer(pairs...).Replace(text)
}

const reloaded = `
providers:
  openai: {base_url: MOCK, models: {m: {max_rpd: LIMIT}}}
defaults: {requests_per_day: 1_000_000}
`

// Reloads under load lose no request, whether the file is valid or not. Counters stay, and
// new limits apply.
func TestReloadUnderLoad(t *testing.T) {
	p := newProvider(t)
	file := written(t, replaced(reloaded, "LIMIT", "900000"), p)
	state := lasting["sqlite"](t)
	g := launch(t, file, state)
	change := func(limit int, more ...string) {
		rewrite(t, file, replaced(reloaded, append(more, "MOCK", p.url, "LIMIT", fmt.Sprint(limit))...))
	}
	var tasks sync.WaitGroup
	var over atomic.Bool
	var passed atomic.Int64
	for i := range workers {
		tasks.Go(func() {
			for !over.Load() {
				a, err := call{model: "m", text: "hello", stream: i%2 == 0}.to(&g.gatewayURLs)
				if err != nil || a.status != 200 || i%2 == 0 && !strings.HasSuffix(a.body, "data: [DONE]\n\n") {
					t.Errorf("%d %s, %v", a.status, a.body, err)
					return
				}
				passed.Add(1)
			}
		})
	}
	busy := func() {
		t.Helper()
		before := passed.Load()
		testkit.Eventually(t, "calls go on", func() bool { return passed.Load() >= before+2*workers || t.Failed() })
	}
	inForce := func(limit int) {
		t.Helper()
		testkit.Eventually(t, "the new limit is in force", func() bool { return g.quota(t, "m").Quota.MaxRPD == limit })
	}
	busy()
	change(800_000) // the gateway notices the change by itself
	inForce(800_000)
	rounds := testkit.Rounds(3, 10)
	for i := range rounds {
		change(700_000 + i)
		g.signal(t, syscall.SIGHUP)
		inForce(700_000 + i)
		busy()
	}
	rewrite(t, file, "providers: [nonsense")
	g.signal(t, syscall.SIGHUP)
	g.log.Await(t, "the old one stays")
	busy()
	over.Store(true)
	tasks.Wait()
	used := int(passed.Load())
	if n := len(p.arrivals("m")); n != used {
		t.Errorf("%d calls have passed, and %d have come", used, n)
	}
	if got := g.quota(t, "m"); got.Usage == nil || got.Usage.Used["max_rpd"] != used || got.Quota.MaxRPD != 700_000+rounds-1 {
		t.Errorf("%d calls have passed; the quota is %+v", used, got)
	}
	change(used+3, "providers:", "providers:\n  fresh: {base_url: "+p.url+"}", "1_000_000", "1_000_000, max_wait: 0s")
	g.signal(t, syscall.SIGHUP)
	inForce(used + 3)
	testkit.Eventually(t, "a new provider is served", func() bool {
		r, err := http.NewRequest(http.MethodGet, g.url+"/fresh/v1/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := do(r)
		return err == nil && a.status == 200
	})
	for _, want := range []int{200, 200, 200, 429} {
		call{model: "m", text: "hello"}.must(t, &g.gatewayURLs, want)
	}
	g.stop(t)
}
