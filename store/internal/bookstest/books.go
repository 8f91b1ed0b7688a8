package bookstest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// Store is a store that keeps books.
type Store interface {
	store.Store
	books.Keeper
}

// Open returns a function that opens stores with a clock that share one set of books, in which an
// hour has at most so many separate lines. At first the books are empty. A store in memory may be the
// same one each time.
type Open func(t *testing.T, clock func() int64, maxLines int) (open func() Store)

// Run tests that stores keep books as package store promises: exact sums, each call once, in the
// right hour, and after a restart as well.
func Run(t *testing.T, newBooks Open) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, newBooks Open)
	}{
		{"random histories", bookHistories},
		{"sums are exact, however many book at once", bookedAtOnce},
		{"a call that is settled again is booked once", bookedOnce},
		{"there are no more lines than allowed, and sums stay exact", boundedLines},
		{"sums stay at their maximum", hugeSums},
		{"any names are booked", oddNames},
		{"bad queries are refused", badQueries},
		{"a store that is closed books nothing", closedBooks},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newBooks) })
	}
}

// bookLimit is a limit that denies nothing.
var bookLimit = limit.PerDay(1 << 40).Using(limit.FixedWindow)

// entry returns an entry with one request and so many tokens of input.
func entry(project, model, key string, input int64) books.Entry {
	e := books.Entry{Owner: books.Owner{Project: project, Model: model, Key: key}}
	e.Amounts[books.Requests], e.Amounts[books.Input] = 1, input
	return e
}

// takeOne takes one of a key.
func takeOne(t testing.TB, s store.Store) store.Receipt {
	t.Helper()
	r, _, err := s.Take(t.Context(), []store.Charge{charge("key", 1, bookLimit)})
	if err != nil || r == nil {
		t.Fatalf("take: %v, %v", r, err)
	}
	return r
}

// totalOf returns the sum of what a query asks for.
func totalOf(t testing.TB, s books.Keeper, q books.Query) books.Amounts {
	t.Helper()
	sum, err := s.ReadBooks(t.Context(), q)
	if err != nil {
		t.Fatalf("read %+v: %v", q, err)
	}
	return sum.Total
}

func bookedAtOnce(t *testing.T, newBooks Open) {
	open := newBooks(t, newClock().now, 1000)
	stores := []Store{open(), open()}
	var mu sync.Mutex
	want := map[string]*books.Amounts{}
	atOnce(func(random *rand.Rand) {
		for i := range 40 {
			s := stores[random.IntN(len(stores))]
			e := entry(fmt.Sprint("acme/", random.IntN(4)), fmt.Sprint("model ", random.IntN(3)), "", random.Int64N(1000))
			var err error
			if i%4 == 0 {
				err = s.Book(t.Context(), []books.Entry{e})
			} else {
				err = s.SettleBooked(t.Context(), takeOne(t, s), []int64{2}, &e)
			}
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			for _, name := range []string{"acme", e.Project} {
				if want[name] == nil {
					want[name] = new(books.Amounts)
				}
				want[name].Add(&e.Amounts)
			}
			mu.Unlock()
		}
	})
	for project, amounts := range want {
		for _, s := range append(stores, open()) {
			if got := totalOf(t, s, books.Query{Project: project}); got != *amounts {
				t.Errorf("%s: %v; want %v", project, got, *amounts)
			}
		}
	}
}

func bookedOnce(t *testing.T, newBooks Open) {
	s := newBooks(t, newClock().now, 1000)()
	e := entry("acme", "model", "", 7)
	r := takeOne(t, s)
	atOnce(func(*rand.Rand) {
		if err := s.SettleBooked(t.Context(), r, []int64{1}, &e); err != nil {
			t.Error(err)
		}
	})
	if err := s.SettleBooked(t.Context(), nil, nil, &e); err != nil {
		t.Error(err)
	}
	if err := s.SettleBooked(t.Context(), "no receipt", nil, &e); !errors.Is(err, store.ErrReceipt) {
		t.Errorf("a foreign receipt: %v", err)
	}
	if got := totalOf(t, s, books.Query{}); got[books.Requests] != 2 || got[books.Input] != 14 {
		t.Errorf("%v is booked; want a call that was settled several times, and one without a receipt", got)
	}
}

