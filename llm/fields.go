package llm

import "slices"

// A field is a field of a request body that this package reads, whatever the API: no two APIs use
// one name for different things.
type field struct {
	name    string
	kind    fieldKind
	apis    []API   // the APIs that have the setting; nil: all of them
	setting setting // of a fieldNumber
	parts   []part  // of a fieldObject
	also    string  // another name of the field
	others  []string
	index   int // in fieldTable
}

// A fieldKind is how the value of a field is read.
type fieldKind uint8

const (
	// Fields of the prompt.
	fieldTexts    fieldKind = iota // texts, and objects and lists of them
	fieldMessage                   // the same, as one message
	fieldMessages                  // a list of messages; any other value is one message
	fieldPrompts                   // a list of prompts, of tokens or of messages; see promptReader.isMessage
	fieldTools                     // a list of definitions of tools
	fieldAll                       // every key, string and number counts as text

	// Settings.
	fieldModel
	fieldFallbacks // other models, one of which may answer
	fieldStream
	fieldStreamOptions
	fieldBackground
	fieldNumber
	fieldTier    // a service tier: a word, or an object with its type
	fieldSpeed   // Anthropic's speed, which has prices like a service tier
	fieldObject  // an object with numbers, and with schemas, which count as text
	fieldUser    // the name of a user, or an object with one
	fieldContext // the id of a stored context, or an object with one
	fieldStored  // what the provider has stored, fetches or runs
	fieldPredict // OpenAI's prediction of the answer
	fieldHiding  // may make output that no text shows: see hidesOutput
)

// A setting is a number of tokens or of answers that a body may have.
type setting uint8

const (
	maxTokens setting = iota
	maxCompletionTokens
	maxOutputTokens
	answerCount
	bestOf
	numPredict           // Ollama's
	configMaxTokens      // Gemini's
	configCandidateCount // Gemini's
	inferenceTokens      // Bedrock's, or that of one of its models
	inferenceNewTokens
	inferenceTokenCount
	maxGenLen
	argsMaxTokens // of Mistral's conversations
	nPredict      // of llama.cpp
	generations   // of some models of Bedrock
	settings      // the number of settings
	schema        // no setting, but a part of an object that counts as text
)

// A part is a member of a field that is an object.
type part struct {
	name    string
	setting setting
}

var (
	streamAPIs = []API{Chat, Completions, Responses, Messages, OllamaChat, OllamaGenerate, CohereChat, Interactions, Conversations}

	tierAPIs = []API{Chat, Completions, Responses, Messages, Generate, Converse, Interactions}

	// inferenceParts are the names of one bound in the formats of Bedrock's models.
	inferenceParts = []part{{"maxTokens", inferenceTokens}, {"max_new_tokens", inferenceNewTokens}, {"maxTokenCount", inferenceTokenCount}}

	// storedNames are fields that make a provider add to the prompt what the body does not have: searches, documents,
	// agents, tools of other servers, variables of stored prompts.
	storedNames = []string{
		"web_search_options", "search_parameters", "search_settings", "enable_search", "data_sources", "dataSources", "connectors",
		"agent", "agent_id", "mcp_servers", "container", "context_management", "promptVariables", "extra_body",
	}

	generationParts = []part{
		{"maxOutputTokens", configMaxTokens}, {"max_output_tokens", configMaxTokens},
		{"candidateCount", configCandidateCount}, {"candidate_count", configCandidateCount},
		{"responseSchema", schema}, {"response_schema", schema}, {"responseJsonSchema", schema}, {"response_json_schema", schema},
	}
)

