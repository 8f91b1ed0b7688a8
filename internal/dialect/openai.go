package dialect

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"dappco.re/go/core/go-ratelimit/llm"
)

// OpenAI is the provider of the GPT models.
const OpenAI llm.Provider = "openai"

// The APIs that OpenAI has made.
const (
	Chat        API = "chat"        // OpenAI's chat completions
	Responses   API = "responses"   // OpenAI's responses
	Completions API = "completions" // OpenAI's legacy completions
	Embeddings  API = "embeddings"  // OpenAI's embeddings

	ImageGeneration API = "images"         // OpenAI's images: generations, edits and variations
	Speech          API = "speech"         // OpenAI's text to speech
	Transcriptions  API = "transcriptions" // OpenAI's transcriptions and translations of audio
	Videos          API = "videos"         // OpenAI's videos
	NewContainers   API = "containers"     // OpenAI's containers, in which code runs
	FineTuning      API = "fine-tuning"    // OpenAI's jobs that train a model
)

var _ = register(dialect{
	provider:  OpenAI,
	hosts:     []string{"api.openai.com"}, // eu.api.openai.com too
	elsewhere: Compatible,
	recognize: vectorStoreCall,
	protocols: append([]protocol{
		{
			api: Chat, paths: []string{"chat/completions"},
			fields:    slices.Concat(streamFields, []field{tierField, maxTokensOf, maxCompletionTokensOf, answersOf, {name: "prediction", kind: fieldPredict}}),
			bounds:    []setting{maxCompletionTokens, maxTokens}, // older servers know max_tokens alone
			boundName: "max_tokens", counts: []setting{answerCount}, asksUsage: true, idle: idleComment,
			measure: measureChat,
		},
		{
			api: Completions, paths: []string{"completions"},
			fields: slices.Concat(streamFields, []field{tierField, maxTokensOf, answersOf, {name: "best_of", kind: fieldNumber, setting: bestOf}}),
			bounds: []setting{maxTokens}, boundName: "max_tokens",
			counts: []setting{answerCount, bestOf}, promptsIn: "prompt", asksUsage: true, idle: idleComment,
		},
		{
			api: Responses, paths: []string{"responses", "responses/compact"}, // at the latter, a model compacts a conversation
			fetchedIn: "responses",
			fields: slices.Concat(streamFields, []field{
				tierField, backgroundField, {name: "max_tool_calls", kind: fieldNumber, setting: maxToolCalls}, {name: "max_output_tokens", kind: fieldNumber, setting: maxOutputTokens},
				{name: "previous_response_id", kind: fieldContext, fixed: true}, {name: "conversation", kind: fieldContext},
			}),
			bounds: []setting{maxOutputTokens}, boundName: "max_output_tokens", messageIn: "input", storedIn: "prompt",
			answers: extend(commonTop, members{
				"id": idNode, "status": statusNode, "output": outputItems, "tool_usage": toolUsage,
				"response": extend(commonWrapped, members{"output": searchItems, "tool_usage": toolUsage}),
			}),
			measure: measureTools,
			units: []unitNumber{
				{unit: llm.WebSearches, number: webSearches, absent: true, billed: billedSearches}, {unit: llm.FileSearches, number: fileSearches, absent: true},
				{unit: llm.Containers, number: codeRuns, absent: true}, {unit: llm.Images, number: drawnImages, absent: true},
			},
			events: map[string]eventKind{
				"response.output_item.added": eventBlock, "response.audio.delta": eventSilent,
				"response.completed": eventEnd, "response.incomplete": eventEnd, "response.failed": eventEnd,
			},
			idle: idleComment, errorEvents: responsesErrorEvents,
			// Codex sleeps for any Retry-After. It stops at the type usage_limit_reached, and shows the header in place
			// of the message. It sends a call that was refused with 402, 403 or 413 six times, and one that was refused
			// with 400 once.
			stop: stop{http.StatusBadRequest, "usage_limit_reached", "insufficient_quota", "X-Codex-Promo-Message"},
		},
		{api: Embeddings, paths: []string{"embeddings"}, embeds: true},
		{
			api: ImageGeneration, paths: []string{"images/generations", "images/edits", "images/variations"}, forms: true,
			fields: slices.Concat(streamFields[:1], []field{answersOf, {name: "size", kind: fieldWord, setting: sizeWord}, {name: "quality", kind: fieldWord, setting: qualityWord}}),
			counts: []setting{answerCount}, measure: measureImages, apart: true,
			answers: extend(commonTop, members{"data": {each: imageCount, members: members{}}}),
			units:   []unitNumber{{unit: llm.Images, number: imageCount}},
			events:  map[string]eventKind{"image_generation.completed": eventEnd, "image_edit.completed": eventEnd},
		},
		{
			api: Speech, paths: []string{"audio/speech"}, measure: measureSpeech,
			units:  []unitNumber{{unit: llm.Characters}},
			events: map[string]eventKind{"speech.audio.delta": eventSilent, "speech.audio.done": eventEnd},
		},
		{
			api: Transcriptions, paths: []string{"audio/transcriptions", "audio/translations"}, forms: true, fields: streamFields[:1], measure: measureAudio,
			answers: extend(commonTop, members{"usage": transcriptionUsage, "text": textNode, "delta": textNode}),
			units:   []unitNumber{{unit: llm.AudioSeconds, number: audioSeconds}},
			events:  map[string]eventKind{"transcript.text.done": eventEnd},
		},
		{ // an answer says that the video is queued; what it is to cost is known by then
			api: Videos, paths: []string{"v1/videos", "remix", "videos/edits", "videos/extensions"}, about: aboutVideo, forms: true, embeds: true,
			fields:  []field{{name: "size", kind: fieldWord, setting: sizeWord}, {name: "seconds", kind: fieldWord, setting: secondsWord}},
			measure: measureVideo, units: []unitNumber{{unit: llm.VideoSeconds}},
		},
		{
			api: NewContainers, paths: []string{"v1/containers"}, model: "container", embeds: true,
			fields:  []field{{name: "memory_limit", kind: fieldWord, setting: memoryWord}},
			measure: measureContainer, units: []unitNumber{{unit: llm.Containers}},
		},
		{
			api: FineTuning, paths: []string{"fine_tuning/jobs"}, about: aboutTraining, fetchedIn: "jobs", begins: true, byUnits: true, embeds: true,
			measure: func(measuredBody) measured { return measured{units: llm.Units{llm.TrainedTokens: -1}} }, // the file says how many
			answers: &node{members: members{"id": idNode, "status": statusNode, "trained_tokens": count(trainedTokens), "error": faultNode}},
			units:   []unitNumber{{unit: llm.TrainedTokens, number: trainedTokens}},
		},
		{ // requests that are no call of a model, and what other APIs have left out
			api: "", refuse: refuseOpenAI, requestID: usualRequestID, setLimit: setOpenAILimit,
			errorEvents: func(body []byte) []byte { return event(event(nil, "", body), "", []byte("[DONE]")) },
			// LangChain, by its source, tries a 429 seven times unless its code is insufficient_quota.
			stop: stop{http.StatusBadRequest, "usage_limit_reached", "insufficient_quota", ""},
		},
	}, vectorStoreProtocols...),
	fields:     openAIFields,
	boundNames: openAIBounds,
	promptKeys: openAIKeys,
	wholeTypes: []string{
		"message", "input_text", "output_text", "summary_text", "reasoning_text", "refusal", "function", "function_call", "function_call_output",
		"custom", "custom_tool_call", "custom_tool_call_output", "tool", "file", "input_file", "content", "json",
	},
	toolUnits: map[string]toolUnit{
		"web_search": {llm.WebSearches, mostSearches}, fileTool: {llm.FileSearches, mostSearches}, "code_interpreter": {llm.Containers, 1},
		"shell": {llm.Containers, 1}, imageTool: {llm.Images, mostDrawn},
	},
	thinking:       map[string]bool{"reasoning": true},
	names:          nameRules{variant: []nameRule{date("-0000"), without("-latest")}}, // gpt-4-0613, chatgpt-4o-latest
	images:         &openAIImages,
	overhead:       openAIOverhead,
	exactTokenizer: true,
	hidesReasoning: true,
	silent:         []string{"audio", "image", "realtime", "tts"},
	unreasoning:    []string{"gpt-3", "gpt-4", "gpt-5-chat", "davinci", "babbage"},
	secretive:      []string{"gpt-5", "o1", "o3", "o4-mini", "codex"},
	countsBound:    boundOrPrompt,
	freeEnds:       openAIFreeEnds,
	basePath:       "/v1",
	baseVariable:   "OPENAI_BASE_URL",
	common:         openAINames,
	faults: map[string]fault{
		"insufficient_quota": faultUnpaid, "credit_balance_exhausted": faultUnpaid, "billing_hard_limit_reached": faultUnpaid, "billing_not_active": faultUnpaid,
		"server_is_overloaded": faultOverload, "slow_down": faultOverload,
		"429": faultLimit, "rate_limit_exceeded": faultLimit, "503": faultLoad, "529": faultLoad,
	},
	errorCause: func(c *errorBody) (llm.Cause, bool) { return "", c.speaksOf("request too large") }, // other requests may pass
	limitHeaders: []windowHeaders{
		bucketHeaders(llm.Requests, "Requests"),
		bucketHeaders(llm.AllTokens, "Tokens"),
		bucketHeaders(llm.AllTokens, "Project-Tokens"),
	},
	bucketPer: func(w llm.Window) time.Duration {
		if w.Unit == llm.Requests && fillsInDay(w) {
			return llm.Day
		}
		return usualBucketPer(w)
	},
})

