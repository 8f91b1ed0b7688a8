package engine_test

import (
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/engine"
)

// Calls that are larger than their project's share of a limit above it pass again and again, although the small
// calls of a sibling would take whatever comes free. Large calls have no more than their half. While room is made
// for a large one, less passes than could.
func TestLargeCallsAreNotStarvedBySiblings(t *testing.T) {
	everyStore(t, func(t *testing.T, b *bench) {
		acme := b.own("acme", perMinute(engine.AllTokens, 100))
		large, small := b.NewBelow(acme, "large/", "acme/large"), b.NewBelow(acme, "small/", "acme/small")
		smallUsed, largeUsed := 0, 0
		callForAMinute := func() {
			for range 120 {
				time.Sleep(499 * time.Millisecond) // a minute is no multiple: no call comes in the instant when another one leaves the window
				if b.try(callOf("acme/small", 1), small.Append(nil)...).Allowed() {
					smallUsed++
				}
			}
		}
		callForAMinute()
		const minutes = 20
		w := b.acquire(callOf("acme/large", 80), large.Append(nil)...)
		for range minutes {
			callForAMinute()
			if w.passed() {
				largeUsed += 80
				w = b.acquire(callOf("acme/large", 80), large.Append(nil)...)
			}
		}
		w.leave()
		<-w.done
		if largeUsed, smallUsed = largeUsed/minutes, smallUsed/minutes; largeUsed < 25 || largeUsed > 50 || smallUsed < 35 {
			t.Errorf("the large calls have used %d a minute, and the small ones %d of 100", largeUsed, smallUsed)
		}
	})
}

// A large call of a project of a lower priority does not keep those of a higher one from what they want, and takes
// nothing of what a sibling was promised.
func TestLargeCallsDoNotTakeWhatOthersWerePromised(t *testing.T) {
	for name, terms := range map[string]func() *engine.Rules{
		"a higher priority": func() *engine.Rules { return &engine.Rules{Rank: 1} },
		"a minimum":         func() *engine.Rules { return &engine.Rules{MinShare: .5} },
	} {
		t.Run(name, func(t *testing.T) {
			everyStore(t, func(t *testing.T, b *bench) {
				acme := b.own("acme", perMinute(engine.AllTokens, 100))
				large, small := b.NewBelow(acme, "large/", "acme/large"), b.NewBelow(acme, "small/", "acme/small")
				b.must(b.SetRules(small, terms()))
				call := func() (denied int) {
					for range 40 {
						time.Sleep(3 * time.Second / 2)
						if !b.try(callOf("acme/small", 1), small.Append(nil)...).Allowed() {
							denied++
						}
					}
					return denied
				}
				call()
				w := b.acquire(callOf("acme/large", 80), large.Append(nil)...)
				if denied := call() + call(); denied > 0 || w.passed() {
					t.Errorf("%d of 80 small calls were denied, the large one has passed: %t", denied, w.passed())
				}
				w.leave()
				<-w.done
			})
		})
	}
}
