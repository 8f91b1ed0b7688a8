package ratelimit

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// shared is the ledger of a limiter whose counters are in a store.
type shared struct {
	store  Store
	remote bool // others may use it on other machines
	owned  bool // the limiter has made it
	closed atomic.Bool

	mu     sync.Mutex
	missed error        // of calls that could not return it, the first
	owed   []correction // that could not be made
}

const allModels = "model/"

// keyPrefix is what the keys of a model begin with, and no other model's.
func keyPrefix(model string) string { return allModels + url.PathEscape(model) + "/" }

func key(model string, u unit) string { return keyPrefix(model) + unitNames[u] }

// models returns the names of all models of which the store knows usage.
func (s *shared) models(ctx context.Context) ([]string, error) {
	keys, err := s.store.Keys(ctx, allModels)
	return modelsOf(keys), err
}

// modelsOf returns the names of the models whose keys are given, in order.
func modelsOf(keys []string) (names []string) {
	for _, key := range keys {
		escaped, _, _ := strings.Cut(strings.TrimPrefix(key, allModels), "/")
		if name, err := url.PathUnescape(escaped); err == nil && keyPrefix(name) == allModels+escaped+"/" {
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}

// charges returns what is asked of each unit as charges, in the order of rules.
func charges(model string, r *rules, ask *amounts) []store.Charge {
	list := make([]store.Charge, len(r.charged))
	for i, c := range r.charged {
		list[i] = store.Charge{Key: key(model, c.unit), Limits: c.limits, N: ask[c.unit]}
	}
	return list
}

func (s *shared) take(ctx context.Context, m *model, c *call, o *outcome) (*Reservation, error) {
	if s.closed.Load() {
		return nil, store.ErrClosed
	}
	if err := s.catchUp(ctx); err != nil && !s.remote { // a remote store may know what to do without
		return nil, err
	}
	r := m.rulesAt(m.limiter.clock())
	ask := r.amounts(c.request)
	if r.asksNothing(&ask) { // a debt denies even that, but a store does not
		if err := s.look(ctx, m, c, o); err != nil || o.denied {
			return nil, err
		}
		*o = outcome{}
	}
	list, limits := charges(m.name, r, &ask), c.projectLimits()
	if limits != nil {
		list = limits.charge(list, c.project, &ask)
	}
	receipt, decisions, err := s.store.Take(ctx, list)
	if err != nil {
		return nil, err
	}
	rest := o.hear(r, &ask, decisions)
	if err := s.reconsider(ctx, m, &ask, o); err != nil {
		return nil, err
	}
	if limits != nil {
		o.hearProject(limits, rest)
	}
	if o.denied {
		return nil, nil
	}
	m.glance.Store(&glance{m.limiter.clock(), o.used})
	return &Reservation{model: m, taken: ask, split: c.request.split, noted: &noted{r, limits, c.request, receipt}}, nil
}

func (s *shared) look(ctx context.Context, m *model, c *call, o *outcome) error {
	r := m.rulesAt(m.limiter.clock())
	ask := r.amounts(c.request)
	var err error
	if r.asksNothing(&ask) { // see take
		err = s.study(ctx, m, r, &ask, o)
	} else {
		err = s.peek(ctx, m, r, &ask, o)
	}
	if err != nil {
		return err
	}
	if err := s.reconsider(ctx, m, &ask, o); err != nil {
		return err
	}
	return s.lookProject(ctx, c, &ask, o)
}

// takeProject takes what is asked of the call's project, unless something else has
// denied it already.
func (s *shared) takeProject(ctx context.Context, c *call, ask *amounts, o *outcome) (*noted, error) {
	limits := c.projectLimits()
	if o.denied || limits == nil {
		return nil, s.lookProject(ctx, c, ask, o)
	}
	receipt, decisions, err := s.store.Take(ctx, limits.charge(nil, c.project, ask))
	if err != nil {
		return nil, err
	}
	o.hearProject(limits, decisions)
	return &noted{none, limits, c.request, receipt}, nil
}

// lookProject says what is left of the call's project.
func (s *shared) lookProject(ctx context.Context, c *call, ask *amounts, o *outcome) error {
	limits := c.projectLimits()
	if limits == nil {
		return nil
	}
	decisions, err := s.store.Peek(ctx, limits.charge(nil, c.project, ask))
	if err == nil {
		o.hearProject(limits, decisions)
	}
	return err
}

// usage reads what was used of a model.
func (s *shared) usage(ctx context.Context, model string, r *rules) (u *usage, at int64, err error) {
	var keys []string
	for _, c := range r.charged {
		keys = append(keys, key(model, c.unit))
	}
	if s.closed.Load() {
		return nil, 0, store.ErrClosed
	}
	accounts, at, err := s.store.Read(ctx, keys...)
	if err != nil {
		return nil, 0, err
	}
	return usageOf(r, accounts, at), at, nil
}

// settle corrects a reservation.
func (s *shared) settle(r *Reservation, used *amounts) {
	if used[ofRequests] == 0 {
		r.model.day.Store(nil) // it may have begun with what is given back
	}
	c := correction{r.noted.receipt, r.noted.rules.actual(used)}
	if r.noted.limits != nil {
		c.actual = r.noted.limits.actual(c.actual, used)
	}
	s.make(c)
	r.model.lowerGlance(&r.taken, used)
}

// make makes a correction, now or when the store can be asked again.
func (s *shared) make(c correction) {
	err := s.store.Settle(context.Background(), c.receipt, c.actual)
	if err == nil {
		return
	}
	s.miss(err)
	if !hopeless(err) {
		s.owe(c)
	}
}

// correction is a settlement that is still to be made.
type correction struct {
	receipt store.Receipt
	actual  []int64
}

const (
	mostOwed = 4096 // corrections; those beyond leave what was reserved
	together = 64   // that are made at a time
)

// catchUp makes the corrections that could not be made before. While one caller
// does, others find none to make.
func (s *shared) catchUp(ctx context.Context) error {
	s.mu.Lock()
	owed := s.owed
	s.owed = nil
	s.mu.Unlock()
	for n := 1; len(owed) > 0; n = min(len(owed), together) { // the first finds out whether it can be
		again, err := s.correct(ctx, owed[:n])
		owed = owed[n:]
		if err != nil {
			s.owe(owed...)
			s.owe(again...) // after the others, whom it should not hold up
			return err
		}
	}
	return nil
}

// correct makes corrections, all at a time. It returns those that failed, unless they
// always will.
func (s *shared) correct(ctx context.Context, all []correction) (again []correction, failed error) {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() { errs[i] = s.store.Settle(ctx, c.receipt, c.actual) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil && !hopeless(err) {
			again, failed = append(again, all[i]), err
		}
	}
	return again, failed
}

// hopeless reports whether what has failed always will.
func hopeless(err error) bool {
	return errors.Is(err, store.ErrClosed) || errors.Is(err, limit.ErrCorrupt)
}

// owe keeps corrections for later.
func (s *shared) owe(some ...correction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owed = append(s.owed, some[:min(len(some), mostOwed-len(s.owed))]...)
}

// actual returns amounts in the order of charges.
func (r *rules) actual(used *amounts) []int64 {
	actual := make([]int64, len(r.charged))
	for i, c := range r.charged {
		actual[i] = used[c.unit]
	}
	return actual
}

// record charges what was used whatever the limits say: under limits of the same
// kinds with boundless counts, which share their counters.
func (s *shared) record(m *model, q request) {
	r := m.rules.Load()
	used := r.amounts(q)
	used[ofSlots] = 0 // a call that is over has no slot
	list := slices.DeleteFunc(charges(m.name, r, &used), func(c store.Charge) bool { return c.N == 0 })
	for i, c := range list {
		list[i].Limits = slices.Clone(c.Limits)
		for k, l := range c.Limits {
			list[i].Limits[k] = l.WithCount(boundless)
		}
	}
	_, _, err := s.store.Take(context.Background(), list)
	s.miss(err)
}

// close makes the corrections that are owed, and lets nobody ask any more.
func (s *shared) close() error {
	err := s.catchUp(context.Background())
	s.closed.Store(true)
	if s.owned {
		err = errors.Join(err, s.store.Close())
	}
	return err
}

// miss keeps an error that its caller cannot be told, for the next who can.
func (s *shared) miss(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.missed == nil {
		s.missed = err
	}
}

// reportMissed returns err and the error that was kept.
func (s *shared) reportMissed(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	missed := s.missed
	s.missed = nil
	return errors.Join(err, missed)
}
