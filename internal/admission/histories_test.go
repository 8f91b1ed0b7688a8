package admission_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/admission"
	"dappco.re/go/core/go-ratelimit/internal/line"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// The scopes of a history: the first are shared, the next are the innermost of a call's own,
// and the others are around each of these.
const (
	sharedScopes = 2
	innerScopes  = 2
	none         = -1
)

// plot is a history: what scopes there are, and what happens.
type plot struct {
	Rules []ruleSet
	Steps []step
}

// ruleSet is the rules of a scope.
type ruleSet struct {
	Limits  []admission.Limit
	InOrder bool
	Least   int64
	Rank    int
	Weight  int
	Most    int
}

// GoString returns a history with a line for each scope and each step.
func (p plot) GoString() string {
	var text strings.Builder
	for i, r := range p.Rules {
		fmt.Fprintf(&text, "\nscope %d: in order %t, at least %d, rank %d, weight %d, at most %d wait", i, r.InOrder, r.Least, r.Rank, r.Weight, r.Most)
		for _, l := range r.Limits {
			fmt.Fprintf(&text, "; %d of %s", l.Limit.Count(), l.Name)
		}
	}
	for i, s := range p.Steps {
		fmt.Fprintf(&text, "\nstep %d: %s", i, s)
	}
	return text.String()
}

// String returns what has a part in the step.
func (s step) String() string {
	switch s.Do {
	case "try", "look", "acquire":
		return fmt.Sprintf("%s %+v", s.Do, s.Call)
	case "record":
		return fmt.Sprintf("record %+v of scope %d", s.Call, s.Scope)
	case "commit":
		return fmt.Sprintf("commit %d with %+v", s.Nth, s.Used)
	case "cancel", "leave":
		return fmt.Sprintf("%s %d", s.Do, s.Nth)
	case "set":
		return fmt.Sprintf("set %d to %d", s.Scope, s.Counts)
	case "reset":
		return fmt.Sprintf("reset %d", s.Scope)
	}
	return fmt.Sprintf("%s %v", s.Do, s.Pass)
}

func (r *ruleSet) rules() *admission.Rules {
	return &admission.Rules{
		Limits: slices.Clone(r.Limits), InOrder: r.InOrder, LeastTokens: r.Least, Rank: r.Rank, Weight: r.Weight, MaxWaiting: r.Most,
	}
}

// step is something that happens in a history.
type step struct {
	Do     string
	Call   script
	Nth    int        // of the reservations, or of the calls that wait
	Used   llm.Tokens // by a reservation
	Scope  int
	Counts []int64 // new counts of limits
	Pass   time.Duration
}

// script is a call of a history.
type script struct {
	Shared, Inner       int // or none
	Part                admission.Part
	Requests, Estimated int
	Tokens              llm.Tokens
	Priority            int
	MaxWait             time.Duration
}

func drawLimits(t *rapid.T, scope int, redis bool) (list []admission.Limit) {
	tokens := rapid.SampledFrom([]admission.Unit{admission.Tokens, admission.AllTokens}).Draw(t, "tokens")
	type kind struct {
		period time.Duration
		fixed  bool
	}
	known := map[admission.Unit][]kind{}
	for range rapid.IntRange(0, 4).Draw(t, "limits") {
		u := rapid.SampledFrom([]admission.Unit{admission.Requests, tokens, tokens, admission.Input, admission.Output, admission.Slots}).Draw(t, "unit")
		k := rapid.SampledFrom([]kind{{10 * time.Second, false}, {time.Minute, false}, {time.Hour, false}, {time.Minute, true}, {time.Hour, true}}).Draw(t, "kind")
		if redis {
			k = kind{max(k.period, time.Minute) * 60, false}
		}
		if u == admission.Slots {
			k = kind{admission.Lease, false}
		}
		if slices.Contains(known[u], k) {
			continue
		}
		known[u] = append(known[u], k)
		l := limit.New(drawCount(t, u), k.period).Using(limit.SlidingLog)
		if k.fixed {
			l = l.Using(limit.FixedWindow)
		}
		free := (u == admission.Requests || u == tokens) && rapid.IntRange(0, 9).Draw(t, "free") == 0
		if free {
			l = l.WithCount(admission.Boundless)
		}
		list = append(list, admission.Limit{Name: fmt.Sprintf("%d %v %v %t", scope, u, k.period, k.fixed), Unit: u, Limit: l, Free: free})
	}
	return list
}

