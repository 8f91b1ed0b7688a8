package llm

import "maps"

// node says what a value of a response means to the meter, and which of its members matter. An
// array has the node of its elements.
type node uint8

// The order matters: see the methods below.
const (
	nodeNone node = iota // neither the value nor anything in it matters

	// Numbers. A node is also the index of its number in a tally.
	promptTokens     // OpenAI's chat, completions and embeddings: includes cached tokens
	completionTokens // includes reasoning, with the exception that numbers.output handles
	totalTokens
	cachedTokens
	reasoningTokens
	inputTokens      // OpenAI's responses: includes cached tokens; Anthropic: does not
	outputTokens     // includes reasoning
	startedTokens    // Anthropic's output count at the start of a stream: a part of the total
	cacheWriteTokens // Anthropic's
	cacheReadTokens  // Anthropic's
	geminiPrompt     // includes cached tokens
	geminiCached
	geminiCandidates
	geminiThoughts
	geminiToolUse
	geminiTotal
	ollamaPrompt
	ollamaOutput
	billedInput  // Cohere's, used where it does not report the tokens that the model read
	billedOutput // Cohere's

	// Parts of the numbers above.
	writtenTokens  // to a cache: OpenRouter's, included in its prompt
	cacheWriteHour // to a cache that is kept for an hour
	inputAudio
	inputImage
	cachedAudio
	outputAudio
	outputImage

	// What is no count of tokens.
	costTold     // OpenRouter's charge, in billionths of a dollar
	upstreamCost // the model's provider's charge, in billionths of a dollar
	ownKey       // 1 if OpenRouter has called that provider with the caller's own key, else 0
	ollamaDone   // 1 in the last piece of an answer, else 0
	entryTokens  // the count of the entry that is being read: see endEntry
	numberNodes  // nodes below this one are numbers

	// Text that the model has generated.
	nodeText
	nodeName             // of a tool that the model calls
	nodeReasoning        // some servers send the same reasoning text under
	nodeReasoningContent // both of these names
	nodeArgs             // arguments of a tool: a string, or all strings inside any other value

	// Either text or a value with members.
	nodeContent
	nodeThinking
	nodeResponse   // an object in OpenAI's responses and in wrappers; a string of text in Ollama's
	nodeBlockDelta // an object in Anthropic's streams; a string of text in those of OpenAI's responses

	// Values with members.
	nodeTop
	nodeUsage
	nodeInputDetails
	nodeOutputDetails
	nodeCachedDetails
	nodeCacheCreation // Anthropic's
	nodeCostDetails   // OpenRouter's
	nodeMetadata      // Gemini's usage
	nodeGroq
	nodeChoices
	nodeDelta        // a piece of a choice, or its whole message
	nodeMessage      // Ollama's message, or Anthropic's at the start of a stream
	nodeStartedUsage // Anthropic's usage at the start of a stream
	nodeCalls
	nodeFunction
	nodeItems // the output of OpenAI's responses
	nodeCandidates
	nodeParts
	nodePart
	nodeResponses // a whole response, or an event, of OpenAI's responses
	nodeOllama    // a whole response, or a piece of one, of Ollama

	// Values with members in Cohere's responses only.
	nodeCohere
	nodeCoherePart
	nodeCohereUsage
	nodeCohereBilled

	// Values with members in Bedrock's responses only.
	nodeBedrock
	nodeBedrockPart
	nodeBedrockUsage
	nodeBedrockDelta
	nodeBedrockContent
	nodeBedrockThought
	nodeBedrockTier
	nodeChunk // an event of an Invoke stream, which holds the model's own JSON in base64

	// Values with members in answers of Gemini's interactions and of Mistral's conversations only.
	nodeInteraction
	nodeInteractionDone // an interaction that has ended, in the last event of a stream
	nodeInteractionUsage
	nodeInteractionDelta
	nodeConversation

	// Entries of lists, each with the kind of some tokens and their number: see endEntry.
	nodePromptEntry
	nodeCachedEntry
	nodeCandidateEntry
	nodeBedrockEntry // of what was written to caches

	// A string that holds a JSON value in base64: Bedrock's.
	nodePacked

	// An error: a value with members, or a word.
	nodeFault

	// Words.
	nodeFinish // the reason why an answer has ended
	nodeType
	nodeCode
	nodeFaultType
	nodeFaultCode
	nodeTier
	nodeUsageTier // Anthropic's, inside of its usage
	nodeSpeed     // Anthropic's
	nodeEntryKind
	nodeID     // of the response
	nodeStatus // of the response
	nodes      // the number of nodes
)

