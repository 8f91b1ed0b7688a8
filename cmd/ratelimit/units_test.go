package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/dashboard"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/store"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// These tests find every unit that calls use beside tokens at every door, also one that is new. Its limits are kinds, and
// the tests of kinds find these.

// someOf returns how many of each unit a call uses: of no two the same.
func someOf() (units llm.Units) {
	for i := range units {
		units[i] = int64(701 + i)
	}
	return units
}

// What a call has used of each unit is in the books of every store, and in every form of the report.
func TestTheBooksAndUsageHaveEveryUnit(t *testing.T) {
	path, redis := filepath.Join(t.TempDir(), "state.db"), redistest.New(t).PatientURL()
	inFile, err := sqlitestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	inRedis, err := redisstore.New(redisstore.Config{URL: redis})
	if err != nil {
		t.Fatal(err)
	}
	for path, s := range map[string]store.Store{path: inFile, redis: inRedis} {
		entry := books.Entry{Owner: books.Owner{Project: "acme", Model: "openai/m"}, Amounts: books.Amounts{books.Requests: 1}}
		units := someOf()
		copy(entry.Amounts[books.Beside:], units[:])
		if err := errors.Join(hidden.Of[books.Keeper](s).Book(t.Context(), []books.Entry{entry}), s.Close()); err != nil {
			t.Fatal(err)
		}
		table, file := run(t, "usage", "--state", path), run(t, "usage", "--state", path, "--csv")
		var report gateway.UsageReport
		if got := run(t, "usage", "--state", path, "--json"); json.Unmarshal([]byte(got.stdout), &report) != nil {
			t.Fatalf("%s: %+v", path, got)
		}
		for i, u := range kind.Beside {
			if n := *report.Total.Unit(i); n != units[i] {
				t.Errorf("%s: %s is %d in JSON: want %d", path, u.Name(), n, units[i])
			}
			if want := fmt.Sprint(units[i]); !strings.Contains(table.stdout, u.Heading) || !strings.Contains(table.stdout, want) || !strings.Contains(file.stdout, ","+u.Name()) || !strings.Contains(file.stdout, ","+want) {
				t.Errorf("%s: %s is not shown:\n%s\n%s", path, u.Name(), table.stdout, file.stdout)
			}
		}
	}
}

func TestTheDocumentsAndTheDashboardHaveEveryUnit(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	openAPI, example, prices := read("internal/gateway/admin/openapi.json"), read("internal/gateway/config/example.yaml"), read("docs/prices.md")
	w := httptest.NewRecorder()
	dashboard.New("test").ServeHTTP(w, httptest.NewRequest("GET", "/assets/kinds.js", nil))
	for _, u := range kind.Beside {
		if n := strings.Count(openAPI, fmt.Sprintf("          %q: {\"type\": \"integer\"", u.Name())); n != 2 {
			t.Errorf("%d of UsageSum and UsageRow of the OpenAPI document have %s: run make docs", n, u.Name())
		}
		if dashboard.Included && !strings.Contains(w.Body.String(), fmt.Sprintf(`{"name":%q,"heading":%q}`, u.Name(), u.Heading)) {
			t.Errorf("the dashboard does not know %s", u.Name())
		}
		if !strings.Contains(example, "#     "+u.Price+": ") || !strings.Contains(prices, "`"+u.Price+"`") {
			t.Errorf("example.yaml or prices.md has no %s", u.Price)
		}
	}
}

// The configuration sets a price for each unit, and the command works out what so many of them cost.
func TestEveryUnitHasAPrice(t *testing.T) {
	for i, u := range kind.Beside {
		text := fmt.Sprintf("providers: {openai: {}}\nprices: {m: {input: 1, %s: 3}}\n", u.Price)
		c, err := config.Parse("gateway.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p, ok := c.Prices.Of("openai", "m", time.Now())
		var used llm.Usage
		used.Units[i] = u.Per
		if !ok || p.Total(used, time.Now()) != 3*price.Dollar {
			t.Errorf("%d %s cost %v: want $3", u.Per, u.Name(), p.Total(used, time.Now()))
		}
		got := run(t, "prices", "m", "--config", file(t, "gateway.yaml", text), "--input", "0", "--output", "0", fmt.Sprintf("--%v=%d", u, u.Per))
		if got.code != exitFine || !strings.Contains(got.stdout, "$3") || !strings.Contains(got.stdout, u.PriceOf) {
			t.Errorf("%s: %+v", u.Name(), got)
		}
	}
}
