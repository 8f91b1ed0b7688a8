package llm

// node is a place in a response that the meter knows: what a value there means,
// and which of its members to look at. An array stands for its elements.
type node uint8

// The order matters: see the methods below.
const (
	nodeNone node = iota // nothing of interest, nor within it

	// Numbers. Each is also the place of its number in a tally.
	promptTokens     // OpenAI's chat, completions and embeddings: with what is cached
	completionTokens // with reasoning, but see tally.output
	totalTokens
	cachedTokens
	reasoningTokens
	inputTokens      // OpenAI's responses: with what is cached; Anthropic: without
	outputTokens     // with reasoning
	startedTokens    // Anthropic's output as a stream begins: not all of it
	cacheWriteTokens // Anthropic's
	cacheReadTokens  // Anthropic's
	geminiPrompt     // with what is cached
	geminiCached
	geminiCandidates
	geminiThoughts
	geminiToolUse
	geminiTotal
	ollamaPrompt
	ollamaOutput
	billedInput  // Cohere's, where it does not tell what the model has seen
	billedOutput // Cohere's
	numberNodes  // all of them are before this

	// Text that the model has generated.
	nodeText
	nodeReasoning        // some servers tell reasoning under two names,
	nodeReasoningContent // the same text under both
	nodeArgs             // a string, or the strings in any other value

	// Either text or a value with members.
	nodeContent
	nodeThinking
	nodeResponse   // an object of OpenAI's responses or a wrapper's; Ollama's text
	nodeBlockDelta // Anthropic's object; the text of OpenAI's responses

	// Values with members.
	nodeTop
	nodeUsage
	nodeInputDetails
	nodeOutputDetails
	nodeMetadata // Gemini's usage
	nodeGroq
	nodeChoices
	nodeDelta        // of a choice, or its message
	nodeMessage      // Ollama's, or Anthropic's as a stream begins
	nodeStartedUsage // Anthropic's as a stream begins
	nodeCalls
	nodeFunction
	nodeItems // of the output of OpenAI's responses
	nodeCandidates
	nodeParts
	nodePart

	// Values with members that Cohere alone has: see cohere.go.
	nodeCohere
	nodeCoherePart
	nodeCohereUsage
	nodeCohereBilled

	// Values with members that Bedrock alone has: see bedrock.go.
	nodeBedrock
	nodeBedrockPart
	nodeBedrockUsage
	nodeBedrockDelta
	nodeBedrockContent
	nodeBedrockThought
	nodeChunk // of a stream of Invoke: the value of the model is packed into it

	// A string that is another value, in base64: Bedrock's.
	nodePacked

	// An error: a value with members, or a word that says it.
	nodeFault

	// Words.
	nodeFinish // why an answer has ended
	nodeType
	nodeCode
	nodeFaultType
	nodeFaultCode
)

func (n node) isNumber() bool   { return n < numberNodes }
func (n node) isText() bool     { return n >= nodeText && n <= nodeBlockDelta }
func (n node) isWord() bool     { return n >= nodeFault }
func (n node) hasMembers() bool { return n >= nodeContent && n <= nodeFault }

// member returns the node of the member of n with the name.
func (n node) member(name []byte) node {
	switch n {
	case nodeTop:
		return topMember(name)
	case nodeUsage, nodeStartedUsage, nodeInputDetails, nodeOutputDetails, nodeMetadata:
		return n.number(name)
	case nodeChoices:
		switch string(name) {
		case "delta", "message":
			return nodeDelta
		case "text":
			return nodeText
		case "finish_reason":
			return nodeFinish
		case "error":
			return nodeFault
		}
	case nodeDelta, nodeMessage:
		return n.messageMember(name)
	case nodeBlockDelta:
		switch string(name) {
		case "text", "partial_json", "thinking":
			return nodeText
		}
	case nodeContent, nodeThinking:
		return n.contentMember(name)
	case nodeCalls:
		switch string(name) {
		case "function", "custom":
			return nodeFunction
		}
	case nodeFunction:
		switch string(name) {
		case "name", "code":
			return nodeText
		case "arguments", "args", "input":
			return nodeArgs
		}
	case nodeResponse:
		switch string(name) {
		case "usage":
			return nodeUsage
		case "usageMetadata":
			return nodeMetadata
		case "candidates":
			return nodeCandidates
		case "error":
			return nodeFault
		}
	case nodeItems:
		switch string(name) {
		case "content", "summary":
			return nodeContent
		case "name":
			return nodeText
		case "arguments", "input":
			return nodeArgs
		}
	case nodeCandidates:
		switch string(name) {
		case "content":
			return nodeParts
		case "finishReason":
			return nodeFinish
		}
	case nodeParts:
		if string(name) == "parts" {
			return nodePart
		}
	case nodePart:
		switch string(name) {
		case "text":
			return nodeText
		case "functionCall", "executableCode":
			return nodeFunction
		}
	case nodeGroq:
		if string(name) == "usage" {
			return nodeUsage
		}
	case nodeCohere, nodeCoherePart, nodeCohereUsage, nodeCohereBilled:
		return n.cohereMember(name)
	case nodeBedrock, nodeBedrockPart, nodeBedrockUsage, nodeBedrockDelta, nodeBedrockContent, nodeBedrockThought, nodeChunk:
		return n.bedrockMember(name)
	case nodeFault:
		switch string(name) {
		case "type":
			return nodeFaultType
		case "code":
			return nodeFaultCode
		}
	}
	return nodeNone
}

