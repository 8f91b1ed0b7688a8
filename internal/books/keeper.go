package books

import "context"

// Keeper is a store that also keeps the books: what calls have used, by hour and day. All
// stores of this module are keepers.
type Keeper interface {
	// SettleBooked is Settle of a store, and books an entry in the hour of the store's clock. The entry is in
	// the books once the take is settled, whatever happens to this process: it is written before the
	// settlement or together with it. Only the first call with a receipt does anything; after an
	// error, another call may follow with the same amounts and the same entry. Without a receipt,
	// SettleBooked only books.
	SettleBooked(ctx context.Context, receipt any, actual []int64, e *Entry) error

	// Book books entries that belong to no take, such as calls that were denied.
	Book(ctx context.Context, entries []Entry) error

	// ReadBooks adds up what a query asks for.
	ReadBooks(ctx context.Context, q Query) (*Summary, error)

	// TrimBooks merges hours that are older than the retention into days, and drops days that are
	// older than it.
	TrimBooks(ctx context.Context, r Retention) error
}
