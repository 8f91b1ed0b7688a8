package ratelimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/limit"
)

// ErrNever is the error of a wait that could never end: what it waits for is
// larger than the model's quota.
var ErrNever = limit.ErrNever

// RateLimiter keeps the calls to each model inside its quota. All of its methods
// may be called at a time. Make one with [New] or one of its relatives.
type RateLimiter struct {
	clock  func() int64 // Unix nanoseconds
	shared *shared      // counts in a store; nil: models count for themselves
	path   string       // of the YAML file, unless there is a store; may be empty: see pathOr

	keeper   keeper // of quotas, if the store has one
	unfollow func() // stops following the keeper's quotas; nil: it does not

	// Models with a quota. The map is replaced, never changed.
	quotas atomic.Pointer[map[string]*model]

	setting    sync.Mutex // held while quotas are set, here and where they are kept
	persisting sync.Mutex // held from looking at usage to having written it

	mu     sync.Mutex        // guards others, and changes of quotas
	others map[string]*model // that were used and have no quota
	crowd  int               // of others, at which those that are idle are forgotten
}

// TryAcquire reserves a call's estimated tokens, prompt and output together, or
// says why not. It takes all of the model's quotas in one step, or nothing. While
// others wait for the model, it denies.
func (rl *RateLimiter) TryAcquire(model string, estimatedTokens int) (res *Reservation, d Decision) {
	q, err := newRequest(estimatedTokens)
	res = rl.tryAcquire(model, q, err, &d)
	return res, d
}

// TryAcquireTokens is TryAcquire for an estimate of the prompt and the output
// apart, which a model with a quota for each should be given: where only their
// sum is known, each may be all of it, and is reserved as such.
func (rl *RateLimiter) TryAcquireTokens(model string, estimated Tokens) (res *Reservation, d Decision) {
	q, err := newSplitRequest(estimated)
	res = rl.tryAcquire(model, q, err, &d)
	return res, d
}

func (rl *RateLimiter) tryAcquire(name string, q request, invalid error, d *Decision) *Reservation {
	m := rl.limited(name, invalid, d)
	if m == nil {
		d.Stats = rl.Stats(name)
		if !d.Allowed {
			return nil
		}
		return &Reservation{model: rl.find(name)}
	}
	if m.line.length.Load() > 0 {
		if rl.decide(m, q, d); !d.Allowed {
			return nil
		}
		*d = Decision{} // those who waited have just left
	}
	var o outcome
	res, err := rl.take(context.Background(), m, q, &o)
	if err != nil {
		*d = lost(err)
		return nil
	}
	if rl.shared != nil {
		rl.shared.describe(m, &o)
	}
	o.decide(d)
	return res
}

// limited returns the model if its quota has to be asked, or else the decision.
func (rl *RateLimiter) limited(name string, invalid error, d *Decision) *model {
	if invalid != nil {
		d.Code, d.Reason, d.RetryAfter = DecisionInvalidTokens, strings.TrimPrefix(invalid.Error(), "ratelimit: "), Never
		return nil
	}
	m := (*rl.quotas.Load())[name]
	if m == nil {
		d.Allowed, d.Code, d.Reason = true, DecisionUnknownModel, "the model has no quota"
		return nil
	}
	if m.rules.Load().free() {
		d.Allowed, d.Code, d.Reason = true, DecisionUnlimited, "the model's quota limits nothing"
		return nil
	}
	return m
}

// take takes what a request asks of a model, if it may pass.
func (rl *RateLimiter) take(ctx context.Context, m *model, q request, o *outcome) (*Reservation, error) {
	if rl.shared != nil {
		return rl.shared.take(ctx, m, q, o)
	}
	m.take(rl.clock(), q, o)
	if o.denied {
		return nil, nil
	}
	return &Reservation{model: m, taken: o.taken, at: o.at, epoch: o.epoch, split: q.split}, nil
}

// look says what take would, and takes nothing.
func (rl *RateLimiter) look(ctx context.Context, m *model, q request, o *outcome) error {
	if rl.shared != nil {
		return rl.shared.look(ctx, m, q, o)
	}
	m.look(rl.clock(), q, o)
	return nil
}

// settle corrects a reservation, and lets go on who waits for what it gives back.
func (rl *RateLimiter) settle(r *Reservation, used *amounts) {
	if rl.shared != nil {
		rl.shared.settle(r, used)
	} else {
		r.model.settle(r, used)
	}
	r.model.line.wake()
}

// lost is the answer where the store could not be asked.
func lost(err error) Decision {
	return Decision{Code: DecisionStoreLost, Reason: err.Error(), RetryAfter: slotGuess}
}

// Decide says what TryAcquire would, and takes nothing. What it says may not be
// true any more when you act on it: see TryAcquire.
func (rl *RateLimiter) Decide(model string, estimatedTokens int) Decision {
	var d Decision
	q, err := newRequest(estimatedTokens)
	if m := rl.limited(model, err, &d); m != nil {
		rl.decide(m, q, &d)
	} else {
		d.Stats = rl.Stats(model)
	}
	return d
}

