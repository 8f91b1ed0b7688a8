package gateway

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// usage returns what the books say of a query.
func (r *rig) usage(t testing.TB, q books.Query) *books.Summary {
	t.Helper()
	r.settled(t)
	sum, err := r.Usage(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// Calls are in the books once they are settled, with what the provider has reported, and calls that were denied at once.
func TestBooks(t *testing.T) {
	for name, state := range map[string]string{"memory": "", "SQLite": "state: " + t.TempDir() + "/limits.db\n"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, state+oneOfEach+`
defaults: {max_wait: 0s}
projects:
  acme/small: {requests_per_minute: 1}
`, mockprovider.Config{})
			a := r.post(t, chat, hello, "X-Project-ID", "acme/small")
			r.post(t, chat, hello, "X-Project-ID", "acme/small") // denied
			r.post(t, messages, hello, "X-Project-ID", "acme/big")
			r.post(t, chat, "no JSON", "X-Project-ID", "acme/big") // refused
			if a.status != 200 {
				t.Fatal(a)
			}
			sum := r.usage(t, books.Query{Project: "acme", By: []books.Dimension{books.ByProject, books.ByModel}})
			if len(sum.Rows) != 2 {
				t.Fatalf("%+v", sum)
			}
			big, small := sum.Rows[0], sum.Rows[1]
			if small.Project != "acme/small" || !strings.HasPrefix(small.Model, "openai/") || small.Amounts[books.Requests] != 1 || small.Amounts[books.Denied] != 1 {
				t.Errorf("%+v", small)
			}
			if big.Project != "acme/big" || !strings.HasPrefix(big.Model, "anthropic/") || big.Amounts[books.Requests] != 1 || big.Amounts[books.Denied] != 0 {
				t.Errorf("%+v", big)
			}
			record := r.Recent("acme/big", 0, 1)[0]
			if big.Amounts[books.Input] != int64(record.Input) || big.Amounts[books.Output] != int64(record.Output) || record.Input == 0 {
				t.Errorf("%v is booked; the record is %+v", big.Amounts, record)
			}
			if sum.Total[books.Requests] != 2 || sum.Total[books.Denied] != 1 {
				t.Errorf("in all: %v", sum.Total)
			}
		})
	}
}

// A client that invents users or models, and has all of its calls denied, leaves room in the books for
// the names of others.
func TestDenialsLeaveRoomInTheBooks(t *testing.T) {
	r := newRig(t, oneOfEach, mockprovider.Config{})
	for i := range 3*books.MaxLines + 10 {
		r.books.denied(&books.Owner{Project: fmt.Sprintf("acme/user%d", i), Model: "openai/m"})
	}
	r.post(t, chat, hello, "X-Project-ID", "other")
	sum := r.usage(t, books.Query{Project: "other", By: []books.Dimension{books.ByProject, books.ByModel}})
	if len(sum.Rows) != 1 || !strings.HasPrefix(sum.Rows[0].Model, "openai/") || sum.Rows[0].Amounts[books.Requests] != 1 {
		t.Errorf("%+v", sum)
	}
	if sum := r.usage(t, books.Query{Project: "acme"}); sum.Total[books.Denied] != 3*books.MaxLines+10 {
		t.Errorf("of acme: %v", sum.Total)
	}
}

// Without books nothing is booked, and the gateway says so.
func TestBooksOff(t *testing.T) {
	r := newRig(t, oneOfEach+"usage: off\n", mockprovider.Config{})
	r.post(t, chat, hello)
	r.settled(t)
	if _, err := r.Usage(t.Context(), books.Query{}); !errors.Is(err, ErrNoBooks) {
		t.Error(err)
	}
	if sum, err := r.books.keeper.ReadBooks(t.Context(), books.Query{}); err != nil || sum.Total != (books.Amounts{}) {
		t.Errorf("%+v, %v", sum, err)
	}
}

// Denials that nobody reads are written a second later, and the books are trimmed as the configuration says.
func TestBooksOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(gatewaytest.Config(t, oneOfEach+"usage: {hours: 1d, days: 3d}\n", "http://127.0.0.1:1"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		total := func(by ...books.Dimension) (rows int, denied int64) {
			sum, err := g.books.keeper.ReadBooks(t.Context(), books.Query{By: by})
			if err != nil {
				t.Fatal(err)
			}
			return len(sum.Rows), sum.Total[books.Denied]
		}
		for range 3 {
			g.books.denied(&books.Owner{Project: "acme"})
		}
		if _, n := total(); n != 0 {
			t.Errorf("%d denials are written at once", n)
		}
		time.Sleep(flushEvery)
		synctest.Wait()
		if _, n := total(); n != 3 {
			t.Errorf("%d denials are written after a second", n)
		}
		time.Sleep(2 * time.Hour)
		g.books.denied(&books.Owner{Project: "acme"})
		time.Sleep(time.Minute)
		if rows, n := total(books.ByHour); rows != 2 || n != 4 {
			t.Errorf("%d denials in %d hours", n, rows)
		}
		time.Sleep(48 * time.Hour)
		if rows, n := total(books.ByHour); rows != 1 || n != 4 {
			t.Errorf("%d denials on %d days", n, rows)
		}
		time.Sleep(72 * time.Hour)
		if rows, n := total(); rows != 0 || n != 0 {
			t.Errorf("%d denials are left", n)
		}
		g.books.denied(&books.Owner{Project: "acme"})
		keeper := g.books.keeper
		g.books.close()
		sum, err := keeper.ReadBooks(t.Context(), books.Query{})
		if err != nil || sum.Total[books.Denied] != 1 {
			t.Errorf("%+v, %v after the end", sum, err)
		}
		g.books = newLedger(g)
		g.Close()
	})
}
