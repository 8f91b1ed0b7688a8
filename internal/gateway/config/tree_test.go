package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// Projects below others inherit how their calls are treated, and no limits, whatever the order
// of the file.
func TestProjectsInsideOfOthers(t *testing.T) {
	c := parsed(t, `
defaults: {requests_per_minute: 60, fit_min: 99, max_wait: 1s, models: [a, b], dollars: 7, weight: 2}
projects:
  "acme/search/*": {dollars_per_day: 20.5}
  acme/search: {dollars_per_month: 2_000, unknown_usage: seen, models: [a]}
  "*/*": {requests_per_day: 9}
  acme/*/x: {}
  acme: {max_wait: 2s, fit: true, tokens_per_minute: 5, reserve: most, on_overrun: cut, resets: {month: 15, zone: Europe/Berlin}}
  acme/own: {resets: off, fit: false, reserve: expected, on_overrun: debt, max_wait: 0s}
`)
	berlin := limit.Calendar{Month: 15, Zone: "Europe/Berlin"}
	for path, want := range map[string]*config.Project{
		"acme": {
			Limit:   project.Limit{RequestsPerMinute: 60, TokensPerMinute: 5, Dollars: 7 * price.Dollar, Weight: 2, Resets: berlin, Reserve: project.ReserveMost, OnOverrun: project.OverrunCut},
			MaxWait: 2 * time.Second, UnknownUsage: config.UsageReserved, FailedCalls: config.FailedFree, Fit: true, FitMin: 99, Models: []string{"a", "b"},
		},
		"acme/search": {
			Limit:   project.Limit{DollarsPerMonth: 2_000 * price.Dollar, Weight: 1, Resets: berlin, Reserve: project.ReserveMost, OnOverrun: project.OverrunCut},
			MaxWait: 2 * time.Second, UnknownUsage: config.UsageSeen, FailedCalls: config.FailedFree, Fit: true, FitMin: 99, Models: []string{"a"},
		},
		"acme/search/*": {
			Limit:   project.Limit{DollarsPerDay: 20*price.Dollar + price.Dollar/2, Weight: 1, Resets: berlin, Reserve: project.ReserveMost, OnOverrun: project.OverrunCut},
			MaxWait: 2 * time.Second, UnknownUsage: config.UsageSeen, FailedCalls: config.FailedFree, Fit: true, FitMin: 99,
		},
		"*/*":      {Limit: project.Limit{RequestsPerDay: 9, Weight: 1}, MaxWait: time.Second, UnknownUsage: config.UsageReserved, FailedCalls: config.FailedFree, FitMin: 99},
		"acme/*/x": {Limit: project.Limit{Weight: 1}, MaxWait: time.Second, UnknownUsage: config.UsageReserved, FailedCalls: config.FailedFree, FitMin: 99}, // as */* has it
		"acme/own": {Limit: project.Limit{Weight: 1, Reserve: project.ReserveExpected, OnOverrun: project.OverrunDebt}, UnknownUsage: config.UsageReserved, FailedCalls: config.FailedFree, FitMin: 99},
	} {
		differ(t, path, want, c.Projects[path])
	}
}

func TestUsersAndRuns(t *testing.T) {
	c := parsed(t, "users: {header: x-user-id, field: user}\nruns: {dollars: 2, tokens: 1_000_000, calls: 500, reserve: expected, on_overrun: cut, expires: 24h}")
	differ(t, "users", config.Users{Header: "X-User-Id", Fields: []dialect.UserField{"user"}}, c.Users)
	differ(t, "runs", config.Runs{Dollars: 2 * price.Dollar, Tokens: 1_000_000, Calls: 500, Reserve: project.ReserveExpected, OnOverrun: project.OverrunCut, Expires: 24 * time.Hour}, c.Runs)
	c = parsed(t, "users: {field: [safety_identifier, metadata.user_id]}")
	differ(t, "users", config.Users{Fields: []dialect.UserField{"safety_identifier", "metadata.user_id"}}, c.Users)
}

func TestStarInAName(t *testing.T) {
	c := parsed(t, "projects: {acme/team-*: {}}")
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "a character like any other") {
		t.Errorf("it warns of %q", c.Warnings)
	}
}

// The rules of each level are those of its own path, or of the best of all templates that fit.
func TestTree(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "*"})
	rapid.Check(t, func(t *rapid.T) {
		c := &config.Config{Defaults: &config.Project{}, Projects: map[string]*config.Project{}}
		for i := range rapid.IntRange(0, 12).Draw(t, "projects") {
			path := strings.Join(rapid.SliceOfN(names, 1, 4).Draw(t, "path"), "/")
			if path != "*" {
				c.Projects[path] = &config.Project{MaxWait: time.Duration(i + 1)}
			}
		}
		tree := config.NewTree(c)
		asked := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 5).Draw(t, "asked")
		var want []*config.Project
		for depth := range asked {
			if rules := best(c, asked[:depth+1]); rules != nil {
				want = append(want, rules)
			}
		}
		if got := tree.Append(nil, strings.Join(asked, "/")); !slices.Equal(got, want) {
			t.Fatalf("%s: got %v, want %v", asked, got, want)
		}
	})
}

// best tries all that could fit, the best first.
func best(c *config.Config, path []string) *config.Project {
	if len(path) == 1 {
		if rules := c.Projects[path[0]]; rules != nil {
			return rules
		}
		return c.Defaults
	}
	for stars := range 1 << len(path) {
		pattern := slices.Clone(path)
		for i, bit := range fmt.Sprintf("%0*b", len(path), stars) {
			if bit == '1' {
				pattern[i] = "*"
			}
		}
		if rules := c.Projects[strings.Join(pattern, "/")]; rules != nil {
			return rules
		}
	}
	return nil
}

func TestTreeAllocatesNothing(t *testing.T) {
	tree := config.NewTree(parsed(t, "projects: {acme: {}, acme/search: {}, acme/search/*: {}, '*/*': {}}"))
	var room [8]*config.Project
	if n := testing.AllocsPerRun(100, func() { tree.Append(room[:0], "acme/search/alice") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
