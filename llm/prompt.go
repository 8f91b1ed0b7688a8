package llm

// A field is a field of a body that matters, whatever the API: no name means two
// things.
type field int

// The fields of the prompt come first.
const (
	fieldMessages field = iota
	fieldContents
	fieldInput
	fieldPrompt
	fieldSuffix
	fieldSystem
	fieldInstructions
	fieldSystemInstruction
	fieldTools
	fieldFunctions
	fieldResponseFormat
	fieldText
	fieldFormat
	fieldTemplate
	fieldContext
	fieldImages
	fieldGenerationConfig
	fieldMessage
	fieldChatHistory
	fieldPreamble
	fieldDocuments
	fieldToolResults
	fieldTexts
	fieldInputs
	fieldQuery
	fieldToolConfig
	fieldInputText
	promptFields

	fieldUnknown
	fieldModel
	fieldFallbacks
	fieldStream
	fieldStreamOptions
	fieldMaxTokens
	fieldMaxCompletionTokens
	fieldMaxOutputTokens
	fieldN
	fieldBestOf
	fieldOptions
	fieldInferenceConfig
	fieldMaxGenLen
	fieldTextGenerationConfig
)

func fieldOf(key []byte) field {
	switch string(key) {
	case "messages":
		return fieldMessages
	case "contents":
		return fieldContents
	case "input":
		return fieldInput
	case "prompt":
		return fieldPrompt
	case "suffix":
		return fieldSuffix
	case "system":
		return fieldSystem
	case "instructions":
		return fieldInstructions
	case "systemInstruction", "system_instruction":
		return fieldSystemInstruction
	case "tools":
		return fieldTools
	case "functions":
		return fieldFunctions
	case "response_format":
		return fieldResponseFormat
	case "text":
		return fieldText
	case "format":
		return fieldFormat
	case "template":
		return fieldTemplate
	case "context":
		return fieldContext
	case "images":
		return fieldImages
	case "generationConfig", "generation_config":
		return fieldGenerationConfig
	case "message": // this and the following are Cohere's
		return fieldMessage
	case "chat_history":
		return fieldChatHistory
	case "preamble":
		return fieldPreamble
	case "documents":
		return fieldDocuments
	case "tool_results":
		return fieldToolResults
	case "texts":
		return fieldTexts
	case "inputs":
		return fieldInputs
	case "query":
		return fieldQuery
	case "toolConfig": // Bedrock's
		return fieldToolConfig
	case "inputText": // this and the following are of models that Bedrock serves
		return fieldInputText
	case "max_gen_len":
		return fieldMaxGenLen
	case "textGenerationConfig":
		return fieldTextGenerationConfig
	case "inferenceConfig":
		return fieldInferenceConfig
	case "model":
		return fieldModel
	case "models", "fallbacks": // OpenRouter's, LiteLLM's
		return fieldFallbacks
	case "stream":
		return fieldStream
	case "stream_options":
		return fieldStreamOptions
	case "max_tokens":
		return fieldMaxTokens
	case "max_completion_tokens":
		return fieldMaxCompletionTokens
	case "max_output_tokens":
		return fieldMaxOutputTokens
	case "n":
		return fieldN
	case "best_of":
		return fieldBestOf
	case "options":
		return fieldOptions
	}
	return fieldUnknown
}

// What a prompt costs beside its texts, in tokens.
const (
	tokensOfMessage = 4   // its role, and where it begins and ends
	tokensOfReply   = 3   // where the answer to messages begins
	tokensOfTool    = 8   // what is written around it
	tokensOfToolUse = 300 // what Anthropic tells a model about the use of tools
)

// bytesOfToken is how many bytes of text a token is: about four in English, and a
// little more than one character where characters are three bytes.
const bytesOfToken = 4

// A promptCost is what a prompt, or a field of it, costs.
type promptCost struct {
	texts    int // tokens of texts, by their bytes
	messages int
	prompts  int // how many prompts a list of them holds
	other    int // tokens of what is no text
}

// structure returns the tokens of what is no text.
func (t promptCost) structure() int {
	if t.messages == 0 {
		return t.other
	}
	return t.other + t.messages*tokensOfMessage + tokensOfReply
}

// A promptReader reads what of a body is prompt.
type promptReader struct {
	cursor
	endpoint   Endpoint
	promptCost                   // of the field that is being read
	each       func(text string) // takes the texts; may be nil
}

// prompt reads a field of the prompt.
func (p *promptReader) prompt(f field) {
	first := p.next()
	switch f {
	case fieldTools, fieldFunctions:
		p.tools()
		return
	case fieldResponseFormat, fieldText, fieldFormat, fieldDocuments, fieldToolResults, fieldToolConfig:
		p.all()
		return
	case fieldMessages, fieldContents, fieldInput, fieldPrompt, fieldChatHistory, fieldTexts, fieldInputs:
		if first == '[' {
			p.list()
			return
		}
	}
	if p.speaks(f) && (first == '"' || first == '{' || first == '[') {
		p.messages++
	}
	p.value(placePlain, 0)
}

