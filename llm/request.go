package llm

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
)

// Request is what the body of a request says.
type Request struct {
	Endpoint // the endpoint, completed from the body: the model and the streaming flag, where the path does not have them

	MaxOutput int // the most tokens that one answer may have; 0 where there is no bound, and for embeddings
	Answers   int // how many answers the request asks for, to all of its prompts; at least 1
	Requests  int // how many requests the provider counts, if that is more than one
	Prompt    int // an estimate of the tokens of the prompt, from its characters and its structure

	// Tier is the service tier that the request asks for, in lower case, if prices depend on it:
	// "batch", "flex", "priority", or "fast", which Anthropic calls a speed. It is empty for the
	// usual one, and for "auto", with which the provider chooses: only the response names the tier
	// then.
	Tier string

	// UsageAsked reports whether the stream will report usage: because the body asks for it, or
	// because the API always does.
	UsageAsked bool

	// Ambiguous reports whether the body names its model twice, or in a field whose name is "model"
	// but for its case. A server may then serve another model than Model.
	Ambiguous bool

	// Wrong is a sentence about the first field of the body that has the wrong type, comes twice,
	// or has a known name in the wrong case, so that a server may read it in another way than this
	// package does. It is empty where there is no such field.
	Wrong string

	// InBody is the model that the body names where the path names one too, which is then Model.
	// Azure ignores the body's; other servers may prefer it.
	InBody string

	// Fallbacks reports whether the body names other models, one of which may answer instead of
	// Model.
	Fallbacks bool

	// Context is the id of what the provider has stored of earlier calls and puts before the prompt,
	// such as a previous response, a conversation or a cache. It is empty if the body has the whole
	// prompt. Prompt does not count what is stored.
	Context string

	// Units is the most that the request can use beside tokens.
	Units Units

	// ImageModel is the model that generates images for the answer if the provider runs a tool for that: its tokens are
	// billed at its own price. It is empty if there is no such tool.
	ImageModel string

	// Variant is what makes its price differ from that of other calls of the model, such as the size and the quality of
	// an image: "hd-1024x1792". It is empty if nothing does.
	Variant string

	// Form reports whether the body is a multipart form: see [Endpoint.ReadAs]. It is sent as it is.
	Form bool

	// Background reports whether the answer only says that the provider has begun: the response itself is fetched
	// later, and reports the usage.
	Background bool

	// SearchesOnce reports whether the request is billed for one search of the web, however often it searches.
	SearchesOnce bool

	// StoredTools reports whether the request may use tools that the body does not have, because they are those of a
	// stored prompt.
	StoredTools bool

	usageSplice  splice    // the edit that asks for usage
	modelSplice  splice    // where the body names the model
	boundSplices *[]splice // the edits that lower the bound of an answer; a pointer, so that requests can be compared
	others       *[]string // the models to fall back to; nil: nobody knows them, or there are none
	users        userPlaces
	inPath       bool  // the path names the model
	hides        bool  // a field of the body may make output that no text shows
	overrides    bool  // a field of the body may put another bound in the place of the API's own
	oldBound     bool  // the body's only bound is max_tokens
	mapsAlone    bool  // its tools search maps, and not the web
	kept         int64 // for how many seconds the provider keeps the prompt; 0: it does not
	size         int   // the length of the body
	bound        requestBound
}

// A splice replaces a range of a body with a text. The zero splice changes nothing.
type splice struct {
	from, to int
	text     string
}

// Read reads the body of a request to the endpoint. It ignores the fields that it does not know.
// The error says what is wrong with the body; the Request holds what was read before the error.
func (e Endpoint) Read(body []byte) (Request, error) {
	r := newRequestReader(e, body)
	r.read()
	return r.request(), r.err
}

func newRequestReader(e Endpoint, body []byte) requestReader {
	return requestReader{promptReader: promptReader{cursor: cursor{body: body}, endpoint: e, protocol: e.API.protocol(), dialect: e.Provider.dialect()}}
}

