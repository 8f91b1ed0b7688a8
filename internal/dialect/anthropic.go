package dialect

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Anthropic is the provider of the Claude models.
const Anthropic llm.Provider = "anthropic"

// Messages is the API of Anthropic's messages.
const Messages API = "messages"

var _ = register(dialect{
	provider: Anthropic,
	hosts:    []string{"api.anthropic.com"},
	protocols: []protocol{{
		api: Messages, paths: []string{"v1/messages"}, always: true, // those of an OpenAI thread are no call
		images: &anthropicImages, overhead: anthropicOverhead, showsThoughts: true,
		fields: slices.Concat(streamFields, []field{tierField, maxTokensOf, {name: "speed", kind: fieldSpeed}}),
		bounds: []setting{maxTokens}, boundName: "max_tokens",
		toolUse: anthropicToolUse, measure: measureTools, answers: anthropicTop,
		units:     []unitNumber{{unit: llm.WebSearches, number: webSearches, absent: true}, {unit: llm.Containers, number: codeRuns, absent: true}},
		keyHeader: "X-Api-Key", requestID: "Request-Id", setLimit: setAnthropicLimit,
		idle: idleComment, refuse: refuseAnthropic,
		errorEvents: func(body []byte) []byte { return event(nil, "error", body) },
		// Claude Code takes a 400 for a feature that the server lacks, and sends the call five more times with features
		// switched off. It reports a 413 as too many bytes, whatever the body says. It shows the message of a 429 at once
		// if X-Should-Retry is false.
		stop:   stop{never: http.StatusTooManyRequests},
		events: map[string]eventKind{"content_block_start": eventBlock, "message_stop": eventEnd},
	}},
	names: nameRules{same: []nameRule{claude}, variant: []nameRule{without("-latest"), without("-0")}},
	fields: []field{
		{name: "system", kind: fieldMessage},
		{name: "metadata", kind: fieldUser},
		{name: "thinking", kind: fieldHiding, harmless: []string{`{"type":"disabled"}`}}, // what it shows of its thoughts is a summary
		{name: "mcp_servers", kind: fieldStored}, {name: "container", kind: fieldStored}, {name: "context_management", kind: fieldStored},
	},
	promptKeys: map[string]keyKind{
		"tool_use_id": keyLabel, "cache_control": keyLabel, "signature": keyLabel,
		"media_type": keyMime, "source": keySource, "input": keyFree,
	},
	wholeTypes: []string{"tool_use", "tool_result", "thinking", "search_result", "document", "base64", "url", "ephemeral"},
	knownTools: []string{"bash", "computer", "memory", "text_editor"},
	toolUnits: map[string]toolUnit{ // code is billed by the hour of its container, and is free beside tools that run code themselves
		"code_execution": {llm.Containers, 1}, "web_search_20260": {llm.Containers, waived}, "web_fetch_20260": {llm.Containers, waived},
	},
	thinking:     map[string]bool{"thinking": true},
	budgets:      []string{"budget_tokens"},
	images:       &anthropicImages,
	overhead:     anthropicOverhead,
	unreasoning:  []string{"claude-3-haiku", "claude-3-opus", "claude-3.5"},
	cachedIsFree: true,
	common: commonNames{
		top: members{
			"delta":         {role: roleText, members: blockDeltaMembers}, // a string in streams of OpenAI's responses
			"message":       extend(commonMessage, members{"usage": extend(commonUsage, members{"output_tokens": count(startedTokens)})}),
			"content":       contentNode,
			"content_block": contentNode,
		},
		usage: members{
			"server_tool_use":             {members: members{"web_search_requests": count(webSearches)}},
			"cache_creation_input_tokens": count(cacheWriteTokens),
			"cache_read_input_tokens":     count(cacheReadTokens),
			"cache_creation":              {members: members{"ephemeral_1h_input_tokens": count(cacheWriteHour)}},
			"service_tier":                {role: roleUsageTier}, // the standard one says nothing about the speed
			"speed":                       {role: roleSpeed},
		},
	},
	faults: map[string]fault{"overloaded_error": faultOverload, "rate_limit_error": faultLimit},
	errorCause: func(c *errorBody) (llm.Cause, bool) { // other requests may pass
		return "", c.shape == "error" && c.kind == "invalid_request_error"
	},
	errorAPI:      Messages,
	baseVariable:  "ANTHROPIC_BASE_URL",
	speaksOfMoney: func(c *errorBody) bool { return c.shape == "error" && c.speaksOf("spend", "credit", "usage limit") },
	limitHeaders: []windowHeaders{
		anthropicHeaders(llm.Requests, "Requests"),
		anthropicHeaders(llm.InputTokens, "Input-Tokens"),
		anthropicHeaders(llm.OutputTokens, "Output-Tokens"),
		repeating(anthropicHeaders(llm.AllTokens, "Tokens")),
	},
})

