package gateway

import (
	"fmt"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
)

// Names that clients invent do not keep names in use out of the cache. Once, after enough of
// them, every call compared its name with all models.
func TestInventedNamesAreForgotten(t *testing.T) {
	u := &upstream{Upstream: &config.Upstream{Kind: dialect.OpenAI, Models: []config.Model{{Name: "gpt-4o"}}}}
	for i := range 3 * maxCachedModels {
		u.Find(fmt.Sprintf("invented-%dx", i))
	}
	for range 2 {
		if m, known := u.Find("gpt-4o"); !known || m.Name != "gpt-4o" {
			t.Errorf("gpt-4o is %+v, %t", m, known)
		}
	}
	names := 0
	u.cache.models.Range(func(any, any) bool { names++; return true })
	if _, remembered := u.cache.models.Load("gpt-4o"); !remembered || names > maxCachedModels {
		t.Errorf("gpt-4o is remembered: %t, of %d names", remembered, names)
	}
}
