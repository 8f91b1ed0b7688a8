package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/line"
)

// Acquire reserves a call's estimated tokens as soon as it may pass. Those who
// wait for a model are served first come, first served. It fails with [ErrNever]
// at once if the call is larger than the model's quota, and with ctx's error when
// ctx ends; then it has taken nothing. Who waits for a day to end holds up all who
// come later, so give ctx a deadline.
func (rl *RateLimiter) Acquire(ctx context.Context, model string, estimatedTokens int) (*Reservation, error) {
	w := wait{limiter: rl, call: call{model: model}}
	w.call.request, w.call.invalid = newRequest(estimatedTokens)
	return w.acquire(ctx, nil)
}

// AcquireTokens is Acquire for an estimate of the prompt and the output apart:
// see TryAcquireTokens.
func (rl *RateLimiter) AcquireTokens(ctx context.Context, model string, estimated Tokens) (*Reservation, error) {
	w := wait{limiter: rl, call: call{model: model}}
	w.call.request, w.call.invalid = newSplitRequest(estimated)
	return w.acquire(ctx, nil)
}

// WaitForCapacity returns when a call of so many tokens may be made, and takes
// nothing: others who are told so at the same time may be first. Acquire is for
// those who want to have it.
func (rl *RateLimiter) WaitForCapacity(ctx context.Context, model string, tokens int) error {
	w := wait{limiter: rl, call: call{model: model}, looks: true}
	w.call.request, w.call.invalid = newRequest(tokens)
	return w.run(ctx)
}

// wait is a call that waits for its turn.
type wait struct {
	limiter *RateLimiter
	model   *model
	call    call
	looks   bool // it takes nothing

	ahead    line.Ahead   // who waited when it came
	said     outcome      // to the last ask that did not fail
	res      *Reservation // once it has passed
	start    int64        // when it began to wait
	waited   time.Duration
	lost     int       // races against other machines
	decision *Decision // to make of the last answer, or nil
}

// acquire reserves what the call asks for, in its turn. If d is not nil, it
// becomes the last decision.
func (w *wait) acquire(ctx context.Context, d *Decision) (*Reservation, error) {
	rl := w.limiter
	if w.decision = d; d == nil && rl.observer != nil {
		w.decision = new(Decision)
	}
	err := w.run(ctx)
	if err == nil && w.res == nil { // nothing limits the call
		w.res = rl.unlimited(&w.call)
		if d != nil {
			d.Stats = rl.Stats(w.call.model)
		}
	}
	if rl.observer != nil {
		e := rl.event(&w.call, w.decision, err)
		e.Waited = w.waited
		rl.observer.Observe(ctx, e)
	}
	return w.res, err
}

// run asks in turn until nothing is denied.
func (w *wait) run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ratelimit: not waiting: %w", err)
	}
	var open Decision
	if w.model = w.limiter.limited(&w.call, &open); w.model == nil {
		if w.decision != nil {
			*w.decision = open
		}
		return w.call.invalid
	}
	err := w.inLine(ctx)
	if err == errPaused {
		w.model = w.limiter.made(w.call.model)
		err = w.inLine(ctx)
	}
	if w.decision != nil {
		w.decide()
	}
	return err
}

// errPaused is the error of a wait for a project's limits in which the call's model,
// that has no quota, was paused: it goes on in the line of the model.
var errPaused = errors.New("ratelimit: the model is paused")

// decide makes a decision of the last answer. Who was not asked, or not let into
// the line, is told of those before it.
func (w *wait) decide() {
	rl := w.limiter
	if w.said.rules == nil {
		if ahead, waiting := rl.ahead(w.model, &w.call); waiting {
			w.ahead = ahead
		}
		if w.ahead != (line.Ahead{}) {
			w.decision.behind(w.ahead)
		}
		return
	}
	if rl.shared != nil {
		rl.shared.describe(w.model, &w.said)
	}
	w.said.decide(w.decision)
}