// topOf returns the node of whole values of an API. Members that one provider alone has
// are looked for in its own responses only, for other servers may repeat there what a
// client has sent.
func topOf(api API) node {
	switch api {
	case CohereChat, CohereEmbed, CohereRerank:
		return nodeCohere
	case Converse, Invoke:
		return nodeBedrock
	}
	return nodeTop
}

// topMember returns the node of a member of a whole response or an event.
func topMember(name []byte) node {
	switch string(name) {
	case "usage":
		return nodeUsage
	case "usageMetadata":
		return nodeMetadata
	case "choices":
		return nodeChoices
	case "delta":
		return nodeBlockDelta
	case "message":
		return nodeMessage
	case "content", "content_block":
		return nodeContent
	case "candidates":
		return nodeCandidates
	case "response":
		return nodeResponse
	case "output":
		return nodeItems
	case "thinking":
		return nodeText
	case "x_groq":
		return nodeGroq
	case "prompt_eval_count":
		return ollamaPrompt
	case "eval_count":
		return ollamaOutput
	case "error":
		return nodeFault
	case "type":
		return nodeType
	case "code":
		return nodeCode
	}
	return nodeNone
}

// messageMember returns the node of a member of a message, or of a piece of one.
func (n node) messageMember(name []byte) node {
	switch string(name) {
	case "content":
		return nodeContent
	case "reasoning":
		return nodeReasoning
	case "reasoning_content":
		return nodeReasoningContent
	case "refusal", "thinking", "tool_plan":
		return nodeText
	case "tool_calls":
		return nodeCalls
	case "function_call":
		return nodeFunction
	case "usage":
		if n == nodeMessage {
			return nodeStartedUsage
		}
	}
	return nodeNone
}

// contentMember returns the node of a member of a part of a message.
func (n node) contentMember(name []byte) node {
	if n == nodeThinking && string(name) != "text" {
		return nodeNone
	}
	switch string(name) {
	case "text", "refusal", "name":
		return nodeText
	case "thinking":
		return nodeThinking
	case "input":
		return nodeArgs
	}
	return nodeNone
}

// number returns the node of a member that tells usage.
func (n node) number(name []byte) node {
	switch n {
	case nodeInputDetails:
		if string(name) == "cached_tokens" {
			return cachedTokens
		}
		return nodeNone
	case nodeOutputDetails:
		if string(name) == "reasoning_tokens" {
			return reasoningTokens
		}
		return nodeNone
	case nodeMetadata:
		return metadataNumber(name)
	}
	switch string(name) {
	case "prompt_tokens":
		return promptTokens
	case "completion_tokens":
		return completionTokens
	case "total_tokens":
		return totalTokens
	case "input_tokens":
		return inputTokens
	case "output_tokens":
		if n == nodeStartedUsage {
			return startedTokens
		}
		return outputTokens
	case "prompt_tokens_details", "input_tokens_details":
		return nodeInputDetails
	case "completion_tokens_details", "output_tokens_details":
		return nodeOutputDetails
	case "cache_creation_input_tokens":
		return cacheWriteTokens
	case "cache_read_input_tokens":
		return cacheReadTokens
	case "prompt_cache_hit_tokens": // DeepSeek's
		return cachedTokens
	}
	return nodeNone
}

// metadataNumber returns the node of a member of Gemini's usage.
func metadataNumber(name []byte) node {
	switch string(name) {
	case "promptTokenCount":
		return geminiPrompt
	case "cachedContentTokenCount":
		return geminiCached
	case "candidatesTokenCount":
		return geminiCandidates
	case "thoughtsTokenCount":
		return geminiThoughts
	case "toolUsePromptTokenCount":
		return geminiToolUse
	case "totalTokenCount":
		return geminiTotal
	}
	return nodeNone
}
