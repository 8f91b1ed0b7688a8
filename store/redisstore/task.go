package redisstore

import (
	"fmt"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// task is what a caller wants of some accounts. Those who share a batch are composed into one request: see composition.
type task struct {
	kind    taskKind
	charges []store.Charge
	takes   []*chargeReceipt // to be settled, or what was taken: one for each charge
	actual  []int64          // of a settlement
	entry   *books.Entry     // is booked with a settlement; may be nil

	taken bool               // the charges were taken
	each  [][]limit.Decision // what the limits of each charge say
	read  []*limit.Account   // copies of the accounts
	again bool               // what was decided is not true any more: the task goes into the next batch
	err   error
	ran   bool // it has happened: an error is one of some accounts, and not of the others
}

type taskKind uint8

const (
	taskTake   taskKind = iota
	taskRefuse          // the answer of a take that another one has denied: nothing is taken
	taskPeek
	taskSettle
	taskRead
	taskProlong // keys expire later, if they would expire before their accounts are full
)

// chargeReceipt is what a settlement needs to know about one charge of a take.
type chargeReceipt struct {
	limit.Receipt
	charge store.Charge
}

// allows reports whether all limits allow all charges.
func (t *task) allows() bool {
	for _, said := range t.each {
		if !store.Allowed(said) {
			return false
		}
	}
	return true
}

// withoutTake makes decisions say what remains while nothing is taken.
func withoutTake(a *limit.Account, said []limit.Decision, at int64) {
	for i := range said {
		if said[i].Allowed {
			said[i] = a.Check(said[i].Limit, at, 0)
		}
	}
}

// serverFault returns an error that the server has answered in place of an answer.
func serverFault(text []byte) error { return fmt.Errorf("ratelimit: redis: %s", text) }
