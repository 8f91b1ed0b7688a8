package llm

import (
	"bytes"
	"math"
)

// Request is what the body of a request says.
type Request struct {
	Endpoint // with the model and whether the response is streamed as the body says, where the path does not

	MaxOutput int // the most tokens of one answer; 0 where it is not bounded, and for embeddings, which have none
	Answers   int // how many answers it asks for, to all of its prompts; at least 1
	Prompt    int // how many tokens its prompt is, by its characters and its structure

	// UsageAsked reports whether the stream will tell usage: it is asked for, or
	// the API always tells.
	UsageAsked bool

	// Ambiguous reports whether the body names its model twice, or by a field that is
	// "model" but for its case. Who serves the request may take another for it than
	// Model.
	Ambiguous bool

	// Wrong says, in a sentence, which field of the body is not of its type, stands there
	// twice, or is known but for its case, so that a server may read it in another way
	// than this package does. It is empty where no field is.
	Wrong string

	// InBody is the model that the body names where the path names one as well, which is
	// Model then. Azure does not look at the body's; other servers may prefer it.
	InBody string

	// Fallbacks reports whether the body names other models, one of which may answer
	// in the place of Model.
	Fallbacks bool

	ask    splice // how to ask for usage
	name   splice // where the body names the model
	inPath bool   // the path names the model
	size   int    // of the body
}

// A splice puts text in the place of some bytes of a body. The zero splice means
// that there is nothing to put.
type splice struct {
	from, to int
	text     string
}

// Read reads the body of a request that goes to the endpoint. It looks at nothing
// but the fields that it needs, so fields that it does not know do not matter.
// The error says what is wrong with the body; what was read before that is returned
// with it.
func (e Endpoint) Read(body []byte) (Request, error) {
	r := requestReader{promptReader: promptReader{cursor: cursor{body: body}, endpoint: e}}
	r.read()
	return r.request(), r.err
}

// AskUsage returns the body of a request whose stream would not tell usage as one
// whose stream does: it has stream_options.include_usage, and is the same
// otherwise. Where that is not possible or not needed, ok is false.
func (r *Request) AskUsage(body []byte) (asking []byte, ok bool) {
	if r.ask.text == "" || len(body) != r.size {
		return nil, false
	}
	asking = make([]byte, 0, len(body)+len(r.ask.text))
	asking = append(asking, body[:r.ask.from]...)
	asking = append(asking, r.ask.text...)
	return append(asking, body[r.ask.to:]...), true
}

// AskUsagePieces is AskUsage that copies nothing: the pieces are to be sent one after
// another, and share the memory of the body.
func (r *Request) AskUsagePieces(body []byte) (pieces [][]byte, ok bool) {
	if r.ask.text == "" || len(body) != r.size {
		return nil, false
	}
	return [][]byte{body[:r.ask.from], []byte(r.ask.text), body[r.ask.to:]}, true
}

// CountWith makes Prompt what a tokenizer counts, in place of what characters tell.
// What is no text counts as before.
func (r *Request) CountWith(body []byte, count func(model, text string) int) {
	texts := 0
	spent := r.reread(body, func(text string) { texts += count(r.Model, text) })
	r.Prompt = texts + spent.structure()
}

// reread reads the prompt again, for its texts.
func (r *Request) reread(body []byte, each func(text string)) promptCost {
	first := requestReader{promptReader: promptReader{cursor: cursor{body: body}, endpoint: r.Endpoint}}
	first.read()
	again := requestReader{promptReader: promptReader{cursor: cursor{body: body}, endpoint: r.Endpoint, each: each}}
	again.only = &first.begins
	again.read()
	return again.total()
}

// A requestReader reads the fields of a body.
type requestReader struct {
	promptReader
	bodySettings

	spent  [promptFields]promptCost // of each field of the prompt; of two with one name the last counts
	begins [promptFields]int        // where the values of these begin
	only   *[promptFields]int       // if not nil, values that begin elsewhere are skipped
}

// bodySettings are what a body says beside the prompt. A number is 0 and a word is nil
// where the body does not say, or says nonsense.
type bodySettings struct {
	model         string
	place         splice // of the model's name
	ambiguous     bool
	fallbacks     bool
	stream        []byte
	maxTokens     int
	maxCompletion int
	maxOutput     int
	n, bestOf     int
	config        generationConfig
	predict       int // Ollama's options.num_predict
	inference     int // Bedrock's inferenceConfig.maxTokens, and what else its models call that
	asked         []byte
	ask           splice
	seen          uint64 // a bit for each field that was read
	wrong         wrong
}

