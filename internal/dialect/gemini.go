package dialect

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Gemini is Google's AI Studio, with its own API or its copy of OpenAI's.
const Gemini llm.Provider = "gemini"

// The APIs of Gemini.
const (
	Generate       API = "generate"        // Gemini's generateContent and streamGenerateContent
	Interactions   API = "interactions"    // Gemini's interactions
	GeminiEmbed    API = "gemini-embed"    // Gemini's embedContent and batchEmbedContents, and embeddings by Vertex's predict
	GeminiImages   API = "gemini-image"    // Imagen's predict
	GeminiVideos   API = "gemini-video"    // Veo's predictLongRunning
	CachedContents API = "cached-contents" // Gemini's cachedContents
	CacheChanges   API = "cache-changes"   // changes of when a cache of Gemini's ends
)

var _ = register(dialect{
	provider:  Gemini,
	hosts:     []string{"generativelanguage.googleapis.com"},
	recognize: callOfModel,
	protocols: []protocol{
		{
			api: Generate, images: &geminiImages, countsEach: true,
			fields: []field{tierField, generationConfig, {name: "cachedContent", also: "cached_content", kind: fieldContext, fixed: true}},
			bounds: []setting{configMaxTokens}, boundObject: "generationConfig", boundName: "maxOutputTokens",
			counts:      []setting{configCandidateCount},
			toolMembers: []string{"functionDeclarations", "function_declarations"},
			measure:     measureGemini, units: []unitNumber{{unit: llm.WebSearches, number: webSearches, absent: true, once: mapPlaces}, {unit: llm.Images, number: geminiPictures, absent: true}},
			keyHeader: googleKey, keyUnless: "/openai/",
			refuse:      refuseGoogle,
			errorEvents: func(body []byte) []byte { return event(nil, "", body) },
			idle: func(u *url.URL) string {
				if u.Query().Get("alt") != "sse" {
					return ""
				}
				return "\n\n" // Google's SDK for Go takes a comment for an error
			},
		},
		{
			api: GeminiEmbed, embeds: true, requestsIn: "requests", images: &geminiImages,
			answers: extend(commonTop, members{"predictions": {members: members{"embeddings": {members: members{"statistics": {members: members{
				"token_count": {role: roleNumber, number: geminiPrompt, sums: true},
			}}}}}}}),
			keyHeader: googleKey, refuse: refuseGoogle,
		},
		{
			api: GeminiImages, embeds: true, promptsIn: "instances", fields: []field{predictParameters}, counts: []setting{sampleCount},
			measure: measureImagen, units: []unitNumber{{unit: llm.Images, number: geminiPictures, absent: true}},
			answers:   extend(commonTop, members{"predictions": {members: members{"bytesBase64Encoded": {each: geminiPictures}, "gcsUri": {each: geminiPictures}}}}),
			keyHeader: googleKey, refuse: refuseGoogle,
		},
		{ // an answer names the operation that makes the video; what it is to cost is known by then
			api: GeminiVideos, embeds: true, promptsIn: "instances", fields: []field{predictParameters}, counts: []setting{sampleCount},
			measure: measureVeo, units: []unitNumber{{unit: llm.VideoSeconds}},
			keyHeader: googleKey, refuse: refuseGoogle,
		},
		{
			api: CachedContents, paths: []string{"cachedcontents"}, embeds: true, images: &geminiImages,
			fields: cacheFields, measure: measureCache, units: []unitNumber{{unit: llm.TokenHours}},
			answers:   &node{members: members{"error": faultNode, "usageMetadata": {members: members{"totalTokenCount": count(geminiPrompt)}}}},
			keyHeader: googleKey, refuse: refuseGoogle,
		},
		{
			api: CacheChanges, patch: "cachedcontents", about: aboutCache, byUnits: true, embeds: true,
			fields: cacheFields, measure: measureCacheChange, units: []unitNumber{{unit: llm.TokenHours}},
			answers:   &node{members: members{"error": faultNode}},
			keyHeader: googleKey, refuse: refuseGoogle,
		},
		{
			api: Interactions, paths: []string{"interactions"}, answers: interactionTop, messageIn: "input", fetchedIn: "interactions",
			fields: slices.Concat(streamFields, []field{
				tierField, generationConfig, backgroundField, {name: "previous_interaction_id", kind: fieldContext, fixed: true},
			}),
			bounds: []setting{configMaxTokens}, boundObject: "generation_config", boundName: "max_output_tokens",
			measure: measureGemini, units: []unitNumber{{unit: llm.WebSearches, number: webSearches, absent: true}},
			keyHeader: googleKey, keyUnless: "/openai/",
			refuse: refuseGoogle,
			refuseInStream: func(_ Refusal, body object) []byte {
				body["event_type"] = "error"
				return event(nil, "error", encoded(body))
			},
		},
	},
	names: nameRules{same: []nameRule{after("models/")}, variant: geminiVariants},
	fields: []field{
		{name: "contents", kind: fieldMessages},
		{name: "systemInstruction", also: "system_instruction", kind: fieldMessage},
		{name: "content", kind: fieldMessage},   // of embedContent
		{name: "requests", kind: fieldPrompts},  // of batchEmbedContents
		{name: "instances", kind: fieldPrompts}, // of predict
	},
	promptKeys: map[string]keyKind{
		"thoughtSignature": keyLabel, "thought_signature": keyLabel, "mime_type": keyMime, "mimeType": keyMime,
		"args": keyFree, "response": keyFree, "inlineData": keySource, "inline_data": keySource,
		"fileUri": keyReference, "file_uri": keyReference, "uri": keyAddress,
	},
	wholeTypes: []string{"thought", "function_result"},
	toolUnits: map[string]toolUnit{ // searches of the web, and those of maps
		"googleSearch": geminiSearch, "google_search": geminiSearch, "enterpriseWebSearch": geminiSearch, "enterprise_web_search": geminiSearch,
		"googleMaps": geminiSearch, "google_maps": geminiSearch,
	},
	freeEnds:       []string{":fetchPredictOperation"},
	thinking:       map[string]bool{"thinkingConfig": true, "thinking_config": true},
	budgets:        []string{"thinkingBudget", "thinking_budget"},
	images:         &geminiImages,
	hidesReasoning: true,
	silent:         []string{"-live", "lyria", "veo"},
	unreasoning:    []string{"gemini-1", "gemini-2.0", "gemma"},
	secretive:      []string{"gemini-2.5", "gemini-3"},
	outputIsFree:   true,
	faults:         map[string]fault{"resource_exhausted": faultLimit, "unavailable": faultLoad},
	errorAPI:       Generate,
	baseVariable:   "GOOGLE_GEMINI_BASE_URL",
	readError:      readGoogleError,
	renamePath:     renameGoogle,
	common: commonNames{
		top:     members{"usageMetadata": geminiMetadata, "candidates": geminiCandidate},
		wrapped: members{"usageMetadata": geminiMetadata, "candidates": geminiCandidate},
	},
	usage: usageRules{
		input: geminiPrompt, toolUse: geminiToolUse, cached: geminiCached,
		output: geminiCandidates, thoughts: geminiThoughts, total: geminiTotal,
		endsAll: geminiTotal,
	},
})

