package dialect

import (
	"encoding/json"
	"slices"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Cohere is the provider of the Command models.
const Cohere llm.Provider = "cohere"

// The APIs of Cohere.
const (
	CohereChat   API = "cohere-chat"   // Cohere's /v2/chat and /v1/chat
	CohereEmbed  API = "cohere-embed"  // Cohere's /v2/embed and /v1/embed
	CohereRerank API = "cohere-rerank" // Cohere's /v2/rerank and /v1/rerank
)

var _ = register(dialect{
	provider: Cohere,
	hosts:    []string{"api.cohere.com", "api.cohere.ai"},
	protocols: []protocol{
		{
			api: CohereChat, paths: []string{"v1/chat", "v2/chat"},
			overhead: 1024, // Cohere's own preamble
			fields:   slices.Concat(streamFields, []field{maxTokensOf, {name: "conversation_id", kind: fieldContext}}),
			bounds:   []setting{maxTokens}, boundName: "max_tokens",
			answers: cohereTop,
			refuse:  refuseCohere,
			refuseInStream: func(r Refusal, _ object) []byte {
				return event(nil, "message-end", encoded(object{"type": "message-end", "delta": object{"finish_reason": "ERROR", "error": r.Message}}))
			},
			refuseInValues: func(r Refusal) object { // version 1 of its API
				return object{"event_type": "stream-end", "is_finished": true, "finish_reason": "ERROR", "error": r.Message}
			},
			events: map[string]eventKind{"content-start": eventBlock, "message-end": eventEnd, "stream-end": eventEnd},
		},
		{api: CohereEmbed, paths: []string{"v1/embed", "v2/embed"}, embeds: true, answers: cohereTop, refuse: refuseCohere},
		{api: CohereRerank, paths: []string{"v1/rerank", "v2/rerank"}, embeds: true, answers: cohereTop, refuse: refuseCohere, repeatedIn: "query", measure: measureRanking, units: []unitNumber{{unit: llm.SearchUnits, number: searchUnits}}},
	},
	fields: []field{
		{name: "chat_history", kind: fieldPrompts}, {name: "texts", kind: fieldPrompts}, {name: "inputs", kind: fieldPrompts},
		{name: "message", kind: fieldMessage}, {name: "preamble", kind: fieldMessage}, {name: "query", kind: fieldTexts},
		{name: "documents", kind: fieldAll}, {name: "tool_results", kind: fieldAll},
		{name: "connectors", kind: fieldStored},
	},
	wholeTypes: []string{"tool_call"},
	budgets:    []string{"token_budget"},
	common:     commonNames{message: members{"tool_plan": textNode}},
	errorAPI:   CohereChat,
	flatErrors: true,
	errorCause: func(c *errorBody) (llm.Cause, bool) { return llm.SpendCap, c.speaksOf("calls / month") }, // of trial keys
	usage:      usageRules{input: billedInput, output: billedOutput},
	names:      nameRules{variant: []nameRule{date("-00-0000")}}, // command-r-08-2024
})

// What Cohere bills, which is used where it does not report the tokens that the model read and wrote.
var (
	billedInput  = newNumber()
	billedOutput = newNumber()
	searchUnits  = newNumber()
)

// measureRanking returns the most searches that a ranking is billed as: one for each hundred documents. A document of more
// than 500 tokens counts as several.
func measureRanking(b measuredBody) (m measured) {
	var body struct{ Documents []json.RawMessage }
	if m.units[llm.SearchUnits] = -1; json.Unmarshal(b.text, &body) == nil {
		m.units[llm.SearchUnits] = max(int64((len(body.Documents)+len(b.text)/500+99)/100), 1)
	}
	return m
}

// Cohere reports usage twice: as tokens, which is what the model has read and written, and
// as what it bills, without the text that Cohere itself puts around a prompt. Its limits
// count the former, which is the larger one. Version 1 of its API has the text at the top, and
// repeats it in the response that ends a stream.
var (
	cohereTop = extend(commonTop, members{
		"usage": cohereUsage, "meta": cohereUsage, "delta": coherePart, "response": coherePart,
		"message": commonMessage, "text": textNode, "event_type": typeNode,
	})
	coherePart = &node{members: members{
		"message": commonMessage, "usage": cohereUsage, "meta": cohereUsage, "error": faultNode,
	}}
	cohereUsage = &node{members: members{
		"tokens":        commonUsage,
		"billed_units":  {members: members{"input_tokens": count(billedInput), "output_tokens": count(billedOutput), "search_units": count(searchUnits)}},
		"total_tokens":  count(totalTokens), // Voyage's and Jina's
		"cached_tokens": count(cachedTokens),
	}}
)

// refuseCohere returns the body of a refusal in Cohere's form. cohere-ai sleeps for Retry-After; without it, it tries a
// 429 three times within seconds.
func refuseCohere(_ Endpoint, _ Refusal, fault object) object { return fault }
