package engine

import (
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

// Book has a call entered in the books when it is committed, in the same step in which what it has
// taken is settled. Its price is that of the commit, and the engine knows how long it has waited. For
// input and output that are negative, the books have what was reserved. A call that is cancelled is
// not booked. Nor is any call if the store keeps no books.
func (r *Reservation) Book(e books.Entry) { r.entry = &e }

// Waited returns how long the call has waited in line.
func (r *Reservation) Waited() time.Duration { return r.waited }

// booking returns the entry of a call with a price, or nil if the call is not booked. If the price is
// not known, which is negative, it is what was reserved.
func (r *Reservation) booking(price int64) *books.Entry {
	if r.entry == nil {
		return nil
	}
	e := r.entry // which is not used again
	e.Amounts[books.Nanodollars] = price
	for u, n := range r.reserved() {
		if e.Amounts[u] < 0 {
			e.Amounts[u] = n
		}
	}
	if r.waited > 0 {
		e.Amounts[books.Waited], e.Amounts[books.WaitTime] = 1, int64(r.waited)
	}
	return e
}

// reserved returns what the call was expected to use, as the books count it: all of it as input, if input and output
// are not known apart.
func (r *Reservation) reserved() books.Amounts {
	input := r.asked.Amounts[Input]
	if !r.asked.Split {
		input = r.asked.Amounts[Tokens]
	}
	return books.Amounts{
		books.Input: input + r.asked.FreeInput, books.Output: r.asked.Amounts[Output] + r.asked.FreeOutput,
		books.Nanodollars: r.asked.Amounts[Dollars],
	}
}