// geminiVariants remove the marks of Gemini's releases.
var geminiVariants = []nameRule{without("-latest"), date("-000"), date("-00-00"), date("-00-0000")}

// What images cost at Gemini, in tokens.
const (
	geminiTile         = 258 // a tile of 768 by 768 pixels, or a small image
	geminiUnknownImage = 4 * geminiTile
	boundImageGemini   = 16 * geminiTile
)

var geminiImages = imageRules{
	cost: func(width, height int) int {
		if width <= 384 && height <= 384 {
			return geminiTile
		}
		width, height = fit(width, height, max(width, height), 3072)
		return geminiTile * tiles(width, 768) * tiles(height, 768)
	},
	unknown: geminiUnknownImage,
	most:    func(string) int { return boundImageGemini },
}

// callOfModel reads one of Google's paths, such as /v1beta/models/gemini-pro:generateContent.
// Vertex also has endpoints for tuned models, and serves Anthropic's models with Anthropic's API;
// AI Studio has tunedModels.
func callOfModel(p requestPath, _ bool) (e Endpoint, ok bool) {
	last := unescapeSegment(p.url, p.last)
	_, parent := cutLast(p.folder)
	if parent != "models" && parent != "tunedModels" && parent != "endpoints" {
		return e, false
	}
	colon := strings.LastIndexByte(last, ':')
	if colon <= 0 {
		return e, false
	}
	e.Model = last[:colon]
	method := last[colon+1:]
	e.Stream = method == "streamGenerateContent" || method == "streamRawPredict"
	switch e.API = googleMethods[method]; {
	case e.API != "":
	case method == "rawPredict" || method == "streamRawPredict":
		e.API = rawAPIs[publisher(p.folder)]
	case method == "predict" && strings.Contains(e.Model, "embedding"):
		e.API = GeminiEmbed
	case method == "predict" && strings.Contains(e.Model, "imagen"):
		e.API = GeminiImages
	}
	return e, e.API != ""
}

