package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// correction is a settlement that is to be made.
type correction struct {
	receipt store.Receipt
	actual  []int64
	entry   *books.Entry // is booked with it; nil: nothing is
	deposit string       // the id of the deposit to settle, in place of the receipt
	charged []charged    // the scopes that it gives something back to
}

// owed is the corrections that could not be made, because the store could not be asked.
type owed struct {
	some atomic.Bool // there are any
	mu   sync.Mutex
	list []correction
}

const (
	mostOwed = 4096 // corrections; those beyond leave what was reserved
	atOnce   = 64   // how many are made at a time
)

// correct makes a correction, soon or when the store can be asked again. Whatever asks the store after it finds the
// correction made, unless the store could not be asked. A process that dies before leaves more charged, never less.
func (e *Engine) correct(c correction) {
	if e.later == nil || c.deposit != "" {
		err := e.settle(context.Background(), c)
		e.owe(&c, err)
		e.Miss(err)
		e.gaveBack(c.charged)
		return
	}
	e.correctLater(c)
}

// correctLater makes a correction that nobody waits for. It is apart from correct, which would otherwise put each
// correction on the heap.
func (e *Engine) correctLater(c correction) {
	e.later.SettleLater(c.receipt, c.actual, c.entry, func(err error) {
		if err != nil {
			e.owe(&c, err)
			e.errors.KeepAtOnce(err)
		}
		e.gaveBack(c.charged)
	})
}

// gaveBack wakes calls of other processes that wait for scopes to which something was given back.
func (e *Engine) gaveBack(all []charged) {
	if f := e.fleet.Load(); f != nil {
		for i := range all {
			f.gave(all[i].plan.scope.Real())
		}
	}
}

// owe keeps a correction that has failed, unless it always will.
func (e *Engine) owe(c *correction, err error) {
	if err != nil && !hopeless(err) {
		e.owed.add(*c)
	}
}

// settle settles a take in the store, and books its entry if the store keeps books.
func (e *Engine) settle(ctx context.Context, c correction) error {
	if c.deposit != "" {
		return e.deposits.SettleDeposit(ctx, c.deposit, c.actual, c.entry)
	}
	if e.books != nil && c.entry != nil {
		return e.books.SettleBooked(ctx, c.receipt, c.actual, c.entry)
	}
	return e.store.Settle(ctx, c.receipt, c.actual)
}

// catchUp makes the corrections that could not be made before. While one caller makes
// them, others find none to make.
func (e *Engine) catchUp(ctx context.Context) error {
	list := e.owed.takeAll()
	for n := 1; len(list) > 0; n = min(len(list), atOnce) { // the first finds out whether the store can be asked
		again, err := e.correctAll(ctx, list[:n])
		list = list[n:]
		if err != nil {
			e.owed.add(list...)
			e.owed.add(again...) // after the others, which it should not hold up
			return err
		}
	}
	return nil
}

// correctAll makes corrections, all at a time. It returns those that failed, unless they
// always will.
func (e *Engine) correctAll(ctx context.Context, all []correction) (again []correction, failed error) {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() { errs[i] = e.settle(ctx, c) })
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
	return errors.Is(err, store.ErrClosed) || errors.Is(err, limit.ErrCorrupt) || errors.Is(err, accounts.ErrDeposit) || errors.Is(err, store.ErrReceipt)
}

func (o *owed) add(some ...correction) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, some[:min(len(some), mostOwed-len(o.list))]...)
	o.some.Store(len(o.list) > 0)
}

func (o *owed) takeAll() []correction {
	if !o.some.Load() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.list
	o.list = nil
	o.some.Store(false)
	return list
}
