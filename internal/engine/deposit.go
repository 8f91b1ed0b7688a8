package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/store"
)

// Deposit is a reservation that the store keeps, so that any process that shares the store can commit
// it, hours or days later: that of a batch, or of a call in the background.
type Deposit struct {
	ID   string
	Note []byte // of the depositor

	units       []Unit       // of each charge
	hard        []bool       // which charges have reserved the most of the call
	part        Part         // by which it was charged
	reservation *Reservation // without its plans
}

// deposited is what the store keeps of a reservation beside its charges. Units are numbers: those of
// package admission must not change.
type deposited struct {
	Project  string           `json:"project"`
	Model    string           `json:"model,omitempty"`
	First    int64            `json:"first"`
	Other    int64            `json:"other"`
	Price    int64            `json:"price"`
	Requests int64            `json:"requests"`
	Free     [2]int64         `json:"free"`
	Split    bool             `json:"split"`
	At       int64            `json:"at"` // when it was made
	Waited   time.Duration    `json:"waited,omitempty"`
	Units    []int            `json:"units"`
	Call     bool             `json:"call,omitempty"` // it is that of a call, and not of a batch
	Count    llm.TokenWeights `json:"count,omitzero"`
	Most     *Parts           `json:"most,omitempty"` // the most that the call can use, if some scopes have reserved it
	Hard     []bool           `json:"hard,omitempty"` // which charges have reserved it; none: no charge has
	Note     []byte           `json:"note"`
}

// ErrNoDeposits is the error of a store that keeps no deposits.
var ErrNoDeposits = errors.New("ratelimit: the store keeps no deposits")

// Deposit lets the store keep the reservation under an id. After that, Commit and Cancel do nothing.
// After an error they do, and the store does not keep the reservation, as far as it can be asked.
func (r *Reservation) Deposit(ctx context.Context, id string, note []byte) error {
	e := r.of()
	vault, ok := e.store.(store.Depository)
	if !ok {
		return ErrNoDeposits
	}
	switch {
	case r.ended.Load():
		return errEnded
	case r.extensions != nil:
		return errExtended
	}
	text, err := json.Marshal(r.written(note))
	if err != nil {
		return fmt.Errorf("ratelimit: the reservation cannot be kept: %w", err)
	}
	if err := vault.Deposit(ctx, id, r.receiptOf(), text); err != nil {
		if !errors.Is(err, store.ErrDeposited) { // only the answer may be lost
			err = errors.Join(err, vault.DropDeposit(context.WithoutCancel(ctx), id))
		}
		return err
	}
	r.ended.Store(true)
	var asked Ask
	r.ask(&asked)
	for _, p := range r.plans {
		p.scope.Real().giveBack(p, &asked)
	}
	if r.renewal != nil { // the slots that were reserved stay until their lease ends, or the deposit is settled
		r.renewal.end(r)
	}
	return nil
}

// written returns what the store keeps of the reservation.
func (r *Reservation) written(note []byte) *deposited {
	n := r.ofScopes()
	if r.names != nil {
		n = *r.names
	}
	d := &deposited{
		Project: n.project, Model: n.model, First: r.first, Other: r.other, Price: r.price, Requests: r.requests,
		Free: r.free, Split: r.split, At: cmp.Or(r.at, r.of().clock()), Waited: r.waited, Note: note, Count: r.weights(),
	}
	if r.most != (Parts{}) {
		d.Most = &r.most
	}
	for _, p := range r.plans {
		d.Call = d.Call || p.rules != nil && p != &p.rules.plans[Batch]
		for i := range p.charges {
			u := p.charges[i].unit
			d.Units = append(d.Units, int(u))
			d.Hard = append(d.Hard, p.rules.Most[u])
		}
	}
	return d
}

// receiptOf returns the receipt of what was taken, from any store.
func (r *Reservation) receiptOf() store.Receipt {
	m := r.of().memory
	if m == nil || len(r.plans) == 0 {
		return r.receipt
	}
	var asked Ask
	var taken []store.Amount
	r.ask(&asked)
	for _, s := range r.settlements(nil, &asked, &spent{}) {
		taken = append(taken, store.Amount{Of: s.Of, N: s.Taken})
	}
	return m.ReceiptOf(&r.hold, taken)
}

