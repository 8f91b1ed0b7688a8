package accounts

import (
	"context"
	"errors"

	"dappco.re/go/core/go-ratelimit/internal/books"
)

// Depository is a store that keeps takes which are settled hours or days later, by whichever process
// that shares the store learns what was used: those of batches. All stores of this module are
// depositories. What a store in memory keeps ends with its process.
type Depository interface {
	// Deposit keeps a take under an id, until it is settled by that id. note is for whoever settles
	// it. A nil receipt is a deposit without charges. The receipt must not be settled any more. The
	// error is [ErrDeposited] if the id is in use, and store.ErrReceipt if the take is of a kind that only
	// this process can settle: one that was decided without the server.
	Deposit(ctx context.Context, id string, receipt any, note []byte) error

	// NameDeposit gives a deposit another name, by which it is found as well. A later name replaces an earlier
	// one. Without the deposit it does nothing.
	NameDeposit(ctx context.Context, id, name string) error

	// FindDeposit returns the id and the note of the deposit with an id or a name. The id is empty if
	// there is none.
	FindDeposit(ctx context.Context, name string) (id string, note []byte, err error)

	// SettleDeposit is SettleBooked for a deposit. Whoever calls it, and however often, the take is
	// settled and booked once, by the amounts and the entry of the first call that succeeded or has
	// begun. Without the deposit it does nothing. e may be nil. After an error it may be called again.
	SettleDeposit(ctx context.Context, id string, actual []int64, e *books.Entry) error

	// DropDeposit forgets a deposit. What was taken stays charged.
	DropDeposit(ctx context.Context, id string) error

	// DueDeposits returns the ids of deposits that should be settled now: those of before a time in
	// Unix nanoseconds, the oldest of those beyond a number, and those whose settlement was begun by
	// a process that has ended. It may return some of them.
	DueDeposits(ctx context.Context, before int64, most int) (ids []string, err error)
}

// ErrDeposited is the error for an id that another deposit has.
var ErrDeposited = errors.New("ratelimit: there is a deposit with this id")
