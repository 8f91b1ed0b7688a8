package project_test

import (
	"context"
	"fmt"
	"math/big"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/price"
	"dappco.re/go/core/go-ratelimit/project"
)

// paperTree is a tree of projects as it is counted on paper: every call that was charged, and sums
// over those of a project and of all below it.
type paperTree struct {
	limits map[string]project.Limit // of projects and templates
	calls  []*paperCall
	called map[string]bool // the projects that have made a call
}

// shares reports whether another project than the one that calls has called an owner or one below it:
// only then a share of the owner's limits may deny a call.
func (p *paperTree) shares(owner, caller string) bool {
	inside := caller == owner || strings.HasPrefix(caller, owner+"/")
	for id := range p.called {
		if inside && id != caller && (id == owner || strings.HasPrefix(id, owner+"/")) {
			return true
		}
	}
	return false
}

type paperCall struct {
	at       time.Time
	project  string
	requests int64
	tokens   *big.Int
	dollars  *big.Int
}

// limitOf returns the limit of a project: its own, or of the template that has names where others
// first have a star.
func (p *paperTree) limitOf(id string) project.Limit {
	if own, ok := p.limits[id]; ok {
		return own
	}
	var fitting []string
	names := strings.Split(id, "/")
	for template := range p.limits {
		fits := strings.Count(template, "/")+1 == len(names)
		for i, name := range strings.Split(template, "/") {
			fits = fits && (name == "*" || name == names[i])
		}
		if fits {
			fitting = append(fitting, strings.ReplaceAll(template, "*", "\xff"))
		}
	}
	if len(fitting) == 0 {
		return project.Limit{}
	}
	sort.Strings(fitting)
	return p.limits[strings.ReplaceAll(fitting[0], "\xff", "*")]
}

// began returns since when what was used counts in a window.
func began(l project.Limit, period time.Duration, now time.Time) time.Time {
	if l.Resets == (limit.Calendar{}) {
		return now.Add(-period + 1)
	}
	if period == 24*time.Hour {
		return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	}
	return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
}

// denies returns the projects whose limits do not let a call pass.
func (p *paperTree) denies(c *paperCall) (owners []string) {
	for id := c.project; id != ""; id = id[:max(strings.LastIndexByte(id, '/'), 0)] {
		l := p.limitOf(id)
		used := func(period time.Duration) (requests int64, tokens, dollars *big.Int) {
			requests, tokens, dollars = c.requests, new(big.Int).Set(c.tokens), new(big.Int).Set(c.dollars)
			since := began(l, period, c.at)
			for _, each := range p.calls {
				if (each.project == id || strings.HasPrefix(each.project, id+"/")) && !each.at.Before(since) {
					requests += each.requests
					tokens.Add(tokens, each.tokens)
					dollars.Add(dollars, each.dollars)
				}
			}
			return requests, tokens, dollars
		}
		more := func(n *big.Int, most int64) bool { return most > 0 && n.Cmp(big.NewInt(most)) > 0 }
		requests, _, dollars := used(24 * time.Hour)
		_, tokens, month := used(30 * 24 * time.Hour)
		if l.RequestsPerDay > 0 && requests > int64(l.RequestsPerDay) || more(tokens, int64(l.TokensPerMonth)) ||
			more(dollars, int64(l.DollarsPerDay)) || more(month, int64(l.DollarsPerMonth)) {
			owners = append(owners, id)
		}
	}
	return owners
}

// treeStep is something that happens in a tree.
type treeStep struct {
	project       string
	dollars       price.Amount
	actual        price.Amount // after it was called; -1: it is cancelled
	tokens, spent int
	pass          time.Duration
}

var (
	paths     = []string{"a", "b", "a/x", "a/y", "b/x", "a/x/1", "a/x/2", "b/x/1"}
	templates = []string{"a/*", "*/*", "*/x", "a/x/*", "*/x/*", "*/*/1"}
)

