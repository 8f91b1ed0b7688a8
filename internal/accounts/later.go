package accounts

import "dappco.re/go/core/go-ratelimit/internal/books"

// Later is a store whose callers need not wait until a take is settled.
type Later interface {
	// SettleLater settles a take, and books an entry unless it is nil, soon and without waiting: together with the next
	// call of the store, or after a moment. Every call of this store that comes after it finds the take settled. done is
	// called once, from any goroutine and maybe before SettleLater returns, with nil or with the error; it must not call
	// the store. After an error the take may be settled again. Without a receipt, SettleLater only books.
	SettleLater(receipt any, actual []int64, e *books.Entry, done func(error))

	// AwaitSettled waits until all takes are settled for which SettleLater was called before, or their settlements have
	// failed.
	AwaitSettled()
}
