package mockprovider

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

var _ = register(imitation{
	provider: dialect.Gemini,
	routes: []route{
		{end: ":generateContent", endpoint: endpoint{api: dialect.Generate, format: gemini{}}},
		{end: ":streamGenerateContent", endpoint: endpoint{api: dialect.Generate, format: gemini{}, stream: true}},
		{end: ":embedContent", endpoint: endpoint{api: dialect.GeminiEmbed, format: geminiEmbed{}}},
		{end: ":batchEmbedContents", endpoint: endpoint{api: dialect.GeminiEmbed, format: geminiEmbed{}}},
		{end: ":predict", endpoint: endpoint{api: dialect.GeminiImages, format: predict{}}},
		{end: ":predictLongRunning", endpoint: endpoint{api: dialect.GeminiVideos, format: veo{}}},
		{end: "/interactions", endpoint: endpoint{api: dialect.Interactions, format: interactions{}}},
		{end: "/cachedContents", endpoint: endpoint{api: dialect.CachedContents, format: cachedContents{}}},
		{patch: "/cachedContents/", endpoint: endpoint{api: dialect.CacheChanges, format: cacheChange{}}},
	},
	modelFolder: "/models/",
	counting:    map[string]string{":countTokens": "totalTokens"},
	fetched:     map[string]func(name string) object{"/operations/": operation, "/cachedContents/": storedCache},
	errorBody:   googleError,
	chat:        chatStyle{usageInEachChunk: true},
})

// googleStatuses are Google's words for errors.
var googleStatuses = statusWords{
	0:                             "INTERNAL",
	http.StatusBadRequest:         "INVALID_ARGUMENT",
	http.StatusUnauthorized:       "UNAUTHENTICATED",
	http.StatusForbidden:          "PERMISSION_DENIED",
	http.StatusNotFound:           "NOT_FOUND",
	http.StatusTooManyRequests:    "RESOURCE_EXHAUSTED",
	http.StatusServiceUnavailable: "UNAVAILABLE",
}

// googleError has the wait in the body.
func googleError(f failure) object {
	e := object{"code": f.status, "message": f.message, "status": googleStatuses.of(f.status)}
	if f.status == http.StatusTooManyRequests {
		e["details"] = f.geminiDetails()
	}
	return object{"error": e}
}

