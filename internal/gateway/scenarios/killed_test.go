package scenarios

import (
	"sync"
	"syscall"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/price"
)

// threeLevels are budgets of 100 calls of 3 cents for the whole of a tree.
const threeLevels = priced + `
projects:
  acme: {dollars: 3}
  acme/search: {dollars_per_month: 500}
  "acme/search/*": {dollars_per_day: 400}
`

// spend lets workers send one call after another, half of them streams, until each gets another
// answer than 200.
func spend(g *gatewayURLs, of call) (wait func()) {
	var tasks sync.WaitGroup
	for i := range workers {
		each := of
		each.stream = i%2 == 0
		tasks.Go(func() {
			for {
				if a, err := each.to(g); err != nil || a.status != 200 {
					return
				}
			}
		})
	}
	return tasks.Wait
}

// A call is charged to every level or to none, whenever its gateway is killed, and no level ever
// exceeds its limit.
func TestKilledGatewayChargesEveryLevelOrNone(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		file := written(t, threeLevels, p)
		for _, after := range []int{1, 10, 20, 35, 50} {
			g := launch(t, file, state)
			wait := spend(&g.gatewayURLs, paid.by("acme/search/alice"))
			testkit.Eventually(t, "calls are under way", func() bool { return len(p.arrivals("")) >= after })
			g.signal(t, syscall.SIGKILL)
			g.wait(t)
			wait()
		}
		g := launch(t, file, state)
		used := agreed(t, g)
		if came := price.Amount(len(p.arrivals(""))); used < came*cost {
			t.Errorf("%v is charged for %d calls", used, came)
		}
		spend(&g.gatewayURLs, paid.by("acme/search/alice"))()
		used = agreed(t, g)
		if came := price.Amount(len(p.arrivals(""))); used > 3*price.Dollar || came*cost > used || used <= 3*price.Dollar-reserved {
			t.Errorf("%v is charged for %d calls, of $3", used, came)
		}
	})
}

// agreed expects that all levels have used as much, and returns it.
func agreed(t *testing.T, g *process) price.Amount {
	t.Helper()
	g.awaitSettled(t)
	used := g.spent(t, "acme")
	g.wantSpent(t, map[string]price.Amount{"acme/search": used, "acme/search/alice": used})
	return used
}
