package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/limit"
)

// world is an engine and what is known of it on paper.
type world struct {
	*bench
	now    func() int64
	real   bool // time passes by itself
	rules  []ruleSet
	scopes []*engine.Scope
	paper  []*paperScope
	calls  []*asked
	retry  time.Duration // that was said last
}

// asked is a call, and what is known of it.
type asked struct {
	script
	id      string
	ask     engine.Ask
	named   []int // its scopes, by their numbers
	start   int64
	wants   []event.Kind // that the observer was to be told
	charges []*paperCharge
	res     *engine.Reservation // once it was admitted
	over    bool                // the reservation was committed or cancelled

	// Of a call that waits:
	waits    bool
	waited   bool // since before this step
	left     bool // its caller has left
	leave    context.CancelFunc
	finished atomic.Bool // result and err are there
	result   engine.Result
	err      error
}

func (a *asked) String() string {
	if a == nil {
		return "none"
	}
	return a.id
}

func newWorld(b *bench, p plot, now func() int64) *world {
	b.Undivided() // shares have their own model, in package fair
	w := &world{bench: b, rules: p.Rules, now: now}
	for i := range p.Rules {
		s := b.NewOwn(fmt.Sprintf("own/%d/", i), fmt.Sprint("own ", i))
		if i < sharedScopes {
			s = b.NewShared(fmt.Sprintf("shared/%d/", i), fmt.Sprint("shared ", i), nil)
		}
		w.scopes = append(w.scopes, s)
		w.paper = append(w.paper, &paperScope{})
		w.setRules(i)
	}
	return w
}

func (w *world) setRules(i int) error {
	r := w.rules[i].rules()
	w.paper[i].rules = r
	return w.SetRules(w.scopes[i], r)
}

func (w *world) newCall(c script) *asked {
	a := &asked{script: c, id: fmt.Sprint("call ", len(w.calls)), start: w.now()}
	a.ask = *engine.AskOf(&engine.Call{Requests: c.Requests, Estimated: c.Estimated, Tokens: c.Tokens})
	if c.Shared != none {
		a.named = append(a.named, c.Shared)
	}
	if c.Inner != none {
		a.named = append(a.named, sharedScopes+c.Inner)
		for i := sharedScopes + innerScopes; i < len(w.scopes); i++ {
			a.named = append(a.named, i)
		}
	}
	w.calls = append(w.calls, a)
	return a
}

func (w *world) call(a *asked) (*engine.Call, engine.Scopes) {
	var scopes engine.Scopes
	for _, i := range a.named {
		scopes = append(scopes, w.scopes[i])
	}
	c := &engine.Call{Requests: a.Requests, Estimated: a.Estimated, Tokens: a.Tokens, MaxWait: a.MaxWait, Priority: a.Priority, Project: a.id}
	engine.SetPart(c, a.Part)
	return c, scopes
}

// charges reports whether calls are charged to a scope: a shared one that limits nothing is
// not asked.
func (w *world) charges(i int) bool {
	return i >= sharedScopes || slices.ContainsFunc(w.paper[i].rules.Limits, func(l engine.Limit) bool { return !l.Free })
}

// limits yields the limits that a call is charged to, the scopes that have them, and what
// they say to the call.
func (w *world) limits(a *asked, yield func(scope, at int, l *engine.Limit, n int64, says paperAnswer)) {
	for _, i := range a.named {
		s := w.paper[i]
		if !w.charges(i) {
			continue
		}
		charged := s.charged(a.Part, &a.ask)
		for k := range s.rules.Limits {
			if l := &s.rules.Limits[k]; inPart(a.Part, l.Unit) {
				yield(i, k, l, charged[l.Unit], s.ask(l, w.now(), charged[l.Unit]))
			}
		}
	}
}

// denial is what the limits say to a call on paper.
type denial struct {
	shared, own bool          // which scopes deny
	never       bool          // for ever
	retry       time.Duration // as callers are told it
	known       time.Duration // without slots
	by          string
}

func (d *denial) denies() bool { return d.shared || d.own }