func (n node) isNumber() bool   { return n < numberNodes }
func (n node) isText() bool     { return n >= nodeText && n <= nodeBlockDelta }
func (n node) isWord() bool     { return n >= nodeFault }
func (n node) hasMembers() bool { return n >= nodeContent && n <= nodeFault }
func (n node) isEntry() bool    { return n >= nodePromptEntry && n <= nodeBedrockEntry }

// members maps the names of the members that matter to their nodes, for each node with members.
var members = [nodes]map[string]node{
	nodeTop: topMembers,
	nodeResponse: {
		"usage": nodeUsage, "usageMetadata": nodeMetadata, "candidates": nodeCandidates, "error": nodeFault,
		"service_tier": nodeTier, "id": nodeID, "status": nodeStatus,
	},
	nodeResponses: with(topMembers, map[string]node{"id": nodeID, "status": nodeStatus}),
	nodeOllama:    with(topMembers, map[string]node{"done": ollamaDone}),
	nodeFault:     {"type": nodeFaultType, "code": nodeFaultCode},

	// Text.
	nodeChoices: {
		"delta": nodeDelta, "message": nodeDelta, "text": nodeText, "finish_reason": nodeFinish, "error": nodeFault,
	},
	nodeDelta:      messageMembers,
	nodeMessage:    with(messageMembers, map[string]node{"usage": nodeStartedUsage}),
	nodeBlockDelta: blockDeltaMembers,
	nodeContent:    contentMembers,
	nodeThinking:   {"text": nodeText},
	nodeItems: {
		"content": nodeContent, "summary": nodeContent, "name": nodeName, "arguments": nodeArgs, "input": nodeArgs,
	},
	nodeCalls: {"function": nodeFunction, "custom": nodeFunction},
	nodeFunction: {
		"name": nodeName, "code": nodeText, "arguments": nodeArgs, "args": nodeArgs, "input": nodeArgs,
	},
	nodeCandidates: {"content": nodeParts, "finishReason": nodeFinish},
	nodeParts:      {"parts": nodePart},
	nodePart:       {"text": nodeText, "functionCall": nodeFunction, "executableCode": nodeFunction},

	// Usage.
	nodeUsage:        usageMembers,
	nodeStartedUsage: with(usageMembers, map[string]node{"output_tokens": startedTokens}),
	nodeInputDetails: {
		"cached_tokens": cachedTokens, "cache_write_tokens": writtenTokens, "audio_tokens": inputAudio, "image_tokens": inputImage,
		"cached_tokens_details": nodeCachedDetails,
	},
	nodeCachedDetails: {"audio_tokens": cachedAudio},
	nodeOutputDetails: {
		"reasoning_tokens": reasoningTokens, "thinking_tokens": reasoningTokens, "audio_tokens": outputAudio, "image_tokens": outputImage,
	},
	nodeCacheCreation: {"ephemeral_1h_input_tokens": cacheWriteHour},
	nodeCostDetails:   {"upstream_inference_cost": upstreamCost},
	nodeMetadata: {
		"promptTokenCount":        geminiPrompt,
		"cachedContentTokenCount": geminiCached,
		"candidatesTokenCount":    geminiCandidates,
		"thoughtsTokenCount":      geminiThoughts,
		"toolUsePromptTokenCount": geminiToolUse,
		"totalTokenCount":         geminiTotal,
		"promptTokensDetails":     nodePromptEntry,
		"cacheTokensDetails":      nodeCachedEntry,
		"candidatesTokensDetails": nodeCandidateEntry,
		"serviceTier":             nodeTier,
		"trafficType":             nodeTier, // Vertex's
	},
	nodePromptEntry:    modalityMembers,
	nodeCachedEntry:    modalityMembers,
	nodeCandidateEntry: modalityMembers,
	nodeGroq:           {"usage": nodeUsage},

	// Cohere reports usage twice: as tokens, which is what the model has read and written, and
	// as what it bills, without the text that Cohere itself puts around a prompt. Its limits
	// count the former, which is the larger one. Version 1 of its API has the text at the top, and
	// repeats it in the response that ends a stream.
	nodeCohere: with(topMembers, map[string]node{
		"usage": nodeCohereUsage, "meta": nodeCohereUsage, "delta": nodeCoherePart, "response": nodeCoherePart,
		"message": nodeDelta, "text": nodeText, "event_type": nodeType,
	}),
	nodeCoherePart: {
		"message": nodeDelta, "usage": nodeCohereUsage, "meta": nodeCohereUsage, "error": nodeFault,
	},
	nodeCohereUsage:  {"tokens": nodeUsage, "billed_units": nodeCohereBilled, "cached_tokens": cachedTokens},
	nodeCohereBilled: {"input_tokens": billedInput, "output_tokens": billedOutput},

	// Gemini's interactions have their text at the top, in outputs or in steps, or in the deltas of a
	// stream, whose last event has the whole interaction, with its usage.
	nodeInteraction: with(topMembers, map[string]node{
		"usage": nodeInteractionUsage, "interaction": nodeInteractionDone, "outputs": nodeItems, "steps": nodeItems, "delta": nodeInteractionDelta,
	}),
	nodeInteractionDone:  {"usage": nodeInteractionUsage, "error": nodeFault, "service_tier": nodeTier},
	nodeInteractionDelta: {"text": nodeText, "content": nodeContent, "partial_arguments": nodeText, "arguments": nodeArgs, "name": nodeName},
	nodeInteractionUsage: {
		"total_input_tokens": geminiPrompt, "totalInputTokens": geminiPrompt,
		"total_cached_tokens": geminiCached, "totalCachedTokens": geminiCached,
		"total_output_tokens": geminiCandidates, "totalOutputTokens": geminiCandidates,
		"total_thought_tokens": geminiThoughts, "totalThoughtTokens": geminiThoughts,
		"total_tool_use_tokens": geminiToolUse, "totalToolUseTokens": geminiToolUse,
		"total_tokens": geminiTotal, "totalTokens": geminiTotal,
		"input_tokens_by_modality": nodePromptEntry, "inputTokensByModality": nodePromptEntry,
		"cached_tokens_by_modality": nodeCachedEntry, "cachedTokensByModality": nodeCachedEntry,
		"output_tokens_by_modality": nodeCandidateEntry, "outputTokensByModality": nodeCandidateEntry,
	},

	nodeConversation: with(topMembers, map[string]node{"outputs": nodeItems, "arguments": nodeArgs}),

	// Bedrock's Converse reports usage in a format of its own. Its Invoke hands on what the model
	// writes in its own format, and adds usage in headers and in the last event of a stream.
	// Tokens that were read from a cache or written to it are not part of the input.
	nodeBedrock: with(topMembers, map[string]node{
		"usage": nodeBedrockUsage, "amazon-bedrock-invocationMetrics": nodeBedrockUsage,
		"output": nodeBedrockPart, "metadata": nodeBedrockPart,
		"contentBlockDelta": nodeBedrockPart, "contentBlockStart": nodeBedrockPart, // in Nova's streams
		"delta": nodeBedrockDelta, "start": nodeBedrockContent, "serviceTier": nodeBedrockTier,
		"outputText": nodeText, "generation": nodeText, "completion": nodeText, // Titan's, Llama's, and old models' of Anthropic
	}),
	nodeBedrockPart: {
		"message": nodeBedrockPart, "content": nodeBedrockContent, "start": nodeBedrockContent,
		"delta": nodeBedrockDelta, "usage": nodeBedrockUsage, "serviceTier": nodeBedrockTier,
	},
	nodeBedrockUsage: with(usageMembers, map[string]node{
		"inputTokens": inputTokens, "inputTokenCount": inputTokens,
		"outputTokens": outputTokens, "outputTokenCount": outputTokens,
		"cacheReadInputTokens": cacheReadTokens, "cacheReadInputTokenCount": cacheReadTokens,
		"cacheWriteInputTokens": cacheWriteTokens, "cacheWriteInputTokenCount": cacheWriteTokens,
		"cacheDetails": nodeBedrockEntry,
	}),
	nodeBedrockEntry:   {"ttl": nodeEntryKind, "inputTokens": entryTokens},
	nodeBedrockTier:    {"type": nodeTier},
	nodeBedrockDelta:   with(blockDeltaMembers, bedrockContent),
	nodeBedrockContent: with(contentMembers, bedrockContent),
	nodeBedrockThought: {"text": nodeText, "reasoningText": nodeBedrockThought},
	nodeChunk:          {"bytes": nodePacked},
}

