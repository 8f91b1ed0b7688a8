// Package statefile holds the test that other programs can read the state file.
package statefile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/internal/statefile"
)

// A state file is YAML: a library of others reads it into the public types by their tags, and
// finds the same names, quotas and usage.
func TestOthersReadStateFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 1<<32).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
		count := rapid.IntRange(0, state.MaxQuota).Draw(t, "count")
		model := names().Draw(t, "model")
		quota := state.Quota{MaxRPM: count, MaxTPM: 1, MaxRPD: 2, MaxInputTPM: 3, MaxOutputTPM: 4, MaxTPD: 5, MaxConcurrent: 6, DayResetsAt: "00:00 UTC", Auto: true, Margin: time.Second}
		entry := state.Entry{Time: at, Count: count}
		usage := state.Usage{
			Requests: []time.Time{at}, Tokens: []state.Entry{entry}, DayStart: at, DayCount: count,
			InputTokens: []state.Entry{entry}, OutputTokens: []state.Entry{entry}, DayTokens: &entry,
		}
		file := statefile.File{Quotas: map[string]state.Quota{model: quota}, State: map[string]state.Usage{model: usage}}
		if err := statefile.Write(path, file); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Quotas map[string]ratelimit.ModelQuota
			State  map[string]ratelimit.UsageStats
		}
		if err := yaml.UnmarshalWithOptions(text, &got, yaml.Strict()); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		public := ratelimit.TokenEntry(entry)
		want := got
		want.Quotas = map[string]ratelimit.ModelQuota{model: ratelimit.ModelQuota(quota)}
		want.State = map[string]ratelimit.UsageStats{model: {
			Requests: usage.Requests, Tokens: []ratelimit.TokenEntry{public}, DayStart: at, DayCount: count,
			InputTokens: []ratelimit.TokenEntry{public}, OutputTokens: []ratelimit.TokenEntry{public}, DayTokens: &public,
		}}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("-want +got:\n%s\n%s", diff, text)
		}
	})
}

// names are names that YAML could take for something else.
func names() *rapid.Generator[string] {
	parts := rapid.SampledFrom([]string{
		"gpt", "4o", "-", ".", "/", ":", ": ", " #", "#", " ", "'", `"`, "\\", "?", "- ", "<<", "*", "&", "!", "|", ">", "%", "@", "`",
		"[", "]", "{", "}", ",", "null", "~", "true", "No", "1", "1.5", "0x1f", ".inf", "2026-02-20", "---", "...", "é", "模", "🤖", "\u00a0", "\u2028", "\ufeff",
	})
	return rapid.Map(rapid.SliceOfN(parts, 1, 6), func(parts []string) string { return strings.Join(parts, "") })
}
