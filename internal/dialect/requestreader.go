package dialect

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"dappco.re/go/core/go-ratelimit/llm"
)

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

func newRequestReader(e Endpoint, body []byte) requestReader {
	return requestReader{promptReader: promptReader{cursor: cursor{body: body}, endpoint: e, protocol: e.API.protocol(), dialect: dialectOf(e.Provider)}}
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
	if r.stores != nil {
		q.stores = new(r.stores)
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
	q.Background = p.begins || p.backgrounds && string(r.background) == "true"
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
		if least := r.dialect.leastAudio; q.Units[llm.AudioSeconds] >= 0 && q.API == Transcriptions {
			q.Units[llm.AudioSeconds] = max(q.Units[llm.AudioSeconds], least)
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