var fieldTable = [...]field{
	{name: "messages", kind: fieldMessages},
	{name: "contents", kind: fieldMessages},
	{name: "input", kind: fieldPrompts},
	{name: "prompt", kind: fieldPrompts},
	{name: "chat_history", kind: fieldPrompts},
	{name: "texts", kind: fieldPrompts},
	{name: "inputs", kind: fieldPrompts},
	{name: "system", kind: fieldMessage},
	{name: "instructions", kind: fieldMessage},
	{name: "content", kind: fieldMessage},  // of Gemini's embedContent
	{name: "requests", kind: fieldPrompts}, // of Gemini's batchEmbedContents
	{name: "systemInstruction", kind: fieldMessage, also: "system_instruction"},
	{name: "message", kind: fieldMessage},
	{name: "preamble", kind: fieldMessage},
	{name: "suffix", kind: fieldTexts},
	{name: "template", kind: fieldTexts},
	{name: "context", kind: fieldTexts},
	{name: "images", kind: fieldTexts},
	{name: "query", kind: fieldTexts},
	{name: "inputText", kind: fieldTexts},
	{name: "tools", kind: fieldTools},
	{name: "functions", kind: fieldTools},
	{name: "response_format", kind: fieldAll},
	{name: "text", kind: fieldAll},
	{name: "format", kind: fieldAll},
	{name: "documents", kind: fieldAll},
	{name: "tool_results", kind: fieldAll},
	{name: "toolConfig", kind: fieldAll},

	{name: "model", kind: fieldModel},
	{name: "models", kind: fieldFallbacks, also: "fallbacks"},
	{name: "stream", kind: fieldStream, apis: streamAPIs},
	{name: "service_tier", kind: fieldTier, apis: tierAPIs, also: "serviceTier"},
	{name: "speed", kind: fieldSpeed, apis: []API{Messages}},
	{name: "stream_options", kind: fieldStreamOptions, apis: streamAPIs},
	{name: "background", kind: fieldBackground, apis: []API{Responses, Interactions}},
	{name: "max_tokens", kind: fieldNumber, setting: maxTokens, apis: []API{Chat, Completions, Messages, CohereChat, Invoke}},
	{name: "max_completion_tokens", kind: fieldNumber, setting: maxCompletionTokens, apis: []API{Chat, Invoke}},
	{name: "max_output_tokens", kind: fieldNumber, setting: maxOutputTokens, apis: []API{Responses}},
	{name: "n", kind: fieldNumber, setting: answerCount, apis: []API{Chat, Completions, Invoke}},
	{name: "best_of", kind: fieldNumber, setting: bestOf, apis: []API{Completions}},
	{name: "max_gen_len", kind: fieldNumber, setting: maxGenLen, apis: []API{Invoke}},
	{name: "options", kind: fieldObject, parts: []part{{"num_predict", numPredict}}, apis: []API{OllamaChat, OllamaGenerate}},
	{name: "generationConfig", kind: fieldObject, parts: generationParts, apis: []API{Generate, Interactions}, also: "generation_config"},
	{name: "completion_args", kind: fieldObject, parts: []part{{"max_tokens", argsMaxTokens}, {"response_format", schema}}, apis: []API{Conversations}},
	{name: "inferenceConfig", kind: fieldObject, parts: inferenceParts, apis: []API{Converse, Invoke}},
	{name: string(SafetyIdentifier), kind: fieldUser},
	{name: string(UserName), kind: fieldUser},
	{name: "metadata", kind: fieldUser},
	{name: "previous_response_id", kind: fieldContext, apis: []API{Responses}},
	{name: "previous_interaction_id", kind: fieldContext, apis: []API{Interactions}},
	{name: "conversation", kind: fieldContext, apis: []API{Responses}},
	{name: "cachedContent", kind: fieldContext, apis: []API{Generate}, also: "cached_content"},
	{name: "conversation_id", kind: fieldContext, apis: []API{CohereChat}},
	{name: "thinking", kind: fieldHiding},
	{name: "reasoning", kind: fieldHiding},
	{name: "reasoning_format", kind: fieldHiding},
	{name: "include_reasoning", kind: fieldHiding},
	{name: "modalities", kind: fieldHiding},
	{name: "additionalModelRequestFields", kind: fieldHiding},
	{name: "plugins", kind: fieldStored, others: storedNames},
	{name: "prediction", kind: fieldPredict, apis: []API{Chat}},
	{name: "n_predict", kind: fieldNumber, setting: nPredict, apis: []API{Chat, Completions}},
	{name: "num_generations", kind: fieldNumber, setting: generations, apis: []API{Invoke}, also: "numResults"},
	{name: "textGenerationConfig", kind: fieldObject, parts: inferenceParts, apis: []API{Invoke}},
}

var _ [64 - len(fieldTable)]struct{} // requestReader.seen has a bit for each

// fields maps names to fields.
var fields = func() map[string]*field {
	byName := make(map[string]*field)
	for i := range fieldTable {
		f := &fieldTable[i]
		f.index = i
		byName[f.name] = f
		if f.also != "" {
			byName[f.also] = f
		}
		for _, name := range f.others {
			byName[name] = f
		}
	}
	return byName
}()

// isOf reports whether requests of an API have the field. Servers ignore a setting that they do not
// have, whatever its value.
func (f *field) isOf(a API) bool { return f.apis == nil || slices.Contains(f.apis, a) }