// googleMethods are the APIs of Google's own methods.
var googleMethods = map[string]API{
	"generateContent": Generate, "streamGenerateContent": Generate, "embedContent": GeminiEmbed, "batchEmbedContents": GeminiEmbed,
	"predictLongRunning": GeminiVideos,
}

// rawAPIs are the APIs that Vertex hands on to the models of other companies, by their publishers.
var rawAPIs = map[string]API{"anthropic": Messages, "mistralai": Chat, "ai21": Chat}

// publisher returns the publisher of a model in a path of Vertex that ends with /publishers/NAME/models/,
// or "".
func publisher(path string) string {
	path, _ = cutLast(path)
	path, name := cutLast(path)
	if _, folder := cutLast(path); folder != "publishers" {
		return ""
	}
	return name
}

// The numbers that Gemini alone reports.
var (
	geminiPrompt     = newNumber() // includes cached tokens
	geminiCached     = newNumber()
	geminiCandidates = newNumber()
	geminiThoughts   = newNumber() // whether they are among the candidates' varies
	geminiToolUse    = newNumber()
	geminiTotal      = newNumber()
	geminiPictures   = newSum() // images that were generated
	mapPlaces        = newNumber()
)

// geminiSearch is what a tool that searches costs.
var geminiSearch = toolUnit{llm.WebSearches, mostSearches}

// The values of answers to generateContent.
var (
	geminiCandidate = &node{answers: true, members: members{
		"finishReason": finishNode,
		"content": {members: members{"parts": {members: members{
			"text": textNode, "functionCall": functionNode, "executableCode": functionNode,
			"inlineData": {counted: true, members: members{"mimeType": kindNode}, entries: []entryNumber{
				{"image/png", geminiPictures}, {"image/jpeg", geminiPictures}, {"image/webp", geminiPictures},
			}},
		}}}},
		"groundingMetadata": {members: members{
			"webSearchQueries": {each: webSearches},
			"groundingChunks":  {members: members{"maps": {each: mapPlaces, members: members{}}}}, // such an answer may have no queries
		}},
	}}
	geminiMetadata = &node{members: members{
		"promptTokenCount":        count(geminiPrompt),
		"cachedContentTokenCount": count(geminiCached),
		"candidatesTokenCount":    count(geminiCandidates),
		"thoughtsTokenCount":      count(geminiThoughts),
		"toolUsePromptTokenCount": count(geminiToolUse),
		"totalTokenCount":         count(geminiTotal),
		"promptTokensDetails":     promptModalities,
		"cacheTokensDetails":      cachedModalities,
		"candidatesTokensDetails": outputModalities,
		"serviceTier":             tierNode,
		"trafficType":             tierNode, // Vertex's
	}}
	promptModalities = &node{members: modalityMembers, entries: []entryNumber{{"AUDIO", inputAudio}, {"IMAGE", inputImage}}}
	cachedModalities = &node{members: modalityMembers, entries: []entryNumber{{"AUDIO", cachedAudio}}}
	outputModalities = &node{members: modalityMembers, entries: []entryNumber{{"AUDIO", outputAudio}, {"IMAGE", outputImage}}}
	modalityMembers  = members{"modality": kindNode, "tokenCount": countNode, "tokens": countNode}
)