// decide says what the quota says, and those who wait.
func (rl *RateLimiter) decide(m *model, q request, d *Decision) {
	var o outcome
	if err := rl.look(context.Background(), m, q, &o); err != nil {
		*d = lost(err)
		return
	}
	if rl.shared != nil {
		rl.shared.describe(m, &o)
	}
	o.decide(d)
	if m.line.length.Load() == 0 {
		return
	}
	told := m.line.told.Load()
	due := max(time.Duration(told.due-rl.clock()), 1)
	if o.denied && due <= d.RetryAfter {
		return
	}
	if o.denied {
		d.RetryAfter = due
		d.Reason = "others wait; " + o.shortage(due)
		return
	}
	by := told.outcome.by()
	d.Allowed, d.Code, d.RetryAfter = false, facts[by].code, due
	d.Reason = fmt.Sprintf("others wait for %s: try again in %v", facts[by].what, due)
}

// CanSend reports whether a call of so many tokens may be made. It takes nothing:
// calls that are made in parallel can all be told yes. See TryAcquire.
func (rl *RateLimiter) CanSend(model string, estimatedTokens int) bool {
	return rl.Decide(model, estimatedTokens).Allowed
}

// RecordUsage charges a call that was made without a reservation, whatever the
// quota says. Negative numbers count as zero; a name that no file could hold is
// not counted.
func (rl *RateLimiter) RecordUsage(name string, promptTokens, outputTokens int) {
	q := request{bounded(promptTokens), bounded(outputTokens), true}
	if rl.shared != nil {
		if checkName(name) == nil {
			rl.shared.record(rl.find(name), q)
		}
		return
	}
	rl.with(name, func(m *model) { m.record(rl.clock(), q) })
}

// Acquire reserves a call's estimated tokens as soon as it may pass. Those who
// wait for a model are served first come, first served. It fails with [ErrNever]
// at once if the call is larger than the model's quota, and with ctx's error when
// ctx ends; then it has taken nothing. Who waits for a day to end holds up all who
// come later, so give ctx a deadline.
func (rl *RateLimiter) Acquire(ctx context.Context, model string, estimatedTokens int) (*Reservation, error) {
	q, err := newRequest(estimatedTokens)
	return rl.acquire(ctx, model, q, err)
}

// AcquireTokens is Acquire for an estimate of the prompt and the output apart:
// see TryAcquireTokens.
func (rl *RateLimiter) AcquireTokens(ctx context.Context, model string, estimated Tokens) (*Reservation, error) {
	q, err := newSplitRequest(estimated)
	return rl.acquire(ctx, model, q, err)
}

func (rl *RateLimiter) acquire(ctx context.Context, name string, q request, invalid error) (*Reservation, error) {
	var res *Reservation
	err := rl.wait(ctx, name, q, invalid, func(ctx context.Context, m *model, q request, o *outcome) (err error) {
		res, err = rl.take(ctx, m, q, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	if res == nil { // nothing limits the model
		res = &Reservation{model: rl.find(name)}
	}
	return res, nil
}

// WaitForCapacity returns when a call of so many tokens may be made, and takes
// nothing: others who are told so at the same time may be first. Acquire is for
// those who want to have it.
func (rl *RateLimiter) WaitForCapacity(ctx context.Context, model string, tokens int) error {
	q, invalid := newRequest(tokens)
	return rl.wait(ctx, model, q, invalid, rl.look)
}

// wait asks in turn until nothing is denied.
func (rl *RateLimiter) wait(ctx context.Context, name string, q request, invalid error, ask func(context.Context, *model, request, *outcome) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: not waiting: %w", err)
	}
	m := rl.limited(name, invalid, new(Decision))
	if m == nil {
		return invalid
	}
	lost := 0 // races against other machines
	inTurn := func() (again time.Duration, done bool, err error) {
		var o outcome
		if err := ask(ctx, m, q, &o); err != nil || !o.denied {
			return 0, err == nil, err
		}
		if again = o.wait(rl.slotWait()); again == Never {
			return 0, false, never(name, &o)
		}
		m.line.told.Store(&refusal{o, rl.clock() + int64(o.wait(slotGuess))})
		again += rl.spread(again, lost)
		lost++
		return again, false, nil
	}
	if m.line.length.Load() == 0 {
		if _, done, err := inTurn(); done || err != nil {
			return err
		}
	} else if o := m.rules.Load().ever(q); o.denied {
		return never(name, &o)
	}
	return m.line.wait(ctx, inTurn)
}

func never(name string, o *outcome) error {
	return fmt.Errorf("%w: %s: %s", ErrNever, name, o.excess())
}

// spread returns how much longer to wait than was told, at random, so that
// machines which wait for the same do not all ask at the same instant. Asking
// early would be in vain. Whoever has lost such a race comes sooner the next
// time, before those who have not waited as long.
func (rl *RateLimiter) spread(wait time.Duration, lost int) time.Duration {
	if rl.shared == nil || !rl.shared.remote {
		return 0
	}
	return rand.N(min(wait/16, maxSpread)>>min(lost, 16) + 1)
}

const maxSpread = 10 * time.Millisecond

// slotWait is how long to wait at most for a slot before asking again. Who gives
// one back in this process says so; other processes do not.
func (rl *RateLimiter) slotWait() time.Duration {
	if rl.shared != nil {
		return slotGuess
	}
	return lease
}
