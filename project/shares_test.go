package project_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
	"dappco.re/go/core/go-ratelimit/store"
)

func least(p limit.Percent) project.Limit { return project.Limit{MinShare: p} }

// MinShares that add up to more than everything are refused wherever they are given, and nothing
// changes.
func TestMinSharesOfAllProjects(t *testing.T) {
	cfg := project.Config{Limits: map[string]project.Limit{"a": least(60), "b": least(30), "c": least(20), "d": {Weight: 2}}}
	const sum = "ratelimit: the minimum shares of projects add up to 110%, which must be 100% at most: 60% of a, 30% of b, 20% of c"
	if _, err := project.NewWithConfig(cfg); fmt.Sprint(err) != sum {
		t.Errorf("%v; want %s", err, sum)
	}
	cfg.Limits["c"] = least(10)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, kind(t, cfg))
			for _, more := range []map[string]project.Limit{
				{"c": least(20)},
				{"new": least(10)},
				{"a": least(50), "new": least(20), "newer": least(0.5)},
			} {
				if err := l.SetLimits(more); err == nil || !strings.Contains(err.Error(), "which must be 100% at most: ") {
					t.Errorf("%v: %v", more, err)
				}
			}
			if !maps.Equal(l.Limits(), cfg.Limits) {
				t.Errorf("%v", l.Limits())
			}
			if err := l.SetLimits(map[string]project.Limit{"a": least(33.3), "b": least(33.3), "c": {}, "new": least(33.4)}); err != nil {
				t.Error(err)
			}
			if err := l.UnsetLimit("a"); err != nil {
				t.Fatal(err)
			}
			if err := l.SetLimit("c", least(33.3)); err != nil {
				t.Error(err)
			}
		})
	}
}

// An error names the projects that have most.
func TestManyMinShares(t *testing.T) {
	limits := map[string]project.Limit{}
	for i := range 30 {
		limits[fmt.Sprintf("p%02d", i)] = least(limit.Percent(1 + i))
	}
	err := project.CheckShares(limits)
	if err == nil || !strings.Contains(err.Error(), "add up to 465%") || !strings.HasSuffix(err.Error(), "at most: 30% of p29, 29% of p28, 28% of p27, 27% of p26, 26% of p25, 25% of p24, 24% of p23, 23% of p22, 22% of p21, 21% of p20, those of 20 more") {
		t.Error(err)
	}
}

// Every project without a limit of its own has the default, so it can promise none of them anything.
func TestMinShareOfTheDefault(t *testing.T) {
	const says = "ratelimit: the default limit: MinShare is 10%: it must be 0 here"
	if _, err := project.NewWithConfig(project.Config{Default: new(least(10))}); err == nil || !strings.HasPrefix(err.Error(), says) {
		t.Error(err)
	}
	l := newLimiter(t, project.Config{})
	if err := l.SetDefault(least(10)); err == nil || !strings.HasPrefix(err.Error(), says) || l.Limit("p") != *project.DefaultLimit {
		t.Error(err, l.Limit("p"))
	}
	if err := l.SetDefault(project.Limit{MaxShare: 10}); err != nil {
		t.Error(err)
	}
}

// Limits of a store whose MinShares are more than everything, together with those of the limiter, are
// not used. Others are.
func TestMinSharesOfTheStore(t *testing.T) {
	k := &keeping{Memory: store.NewMemory(), answers: 1, values: map[string]string{
		"project/a": `{"min_share":"60%"}`, "project/b": `{"weight":3}`, "project/c": `{"min_share":"30%","dedicated":true,"max_share":"70%"}`,
	}}
	l := newLimiter(t, project.Config{Store: k, Limits: map[string]project.Limit{"c": least(20), "d": least(20)}})
	if want := (map[string]project.Limit{"b": {Weight: 3}, "c": least(20), "d": least(20)}); !maps.Equal(l.Limits(), want) {
		t.Errorf("%v; want %v", l.Limits(), want)
	}
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "the store's limits with a new MinShare are not used: the minimum shares of projects add up to 110%") {
		t.Error(err)
	}
	k.answers = 1
	l = newLimiter(t, project.Config{Store: k, Limits: map[string]project.Limit{"c": least(20)}})
	if want := (map[string]project.Limit{"a": least(60), "b": {Weight: 3}, "c": {MinShare: 30, MaxShare: 70, Dedicated: true}}); !maps.Equal(l.Limits(), want) {
		t.Errorf("%v; want %v", l.Limits(), want)
	}
}

// Shares are kept in a store as other limits are.
func TestSharesAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.db")
	a, b := newLimiter(t, project.Config{Store: openSQLite(t, path)}), newLimiter(t, project.Config{Store: openSQLite(t, path)})
	want := project.Limit{MinShare: 12.5, MaxShare: 50, Dedicated: true}
	setLimit(t, a, "p", want)
	testkit.Eventually(t, "the other follows", func() bool { return b.Limit("p") == want })
	if err := b.SetLimit("q", least(90)); err == nil {
		t.Error("the other does not count them")
	}
}
