package gateway

import (
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// accounts is whether clients that have keys of their own all have the same.
type accounts struct {
	last  atomic.Uint64 // a hash of the key that was used last; 0: none was yet
	until atomic.Int64  // Unix nanoseconds: several were used, and may be again until then
}

// seldom is how long several accounts are thought to be in use after a change from one to
// another. Keys and tokens of one account change, too, now and then.
const seldom = 10 * time.Minute

var seed = maphash.MakeSeed()

// see notes the keys of a client, which its provider has taken.
func (a *accounts) see(secrets []string) {
	if len(secrets) == 0 {
		return
	}
	slices.Sort(secrets)
	var h maphash.Hash
	h.SetSeed(seed)
	for _, secret := range slices.Compact(secrets) { // some send theirs twice
		h.WriteString(secret)
		h.WriteByte(0)
	}
	hash := max(1, h.Sum64())
	if before := a.last.Swap(hash); before != hash && before != 0 {
		a.until.Store(time.Now().Add(seldom).UnixNano())
	}
}

func (a *accounts) several() bool { return time.Now().UnixNano() < a.until.Load() }

// heeded returns what of a provider's word on a client's own account holds for others. If
// they may have other accounts, it is that the provider itself has too much to do, and that
// a guess is too low; before that is known, it is not what would keep them out for long.
func (x *exchange) heeded(said llm.Limits) llm.Limits {
	several := x.upstream.accounts.several()
	if several {
		said.Windows = x.raises(said.Windows)
	}
	if said.Cause != llm.Overloaded && several || said.Cause == llm.SpendCap || said.Cause == llm.DayLimited {
		said.Cause = ""
	}
	return said
}
