package scenarios

import (
	"fmt"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
)

// keyShares is a project whose keys share what it has of an hour, so that it is no matter how fast the test runs.
const keyShares = `
keys: required
users: {header: X-User-ID}
providers:
  openai: {base_url: MOCK, key: {file: KEY}, models: {m: {max_rpm: 100_000}}}
projects:
  search: {requests_per_hour: 60, max_wait: 0s}
`

// A key has its share of what its project has, however many users another key of the project invents.
func TestKeysHaveSharesOfTheirProject(t *testing.T) {
	onEach(t, func(t *testing.T, state string) {
		p := newProvider(t)
		g := start(t, replaced(keyShares, "KEY", secretFile(t, "sk-upstream")), state, p)
		manage := &admin.Client{Base: g.admin, HTTP: client}
		issue := func() string {
			key, err := manage.CreateKey(t.Context(), admin.NewKey{Project: "search"})
			if err != nil {
				t.Fatal(err)
			}
			return key.Secret
		}
		inventive, honest := call{model: "m", key: issue()}, call{model: "m", key: issue(), user: "alice"}
		passed := func(c call, users, calls int) (n int) {
			for i := range calls {
				if users > 0 {
					c.user = fmt.Sprint("u", i%users)
				}
				a, err := c.to(&g.gatewayURLs)
				switch {
				case err == nil && a.status == 200:
					n++
				case err != nil || a.status != 429:
					t.Fatalf("%d %s, %v", a.status, a.body, err)
				}
			}
			return n
		}
		got, n := passed(honest, 0, 1), passed(inventive, 20, 1)
		got += passed(honest, 0, 1) // it is known to call more than once
		if n += passed(inventive, 20, 80); n < 29 || n > 31 {
			t.Errorf("a key that invents users has %d of the 60 requests, want half of them", n)
		}
		if got += passed(honest, 0, 40); got < 29 || got > 31 {
			t.Errorf("the other key of the project has %d of the 60 requests, want half of them", got)
		}
	})
}
