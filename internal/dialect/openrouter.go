package dialect

import (
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// OpenRouter passes calls on to the models of many providers.
const OpenRouter llm.Provider = "openrouter"

var _ = register(dialect{
	provider: OpenRouter,
	hosts:    []string{"openrouter.ai"},
	names:    nameRules{same: []nameRule{strings.ToLower, claude}, variant: []nameRule{upTo(":"), upTo("@")}}, // openai/gpt-4o@preset/team
	fields: []field{
		{name: "models", also: "fallbacks", kind: fieldFallbacks},
		{name: "include_reasoning", kind: fieldHiding, harmless: []string{`true`}},
		{name: "plugins", kind: fieldStored},
	},
	budgets:        []string{"max_tokens"},
	hidesReasoning: true,
	unreasoning:    []string{"llama"},
	reportsUsage:   always,
	tellsCost:      true,
	readError: func(c *errorBody, inner any, _ time.Time) { // it hands on the headers of the provider that has refused
		metadata := member(inner, "metadata")
		c.text += memberWord(metadata, "limit_source")
		headers, _ := member(metadata, "headers").(map[string]any)
		for name := range headers {
			c.header.Add(name, memberText(headers, name))
		}
	},
	common: commonNames{
		usage: members{
			"cost":         {role: roleNumber, number: costTold, written: asDollars},
			"cost_details": {members: members{"upstream_inference_cost": {role: roleNumber, number: upstreamCost, written: asDollars}}},
			"is_byok":      {role: roleNumber, number: ownKey, written: asFlag},
		},
		message: members{"reasoning": {role: roleReasoning}},
	},
	plainPer: func(w llm.Window) time.Duration { // it has minutes and days
		switch {
		case w.Reset == 0:
			return 0
		case w.Reset > maxMinuteReset:
			return llm.Day
		}
		return time.Minute
	},
})
