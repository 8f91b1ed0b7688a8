package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/limit"
	"dappco.re/go/core/go-ratelimit/llm"
)

// The scopes of a history: the first are shared, the next are the innermost of a call's own,
// and the others are around each of these.
const (
	sharedScopes = 2
	innerScopes  = 2
	none         = -1
)

// plot is a history: what scopes there are, and what happens.
type plot struct {
	Rules []ruleSet
	Steps []step
}

// ruleSet is the rules of a scope.
type ruleSet struct {
	Limits []engine.Limit
	Least  int64
	Rank   int
	Weight int
	Most   int
}

// GoString returns a history with a line for each scope and each step.
func (p plot) GoString() string {
	var text strings.Builder
	for i, r := range p.Rules {
		fmt.Fprintf(&text, "\nscope %d: at least %d, rank %d, weight %d, at most %d wait", i, r.Least, r.Rank, r.Weight, r.Most)
		for _, l := range r.Limits {
			fmt.Fprintf(&text, "; %d of %s", l.Limit.Count(), l.Name)
		}
	}
	for i, s := range p.Steps {
		fmt.Fprintf(&text, "\nstep %d: %s", i, s)
	}
	return text.String()
}

// String returns what has a part in the step.
func (s step) String() string {
	switch s.Do {
	case "try", "look", "acquire":
		return fmt.Sprintf("%s %+v", s.Do, s.Call)
	case "record":
		return fmt.Sprintf("record %+v of scope %d", s.Call, s.Scope)
	case "commit":
		return fmt.Sprintf("commit %d with %+v", s.Nth, s.Used)
	case "cancel", "leave":
		return fmt.Sprintf("%s %d", s.Do, s.Nth)
	case "set":
		return fmt.Sprintf("set %d to %d", s.Scope, s.Counts)
	case "reset":
		return fmt.Sprintf("reset %d", s.Scope)
	}
	return fmt.Sprintf("%s %v", s.Do, s.Pass)
}

func (r *ruleSet) rules() *engine.Rules {
	return &engine.Rules{
		Limits: slices.Clone(r.Limits), LeastTokens: r.Least, Rank: r.Rank, Weight: r.Weight, MaxWaiting: r.Most,
	}
}

// step is something that happens in a history.
type step struct {
	Do     string
	Call   script
	Nth    int        // of the reservations, or of the calls that wait
	Used   llm.Tokens // by a reservation
	Scope  int
	Counts []int64 // new counts of limits
	Pass   time.Duration
}

// script is a call of a history.
type script struct {
	Shared, Inner       int // or none
	Part                engine.Part
	Requests, Estimated int
	Tokens              llm.Tokens
	Priority            int
	MaxWait             time.Duration
}

func drawLimits(t *rapid.T, scope int, redis bool) (list []engine.Limit) {
	tokens := rapid.SampledFrom([]engine.Unit{engine.Tokens, engine.AllTokens}).Draw(t, "tokens")
	type kind struct {
		period time.Duration
		fixed  bool
	}
	known := map[engine.Unit][]kind{}
	for range rapid.IntRange(0, 4).Draw(t, "limits") {
		u := rapid.SampledFrom([]engine.Unit{engine.Requests, tokens, tokens, engine.Input, engine.Output, engine.Slots}).Draw(t, "unit")
		k := rapid.SampledFrom([]kind{{10 * time.Second, false}, {time.Minute, false}, {time.Hour, false}, {time.Minute, true}, {time.Hour, true}}).Draw(t, "kind")
		if redis {
			k = kind{max(k.period, time.Minute) * 60, false}
		}
		if u == engine.Slots {
			k = kind{engine.Lease, false}
		}
		if slices.Contains(known[u], k) {
			continue
		}
		known[u] = append(known[u], k)
		l := limit.New(drawCount(t, u), k.period).Using(limit.SlidingLog)
		if k.fixed {
			l = l.Using(limit.FixedWindow)
		}
		free := (u == engine.Requests || u == tokens) && rapid.IntRange(0, 9).Draw(t, "free") == 0
		if free {
			l = l.WithCount(engine.Boundless)
		}
		list = append(list, engine.Limit{Name: fmt.Sprintf("%d %v %v %t", scope, u, k.period, k.fixed), Unit: u, Limit: l, Free: free})
	}
	return list
}

