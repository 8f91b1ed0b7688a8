package bookstest

import (
	"context"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/store"
)

// Later returns a store that is like s, which has an [accounts.Later]: it settles with that.
func Later(s store.Store) store.Store { return later{s, hidden.Of[accounts.Later](s)} }

type later struct {
	store.Store
	accounts.Later
}

func (l later) Settle(_ context.Context, r store.Receipt, actual []int64) error {
	if r == nil {
		return nil
	}
	failed := make(chan error, 1)
	l.SettleLater(r, actual, nil, func(err error) { failed <- err })
	l.AwaitSettled()
	return <-failed
}
