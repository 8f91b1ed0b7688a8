package redisstore

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/storetest"
)

// bookStore is a store with the clock of a test.
type bookStore struct {
	*remote
	keeper *bookkeeper
}

func (s bookStore) SettleBooked(ctx context.Context, r store.Receipt, actual []int64, e *books.Entry) error {
	return s.keeper.settle(ctx, s.remote, r, actual, e)
}

func (s bookStore) Book(ctx context.Context, entries []books.Entry) error {
	return s.keeper.outbox.add(ctx, entries...)
}

func (s bookStore) ReadBooks(ctx context.Context, q books.Query) (*books.Summary, error) {
	return s.keeper.read(ctx, q)
}

func (s bookStore) TrimBooks(ctx context.Context, r books.Retention) error {
	return s.keeper.trim(ctx, r)
}

func (s bookStore) Close() error {
	s.keeper.close()
	return s.remote.Close()
}

func newBookStores(client rueidis.Client) storetest.NewBooks {
	return func(t *testing.T, clock func() int64, maxLines int) func() storetest.BookStore {
		namespace := rand.Text()
		return func() storetest.BookStore {
			r := newRemote(client, namespace, 5*time.Second, clock, nil)
			s := bookStore{r, newBookkeeper(r)}
			s.keeper.maxLines = maxLines
			t.Cleanup(func() { s.Close() })
			return s
		}
	}
}

func TestBooks(t *testing.T) {
	storetest.RunBooks(t, newBookStores(dialed(t, redistest.New(t).URL())))
}

func TestBooksInCluster(t *testing.T) {
	newStores := newBookStores(dialed(t, redistest.NewCluster(t, 3).URL()))
	storetest.RunBooks(t, func(t *testing.T, clock func() int64, maxLines int) func() storetest.BookStore {
		if maxLines < 100 {
			t.Skip("each part of the keyspace has so many lines")
		}
		return newStores(t, clock, maxLines)
	})
}