// speaks reports whether a field that is no list of messages is one message.
func (p *promptReader) speaks(f field) bool {
	switch f {
	case fieldSystem, fieldInstructions, fieldSystemInstruction, fieldMessages, fieldContents, fieldMessage, fieldPreamble:
		return true
	case fieldInput:
		return p.endpoint.API == Responses
	case fieldPrompt:
		return p.endpoint.API == OllamaGenerate
	}
	return false
}

// list reads a list of messages, of prompts or of tokens.
func (p *promptReader) list() {
	p.at++
	for first := true; p.item(first, ']'); first = false {
		switch p.next() {
		case '{':
			p.messages++
		case '"', '[':
			p.prompts++
		}
		p.element(placePlain, 0)
	}
}

// tools reads what tools a model may use. All of that is written into the prompt.
func (p *promptReader) tools() {
	if p.next() != '[' {
		p.skip()
		return
	}
	p.at++
	for first := true; p.item(first, ']'); first = false {
		if first && p.endpoint.API == Messages {
			p.other += tokensOfToolUse
		}
		p.other += tokensOfTool
		p.all()
	}
}

// all reads a value of which everything is text: keys, strings, numbers.
func (p *promptReader) all() {
	p.walk(func(t quoted) {
		p.take(t, placePlain)
	})
}

// A place is what the value of a key is to a prompt.
type place int

const (
	placePlain     place = iota // texts, and objects and lists of them
	placeLabel                  // no text for the model, such as a role
	placeDetail                 // how closely to look at an image
	placeFree                   // a value of the model's or a tool's own making: all of it is text
	placeSource                 // of an image or a file
	placeReference              // an image or a file that is elsewhere
	placeAddress                // a reference, within a source or a reference
)

func placeOf(key []byte) place {
	switch string(key) {
	case "role", "type", "id", "status", "index", "object",
		"tool_call_id", "tool_use_id", "call_id", "toolUseId",
		"media_type", "mime_type", "mimeType", "format", "cache_control", "annotations",
		"signature", "thoughtSignature", "thought_signature":
		return placeLabel
	case "detail":
		return placeDetail
	case "input", "args", "arguments", "response", "parameters":
		return placeFree
	case "source":
		return placeSource
	case "image_url", "video_url", "audio_url", "document_url", "file_url", "fileUri", "file_uri", "file_id", "s3Location":
		return placeReference
	case "url", "uri":
		return placeAddress
	}
	return placePlain
}

// maxDepth is how deep objects and lists are told apart. What is deeper is text.
const maxDepth = 32

// value reads a value of the prompt, and returns what images and files it directly
// is.
func (p *promptReader) value(in place, depth int) (media int) {
	switch p.next() {
	case '"':
		if t := p.str(); p.err == nil {
			return p.take(t, in)
		}
	case '{':
		if depth == maxDepth {
			p.all()
		} else {
			p.object(in, depth+1)
		}
	case '[':
		if depth == maxDepth {
			p.all()
			break
		}
		p.at++
		for first := true; p.item(first, ']'); first = false {
			p.element(in, depth+1)
		}
	default:
		p.skip()
	}
	return 0
}

// element reads a value of a list. A number is a token.
func (p *promptReader) element(in place, depth int) {
	if b := p.next(); b == '-' || '0' <= b && b <= '9' {
		p.other++
	}
	p.value(in, depth)
}

// object reads an object, whose own place is in.
func (p *promptReader) object(in place, depth int) {
	p.at++
	media, low := 0, false
	for first := true; p.item(first, '}'); first = false {
		switch at := placeOf(p.key()); at {
		case placeLabel:
			p.skip()
		case placeDetail:
			low = p.name() == "low"
		case placeFree:
			if b := p.next(); b == '{' || b == '[' {
				p.all()
			} else {
				p.value(placePlain, depth)
			}
		case placeAddress:
			if in == placeSource || in == placeReference {
				at = placeReference
			} else {
				at = placePlain
			}
			media += p.value(at, depth)
		default:
			media += p.value(at, depth)
		}
	}
	if low && media > 0 && p.endpoint.looksAs() == OpenAI {
		p.other += openAIGlance - media
	}
}

// take counts a text, or the image or file that it is, and returns what that costs.
func (p *promptReader) take(t quoted, in place) (media int) {
	media = p.endpoint.media(t)
	if media == 0 && in == placeReference {
		media = p.endpoint.unseen()
	}
	if media > 0 {
		p.other += media
		return media
	}
	p.texts += (t.size() + bytesOfToken - 1) / bytesOfToken
	if p.each != nil {
		p.each(t.String())
	}
	return 0
}