// FindDeposit returns the deposit with an id or a name, or nil if there is none. Of one that cannot be
// read, it returns the id with the error.
func (e *Engine) FindDeposit(ctx context.Context, name string) (*Deposit, error) {
	vault, ok := e.store.(store.Depository)
	if !ok {
		return nil, nil
	}
	id, text, err := vault.FindDeposit(ctx, name)
	if id == "" {
		return nil, err
	}
	found := &Deposit{ID: id}
	if err == nil {
		err = found.read(e, text)
	}
	return found, err
}

// read reads what the store has kept of a reservation.
func (d *Deposit) read(e *Engine, text []byte) error {
	var kept deposited
	if err := json.Unmarshal(text, &kept); err != nil {
		return fmt.Errorf("%w: %w", store.ErrDeposit, err)
	}
	d.Note, d.reservation, d.part = kept.Note, kept.reservation(e), Batch
	if kept.Call {
		d.part = Whole
	}
	if d.hard = kept.Hard; len(d.hard) != len(kept.Units) { // none, or it cannot be known
		d.hard = make([]bool, len(kept.Units))
	}
	for _, u := range kept.Units {
		if u < 0 || u >= int(units) {
			return fmt.Errorf("%w: no unit has the number %d", store.ErrDeposit, u)
		}
		d.units = append(d.units, Unit(u))
	}
	return nil
}

// reservation returns the reservation that was deposited, without the plans of its scopes.
func (d *deposited) reservation(e *Engine) *Reservation {
	most := Parts{}
	if d.Most != nil {
		most = *d.Most
	}
	return &Reservation{first: d.First, other: d.Other, price: d.Price, at: d.At, split: d.Split, special: &special{
		requests: max(d.Requests, 1), free: d.Free, waited: d.Waited, engine: e, names: &names{d.Project, d.Model}, count: d.Count, most: most,
	}}
}

// CommitPriced is [Reservation.CommitPriced] for a deposit, of which exact says whether it is known for certain what
// was used, and books an entry unless it is nil. The store sees to it that a deposit is committed once. scopes are those of the project, as far as they are
// known: their shares are corrected, and calls that wait for what is given back go on.
func (d *Deposit) CommitPriced(t llm.Tokens, price int64, exact bool, entry *books.Entry, scopes Scopes) {
	r := d.reservation
	if !r.ended.CompareAndSwap(false, true) {
		return
	}
	t.Input, t.Output = max(t.Input, -1), max(t.Output, -1)
	var asked Ask
	var used spent
	r.ask(&asked)
	r.special.entry, r.special.inexact = entry, !exact
	r.spent(t, price, &asked, &used)
	actual := make([]int64, len(d.units))
	for i, u := range d.units {
		if actual[i] = used.Amounts[u]; d.hard[i] {
			actual[i] = used.most[u]
		}
	}
	e := r.of()
	e.correct(correction{actual: actual, entry: r.booking(used.Amounts[Dollars]), deposit: d.ID})
	r.correctSharesOf(scopes, d.part, &asked, &used)
	for _, s := range scopes {
		s = s.Real()
		if rules := s.rules.Load(); e.thresholds.Load() != nil && rules != nil && rules.budgets != nil && rules.budgets.raised.CompareAndSwap(false, true) {
			e.teller.addRaise(e, raise{r.names.project, rules})
		}
		e.Wake(s)
	}
	r.observe(event.Settled, t)
}

// correctSharesOf is correctShares for a reservation that was deposited, and has no plans. part is that by which it
// was charged.
func (r *Reservation) correctSharesOf(scopes Scopes, part Part, asked *Ask, used *spent) {
	for _, s := range scopes {
		rules := s.rules.Load()
		if divided := rules.shared(); divided != nil {
			divided.correct(&rules.plans[part], &scopes.own().Real().member, r.at, asked, used, nil)
		}
	}
}
