package scenarios

import (
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// oneCall are budgets of one call that reserves 3 cents.
const oneCall = priced + `
projects:
  hasty: {dollars: 0.04}
  patient: {dollars: 0.055, max_wait: 1m}
`

// A total that calls of another gateway have only reserved comes back when they end. So a client gets an answer that
// says to try again, and a call that may wait waits for it. Once the total is used, the answer says to stop.
func TestTotalsThatAnotherGatewayHasReserved(t *testing.T) {
	onLasting(t, func(t *testing.T, state string) {
		p := newProvider(t)
		file := written(t, oneCall, p)
		a, b := launch(t, file, state), launch(t, file, state)
		p.block()
		under := sendTogether(t, 2, func(i int) call { return paid.by([]string{"hasty", "patient"}[i]) }, &a.gatewayURLs)
		testkit.Eventually(t, "both are under way", func() bool { return p.blocks(2) })
		if said := paid.by("hasty").must(t, &b.gatewayURLs, 429); said.header.Get("Retry-After") != "1" || !strings.Contains(said.body, "$0.03 of what is used is only reserved, by calls under way") {
			t.Errorf("%v %s", said.header, said.body)
		}
		waits := sendTogether(t, 1, func(int) call { return paid.by("patient") }, &b.gatewayURLs)
		testkit.Eventually(t, "it waits", func() bool { return strings.Contains(b.fetch(t, "/v1/waiting").body, `"patient"`) })
		p.release()
		under.wait(t)
		waits.wait(t)
		if under.got(200) != 2 || waits.got(200) != 1 {
			t.Errorf("%v, and then %v", under.answers, waits.answers)
		}
		testkit.Eventually(t, "the call has ended for the other gateway, too", func() bool {
			said, err := paid.by("hasty").to(&b.gatewayURLs)
			return err == nil && said.status == 402 && strings.Contains(said.body, "this budget does not reset; do not retry")
		})
	})
}
