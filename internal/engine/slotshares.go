package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/fair"
)

// slotShares is who has slots of a shared scope, and who waits for them, in this process and in others of its fleet. What is
// free goes to the one that has least by its weight among those that wait: so slots are divided by weight over the fleet,
// and what one does not want others have. Calls count for the outermost of their scopes, however many are below it.
type slotShares struct {
	contended atomic.Int64 // until when calls are known to wait for slots
	waiting   atomic.Int64 // the calls that wait for one here

	mu    sync.Mutex
	here  map[string]*slotUse
	nodes map[string]heardSlots
}

// slotUse is how many slots a flow has, and how many of its calls wait for some.
type slotUse struct {
	Name   string `json:"n"`
	Weight int64  `json:"w,omitempty"`
	Rank   int    `json:"r,omitempty"`
	Held   int64  `json:"h,omitempty"`
	Waits  int64  `json:"q,omitempty"`
	group  bool   // others are in it
}

// heardSlots is what another process has told.
type heardSlots struct {
	at   int64
	uses []slotUse
}

const (
	slotsHeardFor = int64(3 * fair.ReportEvery) // how long what another process has told counts
	mostSlotUses  = 200                         // how many flows one process tells of
)

// slotSharer is a call among those that share slots.
type slotSharer struct {
	*slotShares
	scope *Scope
	use   slotUse // its name, weight and rank
}

// slotSharer returns the call among those that share the slots of its shared scope: nil if it has no slot of one.
func (o *Outcome) slotSharer() *slotSharer {
	scope := o.slotScope()
	if scope == nil {
		return nil
	}
	sharer := &slotSharer{slotShares: scope.slotShares(), scope: scope, use: slotUse{Weight: 1}}
	if i := slices.IndexFunc(o.all, func(s Standing) bool { return s.Scope.Kind == Own }); i >= 0 {
		own := o.all[i].Scope
		root := own.Root()
		t := root.terms()
		sharer.use = slotUse{Name: root.Name, Weight: int64(max(t.Weight, 1)), Rank: t.Rank, group: root != own || own.HasBelow()}
	}
	return sharer
}

// slotScope returns the shared scope of which the call has a slot, or nil.
func (o *Outcome) slotScope() *Scope {
	for i := range o.all {
		if p := o.all[i].plan; o.all[i].Scope.Kind == Shared && p.hasSlots() && p.rules.smallest[Slots] > 0 {
			return p.scope
		}
	}
	return nil
}

// slotShares returns who has slots of the scope.
func (s *Scope) slotShares() *slotShares {
	if all := s.slots.Load(); all != nil {
		return all
	}
	s.slots.CompareAndSwap(nil, &slotShares{here: map[string]*slotUse{}, nodes: map[string]heardSlots{}})
	return s.slots.Load()
}

// add notes that the call's flow has held more slots than before, and that waits more of its calls wait for one. While
// calls wait for slots, other processes are told of it at once. On a nil sharer, add does nothing.
func (s *slotSharer) add(e *Engine, held, waits int64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	u := s.here[s.use.Name]
	if u == nil {
		u = &slotUse{Name: s.use.Name}
		s.here[u.Name] = u
	}
	u.Weight, u.Rank, u.group = s.use.Weight, s.use.Rank, s.use.group
	u.Held, u.Waits = u.Held+held, u.Waits+waits
	if u.Held == 0 && u.Waits == 0 {
		delete(s.here, u.Name)
	}
	s.waiting.Add(waits)
	s.mu.Unlock()
	f, now := e.fleet.Load(), e.clock()
	if waits != 0 {
		s.contended.Store(now + slotsHeardFor)
	}
	switch {
	case f == nil:
	case s.isContended(now):
		f.changedIn(s.scope, tellAtOnce)
	default:
		f.changedIn(s.scope, tellSoon)
	}
}

// isContended reports whether calls are known to wait for slots, here or elsewhere. On nil, it is false.
func (s *slotShares) isContended(now int64) bool {
	return s != nil && (s.waiting.Load() > 0 || now < s.contended.Load())
}

