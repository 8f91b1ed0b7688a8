package scenarios

import (
	"sync"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

const slotShares = `
providers:
  openai: {base_url: MOCK, models: {m: {max_concurrent: 12}}}
projects:
  few: {weight: 3, max_wait: 10m}
  many: {max_wait: 10m}
`

// The slots of a model are divided by weight among projects whose calls come to three gateways, although one of them
// calls one gateway alone and the other all of them, with three times as many workers. Never are more taken than there
// are. On a busy machine a call is late with its next request, so this allows for twelve points; without shares it was
// 25 to 54%, and TestSlotsAreSharedOverNodes has exact bounds in simulated time.
func TestGatewaysShareSlots(t *testing.T) {
	warm, counted := 60, testkit.Rounds(150, 400)
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		file := written(t, slotShares, p)
		var gateways []*gatewayURLs
		for range 3 {
			gateways = append(gateways, &launch(t, file, state).gatewayURLs)
		}
		enough := func() bool { return len(p.arrivals("")) >= warm+counted }
		var tasks sync.WaitGroup
		work := func(project string, at *gatewayURLs) {
			each := call{model: "m", project: project, text: project, mock: "delay=300ms"}
			for !enough() {
				if a, err := each.to(at); err != nil || a.status != 200 {
					t.Errorf("%s: %d %s, %v", project, a.status, a.body, err)
					return
				}
			}
		}
		for i := range 60 {
			tasks.Go(func() { work("many", gateways[i%3]) })
			if i%3 == 0 {
				tasks.Go(func() { work("few", gateways[0]) })
			}
		}
		tasks.Wait()
		few := 0
		for _, a := range p.arrivals("")[warm : warm+counted] {
			if a.text == "few" {
				few++
			}
		}
		t.Logf("the project of weight 3 has %d%% of the slots", 100*few/counted)
		if percent := 100 * few / counted; percent < 75-12 || percent > 75+12 {
			t.Errorf("the project of weight 3 has %d%% of the slots: want 75%%", percent)
		}
		if _, peak := p.busy(); peak > 12 {
			t.Errorf("%d calls were under way at a time", peak)
		}
	})
}
