package ratelimit

import (
	"context"
	"fmt"
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

// BenchmarkShares measures calls in memory that are reserved and committed, of projects in turn that share a model: of one
// that shares with nobody, of a hundred, and of ten thousand users of one project.
func BenchmarkShares(b *testing.B) {
	const n = 1 << 40
	for _, among := range []struct{ projects, users int }{{1, 0}, {2, 0}, {100, 0}, {1000, 0}, {1, 10_000}, {100, 10_000}} {
		rl, err := NewWithConfig(Config{Quotas: map[string]ModelQuota{"m": {MaxRPM: n, MaxTPM: n, MaxRPD: n}}, FilePath: b.TempDir() + "/f"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := rl.NewProjects(project.Config{Default: &project.Limit{}}); err != nil {
			b.Fatal(err)
		}
		var calls []Call
		for i := range max(among.projects, among.users) {
			name := fmt.Sprintf("p%d", i%among.projects)
			c := Call{Model: "m", Project: name, RunProject: name, Estimated: 1200}
			if among.users > 0 {
				c.Project += fmt.Sprintf("/u%d", i)
			}
			calls = append(calls, c)
		}
		b.Run(fmt.Sprintf("projects=%d/users=%d", among.projects, among.users), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				res, d, err := rl.TryAcquireCall(context.Background(), calls[i%len(calls)])
				if err != nil || !d.Allowed {
					b.Fatal(d, err)
				}
				res.Commit(900, 100)
			}
		})
	}
}
