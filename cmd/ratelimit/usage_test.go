package main

import (
	"encoding/csv"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/cmd/ratelimit/internal/console"
	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// bookedFile returns the path of a state whose books have entries.
func bookedFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limits.db")
	s, err := sqlitestore.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	entry := func(project, model string, requests, input, nanodollars int64) books.Entry {
		return books.Entry{Owner: books.Owner{Project: project, Model: model, Key: "k1"}, Amounts: books.Amounts{books.Requests: requests, books.Input: input, books.Nanodollars: nanodollars}}
	}
	err = hidden.Of[books.Keeper](s).Book(t.Context(), []books.Entry{
		entry("acme/search", "openai/gpt-6-astra", 12, 1_234_567, 2_500_000_001),
		entry("acme/search/alice", "openai/gpt-6-astra", 3, 900, 1),
		entry("=beta", "anthropic/claude", 1, 5, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsageOfAState(t *testing.T) {
	path := bookedFile(t)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{}, `
project            requests   input      dollars
=beta                     1       5            -
acme/search              12  1,234k         2.50
acme/search/alice         3     900  0.000000001
total                    16  1,235k         2.50`},
		{[]string{"--project", "acme", "--depth", "1"}, `
project  requests   input  dollars
acme           15  1,235k     2.50`},
		{[]string{"--by", "model,key", "--project", "acme"}, `
model               key  requests   input  dollars
openai/gpt-6-astra  k1         15  1,235k     2.50`},
		{[]string{"--until", "2026-01-01", "--since", "2025-12-01"}, `
nothing was used from 2025-12-01T00:00:00Z to 2026-01-01T00:00:00Z`},
		{[]string{"--csv", "--by", "project"}, `
project,requests,input_tokens,cached_tokens,cache_write_tokens,output_tokens,reasoning_tokens,dollars,denied,waited,waited_seconds,images,audio_seconds,characters,web_searches,file_searches,pages,video_seconds,containers,token_hours,search_units,trained_tokens,byte_days
'=beta,1,5,0,0,0,0,0.00,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0
acme/search,12,1234567,0,0,0,0,2.500000001,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0
acme/search/alice,3,900,0,0,0,0,0.000000001,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0`},
	} {
		var out, errs strings.Builder
		if code := Main(t.Context(), append([]string{"usage", "--state", path}, test.args...), nil, &out, &errs); code != 0 {
			t.Fatalf("%q: %d %s", test.args, code, errs.String())
		}
		if got := strings.TrimSuffix(out.String(), "\n"); got != test.want[1:] {
			t.Errorf("%q:\n%s\nwant:\n%s", test.args, got, test.want[1:])
		}
	}
}

func TestUsageAsJSON(t *testing.T) {
	var out, errs strings.Builder
	if code := Main(t.Context(), []string{"usage", "--state", bookedFile(t), "--json", "--by", "hour,project"}, nil, &out, &errs); code != 0 {
		t.Fatal(code, errs.String())
	}
	var r admin.UsageReport
	if err := json.Unmarshal([]byte(out.String()), &r); err != nil || len(r.Rows) != 3 || r.Total.Requests != 16 || r.Rows[0].Time.IsZero() {
		t.Errorf("%v, %s", err, out.String())
	}
}

func TestBadUsage(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.db")
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--since", "yesterday"}, exitUsage, `"yesterday" is no time: it must be a date such as 2026-11-01`},
		{[]string{"--by", "weather"}, exitUsage, "it can be grouped by project, model, key, hour, day"},
		{[]string{"--depth", "x"}, exitUsage, "it must be 1 or more"},
		{[]string{"--csv", "--json"}, exitUsage, "it can be one of them"},
		{[]string{"--state", ""}, exitUsage, "--state is empty"},
		{[]string{"--state", missing}, exitFailed, "there is no state at"},
		{[]string{"--admin", "127.0.0.1:1"}, exitFailed, "no gateway answers at"},
	} {
		var out, errs strings.Builder
		code := Main(t.Context(), append([]string{"usage"}, test.args...), nil, &out, &errs)
		if code != test.code || !strings.Contains(errs.String(), test.want) {
			t.Errorf("%q: %d %s", test.args, code, errs.String())
		}
	}
}

// Tables fit a terminal of 80 columns, whatever the names, and are not cut if they need not be.
func TestUsageFits(t *testing.T) {
	huge := admin.UsageSum{Requests: 1 << 42, Input: 999_999_999, Cached: 123_456, Output: 99_999, Dollars: 123_456_789_000_000_000, Denied: 100_000, Waited: 1}
	r := admin.UsageReport{By: []string{"day", "project", "model", "key"}, Total: huge}
	for _, name := range []string{"a", strings.Repeat("long/", 30)} {
		r.Rows = append(r.Rows, admin.UsageRow{Time: time.Now(), Project: name, Model: "openai/" + name, UsageSum: huge})
		lines := usageLines(r, 80)
		for _, line := range lines {
			if n := console.Width(line); n > 80 {
				t.Errorf("%d: %s", n, line)
			}
		}
	}
	var out strings.Builder
	if err := r.WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil || len(rows) != 3 || rows[2][1] != r.Rows[1].Project {
		t.Errorf("%v, %q", err, rows)
	}
}
