package gateway

import (
	"hash/maphash"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/llm"
)

// accounts is whether the clients of a provider, each of which has a key of its own, all
// have the same.
type accounts struct {
	first   atomic.Uint64 // a hash of the first one's; 0: none yet
	several atomic.Bool
}

var seed = maphash.MakeSeed()

// see notes a client's credentials.
func (a *accounts) see(secrets []string) {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, secret := range secrets {
		h.WriteString(secret)
		h.WriteByte(0)
	}
	hash := max(1, h.Sum64())
	if !a.first.CompareAndSwap(0, hash) && a.first.Load() != hash {
		a.several.Store(true)
	}
}

// heeds reports whether what a provider says of a client's own account holds for the
// others: not if they may have other accounts, and not what would keep them out for long
// before that is known.
func (x *exchange) heeds(said llm.Limits) bool {
	return !x.upstream.accounts.several.Load() && said.Cause != llm.SpendCap && said.Cause != llm.DayLimited
}
