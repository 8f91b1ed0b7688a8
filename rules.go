package ratelimit

import (
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/engine"
	"dappco.re/go/core/go-ratelimit/internal/feedback"
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

// setup is what the rules of a model are made from.
type setup struct {
	quota   state.Quota
	missing *feedback.Missing // by how much others lower the limits below the quota; nil: by nothing
}

func setupOf(r *engine.Rules) *setup { return r.Setup.(*setup) }

// newRules returns the rules of a valid quota. The rules of the zero Quota count, and deny nothing.
func newRules(q state.Quota) *engine.Rules {
	r := &engine.Rules{Setup: &setup{quota: q}, Limits: q.Limits(), InOrder: true, Reserve: q.Reserve.Part(), Count: q.Count}
	most := q.ReserveTokens == project.ReserveMost
	cut := q.OnOverrun == project.OverrunCut && !most
	for _, u := range [...]engine.Unit{engine.Tokens, engine.Input, engine.Output} {
		r.Most[u], r.Cut[u] = most || cut, cut
	}
	return r
}

// limitFacts are what a decision says about a limit that denies.
type limitFacts struct {
	dimension state.Dimension
	code      DecisionCode
	what      string // what is limited, for people
}

var modelLimits = map[string]limitFacts{
	"rpd":             {state.RPD, DecisionRPDLimit, "requests a day"},
	"rpm":             {state.RPM, DecisionRPMLimit, "requests a minute"},
	"tpm":             {state.TPM, DecisionTPMLimit, "tokens a minute"},
	"input_tpm":       {state.InputTPM, DecisionInputTPMLimit, "input tokens a minute"},
	"output_tpm":      {state.OutputTPM, DecisionOutputTPMLimit, "output tokens a minute"},
	"tpd":             {state.TPD, DecisionTPDLimit, "tokens a day"},
	"concurrent":      {state.Concurrent, DecisionConcurrencyLimit, "concurrent requests"},
	engine.PausedName: {state.Dimensions, DecisionPaused, "the provider to take calls again"},
}

// factsOf returns the facts about the limit with a name. A limit that is not a model's is a project's.
func factsOf(name string) limitFacts {
	name = strings.TrimSuffix(name, state.PaceEnd)
	if facts, ok := modelLimits[name]; ok {
		return facts
	}
	limit, isShare := strings.CutSuffix(name, engine.ShareEnd)
	if facts, ok := modelLimits[limit]; ok && isShare {
		return limitFacts{facts.dimension, DecisionShareLimit, "the project's share of the " + facts.what}
	}
	return limitFacts{state.Dimensions, DecisionProjectLimit, "what the project may use"}
}
