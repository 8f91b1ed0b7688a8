package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"dappco.re/go/core/go-ratelimit/event"
	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/fair"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Deposit is a reservation that the store keeps, so that any process that shares the store can commit
// it, hours or days later: of a batch, or of a call in the background.
type Deposit struct {
	ID   string
	Note []byte // of the depositor

	units       []Unit       // of each charge
	hard        []bool       // which charges have reserved the most of the call
	held        []bool       // which charges only count what is reserved
	part        Part         // by which it was charged
	reservation *Reservation // without its plans
}

// deposited is what the store keeps of a reservation beside its charges. Units are numbers: those of
// package engine must not change.
type deposited struct {
	Project string           `json:"project"`
	Member  string           `json:"member,omitempty"` // whom it counts for where limits are divided
	Model   string           `json:"model,omitempty"`
	Ask     Ask              `json:"ask"`
	At      int64            `json:"at"` // when it was made
	Waited  time.Duration    `json:"waited,omitempty"`
	Units   []int            `json:"units"`
	Call    bool             `json:"call,omitempty"` // a call was deposited, and not a batch
	Count   llm.TokenWeights `json:"count,omitzero"`
	Hard    []bool           `json:"hard,omitempty"` // which charges have reserved it; none: no charge has
	Held    []bool           `json:"held,omitempty"` // which charges only count what is reserved; none: no charge does
	Note    []byte           `json:"note"`
}

// ErrNoDeposits is the error of a store that keeps no deposits.
var ErrNoDeposits = errors.New("ratelimit: the store keeps no deposits")

// Deposit stores the reservation under an id. After that, Commit and Cancel do nothing.
// After an error they do, and the store does not keep the reservation, as far as it can be asked.
func (r *Reservation) Deposit(ctx context.Context, id string, note []byte) error {
	e := r.engine
	vault := e.deposits
	if vault == nil {
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
	if err := vault.Deposit(ctx, id, r.receipt, text); err != nil {
		if !errors.Is(err, accounts.ErrDeposited) { // only the answer may be lost
			err = errors.Join(err, vault.DropDeposit(context.WithoutCancel(ctx), id))
		}
		return err
	}
	r.ended.Store(true)
	for i := range r.charged {
		p := r.charged[i].plan
		p.scope.Real().giveBack(p, &r.asked)
	}
	r.endSlots() // those of the call's own receipt stay until their lease ends, or the deposit is settled
	r.releaseShares()
	return nil
}

// written returns what the store keeps of the reservation.
func (r *Reservation) written(note []byte) *deposited {
	d := &deposited{
		Project: r.project, Model: r.model, Ask: r.asked, At: cmp.Or(r.at, r.engine.clock()), Waited: r.waited, Note: note, Count: r.weights(),
	}
	if r.member != nil {
		d.Member = r.member.Name
	}
	for i := range r.charged {
		p := r.charged[i].plan
		d.Call = d.Call || p.rules != nil && p != &p.rules.plans[Batch]
		for k := range p.charges {
			u := p.charges[k].unit
			d.Units = append(d.Units, int(u))
			d.Hard, d.Held = append(d.Hard, p.rules.Most[u]), append(d.Held, false)
		}
		for _, hold := range r.charged[i].holds() {
			d.Units, d.Hard, d.Held = append(d.Units, int(hold.unit)), append(d.Hard, true), append(d.Held, true)
		}
	}
	return d
}

// FindDeposit returns the deposit with an id or a name, or nil if there is none. Of one that cannot be
// read, it returns the id with the error.
func (e *Engine) FindDeposit(ctx context.Context, name string) (*Deposit, error) {
	if e.deposits == nil {
		return nil, nil
	}
	id, text, err := e.deposits.FindDeposit(ctx, name)
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
		return fmt.Errorf("%w: %w", accounts.ErrDeposit, err)
	}
	if kept.Ask.Amounts[Requests] == 0 {
		return fmt.Errorf("%w: another version of this program has kept it", accounts.ErrDeposit)
	}
	d.Note, d.reservation, d.part = kept.Note, kept.reservation(e), Batch
	if kept.Call {
		d.part = Whole
	}
	d.hard = kept.Hard
	if len(d.hard) != len(kept.Units) { // none, or it cannot be known
		d.hard = make([]bool, len(kept.Units))
	}
	d.held = kept.Held
	if len(d.held) != len(kept.Units) { // an earlier version has kept it
		d.held = make([]bool, len(kept.Units))
	}
	for _, u := range kept.Units {
		if u < 0 || u >= int(units) {
			return fmt.Errorf("%w: no unit has the number %d", accounts.ErrDeposit, u)
		}
		d.units = append(d.units, Unit(u))
	}
	return nil
}

// reservation returns the reservation that was deposited, without the plans of its scopes.
func (d *deposited) reservation(e *Engine) *Reservation {
	return &Reservation{engine: e, asked: d.Ask, at: d.At, waited: d.Waited, project: d.Project, model: d.Model, count: &d.Count, member: &fair.Who{Name: cmp.Or(d.Member, d.Project)}}
}

// Count is [Reservation.Count] for a deposit.
func (d *Deposit) Count(used llm.Units) { d.reservation.Count(used) }

// CommitPriced is [Reservation.CommitPriced] for a deposit, of which exact says whether it is known for certain what
// was used, and books an entry unless it is nil. The store sees to it that a deposit is committed once. scopes are
// those of the project, as far as they are known: their shares are corrected, and calls that wait for what is given
// back go on.
func (d *Deposit) CommitPriced(t llm.Tokens, price int64, exact bool, entry *books.Entry, scopes Scopes) {
	r := d.reservation
	if !r.ended.CompareAndSwap(false, true) {
		return
	}
	t.Input, t.Output = max(t.Input, -1), max(t.Output, -1)
	var used spent
	r.entry, r.inexact = entry, !exact
	r.spent(t, price, &used)
	actual := make([]int64, len(d.units))
	for i, u := range d.units {
		switch {
		case d.held[i]: // nothing is any more
		case u.InFlight() && r.engine.lease < Lease: // they were given back, or have ended
			actual[i] = -1
		case d.hard[i]:
			actual[i] = used.most[u]
		default:
			actual[i] = used.Amounts[u]
		}
	}
	e := r.engine
	e.correct(correction{actual: actual, entry: r.booking(&used.Amounts), deposit: d.ID})
	r.correctSharesOf(scopes, d.part, &used)
	for _, s := range scopes {
		s = s.Real()
		if rules := s.rules.Load(); e.thresholds.Load() != nil && rules != nil && rules.budgets != nil && rules.budgets.raised.CompareAndSwap(false, true) {
			e.notifier.addRaise(e, raise{r.project, rules})
		}
		e.Wake(s)
	}
	r.observe(event.Settled, t, used.Amounts[Dollars])
}

// correctSharesOf is correctShares for a reservation that was deposited, and has no plans. part is that by which it
// was charged.
func (r *Reservation) correctSharesOf(scopes Scopes, part Part, used *spent) {
	for _, s := range scopes {
		rules := s.rules.Load()
		if divided := rules.shared(); divided != nil {
			divided.correct(&rules.plans[part], r.member, r.at, &r.asked, used, nil)
		}
	}
}