type generationConfig struct{ maxOutput, candidates int }

const askUsage = `"include_usage":true`

func (r *requestReader) read() {
	if at := bytes.IndexByte(r.body, 0); at >= 0 { // to who takes UTF-16 it would be another request
		r.at = at
		r.fail("a zero byte: it must be UTF-8,")
		return
	}
	if bytes.HasPrefix(r.body, []byte("\ufeff")) {
		r.at = len("\ufeff")
	}
	if r.next() != '{' {
		r.fail("it must be an object")
		return
	}
	r.at++
	r.ask = splice{r.at, r.at, `"stream_options":{` + askUsage + `},`}
	for first := true; r.item(first, '}'); first = false {
		key := r.key()
		f := fieldOf(key)
		r.spell(key, f)
		r.field(f)
	}
}

// field reads the value of a field of the body.
func (r *requestReader) field(f field) {
	switch f {
	case fieldModel:
		r.named()
	case fieldFallbacks:
		r.fallbacks = r.some() || r.fallbacks
	case fieldStream:
		r.stream = r.flag(f, "stream")
	case fieldStreamOptions:
		r.streamOptions()
	case fieldMaxTokens:
		r.maxTokens = r.whole(f, "max_tokens")
	case fieldMaxCompletionTokens:
		r.maxCompletion = r.whole(f, "max_completion_tokens")
	case fieldMaxOutputTokens:
		r.maxOutput = r.whole(f, "max_output_tokens")
	case fieldN:
		r.n = r.whole(f, "n")
	case fieldBestOf:
		r.bestOf = r.whole(f, "best_of")
	case fieldOptions:
		r.options()
	case fieldInferenceConfig:
		r.inferenceConfig(f, "inferenceConfig")
	case fieldTextGenerationConfig:
		r.inferenceConfig(f, "textGenerationConfig")
	case fieldMaxGenLen:
		r.inference = r.whole(f, "max_gen_len")
	case fieldUnknown:
		r.skip()
	default:
		r.promptField(f)
	}
}

// some skips a value, and reports whether it is more than null or an empty list.
func (r *requestReader) some() bool {
	r.next()
	from := r.at
	r.skip()
	value := bytes.Trim(r.body[from:r.at], "[] \t\r\n")
	return len(value) > 0 && string(value) != "null"
}

// named reads the name of the model.
func (r *requestReader) named() {
	r.next()
	from, again := r.at, r.place.to > 0
	name := r.name()
	if word := r.body[from:r.at]; len(word) > 0 && word[0] != '"' && string(word) != "null" {
		r.mistake(fieldModel, "model", "must be a string")
	}
	r.ambiguous = r.ambiguous || again && name != r.model
	r.model, r.place = name, splice{from: from, to: r.at}
}

// promptField reads a field of the prompt, and what it costs.
func (r *requestReader) promptField(f field) {
	r.next()
	r.begins[f] = r.at
	if r.only != nil && r.only[f] != r.at {
		r.skip()
		return
	}
	r.promptCost = promptCost{}
	if f == fieldGenerationConfig {
		r.generationConfig()
	} else {
		r.prompt(f)
	}
	r.spent[f] = r.promptCost
}

func (r *requestReader) streamOptions() {
	r.asked, r.ask = nil, splice{}
	if !r.object(fieldStreamOptions, "stream_options") {
		if from := r.at - len("null"); string(r.body[max(from, 0):r.at]) == "null" {
			r.ask = splice{from, r.at, `{` + askUsage + `}`}
		}
		return
	}
	r.ask = splice{r.at, r.at, askUsage}
	for first := true; r.item(first, '}'); first = false {
		if first {
			r.ask.text = askUsage + `,`
		}
		if key := r.key(); string(key) != "include_usage" {
			r.spellUsage(key)
			r.skip()
			continue
		}
		if r.asked != nil {
			r.mistake(fieldStreamOptions, "include_usage", "must stand in stream_options once")
		}
		r.asked, r.ask = r.flag(fieldStreamOptions, "include_usage"), splice{}
		if word := string(r.asked); word == "null" || word == "false" {
			r.ask = splice{r.at - len(word), r.at, `true`}
		}
	}
}