// Gemini's interactions have their text at the top, in outputs or in steps, or in the deltas of a
// stream, whose last event has the whole interaction, with its usage.
var (
	interactionTop = extend(commonTop, members{
		"usage": interactionUsage, "outputs": itemsNode, "steps": itemsNode, "id": idNode, "status": statusNode,
		"interaction": {members: members{"usage": interactionUsage, "error": faultNode, "service_tier": tierNode, "id": idNode, "status": statusNode}},
		"delta": {members: members{
			"text": textNode, "content": contentNode, "partial_arguments": textNode, "arguments": argsNode, "name": nameNode,
		}},
	})
	interactionUsage = &node{members: members{
		"total_input_tokens": count(geminiPrompt), "totalInputTokens": count(geminiPrompt),
		"total_cached_tokens": count(geminiCached), "totalCachedTokens": count(geminiCached),
		"total_output_tokens": count(geminiCandidates), "totalOutputTokens": count(geminiCandidates),
		"total_thought_tokens": count(geminiThoughts), "totalThoughtTokens": count(geminiThoughts),
		"total_tool_use_tokens": count(geminiToolUse), "totalToolUseTokens": count(geminiToolUse),
		"total_tokens": count(geminiTotal), "totalTokens": count(geminiTotal),
		"input_tokens_by_modality": promptModalities, "inputTokensByModality": promptModalities,
		"cached_tokens_by_modality": cachedModalities, "cachedTokensByModality": cachedModalities,
		"output_tokens_by_modality": outputModalities, "outputTokensByModality": outputModalities,
		"grounding_tool_count": groundingCounts, "groundingToolCount": groundingCounts,
	}}
	groundingCounts = &node{members: members{"type": kindNode, "count": countNode}, sums: true, entries: []entryNumber{
		{"google_search", webSearches}, {"google_maps", webSearches},
	}}
)

// The numbers in requests to Gemini, and the object that has them.
var (
	configMaxTokens      = newBound()
	configCandidateCount = newCount()

	generationConfig = field{name: "generationConfig", also: "generation_config", kind: fieldObject, parts: []part{
		{"maxOutputTokens", configMaxTokens}, {"max_output_tokens", configMaxTokens},
		{"candidateCount", configCandidateCount}, {"candidate_count", configCandidateCount},
		{"responseSchema", schema}, {"response_schema", schema}, {"responseJsonSchema", schema}, {"response_json_schema", schema},
	}}
)

// cacheFields say until when a cache is kept.
var cacheFields = []field{
	{name: "ttl", kind: fieldWord, setting: ttlWord}, {name: "expireTime", also: "expire_time", kind: fieldWord, setting: expiryWord},
}

// The numbers in requests of predict.
var (
	sampleCount   = newCount()
	videoDuration = newCount()

	predictParameters = field{name: "parameters", kind: fieldObject, parts: []part{
		{"sampleCount", sampleCount}, {"durationSeconds", videoDuration}, {"resolution", firstWord + resolutionWord},
	}}
)

// measureGemini counts the searches that a request allows, and the images of a model that generates them: one in each
// answer, since nothing in the request says how many. Models before Gemini 3 are billed once, however often they search.
func measureGemini(b measuredBody) (m measured) {
	m = measureTools(b)
	m.units[llm.Containers] = 0 // it runs code for the tokens alone
	if strings.Contains(b.model, "-image") {
		m.units[llm.Images] = int64(b.answers)
	}
	if m.units[llm.WebSearches] > 0 && (strings.Contains(b.model, "gemini-2") || strings.Contains(b.model, "gemini-1")) {
		m.units[llm.WebSearches], m.once = 1, true
		if b.mapsAlone {
			m.variant = "maps" // which cost less
		}
	}
	return m
}

// measureImagen counts the images that a request asks for. Without a number, there are four to each prompt.
func measureImagen(b measuredBody) (m measured) {
	if m.units[llm.Images] = int64(b.answers); b.samples == 0 {
		m.units[llm.Images] *= 4
	}
	return m
}

// measureVeo returns how many seconds the videos have that a request asks for. Without a number, each has eight.
func measureVeo(b measuredBody) (m measured) {
	seconds := int64(8)
	if b.duration > 0 {
		seconds = min(int64(b.duration), mostCounted)
	}
	m.units[llm.VideoSeconds] = seconds * int64(b.answers)
	m.variant = cmp.Or(strings.ToLower(b.words[resolutionWord]), "720p")
	return m
}

// geminiWindow is the largest context window of Gemini's models: a cache has no more tokens.
const geminiWindow = 2 << 20

var errTwoEnds = errors.New("two times at which a cache ends")

// cacheWait returns for how long a cache is to be kept from now on: for the usual time, unless the request says something
// else.
func (b *measuredBody) cacheWait(usual time.Duration) (wait time.Duration, err error) {
	switch ttl, at := b.words[ttlWord], b.words[expiryWord]; {
	case ttl != "" && at != "":
		return 0, errTwoEnds
	case ttl != "":
		return time.ParseDuration(ttl)
	case at != "":
		until, err := time.Parse(time.RFC3339, at)
		return time.Until(until), err // or the longest time that there is
	}
	return usual, nil
}

