package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// startFleet starts gateways on one Redis, and a proxy in front of their admin APIs that asks them in turn, and leaves out
// those that are gone.
func startFleet(t *testing.T, n int) (all []*rig, one *rig) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("the-token-of-the-fleet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	yaml := strings.Replace(usual, "state: memory", "state: "+redistest.New(t).PatientURL(), 1)
	for range n {
		all = append(all, start(t, yaml, "listen: 127.0.0.1:0, token: {file: "+token+"}"))
	}
	var turn atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			host := p.In.Host
			for {
				r := all[int(turn.Add(1))%n]
				target, err := url.Parse(r.url)
				if err == nil && !r.gone.Load() {
					p.SetURL(target)
					p.Out.Host = host
					return
				}
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(proxy.Close)
	return all, &rig{url: proxy.URL}
}

// Behind a proxy that asks four gateways in turn, the dashboard is that of one system: one sign-in is enough for all
// clicks, every page shows the calls and the changes of all, and goes on when one of them ends.
func TestFleet(t *testing.T) {
	all, one := startFleet(t, 4)
	b := open(t, one, "/#/", "401", "404", "502", "ERR_")
	b.fill("token", "the-token-of-the-fleet")
	b.press("Sign in")
	b.shows("#connection", "live")
	b.shows("#fleet", "4 gateways")
	for i, r := range all {
		for range i + 1 {
			r.call(t, "idle", "gpt-large")
		}
	}
	b.until(rowOf("idle") + `?.querySelector('[data-part=denied]').textContent === '3'`) // of 10 calls, 7 may pass
	b.until(rowOf("idle") + `?.querySelector('.gauge-value').textContent === '7 of 7'`)
	b.turn("/#/decisions")
	b.until(`document.querySelectorAll('main tbody tr').length === 10`)
	b.until(`new Set([...document.querySelectorAll('main td.gateway')].map((each) => each.textContent)).size === 4`)
	ids := eval[[]string](b, `[...document.querySelectorAll('main tbody a.code')].map((each) => each.textContent)`)
	for _, id := range ids {
		testkit.Eventually(t, "the gateway that has answered "+id+" explains it", func() bool {
			b.turn("/#/decisions")
			b.turn("/#/explain/" + id)
			b.until(fmt.Sprintf(`/Request%s|did not answer/.test(document.querySelector('main').textContent)`, id)) // on a busy machine, not in time
			return eval[bool](b, fmt.Sprintf(`document.querySelector('main').textContent.includes('Request%s')`, id))
		})
	}
	b.turn("/#/matrix")
	b.shows("main", "idle")
	for _, page := range []string{"/#/keys", "/#/audit", "/#/project/idle", "/#/model/gpt-large", "/#/"} {
		b.turn(page)
		b.until(`document.querySelector('main h1') !== null`)
		if eval[bool](b, `document.querySelector('main form [name=token]') !== null`) {
			t.Fatalf("%s asks for the token again", page)
		}
	}
	all[3].gone.Store(true)
	all[3].stop()
	b.shows("#fleet", "3 gateways")
	b.turn("/#/decisions")
	b.until(`document.querySelectorAll('main tbody tr').length === 6`)
	b.shows("#connection", "live")
}