func (w *world) denial(a *asked) (d denial) {
	type no struct {
		scope, at int
		told      time.Duration
		name      string
	}
	var all []no
	w.limits(a, func(scope, at int, l *engine.Limit, _ int64, says paperAnswer) {
		if says.allowed {
			return
		}
		told := says.retry
		if l.Unit == engine.Slots && told != limit.Never {
			told = min(told, time.Second)
		} else {
			d.known = max(d.known, told)
		}
		d.shared, d.own = d.shared || scope < sharedScopes, d.own || scope >= sharedScopes
		d.never = d.never || told == limit.Never
		d.retry = max(d.retry, told)
		all = append(all, no{scope, at, told, l.Name})
	})
	slices.SortStableFunc(all, func(x, y no) int { return x.at - y.at })
	deciding := slices.IndexFunc(a.named, func(scope int) bool {
		return slices.ContainsFunc(all, func(n no) bool { return n.scope == scope && n.told == d.retry })
	})
	longest := time.Duration(0)
	for _, n := range all {
		told := n.told
		if n.scope != a.named[deciding] {
			continue
		}
		if told > longest {
			longest, d.by = told, n.name
		}
	}
	return d
}

// wantSaid wants each limit to have said what it says on paper. taken says whether what the
// call asks for is used already.
func (w *world) wantSaid(a *asked, o *engine.Outcome, taken bool) {
	w.t.Helper()
	asked := 0
	for _, i := range a.named {
		standing := o.Of(w.scopes[i])
		if standing == nil {
			w.t.Errorf("%s: scope %d was not asked", a.id, i)
			return
		}
		asked += standing.Len()
	}
	w.limits(a, func(scope, _ int, l *engine.Limit, n int64, says paperAnswer) {
		asked--
		standing := o.Of(w.scopes[scope])
		for k := range standing.Len() {
			said, d := standing.At(k)
			if said.Name != l.Name {
				continue
			}
			if taken {
				says = paperAnswer{allowed: true, used: w.paper[scope].used(l, w.now())}
			}
			if (w.real || l.Unit == engine.Slots) && d.RetryAfter != limit.Never && (d.RetryAfter > 0) == (says.retry > 0) {
				says.retry = d.RetryAfter
			}
			got := paperAnswer{d.Allowed, d.Used, d.RetryAfter}
			if left := max(l.Limit.Count()-says.used, 0); got != says || d.Remaining != left {
				w.t.Errorf("%s asks %q for %d: %+v, %d left; want %+v, %d left", a.id, l.Name, n, got, d.Remaining, says, left)
			}
			return
		}
		w.t.Errorf("%s: %q has said nothing", a.id, l.Name)
	})
	if asked != 0 {
		w.t.Errorf("%s: %d limits were asked in vain", a.id, asked)
	}
}

// wantScope wants as much to be used of a scope as is on paper.
func (w *world) wantScope(i int) {
	w.t.Helper()
	var want []int64
	for u := range engine.AllTokens + 1 {
		for k := range w.paper[i].rules.Limits {
			if l := &w.paper[i].rules.Limits[k]; l.Unit == u {
				want = append(want, w.paper[i].used(l, w.now()))
			}
		}
	}
	w.bench.wantUsed(w.scopes[i], want...)
}

// admitted charges a call on paper that was admitted.
func (w *world) admitted(a *asked, res *engine.Reservation) {
	w.t.Helper()
	a.res = res
	for _, i := range a.named {
		if !w.charges(i) {
			continue
		}
		c := &paperCharge{at: w.now(), used: w.paper[i].charged(a.Part, &a.ask)}
		a.charges = append(a.charges, c)
		w.paper[i].charges = append(w.paper[i].charges, c)
	}
}

// flow returns the calls among which a call waits in turn: empty for those without a scope of
// their own.
func (w *world) flow(a *asked) string {
	if a.Inner == none {
		return ""
	}
	for _, l := range w.paper[sharedScopes+a.Inner].rules.Limits {
		if inPart(a.Part, l.Unit) && l.Unit != engine.Requests {
			return fmt.Sprint(a.Inner)
		}
	}
	return fmt.Sprint(a.Inner, " plain")
}

func (w *world) rank(a *asked) int {
	if a.Inner == none {
		return 0
	}
	return w.rules[sharedScopes+a.Inner].Rank
}

// before reports whether of two calls of a flow the first comes first.
func (a *asked) before(b *asked, w *world) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return slices.Index(w.calls, a) < slices.Index(w.calls, b)
}

