package scenarios

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

const shared = `
providers:
  openai: {base_url: MOCK, models: {m: {max_tpm: 100_000}}}
projects:
  search: {weight: 3, max_wait: 10m}
  batch: {max_wait: 0s}
`

// A gateway that is killed while one of its calls holds a reservation and another has the turn keeps its
// share from others for three seconds, and the reservation for the minute.
func TestKilledGatewayLeavesItsShare(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		file := written(t, shared, p)
		a, b := launch(t, file, state), launch(t, file, state)
		batch := call{model: "m", project: "batch", output: 5000}
		batch.must(t, &b.gatewayURLs, 200) // a gateway learns of models that it was asked for

		var calls sync.WaitGroup
		search := func(output int, mock string) {
			calls.Go(func() {
				if said, err := (call{model: "m", project: "search", output: output, mock: mock}).to(&a.gatewayURLs); err == nil {
					t.Errorf("a call of the killed gateway got %d %s", said.status, said.body)
				}
			})
		}
		search(30_000, "delay=10m")
		testkit.Eventually(t, "a call holds a reservation", func() bool { return len(p.arrivals("m")) == 2 })
		search(80_000, "") // waits until the first one has left the minute
		testkit.Eventually(t, "the other gateway knows that a call waits", func() bool { return b.shareOf(t, "batch") == 25_000 })

		for range 4 {
			batch.must(t, &b.gatewayURLs, 200)
		}
		batch.must(t, &b.gatewayURLs, 429) // a quarter is used, and 45% are free for the call that waits
		a.signal(t, syscall.SIGKILL)
		a.wait(t)
		calls.Wait()
		killed := time.Now()
		testkit.Eventually(t, "the share is lent", func() bool {
			said, err := batch.to(&b.gatewayURLs)
			return err == nil && said.status == 200
		})
		after := time.Since(killed)
		t.Logf("the share of the killed gateway was lent after %v", after)
		if after > 10*time.Second { // on a busy machine; it should be 3
			t.Errorf("the share of the killed gateway was lent after %v", after)
		}
		for range 7 {
			batch.must(t, &b.gatewayURLs, 200)
		}
		batch.must(t, &b.gatewayURLs, 429) // 65,000 are used, and 30,000 reserved by the call that was killed
	})
}

// shareOf returns the share of a project of its model, as a gateway knows it.
func (g *gatewayURLs) shareOf(t *testing.T, project string) int {
	for _, s := range g.quota(t, "m").Shares {
		if s.Project == project {
			return s.Limits[0].Share
		}
	}
	return 0
}