// openAIOverhead is for the marks around messages, of which OpenAI adds hardly more than their JSON has.
const openAIOverhead = 32

// bucketHeaders returns the headers of a window with OpenAI's names, which others have copied. Its Per depends on the
// provider.
func bucketHeaders(u llm.Unit, name string) windowHeaders {
	return ratelimitHeaders(u, name, func(d *dialect, w llm.Window, _ time.Duration) time.Duration { return d.bucketPer(w) })
}

// ratelimitHeaders returns headers that begin with X-Ratelimit.
func ratelimitHeaders(u llm.Unit, name string, per windowPer) windowHeaders {
	const prefix = "X-Ratelimit-"
	return windowHeaders{unit: u, limit: prefix + "Limit-" + name, remaining: prefix + "Remaining-" + name, reset: prefix + "Reset-" + name, per: per}
}

// usualBucketPer returns the Per of a window with OpenAI's names: a minute, unless the bucket fills too
// slowly for that: then a window of requests is a day, and one of tokens is unknown.
func usualBucketPer(w llm.Window) time.Duration {
	switch {
	case w.Reset <= maxMinuteReset:
		return time.Minute
	case w.Unit == llm.Requests:
		return llm.Day
	}
	return 0
}

// fillsInDay reports whether a bucket fills in a day. Reset is the time until it is full, so an
// empty one takes limit ÷ used × Reset. used is rounded up, so the result may be half of the true
// time.
func fillsInDay(w llm.Window) bool {
	used := w.Limit - w.Remaining
	if w.Remaining < 0 || used < 1 || w.Reset < time.Second {
		return false
	}
	return w.Reset.Hours()*float64(w.Limit)/float64(used) >= 12
}