// denies returns the share that denies the call a slot that is free, because another flow waits that has less by its weight,
// and this one has its share; or nil. A share is a slot at least: where there are fewer slots than flows, turns decide. So
// they do in one process among projects without users, each of which has turns by its weight.
func (s *slotSharer) denies(now int64) *Share {
	if s == nil || !s.isContended(now) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.sum(now)
	mine := all[s.use.Name]
	weights, less, outranked, grouped := s.use.Weight, false, false, s.use.group
	for name, u := range all {
		if name == s.use.Name {
			continue
		}
		if u.Rank == s.use.Rank {
			weights += u.Weight
		}
		grouped = grouped || u.group
		if u.Waits > 0 {
			outranked = outranked || u.Rank > s.use.Rank
			less = less || u.Rank == s.use.Rank && (u.Held+1)*s.use.Weight < (mine.Held+1)*u.Weight
		}
	}
	r := s.scope.rules.Load()
	i := slices.IndexFunc(r.Limits, func(l Limit) bool { return l.Unit == Slots })
	if i < 0 {
		return nil
	}
	l := &r.Limits[i]
	share := max(l.Limit.Count()*s.use.Weight/weights, 1)
	if !outranked && !(less && mine.Held >= share) || s.scope.engine.private && !grouped {
		return nil
	}
	return &Share{Name: l.Name + ShareEnd, Limit: l, RetryAfter: SlotGuess, Denial: fair.Denial{
		Denied: true, Of: s.use.Name, Group: s.use.group, Share: share, Used: mine.Held, Members: max(len(all), 2),
	}}
}

// sum returns what each flow has in all processes, by its name. The caller holds mu.
func (s *slotShares) sum(now int64) map[string]slotUse {
	all := map[string]slotUse{}
	add := func(u slotUse) {
		u.Held, u.Waits = u.Held+all[u.Name].Held, u.Waits+all[u.Name].Waits
		all[u.Name] = u
	}
	for _, u := range s.here {
		add(*u)
	}
	for node, heard := range s.nodes {
		if now >= heard.at+slotsHeardFor {
			delete(s.nodes, node)
			continue
		}
		for _, u := range heard.uses {
			add(u)
		}
	}
	return all
}

// report returns what this process tells others.
func (s *slotShares) report() (list []slotUse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.here {
		if len(list) < mostSlotUses {
			list = append(list, *u)
		}
	}
	return list
}

// hear enters what another process has told. Numbers that make no sense do not count.
func (s *slotShares) hear(node string, now int64, list []slotUse) {
	const most = 1 << 30
	list = slices.DeleteFunc(list, func(u slotUse) bool {
		return u.Weight < 1 || u.Weight > most || min(u.Held, u.Waits) < 0 || max(u.Held, u.Waits) > most
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[node] = heardSlots{now, list}
	if slices.ContainsFunc(list, func(u slotUse) bool { return u.Waits > 0 }) {
		s.contended.Store(now + slotsHeardFor)
	}
}

// slotDenies reports whether a call's share of slots denies it although the limits admit it. Then the outcome says so.
func (e *Engine) slotDenies(ctx context.Context, c *Call, o *Outcome) (bool, error) {
	scope := o.slotScope()
	if scope == nil || !scope.slots.Load().isContended(e.clock()) {
		return false, nil
	}
	s := o.slotSharer()
	share := s.denies(e.clock())
	if share == nil {
		return false, nil
	}
	if err := e.peekStandings(ctx, &c.ask, o); err != nil {
		return true, err
	}
	if o.Denied {
		return true, e.reconsider(ctx, c, o)
	}
	o.Of(s.scope).share, o.Denied = share, true
	return true, nil
}

// waitForSlots notes whether the call waits for a slot, as far as its last answer says.
func (w *wait) waitForSlots(waits bool) {
	if waits == (w.slots != nil) {
		return
	}
	if !waits {
		w.slots.add(w.engine, 0, -1)
		w.slots = nil
		return
	}
	var o Outcome
	o.begin(w.engine, w.call.part, w.scopes)
	if w.slots = o.slotSharer(); w.slots != nil {
		w.slots.add(w.engine, 0, 1)
	}
}

// slotsNamed reports whether a name is that of the limit on slots of the call's shared scope, or of a share of it.
func (all Scopes) slotsNamed(name string) bool {
	name = strings.TrimSuffix(name, ShareEnd)
	return slices.ContainsFunc(all, func(s *Scope) bool {
		r := s.rules.Load()
		return s.Kind == Shared && r != nil && slices.ContainsFunc(r.Limits, func(l Limit) bool { return l.Unit == Slots && l.Name == name })
	})
}

// lacksSlots reports whether slots of a shared scope are all that the call waits for: nobody leaves a free slot to a call
// that other limits deny.
func (o *Outcome) lacksSlots() (lacks bool) {
	for i := range o.all {
		s := &o.all[i]
		var by *Limit
		if s.share != nil {
			by = s.share.Limit
		} else if i := s.deciding(); i >= 0 {
			by, _ = s.At(i)
		}
		switch {
		case by == nil:
		case s.Scope.Kind != Shared || by.Unit != Slots:
			return false
		default:
			lacks = true
		}
	}
	return lacks
}

// stillLacksSlots answers a waiting call that its share of slots has denied, if it would be denied again.
func (w *wait) stillLacksSlots(by *Standing) (a fair.Answer, denied bool) {
	if by.share.Limit.Unit != Slots {
		return a, false
	}
	if share := w.result.Outcome.slotSharer().denies(w.engine.clock()); share != nil {
		return share.answer(), true
	}
	return a, false
}