// geminiDetails names the violated quota, and how long to wait.
func (f failure) geminiDetails() []object {
	details := []object{{
		"@type": "type.googleapis.com/google.rpc.QuotaFailure",
		"violations": []object{{
			"quotaMetric":     "generativelanguage.googleapis.com/generate_content_free_tier_requests",
			"quotaId":         cmp.Or(f.code, "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
			"quotaDimensions": object{"location": "global", "model": f.model},
			"quotaValue":      "60",
		}},
	}}
	if f.retry > 0 {
		details = append(details, object{
			"@type":      "type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay": fmt.Sprintf("%ds", seconds(f.retry)),
		})
	}
	return details
}

// gemini is Gemini's generateContent and streamGenerateContent.
type gemini struct{}

func (gemini) read(c *Call) error {
	f := c.fields
	if _, ok := f["contents"].([]any); !ok {
		return errors.New("contents is not specified")
	}
	config := f.in("generationConfig")
	c.MaxOutput = config.number("maxOutputTokens")
	c.Answers = max(config.number("candidateCount"), 1)
	c.Prompt = f.count("contents", "systemInstruction", "system_instruction", "tools")
	return nil
}

func (gemini) framing(c *Call) framing {
	if c.array {
		return array
	}
	return sse
}

func (gemini) end(a *answer) string { return a.end("STOP", "MAX_TOKENS", "STOP") }

// body returns a response with some candidates, and the usage so far.
func (gemini) body(a *answer, candidates []object, sent usage) object {
	u := object{
		"promptTokenCount":     a.usage.input,
		"totalTokenCount":      a.usage.input + sent.output,
		"promptTokensDetails":  modalities(a.usage.input, a.usage.parts.InputAudio, a.usage.parts.InputImage),
		"candidatesTokenCount": sent.output - sent.reasoning,
	}
	if a.usage.cached > 0 {
		u["cachedContentTokenCount"] = a.usage.cached
		u["cacheTokensDetails"] = modalities(a.usage.cached, a.usage.parts.CachedAudio, 0)
	}
	if p := a.usage.parts; sent.output == a.usage.output && (p.OutputAudio > 0 || p.OutputImage > 0) {
		u["candidatesTokensDetails"] = modalities(sent.output-sent.reasoning, p.OutputAudio, p.OutputImage)
	}
	a.usage.parts.addTier(u, "serviceTier", strings.ToUpper(a.usage.parts.Tier))
	if sent.reasoning > 0 {
		u["thoughtsTokenCount"] = sent.reasoning
	}
	return object{"candidates": candidates, "usageMetadata": u, "modelVersion": a.Model, "responseId": a.id("")}
}

func (gemini) candidate(a *answer, index int, parts []object, end string) object {
	c := object{"index": index, "content": object{"role": "model", "parts": parts}}
	if end != "" {
		c["finishReason"] = end
		if a.WebSearches > 0 && a.units[llm.WebSearches] > 0 {
			c["groundingMetadata"] = object{"webSearchQueries": slices.Repeat([]string{"news"}, a.WebSearches)}
		}
		if a.Places > 0 && a.units[llm.WebSearches] > 0 {
			c["groundingMetadata"] = object{"groundingChunks": slices.Repeat([]object{{"maps": object{"uri": "https://maps.google.com/?cid=1", "title": "A place"}}}, a.Places)}
		}
	}
	return c
}

func (gemini) toolCall(t *tool) object {
	return object{"functionCall": object{"id": t.id, "name": t.name, "args": raw(t.argument())}}
}

func (f gemini) whole(a *answer) object {
	parts := []object{}
	if len(a.thoughts) > 0 {
		parts = append(parts, object{"text": a.fullThoughts(), "thought": true})
	}
	if len(a.text) > 0 {
		parts = append(parts, object{"text": a.fullText()})
	}
	if a.tool != nil {
		parts = append(parts, f.toolCall(a.tool))
	}
	parts = append(parts, f.pictures(a)...)
	candidates := make([]object, a.Answers)
	for i := range candidates {
		candidates[i] = f.candidate(a, i, parts, f.end(a))
	}
	return f.body(a, candidates, a.usage)
}

// events returns the events of the answer. Each reports the usage so far.
func (f gemini) events(a *answer) iter.Seq[event] {
	return func(yield func(event) bool) {
		sent := usage{output: a.hidden * a.Answers}
		for _, p := range f.pieces(a) {
			candidates := make([]object, a.Answers)
			for i := range candidates {
				candidates[i] = f.candidate(a, i, p.parts, p.end)
			}
			e := event{output: p.output * a.Answers, reasoning: p.reasoning * a.Answers}
			sent.output += e.output
			sent.reasoning += e.reasoning
			e.data = f.body(a, candidates, sent)
			if !yield(e) {
				return
			}
		}
	}
}

// piece is a piece of an answer.
type piece struct {
	parts             []object
	end               string // why the answer ends; empty before the last piece
	output, reasoning int
}

func (f gemini) pieces(a *answer) []piece {
	var list []piece
	for text, n := range a.pieces(a.thoughts) {
		list = append(list, piece{parts: []object{{"text": text, "thought": true}}, output: n, reasoning: n})
	}
	for text, n := range a.pieces(a.text) {
		list = append(list, piece{parts: []object{{"text": text}}, output: n})
	}
	if t := a.tool; t != nil {
		list = append(list, piece{parts: []object{f.toolCall(t)}, output: t.cost})
	}
	return append(list, piece{parts: append(f.pictures(a), object{"text": ""}), end: f.end(a)})
}

// pictures returns the image of an answer, if it has tokens of images.
func (gemini) pictures(a *answer) (parts []object) {
	if a.usage.parts.OutputImage > 0 {
		parts = append(parts, object{"inlineData": object{"mimeType": "image/png", "data": "iVBORw0KGgo="}})
	}
	return parts
}

func (gemini) broken(a *answer) event {
	return event{data: a.failure().body(dialect.Gemini)}
}