// inLine asks at once if nobody waits, and then in turn.
func (w *wait) inLine(ctx context.Context) error {
	rl, m, c := w.limiter, w.model, &w.call
	limits, r := c.projectLimits(), m.rules.Load()
	ask := r.amounts(c.request)
	ticket := limits.ticket(c, r.share(&ask))
	if ahead, waiting := rl.ahead(m, c); !waiting {
		a, err := w.ask(ctx)
		if a.Done || err != nil {
			return err
		}
		ticket.Denied, ticket.Aside, ticket.Again, ticket.By = !a.Aside, a.Aside, a.Again, a.By
	} else if ever := r.ever(&ask, limits); ever.denied {
		w.said = ever
		return w.never()
	} else if w.ahead = ahead; !guessed(ahead.By) && w.tooLong(max(ahead.Again, rl.Paused(c.model))) {
		return w.late(max(ahead.Again, rl.Paused(c.model)))
	}
	if so := w.sofar(); c.maxWait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.maxWait-so)
		defer cancel()
	}
	defer func() { w.waited = w.sofar() }()
	inTurn := func() (line.Answer, error) { return w.ask(ctx) }
	if m == rl.open {
		return rl.hall.Wait(ctx, ticket, inTurn)
	}
	err := m.line.Wait(ctx, ticket, inTurn)
	if w.res != nil {
		w.res.inTurn = true
	}
	return err
}

// ask asks once, in turn.
func (w *wait) ask(ctx context.Context) (line.Answer, error) {
	rl := w.limiter
	var said outcome
	var err error
	if w.looks {
		err = rl.look(ctx, w.model, &w.call, &said)
	} else {
		w.res, err = rl.take(ctx, w.model, &w.call, &said)
	}
	if err != nil {
		return line.Answer{}, err
	}
	if w.said = said; !said.denied {
		return line.Answer{Done: true}, nil
	}
	if w.model == rl.open && said.retry[paused] > 0 {
		return line.Answer{}, errPaused
	}
	least := said.wait(0)
	if least == Never {
		return line.Answer{}, w.never()
	}
	if w.tooLong(least) {
		return line.Answer{}, w.late(least)
	}
	said.retry[paused] = said.probe
	again := said.wait(rl.slotWait())
	again += rl.spread(again, w.lost)
	w.lost++
	if guess := rl.slotWait(); said.ownWait(guess) > said.modelWait(guess) {
		return line.Answer{Again: again, Aside: true, By: said.project.exceeded()}, nil
	}
	return line.Answer{Again: again, By: facts[said.by()].name}, nil
}

// tooLong reports whether the call may not wait for so long any more.
func (w *wait) tooLong(again time.Duration) bool {
	most := w.call.maxWait
	return most > 0 && again >= most-w.sofar()
}

// sofar returns how long it has waited. The clock starts when it is first asked for.
func (w *wait) sofar() time.Duration {
	now := w.limiter.clock()
	if w.start == 0 {
		w.start = now
	}
	return time.Duration(now - w.start)
}

func (w *wait) late(again time.Duration) error {
	return fmt.Errorf("ratelimit: it would pass in %v, and may wait for %v in all: %w", again, w.call.maxWait, context.DeadlineExceeded)
}

func (w *wait) never() error {
	if w.said.byProject() {
		return fmt.Errorf("%w: %s", ErrNever, w.said.project.reason())
	}
	return fmt.Errorf("%w: %s: %s", ErrNever, w.call.model, w.said.excess())
}

// ahead reports whether anybody waits who comes before a call that comes now. Those
// who wait for a limit of the project that has no part in the call do not.
func (rl *RateLimiter) ahead(m *model, c *call) (a line.Ahead, waiting bool) {
	if a, waiting = rl.aheadOf(c.project, c.limitedBy); waiting {
		return a, true
	}
	if m.line.Waiting() == 0 {
		return a, false
	}
	return m.line.Held(c.projectLimits().priority())
}

// aheadOf reports whether anybody of a project waits for one of those of its limits
// that are asked about.
func (rl *RateLimiter) aheadOf(project string, limited func(by string) bool) (a line.Ahead, waiting bool) {
	if project == "" || rl.hall.Idle() {
		return a, false
	}
	for _, flow := range [...]string{project + plain, project} {
		if a, waiting = rl.hall.Ahead(flow); waiting && limited(a.By) {
			return a, true
		}
	}
	return line.Ahead{}, false
}

// limitedBy reports whether a limit of its project has a part in a call, as far as
// its limits have names.
func (c *call) limitedBy(name string) bool {
	limits := c.projectLimits()
	if name == ConcurrentProject {
		return limits != nil && limits.MaxConcurrent > 0
	}
	return limits != nil && (len(limits.Names) < len(limits.Requests)+len(limits.Tokens) || slices.Contains(limits.Names, name))
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