// waiting returns the calls that wait.
func (w *world) waiting() (list []*asked) {
	for _, a := range w.calls {
		if a.waits {
			list = append(list, a)
		}
	}
	return list
}

func (a *asked) sameLine(b *asked) bool { return a.Shared == b.Shared && a.Shared != none }

// mayComeAfter reports whether a call that waits may come before this one.
func (w *world) mayComeAfter(a *asked) bool {
	return slices.ContainsFunc(w.waiting(), func(b *asked) bool {
		return b != a && (a.sameLine(b) || a.Inner == b.Inner && a.Inner != none)
	})
}

// comesAfter returns a call that waits, and certainly comes before this one; or nil. It is
// denied in its turn, by what this one is charged to as well.
func (w *world) comesAfter(a *asked) *asked {
	for _, b := range w.waiting() {
		if b == a || slices.ContainsFunc(w.waiting(), func(c *asked) bool { return c != b && w.flow(c) == w.flow(b) }) {
			continue
		}
		d := w.denial(b)
		switch {
		case d.never:
		case a.sameLine(b) && d.shared && !d.own && w.rank(b) >= w.rank(a):
			return b
		case a.Inner == b.Inner && a.Inner != none && a.Part == b.Part && d.own && !d.shared:
			return b
		}
	}
	return nil
}

// keptBack reports whether there is a reason for which a call waits that its limits let pass:
// a call that comes first and is denied.
func (w *world) keptBack(a *asked) bool {
	return slices.ContainsFunc(w.waiting(), func(b *asked) bool {
		d := w.denial(b)
		switch {
		case b == a || !d.denies() || d.never:
			return false
		case w.flow(a) == w.flow(b) && (a.Shared == b.Shared || d.own):
			return b.before(a, w)
		}
		return a.sameLine(b) && d.shared && w.rank(b) >= w.rank(a)
	})
}

// play lets a step happen.
func (w *world) play(s step) {
	for _, a := range w.calls {
		a.waited = a.waits
	}
	switch s.Do {
	case "try", "look":
		w.try(s)
	case "acquire":
		w.acquire(s.Call)
	case "commit", "cancel":
		w.end(s)
	case "leave":
		if list := w.waiting(); len(list) > 0 {
			a := list[s.Nth%len(list)]
			a.left = true
			a.leave()
		}
	case "set":
		r := w.rules[s.Scope]
		r.Limits = slices.Clone(r.Limits)
		for i := range r.Limits {
			if l := &r.Limits[i]; !l.Free {
				l.Limit = l.Limit.WithCount(s.Counts[i])
			}
		}
		w.rules[s.Scope] = r
		w.must(w.setRules(s.Scope))
	case "record":
		c := &engine.Call{Requests: s.Call.Requests, Estimated: s.Call.Estimated, Tokens: s.Call.Tokens}
		w.must(w.Record(context.Background(), w.scopes[s.Scope], c))
		p := w.paper[s.Scope]
		p.charges = append(p.charges, &paperCharge{at: w.now(), used: p.charged(engine.WithoutSlots, engine.AskOf(c))})
	case "reset":
		w.must(w.Reset(context.Background(), w.scopes[s.Scope]))
		for _, c := range w.paper[s.Scope].charges {
			c.forgotten = true
		}
	case "pass":
		w.pass(s.Pass)
	case "retry": // a nanosecond too early, and in time
		if w.retry > 1 && w.retry <= 2*time.Hour {
			w.pass(w.retry - 1)
			w.retry = 1
		} else if w.retry == 1 {
			w.pass(1)
		}
	}
	w.settle()
}

