package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/internal/message"
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

	observer Observer  // may be nil
	hall     line.Hall // of the lines of all models
	open     *model    // stands for one where nothing but a project's limits counts
	projects *shared   // counts what projects use: shared, or else one in memory

	pauses   pauses // of models whose providers take no calls
	maxPause time.Duration
	keeper   keeper // of quotas, if the store has one
	unfollow func() // stops following the keeper's quotas; nil: it does not

	// Models with a quota. The map is replaced, never changed.
	quotas atomic.Pointer[map[string]*model]

	setting    sync.Mutex // held while quotas are set, here and where they are kept
	persisting sync.Mutex // held from looking at usage to having written it

	mu      sync.Mutex        // guards others, and changes of quotas
	others  map[string]*model // that were used and have no quota
	unknown names             // of those that are counted
	crowd   int               // of others, at which those that are idle are forgotten
}

// TryAcquire reserves a call's estimated tokens, prompt and output together, or
// says why not. It takes all of the model's quotas in one step, or nothing. While
// others wait for the model, it denies.
func (rl *RateLimiter) TryAcquire(model string, estimatedTokens int) (res *Reservation, d Decision) {
	c := call{model: model}
	c.request, c.invalid = newRequest(estimatedTokens)
	res, _ = rl.tryAcquire(context.Background(), &c, &d)
	return res, d
}

// TryAcquireTokens is TryAcquire for an estimate of the prompt and the output
// apart, which a model with a quota for each should be given: where only their
// sum is known, each may be all of it, and is reserved as such.
func (rl *RateLimiter) TryAcquireTokens(model string, estimated Tokens) (res *Reservation, d Decision) {
	c := call{model: model}
	c.request, c.invalid = newSplitRequest(estimated)
	res, _ = rl.tryAcquire(context.Background(), &c, &d)
	return res, d
}

func (rl *RateLimiter) tryAcquire(ctx context.Context, c *call, d *Decision) (*Reservation, error) {
	res, err := rl.try(ctx, c, d)
	if rl.observer != nil {
		rl.observer.Observe(ctx, rl.event(c, d, err))
	}
	return res, err
}

func (rl *RateLimiter) try(ctx context.Context, c *call, d *Decision) (*Reservation, error) {
	m := rl.limited(c, d)
	if m == nil {
		d.Stats = rl.Stats(c.model)
		if !d.Allowed {
			return nil, nil
		}
		return rl.unlimited(c), nil
	}
	if _, waiting := rl.ahead(m, c); waiting {
		if err := rl.decide(ctx, m, c, d); err != nil || !d.Allowed {
			return nil, err
		}
		*d = Decision{} // those who waited have just left
	}
	var o outcome
	res, err := rl.take(ctx, m, c, &o)
	if err != nil {
		*d = lost(err)
		return nil, err
	}
	if rl.shared != nil {
		rl.shared.describe(m, &o)
	}
	o.decide(d)
	return res, nil
}

// limited returns the model if its quota has to be asked, or else what stands for
// one if a project's limits have to be. Otherwise it returns the decision.
func (rl *RateLimiter) limited(c *call, d *Decision) *model {
	if c.invalid != nil {
		d.Code, d.Reason, d.RetryAfter = DecisionInvalidTokens, message.Plain(c.invalid), Never
		return nil
	}
	m := (*rl.quotas.Load())[c.model]
	switch {
	case m != nil && !m.rules.Load().free():
		return m
	case rl.isPaused(c.model):
		return rl.made(c.model)
	case c.limits != nil:
		return rl.open
	case m != nil:
		d.Allowed, d.Code, d.Reason = true, DecisionUnlimited, "the model's quota limits nothing"
	default:
		d.Allowed, d.Code, d.Reason = true, DecisionUnknownModel, "the model has no quota"
	}
	return nil
}

// unlimited returns the reservation of a call that nothing limits.
func (rl *RateLimiter) unlimited(c *call) *Reservation {
	return &Reservation{model: rl.find(c.model), open: true, project: c.project}
}

// take takes what a call asks of its model and its project, if it may pass. Of a model
// that is paused only a probe may.
func (rl *RateLimiter) take(ctx context.Context, m *model, c *call, o *outcome) (*Reservation, error) {
	_, now, isPaused := rl.pauseOf(c.model)
	if !isPaused {
		return rl.takeAny(ctx, m, c, o)
	}
	probe, denying := rl.pauses.admit(c.model, now)
	if denying != (span{}) {
		err := rl.look(ctx, m, c, o)
		o.denyPaused(&denying, now)
		return nil, err
	}
	res, err := rl.takeAny(ctx, m, c, o)
	if res == nil && probe != 0 {
		rl.pauses.giveBack(c.model, now, probe, 0)
	} else if res != nil {
		res.probe = probe
	}
	return res, err
}

// takeAny takes what a call asks of its model and its project, whether or not the model
// is paused.
func (rl *RateLimiter) takeAny(ctx context.Context, m *model, c *call, o *outcome) (res *Reservation, err error) {
	switch {
	case rl.shared != nil || m == rl.open:
		res, err = rl.projects.take(ctx, m, c, o)
	case c.limits != nil:
		res, err = rl.takeBoth(ctx, m, c, o)
	default:
		m.take(rl.clock(), c.request, o, nil)
		if !o.denied {
			res = newReservation(m, c, o)
		}
	}
	if res == nil {
		return nil, err
	}
	res.project = c.project
	if m == rl.open {
		res.open = true
		if c.model != "" {
			res.model = rl.find(c.model)
		}
	}
	return res, err
}

