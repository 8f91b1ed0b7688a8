package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/fairqueue"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// crossing is a budget that has reached a threshold, for the notifier.
type crossing struct {
	project  string // whose call has reached it
	rules    *Rules
	at       int   // the place of the budget in the rules
	now      int64 // when it was reached, in Unix nanoseconds
	verdict  limit.Verdict
	notified *notified
}

// notifier sends the events of crossings to observers, on a goroutine of its own that runs while there are any. No call
// waits for it.
type notifier struct {
	mu      sync.Mutex
	queue   fairqueue.Queue[crossing]
	running chan struct{} // is closed when the goroutine ends; nil: none runs

	raised []raise     // scopes of which settlements have used more than was taken
	timer  *time.Timer // for these; nil: there are none
}

const (
	mostCrossings = 1024 // that wait for the notifier; those beyond are missed
	mostOfGroup   = 128  // of these, that are about budgets of one group: see [fairqueue.GroupOf]
	mostRaised    = 1024 // scopes; those beyond are looked at when a call next takes of them

	claimTimeout = 5 * time.Second // for one question to the store
	restTimeout  = 2 * time.Second // for the rest when the engine is closed
)

var (
	errTooMany = errors.New("ratelimit: too many thresholds were reached at a time")
	errUnknown = errors.New("ratelimit: the store does not know whether the threshold was reported")
)

// add adds a crossing to the queue, unless that is full.
func (t *notifier) add(e *Engine, c crossing) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue.Most, t.queue.Each = mostCrossings, mostOfGroup
	if !t.queue.Add(fairqueue.GroupOf(c.rules.scope.Name, c.project), c) {
		return false
	}
	if t.running == nil {
		t.running = make(chan struct{})
		go e.notifyAll(t.running)
	}
	return true
}

// notifyAll sends the events of all crossings of the queue.
func (e *Engine) notifyAll(done chan struct{}) {
	defer close(done)
	for {
		e.notifier.mu.Lock()
		c, ok := e.notifier.queue.Next()
		if !ok {
			e.notifier.running = nil
		}
		e.notifier.mu.Unlock()
		if !ok {
			return
		}
		e.notify(&c)
	}
}

// notify sends an event of every threshold that a crossing has reached and nobody has reported yet. An observer that has
// no room for the event is asked before the threshold is claimed: once claimed, nobody reports it again.
func (e *Engine) notify(c *crossing) {
	final := *c.notified
	bounded, _ := e.observer.(event.Bounded)
	for _, p := range c.notified.of.percents {
		if p > c.notified.percent {
			break
		}
		ev := c.event(p)
		if bounded != nil && !bounded.HasRoom(ev) {
			e.missed(c, errTooMany)
			return
		}
		first, until, err := e.claim(c, p)
		if err != nil {
			e.missed(c, err)
			return
		}
		if first {
			e.observer.Observe(context.Background(), ev)
		}
		final.until = min(final.until, until)
	}
	c.rules.budgets.notified[c.at].CompareAndSwap(c.notified, &final)
}

// claim asks the store whether this process is the first to report a threshold in the budget's window, and
// until when nobody may report it again.
func (e *Engine) claim(c *crossing, percent int64) (first bool, until int64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	now := e.clock()
	_, said, err := e.store.Take(ctx, []store.Charge{c.claim(percent)})
	if err != nil {
		return false, 0, err
	}
	d := said[0]
	if !d.Allowed && d.Since == 0 {
		return false, 0, errUnknown
	}
	return d.Allowed, now + int64(d.ResetAfter), nil
}

// claim returns the charge of which one can be taken in the budget's window. Its key begins with that of
// the scope, so that a reset of the scope forgets what was reported. If the budget changes, its thresholds
// are reported anew.
func (c *crossing) claim(percent int64) store.Charge {
	l := c.limit()
	key := fmt.Sprintf("%sthreshold/%s/%d/%d", c.rules.scope.Key, kind.Key(l.Name), l.Limit.Count(), percent)
	if l.Limit.Algorithm() != limit.FixedWindow {
		return store.Charge{Key: key, N: 1, Limits: []limit.Limit{limit.New(1, l.Limit.Period()).Anchored()}}
	}
	key += "/" + strconv.FormatInt(c.verdict.Since, 10)
	return store.Charge{Key: key, N: 1, Limits: []limit.Limit{l.Limit.WithCount(1)}}
}

