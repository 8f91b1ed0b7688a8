package ratelimit

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/statefile"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Every field of the public types is written under the name in its tag, and read again.
func TestYAMLFields(t *testing.T) {
	at := time.Date(2026, time.February, 20, 14, 32, 1, 0, time.UTC)
	five, err := llm.ParseWeight("5")
	if err != nil {
		t.Fatal(err)
	}
	want := statefile.File{
		Quotas: map[string]state.Quota{"m": {
			MaxRPM: 1, MaxTPM: 2, MaxRPD: 3, MaxInputTPM: 4, MaxOutputTPM: 5, MaxTPD: 6, MaxConcurrent: 7, MaxTokensInFlight: 8, MaxEnqueuedTokens: 9,
			DayResetsAt: "00:00 UTC", Auto: true, Margin: time.Second, Reserve: 12.5, ReserveTokens: "most", OnOverrun: "cut", Pace: "even", PaceBurst: 5, Count: TokenWeights{Output: five},
		}},
		State: map[string]state.Usage{"m": {
			Requests: []time.Time{at}, Tokens: []state.Entry{{Time: at, Count: 1}}, DayStart: at, DayCount: 2,
			InputTokens: []state.Entry{{Time: at, Count: 3}}, OutputTokens: []state.Entry{{Time: at, Count: 4}}, DayTokens: &state.Entry{Time: at, Count: 5},
		}},
	}
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := statefile.Write(path, want); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	used := usageStats(want.State["m"])
	for _, value := range []any{ModelQuota(want.Quotas["m"]), used, used.Tokens[0]} {
		fields := reflect.TypeOf(value)
		for i := range fields.NumField() {
			name, _, _ := strings.Cut(fields.Field(i).Tag.Get("yaml"), ",")
			if reflect.ValueOf(value).Field(i).IsZero() || !strings.Contains(string(text), " "+name+":") {
				t.Errorf("%v.%s is not written as %q:\n%s", fields, fields.Field(i).Name, name, text)
			}
		}
	}
	got, err := statefile.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