// The values of answers that OpenAI's APIs have, and those that others have copied.
var (
	choicesNode = &node{answers: true, members: members{
		"delta": commonMessage, "message": commonMessage, "text": textNode, "finish_reason": finishNode, "error": faultNode,
	}}
	callsNode    = &node{members: members{"function": functionNode, "custom": functionNode}}
	functionNode = &node{members: members{
		"name": nameNode, "code": textNode, "arguments": argsNode, "args": argsNode, "input": argsNode,
	}}
	itemsNode = &node{members: members{ // the output of OpenAI's responses
		"content": contentNode, "summary": contentNode, "name": nameNode, "arguments": argsNode, "input": argsNode,
	}}
	inputDetailsNode = &node{members: members{
		"cached_tokens": count(cachedTokens), "audio_tokens": count(inputAudio), "image_tokens": count(inputImage),
		"cache_write_tokens":    count(writtenTokens), // OpenRouter's
		"cached_tokens_details": {members: members{"audio_tokens": count(cachedAudio)}},
	}}
	outputDetailsNode = &node{members: members{
		"reasoning_tokens": count(reasoningTokens), "audio_tokens": count(outputAudio), "image_tokens": count(outputImage),
		"thinking_tokens": count(reasoningTokens), // Anthropic's
	}}
)

// What answers about images and audio report. Transcription spells the details of its tokens in a way of its own.
var (
	imageCount         = newNumber()
	audioSeconds       = newNumber()
	transcriptionUsage = extend(commonUsage, members{
		"seconds": {role: roleNumber, number: audioSeconds, written: asSeconds}, "input_token_details": inputDetailsNode,
		"prompt_audio_seconds": {role: roleNumber, number: audioSeconds, written: asSeconds}, // Mistral's
	})
)

// Each search of the web or of files is an item of a response. outputItems are those of a whole answer, with their
// texts; searchItems are those that the last event of a stream repeats.
var (
	searchItems = &node{counted: true, members: members{"type": kindNode}, entries: []entryNumber{{"web_search_call", webSearches}, {"file_search_call", fileSearches}, {"code_interpreter_call", codeRuns}, {"shell_call", codeRuns}, {"image_generation_call", drawnImages}}}
	outputItems = func() *node {
		n := extend(itemsNode, searchItems.members)
		n.counted, n.entries = true, searchItems.entries
		return n
	}()
)