// try asks for a call, which must be decided on as on paper, unless others come first.
func (w *world) try(s step) {
	a := w.newCall(s.Call)
	want, may, must := w.denial(a), w.mayComeAfter(a), w.comesAfter(a)
	var before denial
	if must != nil {
		before = w.denial(must)
	}
	c, scopes := w.call(a)
	var r engine.Result
	if s.Do == "look" {
		w.must(w.Look(context.Background(), c, scopes, &r))
	} else {
		w.must(w.Try(context.Background(), c, scopes, &r))
	}
	switch {
	case r.Allowed() && (want.denies() || must != nil && s.Do == "look"):
		w.t.Errorf("%s passes; on paper %+v, and %v comes first", a.id, want, must)
	case !r.Allowed() && !want.denies() && !may:
		w.t.Errorf("%s is denied by %q for %v; on paper it passes", a.id, r.Limit(), r.RetryAfter())
	case want.denies() && !may && !w.real && (r.Limit() != want.by || r.RetryAfter() != want.retry):
		w.t.Errorf("%s is denied by %q for %v; want %+v", a.id, r.Limit(), r.RetryAfter(), want)
	case want.denies() && !w.real && r.RetryAfter() < want.retry:
		w.t.Errorf("%s is denied for %v; want at least %v", a.id, r.RetryAfter(), want.retry)
	case (r.Reservation != nil) != (r.Allowed() && s.Do == "try"):
		w.t.Errorf("%s has a reservation: %t", a.id, r.Reservation != nil)
	}
	w.retry = want.retry
	if r.Reservation != nil {
		w.admitted(a, r.Reservation)
		if must != nil && w.denial(must).retry > before.retry {
			w.t.Errorf("%s overtakes %v, and delays it: %+v, before %+v", a.id, must, w.denial(must), before)
		}
	}
	w.wantSaid(a, &r.Outcome, r.Reservation != nil)
	switch {
	case s.Do == "look":
	case r.Allowed():
		a.wants = append(a.wants, event.Admitted)
	default:
		a.wants = append(a.wants, event.Denied)
	}
}

// acquire lets a call wait.
func (w *world) acquire(c script) {
	a := w.newCall(c)
	a.waits = true
	call, scopes := w.call(a)
	ctx, leave := context.WithCancel(context.Background())
	a.leave = leave
	go func() {
		a.err = w.Acquire(ctx, call, scopes, &a.result)
		a.finished.Store(true)
	}()
}

// end commits or cancels a reservation. Only the first end counts.
func (w *world) end(s step) {
	var held []*asked
	for _, a := range w.calls {
		if a.res != nil {
			held = append(held, a)
		}
	}
	if len(held) == 0 {
		return
	}
	a := held[s.Nth%len(held)]
	cancel := s.Do == "cancel" ||
		slices.ContainsFunc(a.charges, func(c *paperCharge) bool { return c.forgotten }) // more would be a debt, or not
	kind, counts := event.Settled, false
	if cancel {
		kind, counts = event.Cancelled, a.res.Cancel()
	} else {
		counts = a.res.Commit(s.Used)
	}
	if counts == a.over {
		w.t.Errorf("%s: the end counts: %t, and it was over: %t", a.id, counts, a.over)
	}
	if a.over {
		return
	}
	a.over = true
	a.wants = append(a.wants, kind)
	for _, c := range a.charges {
		charged := c.used
		c.used = engine.Amounts{}
		if cancel {
			continue
		}
		for u, n := range settled(charged, &a.ask, s.Used) {
			if inPart(a.Part, engine.Unit(u)) {
				c.used[u] = n
			}
		}
	}
}

// pass lets time pass, and looks at each instant at which something leaves a window.
func (w *world) pass(d time.Duration) {
	for end := w.now() + int64(d); w.now() < end; {
		next := end
		for _, s := range w.paper {
			for _, c := range s.charges {
				for _, l := range s.rules.Limits {
					if at := c.leaves(l.Limit); at > w.now() {
						next = min(next, at)
					}
				}
			}
		}
		for _, a := range w.waiting() {
			if at := a.start + int64(a.MaxWait); a.MaxWait > 0 && at > w.now() {
				next = min(next, at)
			}
		}
		time.Sleep(time.Duration(next - w.now()))
		w.settle()
	}
}

