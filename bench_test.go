package ratelimit

import (
	"context"
	"testing"

	"dappco.re/go/core/go-ratelimit/project"
)

// BenchmarkCall measures calls in memory that are reserved and committed: of a model, and of a project and a model.
func BenchmarkCall(b *testing.B) {
	const n = 1 << 40
	for _, name := range []string{"", "search"} {
		rl, err := NewWithConfig(Config{Quotas: map[string]ModelQuota{"m": {MaxRPM: n, MaxTPM: n, MaxRPD: n}}, FilePath: b.TempDir() + "/f"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := rl.NewProjects(project.Config{Default: &project.Limit{
			RequestsPerMinute: n, RequestsPerHour: n, RequestsPerDay: n, TokensPerMinute: n, TokensPerHour: n, TokensPerDay: n,
		}}); err != nil {
			b.Fatal(err)
		}
		c := Call{Model: "m", Project: name, Estimated: 1200}
		b.Run("project="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				res, d, err := rl.TryAcquireCall(context.Background(), c)
				if err != nil || !d.Allowed {
					b.Fatal(d, err)
				}
				res.Commit(900, 100)
			}
		})
	}
}
