package scenarios

import (
	"sync"
	"syscall"
	"testing"
	"time"

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

// The slots of a gateway that was killed come free within seconds, and those of calls under way on another gateway stay
// taken. It waits for real leases to end, so it is for `make soak`.
func TestSlotsOfAKilledGatewayComeFree(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	onLasting(t, func(t *testing.T, state string) {
		t.Parallel()
		p := newProvider(t)
		file := written(t, "providers:\n  openai: {base_url: MOCK, models: {m: {max_concurrent: 10}}}\ndefaults: {max_wait: 1m}\n", p)
		dies, lives := launch(t, file, state), launch(t, file, state)
		p.block()
		one := func(int) call { return call{model: "m"} }
		sendTogether(t, 6, one, &dies.gatewayURLs)
		testkit.Eventually(t, "its calls are under way", func() bool { return p.blocks(6) })
		others := sendTogether(t, 10, one, &lives.gatewayURLs)
		testkit.Eventually(t, "all slots are taken", func() bool { return p.blocks(10) })
		time.Sleep(20 * time.Second) // longer than a lease
		if !p.blocks(10) {
			t.Error("a slot of a call under way was taken")
		}
		dies.signal(t, syscall.SIGKILL)
		dies.wait(t)
		killed := time.Now()
		testkit.Eventually(t, "the slots of the dead gateway are free", func() bool { return len(p.arrivals("")) == 16 })
		t.Logf("they are free after %v", time.Since(killed))
		p.release()
		others.wait(t)
	})
}