// measureCache returns for how long a prompt is to be kept: for an hour, unless the request says something else.
func measureCache(b measuredBody) (m measured) {
	wait, err := b.cacheWait(time.Hour)
	if err != nil {
		m.units[llm.TokenHours] = -1
		return m
	}
	if m.kept = max(int64(wait/time.Second), 1); wait%time.Second > 0 {
		m.kept++
	}
	tokens := b.prompt
	if tokens < 0 {
		tokens = geminiWindow
	}
	m.units[llm.TokenHours] = tokenHours(int64(tokens), m.kept)
	return m
}

// googleStatuses are Google's words for errors.
var googleStatuses = statusWords{
	http.StatusBadRequest:          "INVALID_ARGUMENT",
	http.StatusUnauthorized:        "UNAUTHENTICATED",
	http.StatusPaymentRequired:     "FAILED_PRECONDITION",
	http.StatusForbidden:           "PERMISSION_DENIED",
	http.StatusNotFound:            "NOT_FOUND",
	http.StatusTooManyRequests:     "RESOURCE_EXHAUSTED",
	http.StatusInternalServerError: "UNAVAILABLE",
}

// refuseGoogle returns the body of a refusal in Google's form.
func refuseGoogle(_ Endpoint, r Refusal, fault object) object {
	fault["code"], fault["status"] = r.Status, googleStatuses.of(r.Status)
	if r.RetryAfter > 0 {
		fault["details"] = []object{{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retryDelay(r.RetryAfter)}}
	}
	return object{"error": fault}
}

// retryDelay returns a wait in Google's form: 22s, 0.5s.
func retryDelay(d time.Duration) string {
	seconds := float64(ceilDiv(d, time.Millisecond)) / 1000
	return strconv.FormatFloat(seconds, 'f', -1, 64) + "s"
}

// renameGoogle replaces the name of the model, which is before a colon.
func renameGoogle(path, from, to string) string {
	i := strings.LastIndex(path, "/"+from+":")
	if i < 0 {
		return path
	}
	return path[:i+1] + to + path[i+1+len(from):]
}

// readGoogleError reads the details of an error: which quotas it is about, and how long to wait. Google may ask for
// seconds only, although its quotas of a day end at midnight.
func readGoogleError(c *errorBody, inner any, now time.Time) {
	details, _ := member(inner, "details").([]any)
	for _, detail := range details {
		kind := memberWord(detail, "@type")
		switch kind[strings.LastIndexByte(kind, '.')+1:] {
		case "retryinfo":
			c.delay = max(c.delay, parseWait(memberText(detail, "retryDelay"), now))
		case "quotafailure":
			violations, _ := member(detail, "violations").([]any)
			for _, v := range violations {
				c.violated = append(c.violated, violatedWindow(v, now))
			}
		}
	}
	if c.status == "resource_exhausted" || len(c.violated) > 0 {
		c.dayEnds = untilMidnight(now, pacific())
	}
}

// violatedWindow returns the window of a violated quota, which has nothing left. The quota's name
// says what it limits, as in GenerateRequestsPerDayPerProjectPerModel-FreeTier. The Unit is empty
// where it is none of ours, such as images.
func violatedWindow(violation any, now time.Time) llm.Window {
	w := llm.Window{Limit: max(strictestCount([]string{memberText(violation, "quotaValue")}, 1), 0)}
	id := memberWord(violation, "quotaId")
	switch what := id + " " + memberWord(violation, "quotaMetric"); {
	case strings.Contains(what, "token") && strings.Contains(what, "output"):
		w.Unit = llm.OutputTokens
	case strings.Contains(what, "token") && strings.Contains(what, "input"):
		w.Unit = llm.InputTokens
	case strings.Contains(what, "token"):
		w.Unit = llm.AllTokens
	case strings.Contains(what, "request"):
		w.Unit = llm.Requests
	}
	switch {
	case strings.Contains(id, "perday"):
		w.Per, w.Reset = llm.Day, untilMidnight(now, pacific())
	case strings.Contains(id, "perminute"):
		w.Per = time.Minute
	case strings.Contains(id, "persecond"):
		w.Per = time.Second
	}
	return w
}

// pacific is the time zone of Google's days.
var pacific = sync.OnceValue(func() *time.Location { return zoneOr("America/Los_Angeles", -8*time.Hour) })

const googleKey = "X-Goog-Api-Key"
