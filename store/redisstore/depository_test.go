package redisstore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/accounts"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/store"
)

// A process that ends in the middle of a settlement leaves it to others. They finish what it has begun,
// by its amounts, and do nothing twice.
func TestSettlementOfAProcessThatEnds(t *testing.T) {
	server := redistest.New(t)
	entry := &books.Entry{Owner: books.Owner{Project: "acme"}, Amounts: books.Amounts{books.Requests: 1, books.Input: 40}}
	own := begun{"s", []int64{40}, entry}
	for name, part := range map[string]func(t *testing.T, s *Store, d *accounts.Deposit){
		"before anything": func(*testing.T, *Store, *accounts.Deposit) {},
		"after it was booked": func(t *testing.T, s *Store, d *accounts.Deposit) {
			if err := s.books.bookOnce(t.Context(), &own); err != nil {
				t.Error(err)
			}
		},
		"before it was dropped": func(t *testing.T, s *Store, d *accounts.Deposit) {
			if err := s.finishDeposit(t.Context(), d, &own); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			open := newBookStores(dialed(t, server.URL()))(t, time.Now().UnixNano, 1000)
			dead, other := open().(internals), open().(internals)
			total := limit.Total(1000)
			r, _, err := dead.Take(t.Context(), []store.Charge{{Key: "a/x", Limits: []limit.Limit{total}, N: 100}})
			if err != nil {
				t.Fatal(err)
			}
			if err := dead.Deposit(t.Context(), "d", r, nil); err != nil {
				t.Fatal(err)
			}
			found, err := dead.pair(t.Context(), findDeposit, "d")
			if err != nil {
				t.Fatal(err)
			}
			d, err := accounts.DecodeDeposit([]byte(found[1]))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := dead.beginSettlement(t.Context(), "d", own); err != nil {
				t.Fatal(err)
			}
			part(t, dead.Store, d)
			if due, err := other.DueDeposits(t.Context(), 0, 100); !slices.Equal(due, []string{"d"}) || err != nil {
				t.Errorf("due are %q, %v", due, err)
			}
			for range 2 {
				if err := other.SettleDeposit(t.Context(), "d", []int64{7}, nil); err != nil {
					t.Error(err)
				}
			}
			said, err := other.Peek(t.Context(), []store.Charge{{Key: "a/x", Limits: []limit.Limit{total}}})
			if err != nil || said[0].Remaining != 960 {
				t.Errorf("%+v, %v", said, err)
			}
			sum, err := other.ReadBooks(t.Context(), books.Query{})
			if err != nil || sum.Total != entry.Amounts {
				t.Errorf("booked are %+v, %v", sum, err)
			}
		})
	}
}

// Everything that Redis keeps of deposits expires, even if no deposit comes after it.
func TestDepositsExpire(t *testing.T) {
	server := redistest.New(t)
	s := newBookStores(dialed(t, server.URL()))(t, time.Now().UnixNano, 1000)().(internals)
	if err := s.Deposit(t.Context(), "d", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.NameDeposit(t.Context(), "d", "file"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.beginSettlement(t.Context(), "d", begun{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	for _, key := range s.depositKeys() {
		if left, err := server.Do("TTL", key); err != nil || left.(int64) <= 0 {
			t.Errorf("%s has %v left, %v", key, left, err)
		}
	}
}

// A deposit that cannot be read is an error, and can be dropped.
func TestCorruptDeposit(t *testing.T) {
	server := redistest.New(t)
	s := newBookStores(dialed(t, server.URL()))(t, time.Now().UnixNano, 1000)().(internals)
	for _, form := range []string{"", "{", `{"charges":[{"key":"a","limits":["AA=="],"n":1,"at":1}]}`, `{"charges":[{"n":-1}]}`} {
		if _, err := server.Do("HSET", s.depositKeys()[0], "d", form); err != nil {
			t.Fatal(err)
		}
		id, _, err := s.FindDeposit(t.Context(), "d")
		if id != "d" || !errors.Is(err, accounts.ErrDeposit) {
			t.Errorf("%q: %q, %v", form, id, err)
		}
		if err := s.SettleDeposit(t.Context(), "d", nil, nil); !errors.Is(err, accounts.ErrDeposit) {
			t.Errorf("%q is settled: %v", form, err)
		}
		if err := s.DropDeposit(t.Context(), "d"); err != nil {
			t.Error(err)
		}
	}
}

// A take that was decided without Redis is known to this process alone.
func TestDepositOfALocalTake(t *testing.T) {
	s := newBookStores(dialed(t, redistest.New(t).URL()))(t, time.Now().UnixNano, 1000)().(internals)
	if err := s.Deposit(t.Context(), "d", &localReceipt{}, nil); !errors.Is(err, store.ErrReceipt) {
		t.Error(err)
	}
}