// Others returns the models that the body names beside Model, one of which may answer instead: see Fallbacks. ok is
// false if the body has some of them in a form that nobody knows, or has more than 16.
func (r *Request) Others() (models []string, ok bool) {
	if r.others == nil {
		return nil, !r.Fallbacks
	}
	return *r.others, true
}

// AskUsage returns the body with stream_options.include_usage set, so that the stream reports its
// usage, and with what [Request.SetMaxOutput] has changed, in pieces that are sent one after another: they share the
// memory of the body. ok is false where that is not possible or not needed.
func (r *Request) AskUsage(body []byte) (pieces [][]byte, ok bool) {
	s := r.usageSplice
	if s.text == "" || len(body) != r.size {
		return nil, false
	}
	if r.boundSplices != nil {
		return spliced(body, append(slices.Clip(*r.boundSplices), s)), true
	}
	return [][]byte{body[:s.from], []byte(s.text), body[s.to:]}, true
}

// CountWith replaces the estimate in Prompt: a tokenizer counts the texts. Everything but text
// counts as before.
func (r *Request) CountWith(body []byte, count func(model, text string) int) {
	texts, size := 0, 0
	spent := r.reread(body, func(text string) {
		texts += count(r.Model, text)
		size += len(text)
	})
	r.Prompt = texts + spent.structure()
	r.bound.prompt = max(r.bound.prompt-size, 0) + texts
}

// reread reads the prompt again, and calls each with its texts. A field that comes twice is read
// where it comes last.
func (r *Request) reread(body []byte, each func(text string)) promptCost {
	first := newRequestReader(r.Endpoint, body)
	first.starts = map[*field]int{}
	first.read()
	again := newRequestReader(r.Endpoint, body)
	again.each, again.onlyAt = each, first.starts
	again.read()
	return again.total()
}

// A requestReader reads the fields of a body.
type requestReader struct {
	promptReader
	bodySettings

	formFiles []formFile        // of a body that is a form
	words     [wordCount][]byte // the values of fields of the kind fieldWord, by their setting

	spent  [roomForCosts]promptCost // what each field costs, by field.cost; of two fields with one name the last counts
	starts map[*field]int           // if not nil, records where the value of each field begins
	onlyAt map[*field]int           // if not nil, values that begin elsewhere are skipped
}

// bodySettings is what a body says beside the prompt. A number is 0 and a word is nil where the
// body does not have it.
type bodySettings struct {
	model        string
	modelAt      splice // where the name of the model is
	ambiguous    bool
	fallbacks    bool
	others       *[]string // the other models that may answer
	otherForm    bool      // some of them are in a form that nobody knows
	context      string
	fixedContext bool // what the context names does not change
	truncates    bool // the provider may leave out a part of it
	stream       []byte
	background   []byte
	hides        bool // a field may make output that no text shows
	overrides    bool // a field may put another bound in the place of the API's own
	predicted    int  // the length of a prediction of the answer
	tier, speed  tier
	asksSearch   bool // a field has the provider search the web
	numbers      [roomForSettings]int
	includeUsage []byte
	usageSplice  splice
	users        userPlaces
	seen         fieldSet // the fields that the body has
	problem      problem
}

const askUsage = `"include_usage":true`

func (r *requestReader) read() {
	if at := bytes.IndexByte(r.body, 0); at >= 0 { // a server that accepts UTF-16 would read another request
		r.at = at
		r.fail("a zero byte: it must be UTF-8,")
		return
	}
	if bytes.HasPrefix(r.body, []byte("\ufeff")) {
		r.at = len("\ufeff")
	}
	if !r.dialect.exactTokenizer { // the text may be normalised before its tokens are counted
		r.more, r.wide = expansion(r.body)
	}
	if r.next() != '{' {
		r.fail("it must be an object")
		return
	}
	r.at++
	r.usageSplice = splice{r.at, r.at, `"stream_options":{` + askUsage + `},`}
	for first := true; r.item(first, '}'); first = false {
		key := r.key()
		f := fields[string(key)]
		r.checkSpelling(key, f)
		if f == nil {
			r.skip()
			continue
		}
		r.field(f)
	}
	if r.err == nil && r.next() != 0 { // a server might read what follows instead
		r.fail("data behind the object")
	}
}

