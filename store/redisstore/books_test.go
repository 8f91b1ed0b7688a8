package redisstore

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"dappco.re/go/core/go-ratelimit/internal/books"
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

// The line of a newer version has more units than this one knows. They stay when this one adds to the line, or moves it to
// its day.
func TestLinesOfANewerVersion(t *testing.T) {
	client := dialed(t, redistest.New(t).URL())
	now := time.Now().UnixNano()
	s := newBookStores(client)(t, func() int64 { return now }, books.MaxLines)().(internals)
	e := books.Entry{Owner: books.Owner{Project: "p", Model: "m"}, Amounts: books.Amounts{books.Requests: 1, books.Beside: 3}}
	book := func() {
		t.Helper()
		if err := s.Book(t.Context(), []books.Entry{e}); err != nil {
			t.Fatal(err)
		}
	}
	book()
	hour := page{at: books.HourOf(now)}
	value := func(p page) string {
		t.Helper()
		text, err := client.Do(t.Context(), client.B().Hget().Key(s.books.name(p)).Field(fieldOf(e.Owner)).Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	more := strings.Repeat("\x00", 7) + "@" + strings.Repeat("\x00", 4) // 2, and no fraction
	long := value(hour) + more + more
	if err := client.Do(t.Context(), client.B().Hset().Key(s.books.name(hour)).FieldValue().FieldValue(fieldOf(e.Owner), long).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	book()
	if got := value(hour); len(got) != len(long) || !strings.HasSuffix(got, more+more) {
		t.Errorf("the line is %q", got)
	}
	now = time.Now().AddDate(0, 0, 40).UnixNano()
	if err := s.TrimBooks(t.Context(), books.Retention{Days: 1000 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	if got := value(page{day: true, at: books.DayOf(hour.at)}); !strings.HasSuffix(got, more+more) {
		t.Errorf("the line of the day is %q", got)
	}
	sum, err := s.ReadBooks(t.Context(), books.Query{})
	if want := (books.Amounts{books.Requests: 2, books.Beside: 6}); err != nil || sum.Total != want {
		t.Errorf("%v, %v; want %v", sum.Total, err, want)
	}
}
