package bookstest

import (
	"context"
	"sync"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/store"
)

// Later returns a store that is like s, which has an [accounts.Later]: its settlements do not wait. They return the
// errors that are known at once.
func Later(s store.Store) store.Store { return later{s, hidden.Of[accounts.Later](s)} }

type later struct {
	store.Store
	accounts.Later
}

func (l later) Settle(_ context.Context, r store.Receipt, actual []int64) error {
	if r == nil {
		return nil
	}
	var mu sync.Mutex
	var err error
	l.SettleLater(r, actual, nil, func(failed error) {
		mu.Lock()
		defer mu.Unlock()
		err = failed
	})
	mu.Lock()
	defer mu.Unlock()
	return err
}