func (c *crossing) limit() *Limit { return &c.rules.Limits[c.at] }

// event returns the event of a threshold that was reached.
func (c *crossing) event(percent int64) event.Event {
	return event.Event{
		Kind: event.Threshold, Project: c.project, Limit: c.limit().Name, RemainingMinute: -1, Budget: c.budget(int(percent)),
	}
}

// budget returns what the event of a threshold says of the budget.
func (c *crossing) budget(percent int) *event.Budget {
	l := c.limit()
	b := &event.Budget{
		Owner: c.rules.scope.Name, Limit: l.Name, Unit: l.Unit.String(), Percent: percent,
		Used: c.verdict.Used, Max: l.Limit.Count(), At: time.Unix(0, c.now).UTC(),
	}
	if l.Limit.Period() != limit.Total(1).Period() {
		b.Resets = b.At.Add(c.verdict.ResetAfter)
	}
	return b
}

// missed sends an event with the error because of which a crossing is not reported. A later call that reaches the threshold
// may report it.
func (e *Engine) missed(c *crossing, err error) {
	c.rules.budgets.notified[c.at].CompareAndSwap(c.notified, nil)
	ev := c.event(c.notified.percent)
	ev.Err = err
	e.observer.Observe(context.Background(), ev)
}

// notifyRest waits for the events of what is still queued, for a short time.
func (e *Engine) notifyRest() {
	e.lookAtRaised()
	e.notifier.mu.Lock()
	running := e.notifier.running
	e.notifier.mu.Unlock()
	if running == nil {
		return
	}
	timeout := time.NewTimer(restTimeout)
	defer timeout.Stop()
	select {
	case <-running:
	case <-timeout.C:
	}
}

// raise is a scope of which a call has used more than it had taken.
type raise struct {
	project string // whose call it was
	rules   *Rules
}

// raiseDelay is how long after a settlement has used more than was taken the budgets of its scopes are
// looked at. So a scope is looked at once for many settlements.
const raiseDelay = time.Second

// noticeRaise has the budgets looked at of which the call has used more than it had taken: no verdict
// says so, unless another call takes of them.
func (r *Reservation) noticeRaise(used *spent) {
	for i := range r.charged {
		p := r.charged[i].plan
		if p.rules == nil || p.rules.budgets == nil || p.rules.budgets.raised.Load() {
			continue
		}
		for k := range p.charges {
			u := p.charges[k].unit
			if used.of(p.rules, u) > p.rules.Amount(u, &r.asked) && p.rules.budgets.raised.CompareAndSwap(false, true) {
				r.engine.notifier.addRaise(r.engine, raise{r.project, p.rules})
			}
		}
	}
}

// addRaise has the budgets of a scope looked at soon.
func (t *notifier) addRaise(e *Engine, r raise) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.raised) >= mostRaised {
		r.rules.budgets.raised.Store(false)
		return
	}
	t.raised = append(t.raised, r)
	if t.timer == nil {
		t.timer = time.AfterFunc(raiseDelay, e.lookAtRaised)
	}
}

// lookAtRaised looks at the budgets of which settlements have used more than was taken.
func (e *Engine) lookAtRaised() {
	e.notifier.mu.Lock()
	list := e.notifier.raised
	e.notifier.raised = nil
	if e.notifier.timer != nil {
		e.notifier.timer.Stop()
		e.notifier.timer = nil
	}
	e.notifier.mu.Unlock()
	for _, r := range list {
		r.rules.budgets.raised.Store(false)
		if t := e.thresholds.Load(); t != nil {
			e.lookAt(t, r)
		}
	}
}

// lookAt finds budgets of a scope that have reached a threshold. If the store cannot be asked, the next
// call that takes of the scope finds them.
func (e *Engine) lookAt(t *thresholds, r raise) {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	if s, err := e.LookAt(ctx, r.rules.scope.Real()); err == nil {
		e.notice(t, r.project, []Standing{*s}, true)
	}
}