func (r *requestReader) options() {
	r.predict = 0
	if !r.object(fieldOptions, "options") {
		return
	}
	for first := true; r.item(first, '}'); first = false {
		if string(r.key()) == "num_predict" {
			r.predict = r.whole(fieldOptions, "num_predict")
		} else {
			r.skip()
		}
	}
}

func (r *requestReader) generationConfig() {
	r.config = generationConfig{}
	if !r.object(fieldGenerationConfig, "generationConfig") {
		return
	}
	for first := true; r.item(first, '}'); first = false {
		switch string(r.key()) {
		case "maxOutputTokens", "max_output_tokens":
			r.config.maxOutput = r.whole(fieldGenerationConfig, "maxOutputTokens")
		case "candidateCount", "candidate_count":
			r.config.candidates = r.whole(fieldGenerationConfig, "candidateCount")
		case "responseSchema", "response_schema", "responseJsonSchema", "response_json_schema":
			r.all()
		default:
			r.skip()
		}
	}
}

// inferenceConfig reads how much a model of Bedrock's may write, by any of the names that
// its models have for it.
func (r *requestReader) inferenceConfig(f field, part string) {
	r.inference = 0
	if !r.object(f, part) {
		return
	}
	for first := true; r.item(first, '}'); first = false {
		switch name := string(r.key()); name {
		case "maxTokens", "max_new_tokens", "maxTokenCount":
			r.inference = max(r.inference, r.whole(f, name))
		default:
			r.skip()
		}
	}
}

// total returns what all fields of the prompt promptCost.
func (r *requestReader) total() (sum promptCost) {
	for _, t := range &r.spent {
		sum.texts += t.texts
		sum.messages += t.messages
		sum.other += t.other
	}
	return sum
}

// request returns what was read.
func (r *requestReader) request() Request {
	spent := r.total()
	q := Request{
		Endpoint:   r.endpoint,
		Answers:    1,
		Prompt:     spent.texts + spent.structure(),
		UsageAsked: true,
		Fallbacks:  r.fallbacks,
		Wrong:      r.wrong.String(),
		size:       len(r.body),
	}
	switch q.inPath = q.Model != ""; {
	case !q.inPath:
		q.Model, q.name, q.Ambiguous = r.model, r.place, r.ambiguous
	case q.Provider != Azure:
		q.InBody, q.Ambiguous = r.model, r.ambiguous
		if q.InBody != "" {
			q.name = r.place
		}
	}
	streamed := q.Stream || string(r.stream) == "true"
	switch q.API {
	case Chat: // of two maxima, an older server heeds max_tokens alone
		q.Stream, q.MaxOutput, q.Answers = streamed, max(r.maxCompletion, r.maxTokens), r.n
	case Completions:
		q.Stream, q.MaxOutput = streamed, r.maxTokens
		q.Answers = min(max(1, r.n, r.bestOf)*max(1, r.spent[fieldPrompt].prompts), math.MaxInt32)
	case Responses:
		q.Stream, q.MaxOutput = streamed, r.maxOutput
	case Messages, CohereChat:
		q.Stream, q.MaxOutput = streamed, r.maxTokens
	case Generate:
		q.MaxOutput, q.Answers = r.config.maxOutput, r.config.candidates
	case Converse:
		q.MaxOutput = r.inference
	case Invoke:
		q.MaxOutput, q.Answers = max(r.maxTokens, r.maxCompletion, r.inference), r.n
	case OllamaChat, OllamaGenerate:
		q.Stream, q.MaxOutput = string(r.stream) != "false", r.predict
	}
	q.Answers = max(1, q.Answers)
	if q.Stream && (q.API == Chat || q.API == Completions) && !alwaysTells(q.Provider) {
		q.UsageAsked = string(r.asked) == "true"
		if r.err == nil {
			q.ask = r.ask
		}
	}
	return q
}

// alwaysTells reports whether streams of a provider's chats tell usage without being asked:
// it is not asked then, and nothing is hidden. Mistral would refuse the field, too.
func alwaysTells(p Provider) bool { return p == Mistral || p == OpenRouter || p == Groq }