func boundedLines(t *testing.T, newBooks Open) {
	const most = 10
	c := newClock()
	s := newBooks(t, c.now, most)()
	want := map[string]int64{}
	for i := range 200 {
		root := fmt.Sprint("root ", i%4)
		e := entry(fmt.Sprint(root, "/user ", i%60), fmt.Sprint("model ", i/60), "key", int64(1+i))
		if err := s.Book(t.Context(), []books.Entry{e}); err != nil {
			t.Fatal(err)
		}
		want[root] += int64(1 + i)
		want[""] += int64(1 + i)
	}
	check := func(when string) {
		t.Helper()
		sum, err := s.ReadBooks(t.Context(), books.Query{By: []books.Dimension{books.ByProject, books.ByModel, books.ByKey}})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(sum.Rows); n <= most || n > 3*most+1 {
			t.Errorf("%s: %d lines; want at most %d", when, n, 3*most+1)
		}
		for root, amount := range want {
			if got := totalOf(t, s, books.Query{Project: root}); got[books.Input] != amount {
				t.Errorf("%s: %q has used %d; want %d", when, root, got[books.Input], amount)
			}
		}
	}
	check("by the hour")
	c.add(48 * time.Hour)
	if err := s.TrimBooks(t.Context(), books.Retention{Hours: 0, Days: 1000 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	check("by the day")
	for i := range 100 {
		if err := s.Book(t.Context(), []books.Entry{entry(fmt.Sprint("root ", i), "model", "key", 1)}); err != nil {
			t.Fatal(err)
		}
		want[""]++
	}
	if got := totalOf(t, s, books.Query{}); got[books.Input] != want[""] {
		t.Errorf("many roots have used %d; want %d", got[books.Input], want[""])
	}
	if got := totalOf(t, s, books.Query{Project: books.Other}); got[books.Input] == 0 {
		t.Error("no calls of many roots share a line")
	}
}

func hugeSums(t *testing.T, newBooks Open) {
	s := newBooks(t, newClock().now, 1000)()
	e := entry("acme", "model", "key", 1<<62)
	e.Amounts[books.Output] = -5
	for range 3 {
		entries := make([]books.Entry, 3000)
		for i := range entries {
			entries[i] = e
		}
		if err := s.Book(t.Context(), entries); err != nil {
			t.Fatal(err)
		}
	}
	got := totalOf(t, s, books.Query{})
	if got[books.Input] != books.MaxAmount || got[books.Output] != 0 || got[books.Requests] != 9000 {
		t.Errorf("%v is booked", got)
	}
}

func oddNames(t *testing.T, newBooks Open) {
	s := newBooks(t, newClock().now, 1000)()
	long := make([]byte, 1000)
	for i := range long {
		long[i] = 'x'
	}
	names := []string{"", "a", "a/b", "a/", "a0", "ä", "\x00", "\xff", "(other)", "'; --", "%", "{}", string(long)}
	for _, name := range names {
		e := entry(name, name, name, 1)
		if err := s.Book(t.Context(), []books.Entry{e}); err != nil {
			t.Errorf("%.20q: %v", name, err)
		}
	}
	for project, want := range map[string]int64{"": int64(len(names)), "a": 3, "a/b": 1, "a/": 1, "ä": 1, "%": 1, "b": 0} {
		if got := totalOf(t, s, books.Query{Project: project}); got[books.Requests] != want {
			t.Errorf("%q: %d requests; want %d", project, got[books.Requests], want)
		}
	}
}

func badQueries(t *testing.T, newBooks Open) {
	s := newBooks(t, newClock().now, 1000)()
	if _, err := s.ReadBooks(t.Context(), books.Query{By: []books.Dimension{"weather"}}); err == nil {
		t.Error("usage by weather is no error")
	}
}

func closedBooks(t *testing.T, newBooks Open) {
	s := newBooks(t, newClock().now, 1000)()
	r := takeOne(t, s)
	s.Close()
	e := entry("acme", "model", "key", 1)
	_, read := s.ReadBooks(t.Context(), books.Query{})
	for what, err := range map[string]error{
		"settle": s.SettleBooked(t.Context(), r, []int64{1}, &e),
		"book":   s.Book(t.Context(), []books.Entry{e}),
		"read":   read,
		"trim":   s.TrimBooks(t.Context(), books.Retention{}),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
