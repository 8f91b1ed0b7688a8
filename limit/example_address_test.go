package limit_test

import (
	"fmt"
	"net/http"
	"net/netip"

	"dappco.re/go/core/go-ratelimit/limit"
)

// A client has one address, and another port for each connection.
func ExampleNewLimiter_address() {
	address := func(r *http.Request) netip.Addr {
		peer, _ := netip.ParseAddrPort(r.RemoteAddr)
		return peer.Addr()
	}
	perClient := limit.NewLimiter(address, limit.PerSecond(1))
	for _, peer := range []string{"192.0.2.1:40001", "192.0.2.1:40002", "192.0.2.2:40001"} {
		fmt.Println(peer, perClient.Allow(&http.Request{RemoteAddr: peer}))
	}
	// Output:
	// 192.0.2.1:40001 true
	// 192.0.2.1:40002 false
	// 192.0.2.2:40001 true
}
