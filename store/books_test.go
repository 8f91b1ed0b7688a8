package store_test

import (
	"testing"

	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/storetest"
)

func TestBooksInMemory(t *testing.T) {
	storetest.RunBooks(t, func(t *testing.T, clock func() int64, maxLines int) func() storetest.BookStore {
		m := store.NewMemoryAt(clock)
		store.SetMaxLines(m, maxLines)
		return func() storetest.BookStore { return m }
	})
}