// takeBoth takes what a call asks of a model that is counted in memory, and of its
// project.
func (rl *RateLimiter) takeBoth(ctx context.Context, m *model, c *call, o *outcome) (*Reservation, error) {
	var note *noted
	var err error
	m.take(rl.clock(), c.request, o, func(ask amounts) {
		note, err = rl.projects.takeProject(ctx, c, &ask, o)
		o.denied = o.denied || err != nil
	})
	if err != nil || o.denied {
		return nil, err
	}
	res := newReservation(m, c, o)
	res.noted = note
	return res, nil
}

func newReservation(m *model, c *call, o *outcome) *Reservation {
	return &Reservation{model: m, taken: o.taken, at: o.at, epoch: o.epoch, split: c.request.split}
}

// look says what take would, and takes nothing.
func (rl *RateLimiter) look(ctx context.Context, m *model, c *call, o *outcome) (err error) {
	if rl.shared != nil {
		err = rl.shared.look(ctx, m, c, o)
	} else {
		m.look(rl.clock(), c.request, o)
		ask := o.rules.amounts(c.request)
		err = rl.projects.lookProject(ctx, c, &ask, o)
	}
	if s, now, ok := rl.pauseOf(c.model); ok && now < s.probe {
		o.denyPaused(&s, now)
	}
	return err
}

// settle corrects a reservation, and lets go on who waits for what it gives back.
func (rl *RateLimiter) settle(r *Reservation, used *amounts) {
	if r.keeping != nil {
		r.keeping.end(r)
	}
	if rl.shared == nil && !r.open {
		r.model.settle(r, used)
	}
	if r.inTurn {
		r.model.line.Charge(r.flow(), r.costMore(used))
	}
	if r.noted != nil {
		rl.projects.settle(r, used)
	}
	r.model.line.Wake()
	rl.wakeProject(r.project)
}

// wakeProject lets calls that wait for what a project may use ask again.
func (rl *RateLimiter) wakeProject(project string) {
	if !rl.hall.Idle() {
		rl.hall.Wake(project)
		rl.hall.Wake(project + plain)
	}
}

// flow returns the flow of the call that has reserved it.
func (r *Reservation) flow() string {
	if r.noted == nil {
		return r.project
	}
	return flowOf(r.project, r.noted.limits)
}

// costMore returns how much more of its model's quota a reservation has used than
// its turn has cost. A slot that it gives back it has had.
func (r *Reservation) costMore(used *amounts) int64 {
	had := *used
	had[ofSlots] = r.taken[ofSlots]
	rules := r.model.rules.Load()
	return rules.share(&had) - rules.share(&r.taken)
}

// lost is the answer where the store could not be asked.
func lost(err error) Decision {
	return Decision{Code: DecisionStoreLost, Reason: err.Error(), RetryAfter: slotGuess}
}

// Decide says what TryAcquire would, and takes nothing. What it says may not be
// true any more when you act on it: see TryAcquire.
func (rl *RateLimiter) Decide(model string, estimatedTokens int) Decision {
	var d Decision
	c := call{model: model}
	c.request, c.invalid = newRequest(estimatedTokens)
	if m := rl.limited(&c, &d); m != nil {
		rl.decide(context.Background(), m, &c, &d)
	} else {
		d.Stats = rl.Stats(model)
	}
	return d
}

// decide says what the limits say, and those who wait.
func (rl *RateLimiter) decide(ctx context.Context, m *model, c *call, d *Decision) error {
	var o outcome
	if err := rl.look(ctx, m, c, &o); err != nil {
		*d = lost(err)
		return err
	}
	if rl.shared != nil {
		rl.shared.describe(m, &o)
	}
	o.decide(d)
	ahead, waiting := rl.ahead(m, c)
	if !waiting {
		return nil
	}
	switch again := againOf(ahead); {
	case !o.denied:
		d.behind(ahead)
	case again > d.RetryAfter:
		d.RetryAfter, d.Reason = again, "others wait; "+o.reason(again)
	}
	return nil
}

// behind makes d a denial by those who wait.
func (d *Decision) behind(ahead line.Ahead) {
	d.Allowed, d.Limit, d.Code, d.RetryAfter = false, ahead.By, codeOf(ahead.By), againOf(ahead)
	d.Reason = fmt.Sprintf("others wait for %s: try again in %v", whatIs(ahead.By), told(d.RetryAfter))
}

// againOf returns when those who wait ask again. For a slot it is a guess.
func againOf(ahead line.Ahead) time.Duration {
	if guessed(ahead.By) {
		return min(max(ahead.Again, 1), slotGuess)
	}
	return max(ahead.Again, 1)
}

// guessed reports whether it is a guess when the limit of a name lets a call pass.
func guessed(name string) bool { return name == facts[concurrent].name || name == ConcurrentProject }

// CanSend reports whether a call of so many tokens may be made. It takes nothing:
// calls that are made in parallel can all be told yes. See TryAcquire.
func (rl *RateLimiter) CanSend(model string, estimatedTokens int) bool {
	return rl.Decide(model, estimatedTokens).Allowed
}

// RecordUsage charges a call that was made without a reservation, whatever the
// quota says. Negative numbers count as zero. A name that no file could hold is not
// counted, and neither are models without a quota beyond the first thousand of a day.
func (rl *RateLimiter) RecordUsage(name string, promptTokens, outputTokens int) {
	q := request{requests: 1, input: bounded(promptTokens), output: bounded(outputTokens), split: true}
	switch {
	case !rl.counts(name):
	case rl.shared != nil:
		rl.shared.record(rl.find(name), q)
	default:
		rl.with(name, func(m *model) { m.record(rl.clock(), q) })
	}
}