func treeLimit(rt *rapid.T) (l project.Limit) {
	few := func(name string) int { return rapid.SampledFrom([]int{0, 0, 1, 3, 6}).Draw(rt, name) }
	l.RequestsPerDay, l.TokensPerMonth = few("requests"), 10*few("tokens")
	l.DollarsPerDay = price.Amount(few("dollars a day")) * price.Dollar
	l.DollarsPerMonth = price.Amount(few("dollars a month")) * price.Dollar
	if rapid.Bool().Draw(rt, "calendar") {
		l.Resets = limit.Calendar{Zone: "UTC"}
	}
	return l
}

var treeSteps = rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) treeStep {
	return treeStep{
		project: rapid.SampledFrom(paths).Draw(rt, "project"),
		dollars: price.Amount(rapid.Int64Range(0, 2*price.Dollar).Draw(rt, "dollars")),
		actual:  price.Amount(rapid.Int64Range(-1, price.Dollar).Draw(rt, "actual")),
		tokens:  rapid.IntRange(1, 12).Draw(rt, "tokens"), // a call takes one at least until it ends
		spent:   rapid.IntRange(0, 12).Draw(rt, "spent"),
		pass:    time.Duration(rapid.Int64Range(0, int64(10*24*time.Hour)).Draw(rt, "pass")),
	}
}), 1, 40)

// Whatever the tree and its limits, a call passes exactly if every level of it has room for it, and
// then all of them are charged, and corrected to what it has cost. Shares may deny it too, but only where
// others have called.
func TestHistoriesOfTrees(t *testing.T) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				p := &paperTree{limits: map[string]project.Limit{}, called: map[string]bool{}}
				for _, id := range append(paths[:len(paths):len(paths)], templates...) {
					if rapid.Bool().Draw(rt, id) {
						p.limits[id] = treeLimit(rt)
					}
				}
				steps := treeSteps.Draw(rt, "history")
				var differs string
				synctest.Test(t, func(t *testing.T) {
					l := newLimiter(t, kind(t, project.Config{Default: &project.Limit{}, Limits: p.limits}))
					differs = p.play(l, steps, longest(name))
				})
				if differs != "" {
					rt.Fatal(differs)
				}
			})
		})
	}
}

// play lets steps happen in a limiter and on paper. It returns where they differ.
func (p *paperTree) play(l *project.Limiter, steps []treeStep, longest time.Duration) string {
	for i, s := range steps {
		time.Sleep(min(s.pass, longest))
		c := &paperCall{time.Now().UTC(), s.project, 1, big.NewInt(int64(s.tokens)), big.NewInt(int64(s.dollars))}
		res, d, err := l.Take(context.Background(), project.Call{Project: s.project, Estimated: s.tokens, Dollars: s.dollars})
		if err != nil {
			return fmt.Sprintf("step %d, %+v: %v", i, s, err)
		}
		owners := p.denies(c)
		p.called[s.project] = true
		if len(owners) == 0 && d.Share.Projects > 0 {
			if !p.shares(d.Owner, s.project) {
				return fmt.Sprintf("step %d, %+v: %s, which nobody else has called", i, s, d.Reason())
			}
			continue
		}
		if d.Allowed != (len(owners) == 0) {
			return fmt.Sprintf("step %d, %+v: %s %s; on paper these deny: %v", i, s, d.Owner, d.Reason(), owners)
		}
		if !d.Allowed {
			if !strings.Contains(strings.Join(owners, " ")+" ", d.Owner+" ") {
				return fmt.Sprintf("step %d, %+v: %s denies; on paper these do: %v", i, s, d.Owner, owners)
			}
			continue
		}
		if s.actual < 0 {
			res.Cancel()
			continue
		}
		res.CommitPriced(llm.Tokens{Input: s.spent}, s.actual)
		c.tokens, c.dollars = big.NewInt(int64(s.spent)), big.NewInt(int64(s.actual))
		p.calls = append(p.calls, c)
	}
	return ""
}
