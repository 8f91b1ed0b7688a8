package redisstore

import (
	"crypto/rand"
	"testing"

	"github.com/redis/rueidis"

	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/store/internal/bookstest"
)

// newBookStores opens stores with the clock of a test.
func newBookStores(client rueidis.Client) bookstest.Open {
	return func(t *testing.T, clock func() int64, maxLines int) func() bookstest.Store {
		namespace := rand.Text()
		return func() bookstest.Store {
			r := newRemote(client, namespace, patient, clock, nil)
			s := &Store{client: client, namespace: namespace, timeout: r.timeout, top: r, books: newBookkeeper(r)}
			s.books.maxLines = maxLines
			s.close = func() error {
				s.books.close()
				return r.Close()
			}
			t.Cleanup(func() { s.Close() })
			return internals{s}
		}
	}
}

func TestBooks(t *testing.T) {
	bookstest.Run(t, newBookStores(dialed(t, redistest.New(t).URL())))
}

func TestDeposits(t *testing.T) {
	bookstest.RunDeposits(t, newBookStores(dialed(t, redistest.New(t).URL())))
}

func TestDepositsInCluster(t *testing.T) {
	bookstest.RunDeposits(t, newBookStores(dialed(t, redistest.NewCluster(t, 3).URL())))
}

func TestBooksInCluster(t *testing.T) {
	newStores := newBookStores(dialed(t, redistest.NewCluster(t, 3).URL()))
	bookstest.Run(t, func(t *testing.T, clock func() int64, maxLines int) func() bookstest.Store {
		if maxLines < 100 {
			t.Skip("each part of the keyspace has so many lines")
		}
		return newStores(t, clock, maxLines)
	})
}