// Members that several values have.
var (
	topMembers = map[string]node{ // of a whole response or an event
		"usage":             nodeUsage,
		"usageMetadata":     nodeMetadata,
		"choices":           nodeChoices,
		"delta":             nodeBlockDelta,
		"message":           nodeMessage,
		"content":           nodeContent,
		"content_block":     nodeContent,
		"candidates":        nodeCandidates,
		"response":          nodeResponse,
		"output":            nodeItems,
		"thinking":          nodeText,
		"x_groq":            nodeGroq,
		"prompt_eval_count": ollamaPrompt,
		"eval_count":        ollamaOutput,
		"error":             nodeFault,
		"type":              nodeType,
		"code":              nodeCode,
		"service_tier":      nodeTier,
	}
	messageMembers = map[string]node{
		"content":           nodeContent,
		"reasoning":         nodeReasoning,
		"reasoning_content": nodeReasoningContent,
		"refusal":           nodeText,
		"thinking":          nodeText,
		"tool_plan":         nodeText,
		"tool_calls":        nodeCalls,
		"function_call":     nodeFunction,
	}
	contentMembers = map[string]node{
		"text": nodeText, "refusal": nodeText, "name": nodeName, "thinking": nodeThinking, "input": nodeArgs,
	}
	blockDeltaMembers = map[string]node{"text": nodeText, "partial_json": nodeText, "thinking": nodeText}
	bedrockContent    = map[string]node{"reasoningContent": nodeBedrockThought, "toolUse": nodeFunction}
	usageMembers      = map[string]node{
		"prompt_tokens":               promptTokens,
		"completion_tokens":           completionTokens,
		"total_tokens":                totalTokens,
		"input_tokens":                inputTokens,
		"output_tokens":               outputTokens,
		"prompt_tokens_details":       nodeInputDetails,
		"input_tokens_details":        nodeInputDetails,
		"completion_tokens_details":   nodeOutputDetails,
		"output_tokens_details":       nodeOutputDetails,
		"cache_creation_input_tokens": cacheWriteTokens,
		"cache_read_input_tokens":     cacheReadTokens,
		"prompt_cache_hit_tokens":     cachedTokens, // DeepSeek's
		"cache_creation":              nodeCacheCreation,
		"service_tier":                nodeUsageTier,
		"speed":                       nodeSpeed,
		"cost":                        costTold,
		"cost_details":                nodeCostDetails,
		"is_byok":                     ownKey,
	}
	modalityMembers = map[string]node{"modality": nodeEntryKind, "tokenCount": entryTokens, "tokens": entryTokens}
)

// with returns the members of both maps. A name that both have gets its node from more.
func with(base, more map[string]node) map[string]node {
	all := maps.Clone(base)
	maps.Copy(all, more)
	return all
}

// member returns the node of the member of n with the name.
func (n node) member(name []byte) node { return members[n][string(name)] }

// topOf returns the node of a whole response, or event, of an API. Names that only one provider
// uses are read in its own responses only: another server may echo there what the client has sent.
func topOf(api API) node {
	switch api {
	case Responses:
		return nodeResponses
	case OllamaChat, OllamaGenerate:
		return nodeOllama
	case CohereChat, CohereEmbed, CohereRerank:
		return nodeCohere
	case Converse, Invoke:
		return nodeBedrock
	case Interactions:
		return nodeInteraction
	case Conversations:
		return nodeConversation
	}
	return nodeTop
}
