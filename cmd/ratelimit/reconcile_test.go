package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/books"
	"dappco.re/go/core/go-ratelimit/internal/hidden"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/store/sqlitestore"
)

// The example of docs/reconcile.md prints what the page says, with the exit codes that it names.
func TestReconcileIsAsDocumented(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state.db")
	s, err := sqlitestore.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	keeper := hidden.Of[books.Keeper](s)
	entry := books.Entry{Owner: books.Owner{Project: "acme", Model: "openai/gpt-4o"}, Amounts: books.Amounts{books.Requests: 12, books.Input: 4000, books.Output: 600, books.Nanodollars: 16_000_000}}
	if err := keeper.Book(t.Context(), []books.Entry{entry}); err != nil {
		t.Fatal(err)
	}
	sum, err := keeper.ReadBooks(t.Context(), books.Query{By: []books.Dimension{books.ByDay}})
	if err != nil || len(sum.Rows) != 1 {
		t.Fatal(sum, err)
	}
	today := time.Unix(sum.Rows[0].At, 0).UTC() // the day of the store's clock
	s.Close()
	bill := mockprovider.BillLine{Day: today, Model: "gpt-4o-2024-08-06", Requests: 12, Input: 4000, Output: 600, Nanodollars: 16_000_000}
	server := httptest.NewServer(mockprovider.New(mockprovider.Config{Bill: func() []mockprovider.BillLine { return []mockprovider.BillLine{bill} }}))
	defer server.Close()
	t.Setenv("OPENAI_ADMIN_KEY", "admin")
	run := func(more ...string) (string, int) {
		var out, errs strings.Builder
		args := []string{"reconcile", "--provider", "openai", "--since", "7d", "--state", state, "--base-url", server.URL}
		code := Main(t.Context(), append(args, more...), nil, &out, &errs)
		return out.String() + errs.String(), code
	}
	if got, code := run(); code != exitFine || got != "usage and the bill of openai are the same\n" {
		t.Errorf("%d %s", code, got)
	}
	bill.Requests, bill.Input, bill.Nanodollars = 14, 4800, 18_000_000
	page, err := os.ReadFile("../../docs/reconcile.md")
	if err != nil {
		t.Fatal(err)
	}
	got, code := run()
	got = strings.ReplaceAll(got, today.Format(time.DateOnly), "2026-11-17")
	if code != exitNo || !strings.Contains(string(page), got) {
		t.Errorf("%d, and docs/reconcile.md does not have\n%s", code, got)
	}
	for threshold, want := range map[string]int{"0.002": exitFine, "0.0019": exitNo, "11.2%": exitFine, "11.1%": exitNo, "0": exitNo, "a lot": exitUsage, "-1": exitUsage} {
		if got, code := run("--threshold", threshold); code != want { // the books lack $0.002 of $0.018
			t.Errorf("--threshold %s: %d, want %d: %s", threshold, code, want, got)
		}
	}
	t.Setenv("ANTHROPIC_ADMIN_KEY", "admin")
	if got, code := run("--provider", "anthropic", "--key", "k", "--threshold", "1"); code != exitUsage || !strings.Contains(got, "what each key has cost") {
		t.Errorf("%d %s", code, got)
	}
	metrics := filepath.Join(t.TempDir(), "ratelimit.prom")
	run("--metrics", metrics)
	for _, line := range []string{"ratelimit_reconcile_difference_dollars{provider=\"openai\"} 0.002\n", "ratelimit_reconcile_billed_dollars{provider=\"openai\"} 0.018\n", "ratelimit_reconcile_differences{provider=\"openai\"} 1\n"} {
		if text, err := os.ReadFile(metrics); err != nil || !strings.Contains(string(text), line) {
			t.Errorf("the file of metrics lacks %s%s, %v", line, text, err)
		}
	}
	t.Setenv("OPENAI_ADMIN_KEY", "not an administrator's")
	if got, code := run(); code != exitFailed || !strings.Contains(got, "administrator") {
		t.Errorf("%d %s", code, got)
	}
	t.Setenv("OPENAI_ADMIN_KEY", "")
	if got, code := run(); code != exitUsage || !strings.Contains(got, "OPENAI_ADMIN_KEY") {
		t.Errorf("%d %s", code, got)
	}
}