func drawCount(t *rapid.T, u admission.Unit) int64 {
	most := int64(30)
	if u == admission.Requests || u == admission.Slots {
		most = 4
	}
	return rapid.Int64Range(1, most).Draw(t, "count")
}

func plots(doing []string, redis bool) *rapid.Generator[plot] {
	return rapid.Custom(func(t *rapid.T) (p plot) {
		outer := rapid.IntRange(0, 4).Draw(t, "outer")
		for i := range sharedScopes + innerScopes + outer {
			r := ruleSet{Limits: drawLimits(t, i, redis), InOrder: rapid.Bool().Draw(t, "in order"), Least: rapid.Int64Range(0, 1).Draw(t, "least")}
			if i >= sharedScopes && i < sharedScopes+innerScopes {
				r.Rank, r.Weight = rapid.IntRange(0, 1).Draw(t, "rank"), rapid.IntRange(0, 3).Draw(t, "weight")
				r.Most = rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "most")
			}
			p.Rules = append(p.Rules, r)
		}
		calls := rapid.SliceOfN(rapid.Custom(drawScript), 1, 4).Draw(t, "calls") // few, so that they meet
		p.Steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step { return drawStep(t, doing, p.Rules, calls) }), 1, 40).Draw(t, "steps")
		return p
	})
}

func drawStep(t *rapid.T, doing []string, rules []ruleSet, calls []script) step {
	s := step{Do: rapid.SampledFrom(doing).Draw(t, "do"), Nth: rapid.IntRange(0, 9).Draw(t, "nth")}
	switch s.Do {
	case "try", "look", "acquire":
		s.Call = rapid.SampledFrom(calls).Draw(t, "call")
		s.Call.Priority = rapid.IntRange(0, 1).Draw(t, "priority")
	case "record":
		s.Call = rapid.SampledFrom(calls).Draw(t, "call")
		s.Scope = rapid.IntRange(0, len(rules)-1).Draw(t, "scope")
	case "commit":
		s.Used = llm.Tokens{Input: rapid.IntRange(-1, 30).Draw(t, "input"), Output: rapid.IntRange(-1, 30).Draw(t, "output")}
		s.Used.FreeInput = rapid.IntRange(0, max(s.Used.Input, 0)).Draw(t, "free input")
	case "set":
		s.Scope = rapid.IntRange(0, len(rules)-1).Draw(t, "scope")
		for _, l := range rules[s.Scope].Limits {
			s.Counts = append(s.Counts, drawCount(t, l.Unit))
		}
	case "reset":
		s.Scope = rapid.IntRange(0, len(rules)-1).Draw(t, "scope")
	case "pass":
		s.Pass = rapid.OneOf(
			rapid.SampledFrom([]time.Duration{1, time.Second, 10*time.Second - 1, 10 * time.Second, time.Minute - 1, time.Minute, 10 * time.Minute, time.Hour}),
			rapid.Map(rapid.Int64Range(1, int64(time.Minute)), func(n int64) time.Duration { return time.Duration(n) }),
		).Draw(t, "pass")
	}
	return s
}

func drawScript(t *rapid.T) script {
	c := script{
		Shared: rapid.IntRange(none, sharedScopes-1).Draw(t, "shared"), Inner: rapid.IntRange(none, innerScopes-1).Draw(t, "inner"),
		Part:     rapid.SampledFrom([]admission.Part{admission.Whole, admission.Whole, admission.WithoutSlots, admission.RequestsOnly}).Draw(t, "part"),
		Requests: rapid.IntRange(1, 2).Draw(t, "requests"),
		MaxWait:  rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, 30 * time.Second, time.Minute}).Draw(t, "max wait"),
	}
	if c.Shared == none && c.Inner == none {
		c.Inner = 0
	}
	if rapid.Bool().Draw(t, "split") {
		c.Tokens = llm.Tokens{Input: rapid.IntRange(1, 6).Draw(t, "input"), Output: rapid.IntRange(1, 6).Draw(t, "output")}
		c.Tokens.FreeInput = rapid.IntRange(0, c.Tokens.Input-1).Draw(t, "free")
	} else {
		c.Estimated = rapid.IntRange(1, 12).Draw(t, "estimated")
	}
	return c
}