// field reads the value of a field, and records what that costs.
func (r *requestReader) field(f *field) {
	r.next()
	if r.starts != nil {
		r.starts[f] = r.at
	}
	if r.onlyAt != nil && r.onlyAt[f] != r.at {
		r.skip()
		return
	}
	r.promptCost = promptCost{}
	switch f.kind {
	case fieldModel:
		r.modelName(f)
	case fieldFallbacks:
		r.otherModels()
	case fieldStream:
		r.stream = r.flag(f, f.name)
	case fieldStreamOptions:
		r.streamOptions(f)
	case fieldBackground:
		r.background = r.flag(f, f.name)
	case fieldTier:
		r.tier = r.serviceTier(f)
	case fieldSpeed:
		r.speed = r.serviceTier(f)
	case fieldNumber:
		r.numbers[f.setting] = r.whole(f, f.name)
	case fieldObject:
		r.objectParts(f)
	case fieldUser:
		r.user(f)
	case fieldContext:
		r.storedContext(f)
	case fieldStored:
		from := r.at
		r.skip()
		asked := f.searches && string(r.body[from:r.at]) != "null"
		r.elsewhere, r.asksSearch = asked || r.isStored(from) || r.elsewhere, asked || r.asksSearch
	case fieldPredict:
		from := r.at
		r.skip()
		r.predicted = r.at - from
	case fieldHiding:
		r.hides = r.hidesOutput(f) || r.hides
	case fieldWord:
		r.words[f.setting] = r.textWord(f)
	case fieldTruncate:
		r.truncates = r.truncation() || r.truncates
	default:
		r.prompt(f)
	}
	r.spent[f.cost] = r.promptCost
}

// textWord reads a value that should be a string without escapes, or null, which reads as nil.
func (r *requestReader) textWord(f *field) []byte {
	r.next()
	from := r.at
	r.skip()
	value := r.body[from:r.at]
	if n := len(value); n >= 2 && value[0] == '"' && bytes.IndexByte(value, '\\') < 0 {
		return value[1 : n-1]
	}
	if string(value) != "null" {
		r.misread(f, f.name, "must be a string")
	}
	return nil
}

// truncation reads the field with which a provider leaves out the beginning of a prompt that is too long, and reports
// whether it may do so.
func (r *requestReader) truncation() bool {
	from := r.at
	r.skip()
	value := string(r.body[from:r.at])
	return value != "null" && value != `"disabled"`
}

// otherModels reads a list of models, one of which may answer. It is none if it is null or empty.
func (r *requestReader) otherModels() {
	r.next()
	from := r.at
	r.skip()
	value := r.body[from:r.at]
	if inside := bytes.Trim(value, "[] \t\r\n"); len(inside) == 0 || string(inside) == "null" {
		return
	}
	if !r.fallbacks {
		r.fallbacks, r.others = true, new([]string)
	}
	var names []string
	isList := len(value) <= maxOthersSize && json.Unmarshal(value, &names) == nil
	if !isList || slices.Contains(names, "") || len(*r.others)+len(names) > maxOthers {
		r.otherForm = true
		return
	}
	*r.others = append(*r.others, names...)
}

// Lists of other models that are longer are not read, because someone has to look up each of them. OpenRouter takes three.
const (
	maxOthers     = 16
	maxOthersSize = 8 << 10
)

// modelName reads the name of the model.
func (r *requestReader) modelName(f *field) {
	from, again := r.at, r.modelAt.to > 0
	name := r.name()
	if word := r.body[from:r.at]; len(word) > 0 && word[0] != '"' && string(word) != "null" {
		r.misread(f, f.name, "must be a string")
	}
	r.ambiguous = r.ambiguous || again && name != r.model
	r.model, r.modelAt = name, splice{from: from, to: r.at}
}