// A response reports beside its usage what its tools have used. Opening a page is an item of a search, and not billed.
var (
	billedSearches  = newNumber()
	drawnImages     = newNumber()
	drawnInput      = newNumber()
	drawnInputImage = newNumber()
	drawnOutput     = newNumber()
	drawnText       = newNumber()

	toolUsage = &node{members: members{
		"web_search": {members: members{"num_requests": count(billedSearches)}},
		"image_gen": {members: members{
			"input_tokens": count(drawnInput), "input_tokens_details": {members: members{"image_tokens": count(drawnInputImage)}},
			"output_tokens": count(drawnOutput), "output_tokens_details": {members: members{"text_tokens": count(drawnText)}},
		}},
	}}
)

// trainedTokens is what a job reports that has ended.
var trainedTokens = newNumber()

// measureChat counts the one search that a chat completion makes before it answers: if its model always does, or the
// body asks for it.
func measureChat(b measuredBody) (m measured) {
	if b.asksSearch || strings.Contains(b.model, "-search-preview") || strings.Contains(b.model, "-search-api") {
		m.units[llm.WebSearches] = 1
	}
	return m
}

// measureVideo reads how long a video is to be, and of which size.
func measureVideo(b measuredBody) (m measured) {
	n, err := strconv.ParseUint(cmp.Or(b.words[secondsWord], "4"), 10, 16)
	if m.units[llm.VideoSeconds] = int64(n); err != nil {
		m.units[llm.VideoSeconds] = -1
	}
	m.variant = cmp.Or(b.words[sizeWord], "720x1280")
	return m
}

// measureContainer reads how large a container is to be.
func measureContainer(b measuredBody) (m measured) {
	word := cmp.Or(b.words[memoryWord], "1g")
	if m.units[llm.Containers] = containersFor("", []byte(`"`+word+`"`)); m.units[llm.Containers] == 1 && word != "1g" {
		m.units[llm.Containers] = -1
	}
	return m
}

// measureSpeech counts the characters that are to be spoken.
func measureSpeech(b measuredBody) (m measured) {
	var body struct{ Input string }
	if m.units[llm.Characters] = -1; json.Unmarshal(b.text, &body) == nil {
		m.units[llm.Characters] = int64(utf8.RuneCountInString(body.Input))
	}
	return m
}

// measureAudio finds out how long the audio of a request is at most. Its tokens are bounded by the context window. Of
// what a server fetches from an address, nobody knows how long it is.
func measureAudio(b measuredBody) (m measured) {
	m.units[llm.AudioSeconds], m.elsewhere = -1, true
	for _, f := range b.files {
		if f.name == "file" {
			m.units[llm.AudioSeconds] = max(m.units[llm.AudioSeconds], 0) + mostSeconds(f.content)
		}
	}
	return m
}

// openAINames are the names of OpenAI's answers.
var openAINames = commonNames{
	top: members{
		"usage": commonUsage, "choices": choicesNode, "output": itemsNode, "response": commonWrapped,
		"error": faultNode, "type": typeNode, "code": {role: roleCode}, "service_tier": tierNode,
	},
	usage: members{
		"prompt_tokens": count(promptTokens), "completion_tokens": count(completionTokens), "total_tokens": count(totalTokens),
		"input_tokens": count(inputTokens), "output_tokens": count(outputTokens), // of responses: they include cached tokens
		"prompt_tokens_details": inputDetailsNode, "input_tokens_details": inputDetailsNode,
		"completion_tokens_details": outputDetailsNode, "output_tokens_details": outputDetailsNode,
	},
	message: members{
		"content": contentNode, "refusal": textNode, "tool_calls": callsNode, "function_call": functionNode,
	},
	wrapped: members{"usage": commonUsage, "error": faultNode, "service_tier": tierNode, "id": idNode, "status": statusNode},
}

// The numbers in requests of OpenAI's APIs.
var (
	maxCompletionTokens = newBound()
	maxOutputTokens     = newBound()
	maxToolCalls        = newCount()
	answerCount         = newCount()
	bestOf              = newCount()

	maxCompletionTokensOf = field{name: "max_completion_tokens", kind: fieldNumber, setting: maxCompletionTokens}
	answersOf             = field{name: "n", kind: fieldNumber, setting: answerCount}
	backgroundField       = field{name: "background", kind: fieldBackground}
)

// openAIBounds is for the reasoning models at OpenAI and Azure, which refuse max_tokens.
var openAIBounds = map[API]string{Chat: "max_completion_tokens"}

