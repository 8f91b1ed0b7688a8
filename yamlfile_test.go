package ratelimit

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Every field of the public types is written under the name in its tag, and read again.
func TestYAMLFields(t *testing.T) {
	at := time.Date(2026, time.February, 20, 14, 32, 1, 0, time.UTC)
	want := saved{
		Quotas: map[string]ModelQuota{"m": {
			MaxRPM: 1, MaxTPM: 2, MaxRPD: 3, MaxInputTPM: 4, MaxOutputTPM: 5, MaxTPD: 6, MaxConcurrent: 7,
			DayResetsAt: "00:00 UTC", Auto: true, Margin: time.Second,
		}},
		State: map[string]UsageStats{"m": {
			Requests: []time.Time{at}, Tokens: []TokenEntry{{at, 1}}, DayStart: at, DayCount: 2,
			InputTokens: []TokenEntry{{at, 3}}, OutputTokens: []TokenEntry{{at, 4}}, DayTokens: &TokenEntry{at, 5},
		}},
	}
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := writeYAML(path, want); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []any{want.Quotas["m"], want.State["m"], want.State["m"].Tokens[0]} {
		fields := reflect.TypeOf(value)
		for i := range fields.NumField() {
			name, _, _ := strings.Cut(fields.Field(i).Tag.Get("yaml"), ",")
			if reflect.ValueOf(value).Field(i).IsZero() || !strings.Contains(string(text), " "+name+":") {
				t.Errorf("%v.%s is not written as %q:\n%s", fields, fields.Field(i).Name, name, text)
			}
		}
	}
	got, err := readYAML(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A file that says nothing of quotas or usage is told from one that says there are none.
func TestYAMLOfNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	for text, want := range map[string]saved{
		"":                        {},
		"quotas:\nstate: ~\n":     {},
		"quotas: {}\n":            {Quotas: map[string]ModelQuota{}},
		"quotas: {}\nstate: {}\n": {Quotas: map[string]ModelQuota{}, State: map[string]UsageStats{}},
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readYAML(path)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v, -want +got:\n%s", text, err, diff)
		}
	}
}