func (r *requestReader) streamOptions(f *field) {
	r.includeUsage, r.usageSplice = nil, splice{}
	if !r.object(f, f.name) {
		if from := r.at - len("null"); string(r.body[max(from, 0):r.at]) == "null" {
			r.usageSplice = splice{from, r.at, `{` + askUsage + `}`}
		}
		return
	}
	r.usageSplice = splice{r.at, r.at, askUsage}
	for first := true; r.item(first, '}'); first = false {
		if first {
			r.usageSplice.text = askUsage + `,`
		}
		if key := r.key(); string(key) != "include_usage" {
			r.checkUsageSpelling(f, key)
			r.skip()
			continue
		}
		if r.includeUsage != nil {
			r.misread(f, "include_usage", "must stand in stream_options once")
		}
		r.includeUsage, r.usageSplice = r.flag(f, "include_usage"), splice{}
		if word := string(r.includeUsage); word == "null" || word == "false" {
			r.usageSplice = splice{r.at - len(word), r.at, `true`}
		}
	}
}

// objectParts reads a field that is an object, of which only some parts matter.
func (r *requestReader) objectParts(f *field) {
	for _, p := range f.parts {
		if p.setting < firstWord {
			r.numbers[p.setting] = 0 // of two fields with one name the last counts
		}
	}
	if !r.object(f, f.name) {
		return
	}
	seen := uint32(0) // one bit for each setting
	for first := true; r.item(first, '}'); first = false {
		key := r.key()
		i := slices.IndexFunc(f.parts, func(p part) bool { return p.name == string(key) })
		switch {
		case i < 0:
			r.skip()
		case f.parts[i].setting == schema:
			r.more += boundForSchema
			r.all()
		case f.parts[i].setting >= firstWord:
			s := f.parts[i].setting - firstWord
			if word := r.textWord(f); r.words[s] == nil || string(r.words[s]) == string(word) {
				r.words[s] = word
			} else {
				r.misread(f, f.parts[i].name, "must stand there once")
			}
		default:
			s := f.parts[i].setting
			was, n := r.numbers[s], r.whole(f, f.parts[i].name)
			r.numbers[s] = max(was, n) // of a part that comes twice, servers may use either
			if s.isBound() && (n < 0 || seen&(1<<s) != 0 && min(was, n) <= 0) {
				r.numbers[s] = noBound
			}
			seen |= 1 << s
		}
	}
}

// total returns the cost of all fields of the prompt.
func (r *requestReader) total() (sum promptCost) {
	for i := range costingFields {
		t := &r.spent[i+1]
		sum.texts += t.texts
		sum.messages += t.messages
		sum.other += t.other
	}
	return sum
}

// request returns what was read from the body.
func (r *requestReader) request() Request {
	spent := r.total()
	q := Request{
		Endpoint:   r.endpoint,
		Answers:    1,
		Prompt:     spent.texts + spent.structure(),
		UsageAsked: true,
		Tier:       max(r.tier, r.speed).String(), // to be fast is the dearest
		Fallbacks:  r.fallbacks,
		others:     r.others,
		Context:    r.context,
		Wrong:      r.problem.String(),
		users:      r.users,
		hides:      r.hides,
		overrides:  r.overrides,
		size:       len(r.body),
		bound: requestBound{
			prompt:    r.mostPrompt(),
			images:    r.images,
			elsewhere: r.elsewhere || r.files > 0 || r.protocol.stored,
			predicted: r.predicted,
			fixed:     r.fixedContext && len(r.context) <= maxWord,
			truncates: r.truncates,
		},
	}
	if r.otherForm {
		q.others = nil
	}
	switch q.inPath = q.Model != ""; {
	case !q.inPath:
		q.Model, q.modelSplice, q.Ambiguous = r.model, r.modelAt, r.ambiguous
	case !r.dialect.ignoresBodyModel:
		q.InBody, q.Ambiguous = r.model, r.ambiguous
		if q.InBody != "" {
			q.modelSplice = r.modelAt
		}
	}
	r.settle(&q)
	if q.Stream && r.protocol.asksUsage && !r.alwaysReportsUsage(&q) {
		q.UsageAsked = string(r.includeUsage) == "true"
		if r.err == nil {
			q.usageSplice = r.usageSplice
		}
	}
	return q
}