func drawCount(t *rapid.T, u engine.Unit) int64 {
	most := int64(30)
	if u == engine.Requests || u == engine.Slots {
		most = 4
	}
	return rapid.Int64Range(1, most).Draw(t, "count")
}

func plots(doing []string, redis bool) *rapid.Generator[plot] {
	return rapid.Custom(func(t *rapid.T) (p plot) {
		outer := rapid.IntRange(0, 4).Draw(t, "outer")
		for i := range sharedScopes + innerScopes + outer {
			r := ruleSet{Limits: drawLimits(t, i, redis), Least: rapid.Int64Range(0, 1).Draw(t, "least")}
			if i >= sharedScopes && i < sharedScopes+innerScopes {
				r.Rank, r.Weight = rapid.IntRange(0, 1).Draw(t, "rank"), rapid.IntRange(0, 3).Draw(t, "weight")
				r.Most = rapid.SampledFrom([]int{0, 0, 2}).Draw(t, "most")
			}
			p.Rules = append(p.Rules, r)
		}
		calls := rapid.SliceOfN(rapid.Custom(drawScript), 1, 4).Draw(t, "calls") // few, so that they meet
		p.Steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step { return drawStep(t, doing, p.Rules, calls) }), 1, 40).Draw(t, "steps")
		return p
	})
}

func drawStep(t *rapid.T, doing []string, rules []ruleSet, calls []script) step {
	s := step{Do: rapid.SampledFrom(doing).Draw(t, "do"), Nth: rapid.IntRange(0, 9).Draw(t, "nth")}
	switch s.Do {
	case "try", "look", "acquire":
		s.Call = rapid.SampledFrom(calls).Draw(t, "call")
		s.Call.Priority = rapid.IntRange(0, 1).Draw(t, "priority")
	case "record":
		s.Call = rapid.SampledFrom(calls).Draw(t, "call")
		s.Scope = rapid.IntRange(0, len(rules)-1).Draw(t, "scope")
	case "commit":
		s.Used = llm.Tokens{Input: rapid.IntRange(-1, 30).Draw(t, "input"), Output: rapid.IntRange(-1, 30).Draw(t, "output")}
		s.Used.FreeInput = rapid.IntRange(0, max(s.Used.Input, 0)).Draw(t, "free input")
		s.Used.FreeOutput = rapid.IntRange(0, max(s.Used.Output, 0)).Draw(t, "free output")
	case "set":
		s.Scope = rapid.IntRange(0, len(rules)-1).Draw(t, "scope")
		for _, l := range rules[s.Scope].Limits {
			s.Counts = append(s.Counts, drawCount(t, l.Unit))
		}
	case "reset":
		s.Scope = rapid.IntRange(0, len(rules)-1).Draw(t, "scope")
	case "pass":
		s.Pass = rapid.OneOf(
			rapid.SampledFrom([]time.Duration{1, time.Second, 10*time.Second - 1, 10 * time.Second, time.Minute - 1, time.Minute, 10 * time.Minute, time.Hour}),
			rapid.Map(rapid.Int64Range(1, int64(time.Minute)), func(n int64) time.Duration { return time.Duration(n) }),
		).Draw(t, "pass")
	}
	return s
}

func drawScript(t *rapid.T) script {
	c := script{
		Shared: rapid.IntRange(none, sharedScopes-1).Draw(t, "shared"), Inner: rapid.IntRange(none, innerScopes-1).Draw(t, "inner"),
		Part:     rapid.SampledFrom([]engine.Part{engine.Whole, engine.Whole, engine.WithoutSlots, engine.RequestsOnly}).Draw(t, "part"),
		Requests: rapid.IntRange(1, 2).Draw(t, "requests"),
		MaxWait:  rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, 30 * time.Second, time.Minute}).Draw(t, "max wait"),
	}
	if c.Shared == none && c.Inner == none {
		c.Inner = 0
	}
	if rapid.Bool().Draw(t, "split") {
		c.Tokens = llm.Tokens{Input: rapid.IntRange(1, 6).Draw(t, "input"), Output: rapid.IntRange(1, 6).Draw(t, "output")}
		c.Tokens.FreeInput = rapid.IntRange(0, c.Tokens.Input-1).Draw(t, "free input")
		c.Tokens.FreeOutput = rapid.IntRange(0, c.Tokens.Output).Draw(t, "free output")
	} else {
		c.Estimated = rapid.IntRange(0, 12).Draw(t, "estimated")
	}
	return c
}
