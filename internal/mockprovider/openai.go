package mockprovider

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

var _ = register(imitation{
	provider: dialect.OpenAI,
	routes: []route{
		{end: "/chat/completions", endpoint: endpoint{api: dialect.Chat, format: chat{}}},
		{end: "/completions", endpoint: endpoint{api: dialect.Completions, format: completions{}}},
		{end: "/responses", endpoint: endpoint{api: dialect.Responses, format: responses{}}},
		{end: "/embeddings", endpoint: endpoint{api: dialect.Embeddings, format: embeddings{}}},
		{end: "/moderations", endpoint: endpoint{api: dialect.Embeddings, format: moderations{}}},
		{end: "/images/generations", endpoint: endpoint{api: dialect.ImageGeneration, format: images{}}},
		{end: "/images/edits", endpoint: endpoint{api: dialect.ImageGeneration, format: images{}}},
		{end: "/images/variations", endpoint: endpoint{api: dialect.ImageGeneration, format: images{}}},
		{end: "/v1/videos", endpoint: endpoint{api: dialect.Videos, format: videos{}}},
		{end: "/remix", endpoint: endpoint{api: dialect.Videos, format: videos{}}},
		{end: "/v1/containers", endpoint: endpoint{api: dialect.NewContainers, format: containers{}}},
		{end: "/videos/edits", endpoint: endpoint{api: dialect.Videos, format: videos{}}},
		{end: "/videos/extensions", endpoint: endpoint{api: dialect.Videos, format: videos{}}},
		{end: "/fine_tuning/jobs", endpoint: endpoint{api: dialect.FineTuning, format: training{}}},
		{end: "/audio/speech", endpoint: endpoint{api: dialect.Speech, format: speech{}}},
		{end: "/audio/transcriptions", endpoint: endpoint{api: dialect.Transcriptions, format: transcriptions{}}},
		{end: "/audio/translations", endpoint: endpoint{api: dialect.Transcriptions, format: transcriptions{}}},
	},
	counting:    map[string]string{"/responses/input_tokens": "input_tokens"},
	fetched:     map[string]func(id string) object{"/videos/": video},
	limits:      openAILimits,
	retryHeader: retryAfter,
})

// openAICodes are OpenAI's words for errors.
var openAICodes = statusWords{
	0:                              "invalid_request",
	http.StatusUnauthorized:        "invalid_api_key",
	http.StatusNotFound:            "model_not_found",
	http.StatusTooManyRequests:     "rate_limit_exceeded",
	http.StatusInternalServerError: "server_error",
	http.StatusServiceUnavailable:  "server_is_overloaded",
}

func openAIError(f failure) object {
	return object{"error": object{"message": f.message, "type": f.openAIType(), "param": nil, "code": cmp.Or(f.code, openAICodes.of(f.status))}}
}

func (f failure) openAIType() string {
	switch {
	case f.code == "insufficient_quota" || f.code == "credit_balance_exhausted":
		return f.code
	case f.status == http.StatusTooManyRequests:
		return "requests"
	case f.status >= 500:
		return "server_error"
	default:
		return "invalid_request_error"
	}
}

func openAILimits(h http.Header, at limitStates, _ limitTime) {
	writeBuckets(h, at, func(reset time.Duration) string { return reset.Round(time.Millisecond).String() })
}

// writeBuckets writes limits under OpenAI's names.
func writeBuckets(h http.Header, at limitStates, duration func(time.Duration) string) {
	for name, s := range map[string]limitState{"requests": at.requests, "tokens": at.tokens} {
		if s.limit == 0 {
			continue
		}
		h.Set("X-Ratelimit-Limit-"+name, strconv.Itoa(s.limit))
		h.Set("X-Ratelimit-Remaining-"+name, strconv.Itoa(s.remaining))
		h.Set("X-Ratelimit-Reset-"+name, duration(s.reset))
	}
}

// readCompletion reads the fields that chat completions and legacy completions both have.
func (c *Call) readCompletion() {
	f := c.fields
	c.Stream = f.flag("stream")
	c.UsageAsked = f.in("stream_options").flag("include_usage")
	c.MaxOutput = cmp.Or(f.number("max_completion_tokens"), f.number("max_tokens"))
	c.Answers = max(f.number("n"), 1)
}

// completionUsage returns usage in the format of chat completions and legacy completions.
func completionUsage(u usage) object {
	input, output := u.inputDetails(), u.outputDetails()
	input["audio_tokens"], output["audio_tokens"] = u.parts.InputAudio, u.parts.OutputAudio
	output["accepted_prediction_tokens"], output["rejected_prediction_tokens"] = 0, 0
	return object{
		"prompt_tokens":             u.input,
		"completion_tokens":         u.output,
		"total_tokens":              u.input + u.output,
		"prompt_tokens_details":     input,
		"completion_tokens_details": output,
	}
}

// chunks makes the chunks of a stream of either API, which differ in their choices.
type chunks struct {
	*answer
	frame object // the members that all chunks have
	sent  usage  // the usage so far
}

// chunk returns a chunk that carries so many tokens.
func (c *chunks) chunk(choices []object, output, reasoning int) event {
	c.sent.output += output
	c.sent.reasoning += reasoning
	data := object{"choices": choices}
	maps.Copy(data, c.frame)
	switch {
	case c.style().usageInEachChunk:
		so := c.usage
		so.output, so.reasoning = c.sent.output+c.hidden*c.Answers, c.sent.reasoning
		data["usage"] = completionUsage(so)
	case c.UsageAsked:
		data["usage"] = nil
	}
	return event{data: data, output: output, reasoning: reasoning}
}

// usageChunk returns the last chunk, which reports usage, if there is one.
func (c *chunks) usageChunk() (event, bool) {
	if !c.UsageAsked && !c.style().usageUnasked || c.style().usageInEachChunk {
		return event{}, false
	}
	e := c.chunk([]object{}, 0, 0)
	e.data["usage"] = c.addCost(completionUsage(c.usage))
	return e, true
}

// brokenChunk reports an error in mid-stream.
func (c *chunks) brokenChunk() event {
	data := c.failure().body(c.provider())
	if c.style().namesProvider {
		maps.Copy(data, c.frame)
		data["choices"] = []object{{"index": 0, "delta": object{"content": ""}, "finish_reason": "error"}}
	}
	return event{data: data}
}

// raw returns text as JSON, or an empty object if it is not JSON.
func raw(text string) json.RawMessage {
	if !json.Valid([]byte(text)) {
		return json.RawMessage("{}")
	}
	return json.RawMessage(text)
}