// settle fills in what the settings of the body mean in the API of the request.
func (r *requestReader) settle(q *Request) {
	p := r.protocol
	if p.streams {
		q.Stream = q.Stream || string(r.stream) == "true" || p.streamsByDefault && string(r.stream) != "false"
	}
	q.Background = p.backgrounds && string(r.background) == "true"
	q.MaxOutput = r.highest(p.bounds)
	if p.overridable && r.overrides {
		q.MaxOutput = 0
	}
	for _, s := range p.counts {
		q.Answers = max(q.Answers, r.numbers[s])
	}
	if p.promptsIn != "" {
		in := &r.spent[fields[p.promptsIn].cost]
		q.Answers = min(q.Answers*max(1, in.prompts+in.messages), math.MaxInt32)
	}
	if p.requestsIn != "" {
		q.Requests = r.spent[fields[p.requestsIn].cost].messages
	}
	others := func(s setting) bool { return s != maxTokens && r.numbers[s] != 0 }
	q.oldBound = r.numbers[maxTokens] > 0 && !slices.ContainsFunc(p.bounds, others)
	if own := r.dialect.ownBound; own.name != "" && r.seen.has(fields[own.name]) {
		n := r.numbers[own.setting] // below 0 it is no bound
		q.MaxOutput = max(q.MaxOutput, n) * max(0, min(n, 1))
	}
	if p.measure != nil {
		b := r.measured(q)
		m := p.measure(b)
		q.mapsAlone = b.mapsAlone
		q.Units, q.Variant, q.ImageModel, q.SearchesOnce, q.kept = m.units, m.variant, m.draws, m.once, m.kept
		q.StoredTools = m.template
		if least := r.dialect.leastAudio; q.Units[AudioSeconds] >= 0 && q.API == Transcriptions {
			q.Units[AudioSeconds] = max(q.Units[AudioSeconds], least)
		}
		q.bound.images += m.images
		q.bound.elsewhere = q.bound.elsewhere || m.elsewhere
	}
}

// measured returns what is read of the body to find out what the request can use beside tokens.
func (r *requestReader) measured(q *Request) measuredBody {
	b := measuredBody{
		text: r.body, files: r.formFiles, model: q.Model, answers: q.Answers, prompt: q.bound.prompt,
		samples: max(r.numbers[sampleCount], 0), duration: max(r.numbers[videoDuration], 0),
		tools: r.toolUses, toolCalls: max(r.numbers[maxToolCalls], 0), asksSearch: r.asksSearch, mapsAlone: r.maps && !r.web, imageModel: r.imageModel, template: r.template,
	}
	for i, word := range r.words {
		b.words[i] = string(word)
	}
	if q.bound.elsewhere || q.bound.images > 0 {
		b.prompt = -1
	}
	return b
}

// highest returns the highest of several bounds, since servers differ in which they use, or 0 if there is none, or one
// of them is noBound.
func (r *requestReader) highest(bounds []setting) (most int) {
	for _, s := range bounds {
		if r.numbers[s] == noBound {
			return 0
		}
		most = max(most, r.numbers[s])
	}
	return most
}

// alwaysReportsUsage reports whether a provider's chat streams report usage without being asked.
// The gateway then neither asks for it nor hides it.
func (r *requestReader) alwaysReportsUsage(q *Request) bool {
	reports := r.dialect.reportsUsage
	return reports != nil && reports(q.inPath)
}

// always is for a provider all of whose chat streams report usage.
func always(bool) bool { return true }