// anthropicOverhead is for Anthropic's own instructions for thinking and for the form of answers.
const anthropicOverhead = 512

// anthropicToolUse is for Anthropic's own instructions to the model for the use of tools.
const anthropicToolUse = 300

// What images cost at Anthropic, in tokens.
const (
	anthropicMaxImage       = 1600 // Anthropic shrinks larger images
	anthropicPixelsPerToken = 750
	boundImageAnthropic     = 5_000 // 3.75 million pixels, 750 a token
)

var anthropicImages = imageRules{
	cost: func(width, height int) int {
		return min(1+width*height/anthropicPixelsPerToken, anthropicMaxImage)
	},
	unknown: anthropicMaxImage,
	most:    func(string) int { return boundImageAnthropic },
}

func anthropicHeaders(u llm.Unit, name string) windowHeaders {
	prefix := "Anthropic-Ratelimit-" + name
	return windowHeaders{unit: u, limit: prefix + "-Limit", remaining: prefix + "-Remaining", reset: prefix + "-Reset", per: minutePer}
}

// claude rewrites one of Anthropic's names in the newer form: the family, then the generation, with
// dashes. claude-3.5-haiku becomes claude-haiku-3-5.
func claude(name string) string {
	const maker = "claude-"
	at := strings.Index(name, maker)
	if at < 0 {
		return name
	}
	at += len(maker)
	rest := name[at:]
	generation := generationOf(rest)
	family := strings.TrimPrefix(rest[len(generation):], "-")
	letters := len(family) - len(strings.TrimLeft(family, "abcdefghijklmnopqrstuvwxyz"))
	if generation != "" && letters > 0 {
		rest = family[:letters] + "-" + generation + family[letters:]
	}
	if dotted := strings.ReplaceAll(rest, ".", "-"); dotted != name[at:] {
		return name[:at] + dotted
	}
	return name
}

// generationOf returns the one or two numbers at the start of a text, each of one or two digits,
// such as 3-5 or 3.5. A date has more digits.
func generationOf(text string) string {
	end := 0
	for i := 0; i <= len(text); {
		digits := 0
		for i+digits < len(text) && text[i+digits] >= '0' && text[i+digits] <= '9' {
			digits++
		}
		if digits == 0 || digits > 2 {
			break
		}
		end = i + digits
		if end == len(text) || text[end] != '-' && text[end] != '.' {
			break
		}
		i = end + 1
	}
	return text[:end]
}

// The values of Anthropic's answers, some of which others have copied.
var (
	contentNode = &node{role: roleText, members: members{
		"text": textNode, "refusal": textNode, "name": nameNode, "input": argsNode,
		"thinking": {role: roleText, members: members{"text": textNode}},
	}}
	blockDeltaMembers = members{"text": textNode, "partial_json": textNode, "thinking": textNode}

	// A message in which code has run names the container, and so does the end of a stream.
	anthropicTop  = extend(commonTop, members{"container": containerNode, "delta": {role: roleText, members: messageDelta}})
	containerNode = &node{each: codeRuns, members: members{}}
	messageDelta  = members{"text": textNode, "partial_json": textNode, "thinking": textNode, "container": containerNode}
)

// anthropicTypes are Anthropic's words for errors.
var anthropicTypes = statusWords{
	http.StatusBadRequest:            "invalid_request_error",
	http.StatusUnauthorized:          "authentication_error",
	http.StatusPaymentRequired:       "billing_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusServiceUnavailable:    "overloaded_error",
	http.StatusInternalServerError:   "api_error",
}

// refuseAnthropic returns the body of a refusal in Anthropic's form.
func refuseAnthropic(_ Endpoint, r Refusal, fault object) object {
	fault["type"] = anthropicTypes.of(r.Status)
	if r.Code == CodeNever {
		fault["type"] = "invalid_request_error" // whatever the status: other calls may pass
	}
	body := object{"type": "error", "error": fault}
	if r.ID != "" {
		body["request_id"] = r.ID
	}
	return body
}

func setAnthropicLimit(h http.Header, unit string, w llm.Window, now time.Time) {
	h.Set("Anthropic-Ratelimit-"+unit+"-Limit", strconv.FormatInt(w.Limit, 10))
	h.Set("Anthropic-Ratelimit-"+unit+"-Remaining", strconv.FormatInt(w.Remaining, 10))
	h.Set("Anthropic-Ratelimit-"+unit+"-Reset", now.Add(w.Reset+time.Second-1).UTC().Format(time.RFC3339))
}
