package database

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/transaction"
	"dappco.re/go/core/go-ratelimit/llm"
)

type quotas = map[string]state.Quota

func open(t *testing.T, path string, q quotas, maxUnknown int) (*File, Content) {
	t.Helper()
	f, c, err := Open(path, q, maxUnknown)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, c
}

// usage returns what was used by the accounts of the file, and by its tables.
func usage(t *testing.T, f *File, q quotas) (accounts, tables map[string]int) {
	t.Helper()
	accounts, tables = map[string]int{}, map[string]int{}
	err := f.update(t.Context(), func(tx transaction.Tx) error {
		all, err := readAllUsage(tx, q)
		for model, u := range all {
			accounts[model] = u.DayCount
		}
		if err != nil {
			return err
		}
		return each(tx, "SELECT model, COUNT(*) FROM requests GROUP BY model", func(scan func(...any) error) error {
			var model string
			var n int
			err := scan(&model, &n)
			tables[model] = n
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return accounts, tables
}

func used(n int) state.Usage {
	now := time.Now()
	return state.Usage{Requests: slices.Repeat([]time.Time{now}, n), DayStart: now, DayCount: n}
}

// The content of Replace is in the file when it is opened: in the accounts, and in the tables of older
// programs.
func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	var weights llm.TokenWeights
	if err := json.Unmarshal([]byte(`{"cached_input":0,"output":5.25}`), &weights); err != nil {
		t.Fatal(err)
	}
	want := quotas{"m": {MaxRPM: 10, MaxTPD: 5, MaxConcurrent: 2, DayResetsAt: "00:00 UTC", Auto: true, Margin: time.Second, Reserve: 12.5, ReserveTokens: "most", OnOverrun: "cut", Pace: state.PaceEven, PaceBurst: 2.5, Count: weights}}
	for _, n := range []int{9, 3} { // the second in place of the first
		if err := Replace(path, want, map[string]state.Usage{"m": used(n), "other": used(2)}); err != nil {
			t.Fatal(err)
		}
	}
	f, c := open(t, path, quotas{"m": {MaxRPM: 1}, "n": {}}, 10)
	if diff := cmp.Diff(Content{want, []string{"other"}}, c); diff != "" {
		t.Error(diff)
	}
	accounts, tables := usage(t, f, want)
	if both := map[string]int{"m": 3, "other": 2}; !maps.Equal(accounts, both) || !maps.Equal(tables, both) {
		t.Errorf("%v, %v; want %v", accounts, tables, both)
	}
}

// Of models without a quota, the file keeps the usage of those that were used most.
func TestUnknownModelsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	all := map[string]state.Usage{"known": used(1), "little": used(2), "much": used(4), "more": used(3)}
	if err := Replace(path, nil, all); err != nil {
		t.Fatal(err)
	}
	f, c := open(t, path, quotas{"known": {}}, 2)
	if want := []string{"much", "more"}; !slices.Equal(c.Unknown, want) {
		t.Errorf("%v; want %v", c.Unknown, want)
	}
	if accounts, _ := usage(t, f, nil); accounts["little"] != 0 || accounts["known"] != 1 {
		t.Errorf("%v", accounts)
	}
}

// A quota that is added does not replace one, and a quota that is put does.
func TestQuotas(t *testing.T) {
	f, _ := open(t, filepath.Join(t.TempDir(), "limits.db"), quotas{}, 10)
	if err := f.PutQuotas(quotas{"a": {MaxRPM: 1}, "b": {MaxRPM: 2}}); err != nil {
		t.Fatal(err)
	}
	current, err := f.AddQuotas(quotas{"a": {MaxRPM: 9}, "c": {MaxRPM: 3}})
	if want := (quotas{"a": {MaxRPM: 1}, "c": {MaxRPM: 3}}); err != nil || !maps.Equal(current, want) {
		t.Errorf("%v, %v; want %v", current, err, want)
	}
	if err := f.Save(quotas{"b": {MaxRPM: 9}, "d": {MaxRPM: 4}}); err != nil {
		t.Fatal(err)
	}
	all, err := f.Quotas(t.Context())
	if want := (quotas{"a": {MaxRPM: 1}, "b": {MaxRPM: 2}, "c": {MaxRPM: 3}, "d": {MaxRPM: 4}}); err != nil || !maps.Equal(all, want) {
		t.Errorf("%v, %v; want %v", all, err, want)
	}
}

// A quota that is not valid is an error that names the file, and nothing is replaced.
func TestInvalidQuota(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	if err := Replace(path, quotas{"m": {MaxRPM: 1}}, nil); err != nil {
		t.Fatal(err)
	}
	err := Replace(path, quotas{"m": {MaxRPM: -1}}, nil)
	if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: "+path+": quota of \"m\": max_rpm of -1") {
		t.Errorf("%v", err)
	}
	f, c := open(t, path, quotas{}, 1)
	if c.Quotas["m"].MaxRPM != 1 {
		t.Errorf("%v", c.Quotas)
	}
	if err := f.PutQuotas(quotas{"m": {MaxRPM: -1}}); err != nil { // as a program with other rules may
		t.Fatal(err)
	}
	if _, err := f.Quotas(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}
