package engine

import (
	"context"
	"time"
)

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
				r.engine.teller.addRaise(r.engine, raise{r.project, p.rules})
			}
		}
	}
}

// addRaise has the budgets of a scope looked at soon.
func (t *teller) addRaise(e *Engine, r raise) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.raised) >= mostRaised {
		r.rules.budgets.raised.Store(false)
		return
	}
	if t.raised = append(t.raised, r); t.timer == nil {
		t.timer = time.AfterFunc(raiseDelay, e.lookAtRaised)
	}
}

// lookAtRaised looks at the budgets of which settlements have used more than was taken.
func (e *Engine) lookAtRaised() {
	e.teller.mu.Lock()
	list := e.teller.raised
	e.teller.raised = nil
	if e.teller.timer != nil {
		e.teller.timer.Stop()
		e.teller.timer = nil
	}
	e.teller.mu.Unlock()
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