// settle waits until all calls that have something to do have done it, and compares them with
// what is on paper.
func (w *world) settle() {
	w.t.Helper()
	if !w.real {
		synctest.Wait()
	}
	first := map[*asked]*asked{}
	for _, a := range w.waiting() {
		first[a] = w.comesAfter(a)
	}
	var passed, ended []*asked
	for _, a := range w.waiting() {
		if !a.finished.Load() {
			continue
		}
		ended = append(ended, a)
		if a.err == nil {
			passed = append(passed, a)
			w.admitted(a, a.result.Reservation)
		}
	}
	for _, a := range ended {
		w.ended(a)
	}
	for _, a := range ended {
		a.waits = false
	}
	for _, a := range passed {
		w.wantInTurn(a, first[a])
		if len(passed) == 1 {
			w.wantSaid(a, &a.result.Outcome, true)
		}
		w.limits(a, func(scope, _ int, l *engine.Limit, _ int64, _ paperAnswer) {
			if used := w.paper[scope].used(l, w.now()); used > l.Limit.Count() {
				w.t.Errorf("%s has passed, and of %q %d are used, of %d", a.id, l.Name, used, l.Limit.Count())
			}
		})
	}
	for _, a := range w.waiting() {
		d := w.denial(a)
		if over := !d.denies() || d.never && !d.shared; over && !w.keptBack(a) { // a turn in a line is held until its limits are asked
			w.t.Errorf("%s waits, and would end: %+v, %+v", a.id, d, a.script)
		}
		if a.left || a.MaxWait > 0 && w.now() >= a.start+int64(a.MaxWait) {
			w.t.Errorf("%s waits for longer than it may", a.id)
		}
	}
}

// ended checks the end of a wait.
func (w *world) ended(a *asked) {
	d := w.denial(a)
	so := time.Duration(w.now() - a.start)
	kind := event.Denied
	switch err := a.err; {
	case err == nil && a.result.Reservation != nil && a.result.Allowed():
		kind = event.Admitted
	case err == nil || a.result.Reservation != nil:
		w.t.Errorf("%s ends with %v, and a reservation: %t", a.id, err, a.result.Reservation != nil)
	case errors.Is(err, limit.ErrNever) && d.never:
	case errors.Is(err, fair.ErrCrowded) && a.Inner != none:
		same := 0
		for _, b := range w.waiting() {
			if b.waited && b.Shared == a.Shared && w.flow(a) == w.flow(b) {
				same++
			}
		}
		if most := w.rules[sharedScopes+a.Inner].Most; most == 0 || same < most {
			w.t.Errorf("%s may not wait: %v", a.id, err)
		}
	case errors.Is(err, context.Canceled) && a.left:
		kind = event.Left
	case errors.Is(err, context.DeadlineExceeded) && a.MaxWait > 0:
		if so < a.MaxWait && d.known < a.MaxWait-so && !w.mayComeAfter(a) {
			w.t.Errorf("%s gives up after %v: %v, on paper %+v", a.id, so, err, d)
		}
		if a.result.Limit() == "" {
			kind = event.Left
		}
	default:
		w.t.Errorf("%s ends with %v; on paper %+v", a.id, err, d)
	}
	if a.result.Waited != so {
		w.t.Errorf("%s has waited %v; it says %v", a.id, so, a.result.Waited)
	}
	a.wants = append(a.wants, kind)
}

// wantInTurn wants no call to be overtaken by one that has passed, but for calls of other flows of its
// rank, which TestOvertakingDelaysNoLargeCall holds to delay it not.
func (w *world) wantInTurn(a, first *asked) {
	inFlow := first != nil && w.flow(first) == w.flow(a) && first.before(a, w) && !a.waited
	if first != nil && first.waits && first.waited && (inFlow || w.rank(first) > w.rank(a)) {
		w.t.Errorf("%s has passed before %s, which waits: %+v, %+v", a.id, first.id, a.script, first.script)
	}
	for _, b := range w.waiting() {
		if a.waited && b.waited && w.flow(a) == w.flow(b) && a.Shared == b.Shared && b.before(a, w) {
			w.t.Errorf("%s has passed before %s, which waits in the same flow: %+v, %+v", a.id, b.id, a.script, b.script)
		}
	}
}

// playAll plays a history, and then ends it.
func (w *world) playAll(p plot) {
	for i, s := range p.Steps {
		w.play(s)
		if w.t.Failed() {
			w.t.Logf("after step %d: %s, at %v", i, s, time.Unix(0, w.now()).UTC())
			return
		}
	}
	for i := range w.scopes {
		w.wantScope(i)
	}
	for _, a := range w.calls {
		if a.waits {
			continue
		}
		w.wantEvents(a.id, a.wants...)
	}
}

// leaveAll lets all calls leave that wait.
func (w *world) leaveAll() {
	for _, a := range w.calls {
		if a.leave != nil {
			a.leave()
		}
	}
	if !w.real {
		synctest.Wait()
	}
}