// world is an engine and what is known of it on paper.
type world struct {
	*bench
	now    func() int64
	real   bool // time passes by itself
	rules  []ruleSet
	scopes []*admission.Scope
	paper  []*paperScope
	calls  []*asked
	retry  time.Duration // that was said last
}

// asked is a call, and what is known of it.
type asked struct {
	script
	id      string
	ask     admission.Ask
	named   []int // its scopes, by their numbers
	start   int64
	wants   []event.Kind // that the observer was to be told
	charges []*paperCharge
	res     *admission.Reservation // once it was admitted
	over    bool                   // the reservation was committed or cancelled

	// Of a call that waits:
	waits    bool
	waited   bool // since before this step
	left     bool // its caller has left
	leave    context.CancelFunc
	finished atomic.Bool // result and err are there
	result   admission.Result
	err      error
}

func (a *asked) String() string {
	if a == nil {
		return "none"
	}
	return a.id
}

func newWorld(b *bench, p plot, now func() int64) *world {
	w := &world{bench: b, rules: p.Rules, now: now}
	for i := range p.Rules {
		s := b.NewOwn(fmt.Sprintf("own/%d/", i))
		if i < sharedScopes {
			s = b.NewShared(fmt.Sprintf("shared/%d/", i), nil)
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
	a.ask, _ = admission.NewAsk(c.Requests, c.Estimated, c.Tokens)
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

func (w *world) call(a *asked) (*admission.Call, admission.Scopes) {
	var scopes admission.Scopes
	for _, i := range a.named {
		scopes = append(scopes, w.scopes[i])
	}
	return &admission.Call{Part: a.Part, Ask: a.ask, MaxWait: a.MaxWait, Priority: a.Priority, Project: a.id}, scopes
}

// charges reports whether calls are charged to a scope: a shared one that limits nothing is
// not asked.
func (w *world) charges(i int) bool {
	return i >= sharedScopes || slices.ContainsFunc(w.paper[i].rules.Limits, func(l admission.Limit) bool { return !l.Free })
}

// limits yields the limits that a call is charged to, the scopes that have them, and what
// they say to the call.
func (w *world) limits(a *asked, yield func(scope, at int, l *admission.Limit, n int64, says paperAnswer)) {
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
	w.limits(a, func(scope, at int, l *admission.Limit, _ int64, says paperAnswer) {
		if says.allowed {
			return
		}
		told := says.retry
		if l.Unit == admission.Slots && told != limit.Never {
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
		if w.rules[n.scope].InOrder && told != limit.Never {
			told = 1
		}
		if told > longest {
			longest, d.by = told, n.name
		}
	}
	return d
}

// wantSaid wants each limit to have said what it says on paper. taken says whether what the
// call asks for is used already.
func (w *world) wantSaid(a *asked, o *admission.Outcome, taken bool) {
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
	w.limits(a, func(scope, _ int, l *admission.Limit, n int64, says paperAnswer) {
		asked--
		standing := o.Of(w.scopes[scope])
		for k := range standing.Len() {
			said, d := o.At(standing, k)
			if said.Name != l.Name {
				continue
			}
			if taken {
				says = paperAnswer{allowed: true, used: w.paper[scope].used(l, w.now())}
			}
			if w.real && d.RetryAfter != limit.Never && (d.RetryAfter > 0) == (says.retry > 0) {
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

// wantUsed wants so much to be used of a scope as is on paper.
func (w *world) wantScope(i int) {
	w.t.Helper()
	var want []int64
	for u := range admission.AllTokens + 1 {
		for k := range w.paper[i].rules.Limits {
			if l := &w.paper[i].rules.Limits[k]; l.Unit == u {
				want = append(want, w.paper[i].used(l, w.now()))
			}
		}
	}
	w.bench.wantUsed(w.scopes[i], want...)
}

// admitted charges a call on paper that was admitted.
func (w *world) admitted(a *asked, res *admission.Reservation) {
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
		if inPart(a.Part, l.Unit) && l.Unit != admission.Requests {
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
		w.Wake(w.scopes[s.Scope])
	case "record":
		ask, _ := admission.NewAsk(s.Call.Requests, s.Call.Estimated, s.Call.Tokens)
		w.must(w.Record(context.Background(), w.scopes[s.Scope], ask))
		p := w.paper[s.Scope]
		p.charges = append(p.charges, &paperCharge{at: w.now(), used: p.charged(admission.WithoutSlots, &ask)})
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
	c, scopes := w.call(a)
	var r admission.Result
	if s.Do == "look" {
		w.must(w.Look(context.Background(), c, scopes, &r))
	} else {
		w.must(w.Try(context.Background(), c, scopes, &r))
	}
	switch {
	case r.Allowed() && (want.denies() || must != nil):
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
		c.used = admission.Amounts{}
		if cancel {
			continue
		}
		for u, n := range settled(charged, &a.ask, s.Used) {
			if inPart(a.Part, admission.Unit(u)) {
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
		w.limits(a, func(scope, _ int, l *admission.Limit, _ int64, _ paperAnswer) {
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
	case errors.Is(err, line.ErrCrowded) && a.Inner != none:
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

// wantInTurn wants no call to be overtaken by one that has passed.
func (w *world) wantInTurn(a, first *asked) {
	if first != nil && first.waits && first.waited && (w.flow(first) != w.flow(a) || first.before(a, w)) && (!a.waited || w.rank(first) > w.rank(a)) {
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

// Whatever happens in whatever order to calls of one to six scopes: every decision is what
// counting on paper says, to the nanosecond; what is denied or leaves takes nothing; calls
// that wait pass in their turn, at the instant at which they may; and the observer is told
// once of each decision and of each end.
func TestHistories(t *testing.T) {
	doing := []string{"try", "try", "try", "look", "acquire", "acquire", "acquire", "commit", "commit", "cancel", "leave", "set", "record", "reset",
		"pass", "pass", "retry", "retry"}
	for name, open := range stores {
		times := 1
		if name == "memory" {
			times = 5 // it is fast
		}
		t.Run(name, func(t *testing.T) { histories(t, doing, open, times) })
	}
}

func histories(t *testing.T, doing []string, open func(t testing.TB) store.Store, times int) {
	for range times {
		rapid.Check(t, func(rt *rapid.T) {
			p := plots(doing, false).Draw(rt, "history")
			failed := &failures{}
			synctest.Test(t, func(t *testing.T) {
				failed.TB = t
				w := newWorld(newBench(failed, open(t)), p, func() int64 { return time.Now().UnixNano() })
				w.playAll(p)
				w.leaveAll()
			})
			failed.report(rt)
		})
	}
}

// failures is a test whose errors are reported to another, which makes the history smaller.
type failures struct {
	testing.TB
	list []string
}

func (f *failures) Helper()           {}
func (f *failures) Failed() bool      { return len(f.list) > 0 }
func (f *failures) Error(args ...any) { f.list = append(f.list, fmt.Sprint(args...)) }
func (f *failures) Fatal(args ...any) { f.Error(args...) }
func (f *failures) Errorf(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}
func (f *failures) Logf(format string, args ...any) { f.Errorf(format, args...) }

func (f *failures) report(t *rapid.T) {
	for _, s := range f.list {
		t.Log(s)
	}
	if f.Failed() {
		t.FailNow()
	}
}

// Redis decides as paper does. Its time is the server's, so histories are over long before
// anything leaves its window, and nothing waits.
func TestRedisHistories(t *testing.T) {
	server := redistest.New(t)
	doing := []string{"try", "try", "try", "look", "commit", "commit", "cancel", "set", "record", "reset"}
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := plots(doing, true).Draw(rt, "history")
		n++
		s, err := redisstore.New(redisstore.Config{URL: server.URL(), Namespace: fmt.Sprint("history", n), Timeout: time.Minute})
		if err != nil {
			rt.Fatal(err)
		}
		failed := &failures{TB: t}
		b := newBench(failed, s)
		defer b.Close()
		start := time.Now().UnixNano()
		w := newWorld(b, p, func() int64 { return start })
		w.real = true
		w.playAll(p)
		failed.report(rt)
	})
}
