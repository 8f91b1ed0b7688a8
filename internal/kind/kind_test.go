package kind

import (
	"cmp"
	"slices"
	"testing"
)

// Every kind, unit and window has a row, and every name is that of one kind alone, or of its share or its pace.
func TestEveryRowIsThere(t *testing.T) {
	for k := range kinds {
		if k.Name() == "" || k.Owner() == "" || k.Setting() == "" || k.Words() == "" || k.Label() == "" {
			t.Errorf("kind %d has no row: %+v", k, table[k])
		}
		if found, ok := Named(k.Name()); !ok || found != k {
			t.Errorf("%s is also the name of %v", k.Name(), found)
		}
	}
	for u := range Units {
		if u.String() == "" || u.Name() == "" || u.Words() == "" || u.Counted() == "" || u.Parts() == 0 {
			t.Errorf("unit %d has no row", u)
		}
	}
	names := Names()
	slices.Sort(names)
	if twice := len(names) - len(slices.Compact(names)); twice > 0 {
		t.Errorf("%d names stand there twice", twice)
	}
}

// The kinds of a model come first, and of each owner those of requests, because a call that only spends requests is
// charged to the first windows of a plan.
func TestTheTableIsInOrder(t *testing.T) {
	for k := range kinds {
		if (k.Owner() == Model) != (k < Models) {
			t.Errorf("%s is of a %s: the kinds of a model must come first, and MaxConcurrent be the last of them", k, k.Owner())
		}
	}
	for _, owner := range []Owner{Project, Run} {
		if !slices.IsSortedFunc(Of(owner), func(a, b Kind) int {
			return cmp.Compare(min(a.Unit(), Tokens), min(b.Unit(), Tokens))
		}) {
			t.Errorf("of a %s, the kinds that limit requests must come first: %v", owner, Of(owner))
		}
	}
}

// A name that a store knows is that of one limit, and stays: it is part of keys in stores of earlier versions.
func TestKeysStayAsTheyWereWritten(t *testing.T) {
	for name, want := range map[string]string{
		"requests_per_hour": "hour", "requests_per_day": "day", "tokens_per_hour": "tokens-hour", "tokens_per_day": "tokens-day",
		"tokens_per_month": "tokens-month", "dollars_per_hour": "dollars-hour", "dollars_per_day": "dollars-day",
		"dollars_per_week": "dollars-week", "dollars_per_month": "dollars-month", "dollars": "dollars",
		"runs.calls": "run-calls", "runs.tokens": "run-tokens", "runs.dollars": "run-dollars", "max_rpm": "max_rpm", "else": "else",
	} {
		if got := Key(name); got != want {
			t.Errorf("the key of %s is %s: want %s", name, got, want)
		}
	}
}

// A struct without a field for a kind is a mistake of the program, which cannot start.
func TestAMissingFieldIsFound(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("nobody noticed")
		}
	}()
	NewFields[struct {
		Calls int `json:"calls"`
	}](Run)
}

func TestFieldsAreFoundByTheirNames(t *testing.T) {
	type limits struct {
		Other   string
		Dollars int64 `json:"dollars,omitempty"`
		Tokens  int   `json:"tokens"`
		Calls   int   `json:"calls"`
	}
	f, l := NewFields[limits](Run), &limits{Dollars: 7}
	f.Set(l, RunCalls, 3)
	if f.Get(l, RunDollars) != 7 || l.Calls != 3 || f.Name(RunTokens) != "Tokens" {
		t.Errorf("%+v", l)
	}
}
