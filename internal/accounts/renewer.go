package accounts

import "context"

// Renewer is a store that can let takes from sliding logs count from now on.
type Renewer interface {
	// Renew gives back what was taken by the charges at some places of a receipt, and takes it once more, whatever the
	// limits say. It returns the receipt of that: the first receipt must not settle these charges any more. The answer is
	// nil for a receipt of another store, and for one of a take that was decided without the server.
	Renew(ctx context.Context, receipt any, places []int) (any, error)
}
