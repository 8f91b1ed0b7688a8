package dialect

import (
	"slices"

	"dappco.re/go/core/go-ratelimit/llm"
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
	Units llm.Units

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

	// Days is for how many days the provider keeps the bytes that the answer reports, and Before is how many byte days it
	// costs beside these.
	Days, Before int64

	usageSplice  splice    // the edit that asks for usage
	modelSplice  splice    // where the body names the model
	boundSplices *[]splice // the edits that lower the bound of an answer; a pointer, so that requests can be compared
	others       *[]string // the models to fall back to; nil: nobody knows them, or there are none
	stores       *[]string // the vector stores that its tools search, see promptBound; nil: there are none
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
