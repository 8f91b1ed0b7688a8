package llm

import (
	"slices"
	"strings"
)

// Gemini is Google's AI Studio, with its own API or its copy of OpenAI's.
const Gemini Provider = "gemini"

// The APIs of Gemini.
const (
	Generate     API = "generate"     // Gemini's generateContent and streamGenerateContent
	Interactions API = "interactions" // Gemini's interactions
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
		},
		{
			api: Interactions, paths: []string{"interactions"}, answers: interactionTop, messageIn: "input",
			fields: slices.Concat(streamFields, []field{
				tierField, generationConfig, backgroundField, {name: "previous_interaction_id", kind: fieldContext, fixed: true},
			}),
			bounds: []setting{configMaxTokens}, boundObject: "generation_config", boundName: "max_output_tokens",
		},
	},
	names: nameRules{same: []nameRule{after("models/")}, variant: geminiVariants},
	fields: []field{
		{name: "contents", kind: fieldMessages},
		{name: "systemInstruction", also: "system_instruction", kind: fieldMessage},
		{name: "content", kind: fieldMessage},  // of embedContent
		{name: "requests", kind: fieldPrompts}, // of batchEmbedContents
	},
	promptKeys: map[string]keyKind{
		"thoughtSignature": keyLabel, "thought_signature": keyLabel, "mime_type": keyMime, "mimeType": keyMime,
		"args": keyFree, "response": keyFree, "inlineData": keySource, "inline_data": keySource,
		"fileUri": keyReference, "file_uri": keyReference, "uri": keyAddress,
	},
	wholeTypes:     []string{"thought", "function_result"},
	thinking:       map[string]bool{"thinkingConfig": true, "thinking_config": true},
	budgets:        []string{"thinkingBudget", "thinking_budget"},
	images:         &geminiImages,
	hidesReasoning: true,
	silent:         []string{"-live", "lyria", "veo"},
	unreasoning:    []string{"gemini-1", "gemini-2.0", "gemma"},
	secretive:      []string{"gemini-2.5", "gemini-3"},
	outputIsFree:   true,
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
	switch method {
	case "generateContent", "streamGenerateContent":
		e.API = Generate
	case "embedContent", "batchEmbedContents":
		e.API = Embeddings
	case "rawPredict", "streamRawPredict":
		e.API = rawAPIs[publisher(p.folder)]
	}
	return e, e.API != ""
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
)

// The values of answers to generateContent.
var (
	geminiCandidate = &node{answers: true, members: members{
		"finishReason": finishNode,
		"content": {members: members{"parts": {members: members{
			"text": textNode, "functionCall": functionNode, "executableCode": functionNode,
		}}}},
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
		"usage": interactionUsage, "outputs": itemsNode, "steps": itemsNode,
		"interaction": {members: members{"usage": interactionUsage, "error": faultNode, "service_tier": tierNode}},
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
