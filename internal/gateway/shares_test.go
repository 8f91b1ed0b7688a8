package gateway

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gatewaytest"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/project"
)

const sharing = `
state: STATE
providers:
  openai: {base_url: MOCK, models: {gpt-4o: {max_rpm: 10, reserve: 10%, auto: true}}}
defaults: {max_wait: 0s}
projects:
  search: {min_share: 60%, dedicated: true}
  chat: {max_share: 30%}
`

// Shares and the reserve change with the configuration.
func TestReloadOfShares(t *testing.T) {
	memory := strings.Replace(sharing, "STATE", "memory", 1)
	r := newRig(t, memory, mockprovider.Config{})
	want := func(id string, l project.Limit) {
		t.Helper()
		l.Weight = 1
		testkit.Equal(t, "the limit of "+id, l, r.Projects().Limit(id))
	}
	want("search", project.Limit{MinShare: 60, Dedicated: true})
	want("chat", project.Limit{MaxShare: 30})
	if err := r.Projects().SetLimit("other", project.Limit{MinShare: 50}); err == nil {
		t.Error("more than everything is set")
	}
	edit := func(old, new string) string {
		return strings.NewReplacer(old, new, "reserve: 10%", "reserve: 5%").Replace(memory)
	}
	if err := r.Reload(r.again(t, edit("search: {min_share: 60%, dedicated: true}", "batch: {min_share: 70%}"))); err != nil {
		t.Fatal(err)
	}
	want("search", project.Limit{})
	want("batch", project.Limit{MinShare: 70})
	if q, _ := r.Models().Quota("gpt-4o"); q.Reserve != 5 {
		t.Errorf("%+v", q)
	}
	if err := r.Projects().SetLimit("other", project.Limit{MinShare: 30}); err != nil {
		t.Fatal(err)
	}
	err := r.Reload(r.again(t, strings.Replace(memory, "60%", "75%", 1)))
	if err == nil || !strings.Contains(err.Error(), "75% of search, 30% of other") {
		t.Errorf("%v", err)
	}
	want("batch", project.Limit{MinShare: 70})
	if err := r.Reload(r.again(t, memory)); err != nil {
		t.Error(err)
	}
}

// A gateway starts although its state has shares of projects that the configuration does not name
// any more, which are too much together with those of the configuration.
func TestSharesOfAnEarlierConfiguration(t *testing.T) {
	state := filepath.Join(t.TempDir(), "limits.db")
	first := strings.Replace(sharing, "STATE", state, 1)
	second := strings.Replace(first, "search:", "vip:", 1)
	for _, yaml := range []string{first, second} {
		g, err := New(gatewaytest.Config(t, yaml, "http://127.0.0.1:1"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if yaml == second {
			testkit.Equal(t, "the limit of the configuration", project.Limit{MinShare: 60, Dedicated: true, Weight: 1}, g.Projects().Limit("vip"))
			testkit.Equal(t, "the limit of the earlier one", project.Limit{Weight: 1}, g.Projects().Limit("search"))
		}
		g.Close()
	}
}

// The reserve is always the configuration's, also of a quota whose maxima were learned.
func TestReserveOfALearnedQuota(t *testing.T) {
	yaml := strings.Replace(sharing, "STATE", filepath.Join(t.TempDir(), "limits.db"), 1)
	for _, c := range []struct {
		yaml string
		want limit.Percent
	}{{yaml, 10}, {strings.Replace(yaml, "reserve: 10%", "reserve: 5%", 1), 5}, {strings.Replace(yaml, "reserve: 10%, ", "", 1), 0}} {
		g, err := New(gatewaytest.Config(t, c.yaml, "http://127.0.0.1:1"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		q, _ := g.Models().Quota("gpt-4o")
		testkit.Equal(t, "the reserve", c.want, q.Reserve)
		if c.want < 10 {
			testkit.Equal(t, "the maximum", 77, q.MaxRPM)
		}
		q.MaxRPM = 77 // as if it was learned
		if err := g.Models().SetQuota("gpt-4o", q); err != nil {
			t.Fatal(err)
		}
		g.Close()
	}
}

// A deployment where the share of one project is used up has something left for others.
func TestUsageOfAQuotaWhoseShareDenies(t *testing.T) {
	now := time.Now()
	for code, want := range map[ratelimit.DecisionCode]float64{
		ratelimit.DecisionShareLimit: 0.5, ratelimit.DecisionProjectLimit: 0.5, ratelimit.DecisionRPMLimit: 1,
	} {
		var q quotaUsage
		q.record("m", &ratelimit.Decision{Code: code, Stats: ratelimit.ModelStats{RPM: 5, MaxRPM: 10}}, now)
		testkit.Equal(t, "what is used after "+string(code), want, q.at("m", now))
	}
}
