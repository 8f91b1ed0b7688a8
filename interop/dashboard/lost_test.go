package dashboard_test

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

// While Redis is lost, the dashboard says so, and what becomes of calls. It has no figure that nobody knows.
func TestStoreIsLost(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.New(t).Addr)
	yaml := strings.Replace(usual, "state: memory", "state: "+proxy.PatientURL()+"\non_store_loss: share", 1)
	r := start(t, yaml, "listen: 127.0.0.1:0")
	start(t, yaml, "listen: 127.0.0.1:0")
	r.call(t, "idle", "gpt-small")
	b := open(t, r, "/#/")
	b.until(rowOf("idle") + `?.querySelector('.gauge-value').textContent === '1 of 7'`)
	proxy.Cut()
	b.shows("#banner", "Each gateway lets its part of every limit pass.")
	b.until(rowOf("idle") + `?.querySelector('rl-gauge') === null`)
	b.shows("main", "not known: the store does not answer")
	proxy.Heal()
	b.until(`document.getElementById('banner').hidden`)
	b.until(rowOf("idle") + `?.querySelector('.gauge-value')?.textContent === '1 of 7'`)
}
