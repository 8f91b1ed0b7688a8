package ratelimit

import (
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/internal/state"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// Tokens is how many tokens a call is expected to use, or has used: those of the prompt
// (Input) and of the output, and which of them the provider does not count (FreeInput,
// FreeOutput).
type Tokens = llm.Tokens

// TokenWeights says as how many tokens of a quota each kind of token counts: see
// [ModelQuota.Count]. [llm.ParseWeight] makes a weight.
type TokenWeights = llm.TokenWeights

// setup is a quota, made ready.
type setup struct {
	quota  state.Quota
	maxima [kind.Models]int // of the quota
}

func newSetup(q state.Quota) *setup {
	s := &setup{quota: q}
	for k := range kind.Models {
		s.maxima[k] = *q.Max(k)
	}
	return s
}

// newRules returns the rules of a valid quota. The rules of the zero Quota count, and deny nothing.
func newRules(q state.Quota) *engine.Rules {
	r := &engine.Rules{Limits: q.Limits(), Reserve: q.Reserve.Part(), Count: q.Count}
	most := q.ReserveTokens == project.ReserveMost
	cut := q.OnOverrun == project.OverrunCut && !most
	for _, u := range [...]engine.Unit{engine.Tokens, engine.Input, engine.Output} {
		r.Most[u], r.Cut[u] = most || cut, cut
	}
	r.Most[engine.TokensInFlight] = most || cut // no extension takes more of them
	return r
}

// limitFacts are what a decision says about a limit that denies.
type limitFacts struct {
	kind kind.Kind // kind.Models if it is no limit of a model
	code DecisionCode
	what string // what is limited, for people
}

// codeOf returns the code of a denial by a limit of a model.
func codeOf(k kind.Kind) DecisionCode {
	if k == kind.MaxConcurrent {
		return DecisionConcurrencyLimit
	}
	return DecisionCode(strings.TrimPrefix(k.Name(), "max_") + "_exceeded")
}

// modelLimits has the facts about each limit of a model, by its name.
var modelLimits = func() map[string]limitFacts {
	all := map[string]limitFacts{engine.PausedName: {kind.Models, DecisionPaused, "the provider to take calls again"}}
	for k := range kind.Models {
		all[k.Name()] = limitFacts{k, codeOf(k), k.Words()}
	}
	all[kind.MaxConcurrent.Name()] = limitFacts{kind.MaxConcurrent, codeOf(kind.MaxConcurrent), "a slot among the concurrent calls"}
	return all
}()

// factsOf returns the facts about the limit with a name. A limit that is not a model's is a project's.
func factsOf(name string) limitFacts {
	name = strings.TrimSuffix(name, kind.PaceEnd)
	if facts, ok := modelLimits[name]; ok {
		return facts
	}
	limit, isShare := strings.CutSuffix(name, kind.ShareEnd)
	if facts, ok := modelLimits[limit]; ok && isShare {
		return limitFacts{facts.kind, DecisionShareLimit, "the project's share of the " + facts.what}
	}
	return limitFacts{kind.Models, DecisionProjectLimit, "what the project may use"}
}
