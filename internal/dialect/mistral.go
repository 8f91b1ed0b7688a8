package dialect

import (
	"encoding/json"
	"slices"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Mistral is the provider of the Mistral models.
const Mistral llm.Provider = "mistral"

// Conversations are Mistral's, which a model continues at once.
const Conversations API = "conversations"

// OCR is Mistral's, which is billed by the page.
const OCR API = "ocr"

var _ = register(dialect{
	provider:  Mistral,
	hosts:     []string{"mistral.ai"}, // api. and codestral.
	recognize: mistralConversation,
	protocols: []protocol{{
		api:    Conversations,
		stored: true,
		refuseInStream: func(r Refusal, _ object) []byte {
			return event(nil, "conversation.response.error", encoded(object{"type": "conversation.response.error", "message": r.Message, "code": r.Status}))
		},
		fields: slices.Concat(streamFields, []field{{
			name: "completion_args", kind: fieldObject, parts: []part{{"max_tokens", argsMaxTokens}, {"response_format", schema}},
		}}),
		bounds: []setting{argsMaxTokens}, boundObject: "completion_args", boundName: "max_tokens",
		answers: extend(commonTop, members{"outputs": itemsNode, "arguments": argsNode}),
	}, {
		api: OCR, paths: []string{"v1/ocr"}, embeds: true, measure: measurePages, fields: []field{{name: "pages", kind: fieldAll}},
		answers: extend(commonTop, members{"usage_info": {members: members{"pages_processed": count(pagesRead)}}}),
		units:   []unitNumber{{unit: llm.Pages, number: pagesRead}},
	}},
	paths: map[string]API{"agents/completions": Chat},                        // the body names an agent, and no model
	names: nameRules{variant: []nameRule{without("-latest"), date("-0000")}}, // mistral-large-2411
	fields: []field{
		{name: "inputs", kind: fieldPrompts},
		{name: "agent", kind: fieldStored}, {name: "agent_id", kind: fieldStored},
	},
	promptKeys:   map[string]keyKind{"document_url": keyReference},
	wholeTypes:   []string{"message.input", "message.output", "function.call", "function.result"},
	unreasoning:  []string{"mistral", "mixtral"},
	flatErrors:   true,
	reportsUsage: always, // it would refuse to be asked
	limitHeaders: []windowHeaders{
		ratelimitHeaders(llm.Requests, "Req-Minute", minutePer),
		ratelimitHeaders(llm.AllTokens, "Tokens-Minute", minutePer),
	},
})

// mistralConversation reads a path that begins, continues or restarts a conversation. Other servers have other
// conversations.
func mistralConversation(p requestPath, own bool) (e Endpoint, ok bool) {
	in, _ := cutLast(p.folder)
	_, folder := cutLast(in)
	restarts := p.word == "restart" && routeWord(p.url, folder) == "conversations"
	return Endpoint{API: Conversations}, own && (p.word == "conversations" || p.parent == "conversations" || restarts)
}

var (
	argsMaxTokens = newBound()
	pagesRead     = newNumber()
)

// mostPages is how many pages a document may have.
const mostPages = 1000

// measurePages returns how many pages are read: those that the request lists, or else all that a document can have.
func measurePages(b measuredBody) (m measured) {
	var body struct{ Pages []int }
	if m.units[llm.Pages] = mostPages; json.Unmarshal(b.text, &body) == nil && len(body.Pages) > 0 {
		m.units[llm.Pages] = int64(len(body.Pages))
	}
	return m
}
