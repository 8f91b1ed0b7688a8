package ratelimit

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// admitted is a call that was admitted, with its amount as far as it is known.
type admitted struct {
	at       int64
	estimate int
	amount   int // the estimate, or the usage once it is known
}

// admissions is the log of all calls, in the order in which they were recorded.
type admissions struct {
	t      *testing.T
	rpm    int
	tpm    int
	strict bool // no call uses more than its estimate

	mu    sync.Mutex
	calls []*admitted
}

// admit records a call. By what the limiter can have known, the calls in its minute must have
// left room for it: a debt may have come in between.
func (log *admissions) admit(at int64, estimate int) *admitted {
	log.mu.Lock()
	defer log.mu.Unlock()
	requests, tokens := 1, estimate
	for _, call := range slices.Backward(log.calls) {
		if call.at <= at-int64(time.Minute) {
			break
		}
		requests++
		tokens += min(call.amount, call.estimate)
	}
	if requests > log.rpm || tokens > log.tpm {
		log.t.Errorf("a call was admitted as number %d of %d, with %d of %d tokens", requests, log.rpm, tokens, log.tpm)
	}
	call := &admitted{at, estimate, estimate}
	log.calls = append(log.calls, call)
	return call
}

// settle records what a call has used, and then commits it. So room that the limiter
// refunds is free in the log, too.
func (log *admissions) settle(call *admitted, res *Reservation, prompt, output int) {
	log.mu.Lock()
	call.amount = prompt + output
	log.mu.Unlock()
	res.Commit(prompt, output)
}

// windows checks each minute that ends with a call, by the final usage of all calls.
func (log *admissions) windows() (requests, tokens int) {
	log.t.Helper()
	slices.SortStableFunc(log.calls, func(a, b *admitted) int { return cmp.Compare(a.at, b.at) })
	first, sum := 0, 0
	for i, call := range log.calls {
		sum += call.amount
		tokens += call.amount
		for log.calls[first].at <= call.at-int64(time.Minute) {
			sum -= log.calls[first].amount
			first++
		}
		if i-first+1 > log.rpm {
			log.t.Fatalf("%d requests in a minute; want %d at most", i-first+1, log.rpm)
		}
		if log.strict && sum > log.tpm {
			log.t.Fatalf("%d tokens in a minute; want %d at most", sum, log.tpm)
		}
	}
	return len(log.calls), tokens
}

// TestOvershoot has 400 concurrent callers who want more than the quota, for some minutes. No
// minute holds more than its quota, and little of it is wasted.
func TestOvershoot(t *testing.T) {
	const callers = 400
	minutes := testkit.Rounds(4, 10)
	none := func() time.Duration { return 0 }
	slow := func() time.Duration { return time.Duration(rand.IntN(int(20 * time.Second))) }
	for _, tt := range []struct {
		name     string
		rpm, tpm int
		estimate int // the largest estimate
		takes    func() time.Duration
		beyond   bool    // usage is up to twice the estimate; otherwise up to the estimate
		least    float64 // the least part of the quota that must be used
		most     float64
	}{
		{"tokens are short, usage is known at once", 100_000, 30_000, 1000, none, false, 0.9, 1},
		{"requests are short, usage is known at once", 500, 1 << 40, 1000, none, false, 0.9, 1},
		{"both are short, usage is known at once", 100, 30_000, 900, none, false, 0, 1},
		{"calls take a while", 300, 60_000, 1000, slow, false, 0, 1},
		// Calls use one and a half of their estimates. A caller may be interrupted before it says so, and others pass
		// meanwhile.
		{"more is used, and known at once", 500, 30_000, 1000, none, true, 0.9, 1.3},
		{"more is used, calls take a while", 500, 60_000, 1000, slow, true, 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rl := memLimiter(t, ModelQuota{MaxRPM: tt.rpm, MaxTPM: tt.tpm})
				log := &admissions{t: t, rpm: tt.rpm, tpm: tt.tpm, strict: !tt.beyond}
				ctx, cancel := testkit.WithHiddenTimeout(t.Context(), time.Duration(minutes)*time.Minute-1)
				defer cancel()
				var group sync.WaitGroup
				for range callers {
					group.Go(func() {
						for {
							estimate := 1 + rand.IntN(tt.estimate)
							res, err := rl.Acquire(ctx, memModel, estimate)
							if err != nil {
								return
							}
							call := log.admit(rl.engine.Now(), estimate)
							if wait := tt.takes(); wait > 0 {
								time.Sleep(wait)
							}
							used := rand.IntN(estimate + 1)
							if tt.beyond {
								used += estimate
							}
							prompt := rand.IntN(used + 1)
							log.settle(call, res, prompt, used-prompt)
						}
					})
				}
				group.Wait()
				requests, tokens := log.windows()
				share := max(float64(requests)/float64(tt.rpm), float64(tokens)/float64(tt.tpm)) / float64(minutes)
				if share < tt.least || share > tt.most {
					t.Errorf("%d requests of %d tokens are %.1f%% of what there is; want %.0f to %.0f%%", requests, tokens, 100*share, 100*tt.least, 100*tt.most)
				}
				if requests < 10*minutes {
					t.Errorf("%d calls were admitted; want a good many", requests)
				}
				memNobodyWaits(t, rl)
			})
		})
	}
}