var openAIFields = []field{
	{name: "model", kind: fieldModel},
	{name: "messages", kind: fieldMessages},
	{name: "input", kind: fieldPrompts},
	{name: "prompt", kind: fieldPrompts},
	{name: "instructions", kind: fieldMessage},
	{name: "suffix", kind: fieldTexts},
	{name: "tools", kind: fieldTools},
	{name: "functions", kind: fieldTools},
	{name: "response_format", kind: fieldAll},
	{name: "text", kind: fieldAll},
	{name: "modalities", kind: fieldHiding, harmless: []string{`["text"]`}},
	{name: "reasoning", kind: fieldHiding},
	{name: string(safetyIdentifier), kind: fieldUser},
	{name: string(plainUser), kind: fieldUser},
	{name: "truncation", kind: fieldTruncate},
	{name: "web_search_options", kind: fieldStored, searches: true},
}

var openAIKeys = map[string]keyKind{
	"id": keyLabel, "status": keyLabel, "index": keyLabel, "object": keyLabel, "format": keyLabel, "annotations": keyLabel,
	"tool_call_id": keyLabel, "call_id": keyLabel,
	"detail":            keyDetail,
	"arguments":         keyFree,
	"parameters":        keyFree,
	"input_audio":       keySource,
	"file":              keySource,
	"file_data":         keyPayload,
	"data":              keyPayload,
	"encrypted_content": keyEncrypted,
	"audio":             keyStored,
	"image_url":         keyImage, "image": keyImage,
	"video_url": keyReference, "audio_url": keyReference, "file_url": keyReference, "file_id": keyReference,
	"url": keyAddress,
}

// OpenAI's words for errors.
var (
	openAITypes = statusWords{
		http.StatusBadRequest: "invalid_request_error", http.StatusPaymentRequired: "insufficient_quota", http.StatusTooManyRequests: "requests",
		http.StatusInternalServerError: "server_error",
	}
	openAICodes = statusWords{
		http.StatusBadRequest:            "invalid_request",
		http.StatusUnauthorized:          "invalid_api_key",
		http.StatusPaymentRequired:       "insufficient_quota",
		http.StatusForbidden:             "permission_denied",
		http.StatusNotFound:              "not_found",
		http.StatusRequestEntityTooLarge: "request_too_large",
		http.StatusTooManyRequests:       "rate_limit_exceeded",
		http.StatusServiceUnavailable:    "server_is_overloaded",
		http.StatusInternalServerError:   "bad_gateway",
	}
)

// refuseOpenAI returns the body of a refusal in OpenAI's form.
func refuseOpenAI(e Endpoint, r Refusal, fault object) object {
	kind, code := openAITypes.of(r.Status), openAICodes.of(r.Status)
	if r.Status == http.StatusTooManyRequests && r.Tokens {
		kind = "tokens" // the type names what was short
	}
	if s := e.API.protocol().stop; r.final() && s.kind != "" {
		kind, code = s.kind, s.code
	}
	fault["type"], fault["param"], fault["code"] = kind, nil, cmp.Or(r.Code, code)
	if !dialectOf(e.Provider).flatErrors {
		return object{"error": fault}
	}
	body := maps.Clone(fault) // their own SDKs read the top level, OpenAI's the error
	body["object"], body["error"] = "error", fault
	return body
}

// responsesErrorEvents returns the events that end a stream of OpenAI's responses: one that SDKs report as an
// error, and one for clients that wait for the state of the response.
func responsesErrorEvents(body []byte) []byte {
	var whole struct {
		Error map[string]any `json:"error"`
	}
	json.Unmarshal(body, &whole) // leaves no error if the body has none
	fault := whole.Error
	first := encoded(object{
		"type": "error", "sequence_number": 0, "error": fault,
		"code": fault["code"], "message": fault["message"], "param": fault["param"],
	})
	second := encoded(object{"type": "response.failed", "sequence_number": 1, "response": object{
		"object": "response", "status": "failed", "output": []any{},
		"error": object{"code": fault["code"], "message": fault["message"]},
	}})
	return event(event(nil, "error", first), "response.failed", second)
}

// openAIFreeEnds are the paths of OpenAI's models for moderation, which are free, and of conversations, which no model
// continues.
var openAIFreeEnds = []string{"/moderations", "/conversations"}

func setOpenAILimit(h http.Header, unit string, w llm.Window, _ time.Time) {
	h.Set("X-Ratelimit-Limit-"+unit, strconv.FormatInt(w.Limit, 10))
	h.Set("X-Ratelimit-Remaining-"+unit, strconv.FormatInt(w.Remaining, 10))
	h.Set("X-Ratelimit-Reset-"+unit, w.Reset.Round(time.Millisecond).String())
}
