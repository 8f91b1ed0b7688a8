package main

import (
	"path"
	"strings"

	"dappco.re/go/core/go-ratelimit/price"
)

// services is what the service tiers cost in percent of the usual prices; 0 is the usual prices. The data set does not
// have them. Read on the providers' pages in November 2026: OpenAI's priority, Gemini's tiers, Bedrock's batches,
// Anthropic's fast mode; where a page gives a range, or no number for a model, the highest stands here. Second hand:
// that batches of OpenAI and Anthropic, and OpenAI's flex, are half. Assumed: Bedrock's priority, for which its page
// says that it costs more, and not how much; and that Opus 5.5 is as much dearer when it is fast as Opus 5 is. Tiers
// that are not known are not discounted. The first that matches a model counts.
var services = []struct {
	provider, model             string // * stands for any characters
	batch, flex, priority, fast int
}{
	{"openai", "gpt-4o*", 50, 50, 175, 0}, // https://openai.com/api-priority-processing
	{"openai", "gpt-4.1-nano*", 50, 50, 200, 0},
	{"openai", "gpt-4.1*", 50, 50, 175, 0},
	{"openai", "gpt-5-mini*", 50, 50, 180, 0},
	{"openai", "gpt-5", 50, 50, 200, 0},
	{"openai", "gpt-5.[1-4]*", 50, 50, 200, 0},
	{"openai", "*", 50, 50, 250, 0},
	{"anthropic", "claude-opus-4-[67]*", 50, 0, 0, 600}, // https://platform.claude.com/docs/en/build-with-claude/fast-mode
	{"anthropic", "claude-opus-4-8*", 50, 0, 0, 200},
	{"anthropic", "claude-opus-5*", 50, 0, 0, 200},
	{"anthropic", "*", 50, 0, 0, 0},       // https://platform.claude.com/docs/en/about-claude/pricing; priority is a commitment
	{"google", "gemini*", 50, 50, 200, 0}, // https://ai.google.dev/gemini-api/docs/optimization: 75% to 100% more
	{"aws", "*", 50, 0, 175, 0},
}

// complete adds what the data set lacks to the prices of a model: service tiers, and what Anthropic's
// models cost to keep in a cache for an hour, which is twice their input.
func complete(provider, model string, terms []price.Terms) {
	for i := range terms {
		t := &terms[i]
		if strings.Contains(model, "claude") {
			keepForAnHour(&t.Rates)
			for j := range t.Above {
				keepForAnHour(&t.Above[j].Rates)
			}
		}
		for _, s := range services {
			if fits, _ := path.Match(s.model, model); fits && s.provider == provider && t.Rates != (price.Rates{}) {
				t.Batch.Percent, t.Flex.Percent, t.Priority.Percent, t.Fast.Percent = s.batch, s.flex, s.priority, s.fast
				break
			}
		}
	}
}

func keepForAnHour(r *price.Rates) {
	if r.CacheWrite > 0 && r.CacheWriteHour == 0 {
		r.CacheWriteHour = 2 * r.Input
	}
}
