package gateway

import (
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// accounts tracks whether clients that send their own keys of a provider all use one account
// there.
type accounts struct {
	last  atomic.Uint64 // a hash of the keys that were used last; 0: none yet
	until atomic.Int64  // Unix nanoseconds: until then, several accounts count as in use
}

// severalFor is how long several accounts count as in use after a request came with other
// keys than the request before it. It ends because the keys of a single account change, too,
// now and then.
const severalFor = 10 * time.Minute

var hashSeed = maphash.MakeSeed()

// observe records the keys of a client that the provider has accepted.
func (a *accounts) observe(keys []string) {
	if len(keys) == 0 {
		return
	}
	slices.Sort(keys)
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for _, key := range slices.Compact(keys) { // some clients send their key twice
		h.WriteString(key)
		h.WriteByte(0)
	}
	hash := max(1, h.Sum64())
	if before := a.last.Swap(hash); before != hash && before != 0 {
		a.until.Store(time.Now().Add(severalFor).UnixNano())
	}
}

func (a *accounts) several() bool { return time.Now().UnixNano() < a.until.Load() }

// forAllAccounts returns the part of the provider's statement on one client's account that
// holds for all clients. With several accounts, that is an overload of the provider, and
// limits above a guessed quota. With one, it is everything but what would keep all clients
// out for long, in case there is a second account after all.
func (x *exchange) forAllAccounts(said llm.Limits) llm.Limits {
	several := x.upstream.accounts.several()
	if several {
		said.Windows = x.higherLimits(said.Windows)
	}
	if said.Cause != llm.Overloaded && several || said.Cause == llm.SpendCap || said.Cause == llm.DayLimited {
		said.Cause = ""
	}
	return said
}
