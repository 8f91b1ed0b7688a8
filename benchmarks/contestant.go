package main

import "time"

// kind says on whose side a contestant stands.
type kind int

const (
	floor kind = iota // what no limiter can go below: a clock reading, a CAS
	ours
	peer
)

func (k kind) String() string {
	return [...]string{"floor", "ours", "peer"}[k]
}

// quota is the limit every contestant is asked to enforce: count in period, with a burst of count.
type quota struct {
	count  int64
	period time.Duration
}

var (
	// plenty is one a nanosecond, which no loop here can use up.
	plenty = quota{int64(time.Hour), time.Hour}
	// spent is used up by the first call and stays so for as long as we measure.
	spent = quota{1, time.Hour}
	// yearly admits everything that a key is asked here, and regains one in 31 seconds: long enough
	// that no counter is full again, and so forgettable, while we measure.
	yearly = quota{1_000_000, 365 * 24 * time.Hour}
)

// loop makes one decision for each key and returns how many were admitted. Every contestant has
// its own loop, so that none pays for an indirect call a decision; a limiter without keys makes
// len(keys) decisions.
type loop func(keys []string) (admitted int)

// instance is a contestant at work on one quota.
type instance struct {
	decide loop
	close  func() // may be nil
}

func (i instance) stop() {
	if i.close != nil {
		i.close()
	}
}

// contestant is one way of limiting, or a floor beside them.
type contestant struct {
	name    string
	kind    kind
	keyed   bool   // takes string keys
	retains string // what it keeps of a key; keyed contestants only
	blocks  bool   // waits where others deny
	build   func(quota) instance
}

// keyedOnly returns those of all that take keys.
func keyedOnly(all []contestant) []contestant {
	var out []contestant
	for _, c := range all {
		if c.keyed {
			out = append(out, c)
		}
	}
	return out
}

// denying returns those of all that can say no.
func denying(all []contestant) []contestant {
	var out []contestant
	for _, c := range all {
		if !c.blocks {
			out = append(out, c)
		}
	}
	return out
}

// Names that the required figures refer to.
const (
	nameRate     = "rate.Limiter"
	nameLimit    = "limit.Limiter"
	nameXTime    = "x/time/rate"
	nameSince    = "time.Since of a base"
	nameNoKey    = "limit.Limiter, no key"
	nameUber     = "uber ratelimit"
	nameFailsafe = "failsafe-go"
)

// single are the contestants for one hot limiter.
func single() []contestant {
	return append(append(floors(), limiters()...), peers()...)
}

// keyed are the contestants for many keys, with the recipes people write around x/time/rate.
func keyed() []contestant {
	return append(keyedOnly(single()), recipes()...)
}
