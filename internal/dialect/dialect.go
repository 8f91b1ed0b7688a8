package dialect

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// A dialect is what this package knows of one provider. Each provider's file registers one, and no other file knows the
// provider's name. What is left out is as with any server that has OpenAI's API: see the dialect of [Compatible].
type dialect struct {
	provider llm.Provider

	// Where the provider is, and what its paths mean.
	hosts       []string                                            // the ends of its hosts' names; an end that begins with - may follow anything
	isHost      func(host string) bool                              // for hosts that have no common end
	modelFolder string                                              // the folder below which its paths name the model
	recognize   func(p requestPath, own bool) (e Endpoint, ok bool) // reads paths of a form of their own; own: the server is known to be its

	// Its own APIs, and who serves them at a host that is not known, if not the provider itself.
	protocols []protocol
	elsewhere llm.Provider
	paths     map[string]API // its paths to APIs of others

	names nameRules

	// What it reads in requests beside what its own APIs have.
	fields     []field             // the fields that are read in the bodies of all APIs
	apiFields  map[API][]field     // more fields of others' APIs
	boundNames map[API]string      // the field that bounds an answer in others' APIs, if it is not their own
	ownBound   part                // a field that it prefers to every other bound of an answer
	promptKeys map[string]keyKind  // how values under these keys count in a prompt
	wholeTypes []string            // the types of messages, parts and files of a prompt that the body has in full
	knownTools []string            // how the types of tools begin that it defines and the client runs
	toolUnits  map[string]toolUnit // what the tools cost that it runs, by how their types begin
	thinking   map[string]bool     // the fields that may have a budget for thinking: in themselves, or in an object in them alone
	budgets    []string            // the names of such a budget
	tierHeader string              // the header in which requests ask for a service tier, and answers name one
	tierPrefix string              // how the names of its service tiers begin

	// What its models read and write.
	images         *imageRules
	overhead       int  // the most tokens that it adds to any prompt
	exactTokenizer bool // its tokenizers are published, and normalise no text
	hidesReasoning bool // its models reason without showing it, unless they are known not to reason

	// Parts of the names of its models, which count whoever serves them.
	silent      []string // their answers are no text, or not all of them
	unreasoning []string // they do not reason before they answer
	secretive   []string // they hide their reasoning

	// What counts towards its limits, and what its answers report.
	cachedIsFree     bool  // tokens that are read from a cache do not count
	outputIsFree     bool  // output does not count
	leastAudio       int64 // the fewest seconds of audio that it bills
	countsBound      countedBound
	reportsUsage     func(inPath bool) bool // reports whether streams of its chats have usage without being asked for it; inPath: the path names the model
	tellsCost        bool                   // its answers report what calls have cost, in dollars
	ignoresBodyModel bool                   // it ignores the model in a body if the path names one

	// Its errors.
	flatErrors    bool                                          // its own SDKs read the top level of an error of OpenAI's APIs, not its member error
	refusalHeader string                                        // the header with the code of an error
	refusalCode   func(r Refusal) string                        // that code
	faults        map[string]fault                              // what the codes and the types of its errors mean, in lower case
	readError     func(c *errorBody, inner any, now time.Time)  // reads what it adds to the body of an error
	errorCause    func(c *errorBody) (cause llm.Cause, ok bool) // the cause of an error that a status does not show
	speaksOfMoney func(c *errorBody) bool                       // an error that has no code for it is about money
	renamePath    func(path, from, to string) string            // replaces a model in a path of a form of its own

	// What a gateway needs to know: see gatewayfacts.go.
	keyHeader              string   // the header with its key; empty: that of the API, or else Authorization
	errorAPI               API      // the API that gives errors their form where a request is no call of a model
	ownServer              bool     // people run it by themselves
	freeEnds               []string // the ends of paths that use no tokens
	quotesAnswers          bool     // errors may quote an answer that has cost tokens
	basePath, baseVariable string   // of its SDKs

	// The names in its answers that are read in those of all APIs, and what its own numbers mean.
	common commonNames
	usage  usageRules

	// The headers with the state of its limits.
	limitHeaders []windowHeaders
	bucketPer    func(w llm.Window) time.Duration // returns the Per of a window with OpenAI's names
	plainPer     func(w llm.Window) time.Duration // returns the Per of a window with names that have no unit
}

// A protocol is one API: its paths, its requests, its answers and its errors.
type protocol struct {
	api    API
	paths  []string // the last two words of its paths, or the last one alone
	patch  string   // the folder of what its requests change by PATCH, which is their only method; empty: they are POST
	model  string   // what stands for the model in prices and in usage if its requests have none
	embeds bool     // its answers are numbers, and cost input tokens alone
	always bool     // it is its provider's, whoever serves it

	// The fields of its requests, and what they mean.
	fields           []field
	bounds           []setting // the highest of them bounds an answer
	counts           []setting // the highest of them is how many answers the request asks for
	boundObject      string    // the object that has the field which bounds an answer; empty: it is in the body itself
	boundName        string    // that field; empty: there is none, or there are several
	promptsIn        string    // the field each of whose prompts has so many answers
	requestsIn       string    // the field each of whose elements counts as a request
	messageIn        string    // the field that is one message unless it is a list
	storedIn         string    // the field that names a stored prompt
	repeatedIn       string    // the field that is read again with each part of each document
	streamsByDefault bool      // a request streams unless it says that it does not
	asksUsage        bool      // streams report usage only if stream_options ask for it
	overridable      bool      // fields of a model's own format may put another bound in the place of the API's
	stored           bool      // a part of the prompt is never in the body
	toolUse          int       // the tokens of the provider's own instructions for the use of tools
	toolMembers      []string  // the members of a tool that define it; with any other, the provider itself runs it. nil: its type says so

	about   *about                        // what its requests are about that the provider has stored; nil: they say everything themselves
	forms   bool                          // its requests may be multipart forms
	measure func(b measuredBody) measured // returns what a request can use beside tokens; nil: nothing
	units   []unitNumber                  // what its answers report of that
	byUnits bool                          // its calls are paid for by their units alone, whatever the tokens of the model cost
	apart   bool                          // a stream has the usage of each answer in an event of its own, and no sum

	fetchedIn string // the folder in which clients fetch the responses of calls that go on in the background; empty: no call does
	begins    bool   // all calls do: an answer says only that the provider has begun

	answers      *node                // a whole answer, or an event; nil: it has the names of all APIs alone
	events       map[string]eventKind // the types of events that matter
	usageHeaders []headerNumber       // the headers that may have the usage
	frames       bool                 // streams are AWS event streams
	packed       *node                // a message of an event stream that holds its content in base64; nil: none does

	// Its errors. What is left out is as in OpenAI's chat completions.
	refuse         func(e Endpoint, r Refusal, fault object) object // returns the body of a refusal
	stop           stop
	idle           func(u *url.URL) string             // returns what may be sent in a stream that has nothing to send, see Endpoint.Idle; nil: nothing may
	errorEvents    func(body []byte) []byte            // returns the last events of a stream for an error whose body is on one line
	refuseInStream func(r Refusal, body object) []byte // returns the last events of a stream for a refusal; nil: those of errorEvents
	refuseInFrame  func(r Refusal) []byte              // the same for an AWS event stream
	refuseInValues func(r Refusal) object              // the same for a stream of JSON values; nil: the body of the refusal

	keyHeader string                                                        // the header with a key; empty: Authorization
	keyUnless string                                                        // a folder of paths that have the key in Authorization; empty: none
	requestID string                                                        // the header with the id of a request
	setLimit  func(h http.Header, unit string, w llm.Window, now time.Time) // see API.SetLimit

	images        *imageRules
	overhead      int  // as in dialect
	showsThoughts bool // its models think only if they are asked to, and show it
	countsEach    bool // each event of a stream has the count of all tokens that have come

	// What init fills in.
	owner                *dialect
	bit                  apiSet
	told                 uint16 // has a bit for each of units
	streams, backgrounds bool   // it has the fields stream and background
}

// countedBound is how a provider's own limiter counts the output that a request allows.
type countedBound uint8

const (
	boundUncounted countedBound = iota // it counts what was used
	boundCounted                       // it counts all that is allowed, beside the prompt
	boundOrPrompt                      // it counts the larger of what is allowed and of the prompt
)

// dialects has the registered dialects, in the order of their names.
var dialects []*dialect

// What the dialects register, by the keys under which it is looked up.
var (
	dialectsByName = map[llm.Provider]*dialect{}
	protocols      = map[API]*protocol{}
	routes         = map[[2]string]API{} // by the last two words of a path, of which the first may be empty
	fetched        = map[string]API{}    // by the folder of their responses
	patched        = map[string]API{}    // by the folder of what they change
)

// register adds a dialect. It returns a value so that a file can call it when the package is loaded, before init.
func register(d dialect) bool {
	dialects = append(dialects, &d)
	return true
}

func init() {
	slices.SortFunc(dialects, func(a, b *dialect) int { return strings.Compare(string(a.provider), string(b.provider)) })
	for _, d := range dialects {
		addOnce(dialectsByName, d.provider, d)
	}
	for _, d := range dialects {
		d.complete(dialectsByName[Compatible])
		d.addPromptNames()
		for i := range d.protocols {
			d.protocols[i].register(d)
		}
		addFields(d.fields, allAPIs)
		for path, api := range d.paths {
			addRoute(path, api)
		}
		d.common.add()
		maps.Copy(faults, d.faults)
		d.usage.add()
		addWindowHeaders(d.limitHeaders)
		silent = append(silent, d.silent...)
		unreasoning = append(unreasoning, d.unreasoning...)
		secretive = append(secretive, d.secretive...)
	}
	for _, d := range dialects {
		for api, list := range d.apiFields {
			addFields(list, protocols[api].bit)
		}
	}
	for _, p := range protocols {
		p.complete(protocols[""])
	}
	completeNodes()
}

// complete fills in what a protocol has left out.
func (p *protocol) complete(usual *protocol) {
	if p.refuse == nil {
		p.refuse = usual.refuse
	}
	if p.stop == (stop{}) {
		p.stop = usual.stop
	}
	if p.errorEvents == nil {
		p.errorEvents = usual.errorEvents
	}
	if p.setLimit == nil {
		p.setLimit = usual.setLimit
	}
	p.requestID = cmp.Or(p.requestID, usual.requestID)
	p.streams, p.backgrounds = fields["stream"].isOf(p), fields["background"].isOf(p)
}

// addPromptNames adds the names that the dialect has for the parts of a prompt.
func (d *dialect) addPromptNames() {
	maps.Copy(promptKeys, d.promptKeys)
	maps.Copy(thinkingObjects, d.thinking)
	for _, name := range d.wholeTypes {
		wholeTypes[name] = true
	}
	for _, name := range d.budgets {
		thinkingBudgets[name] = true
	}
	knownTools = append(knownTools, d.knownTools...)
	maps.Copy(toolUnits, d.toolUnits)
	if d.tierHeader != "" {
		tierHeaders = append(tierHeaders, d.tierHeader)
	}
	if d.tierPrefix != "" {
		tierPrefixes = append(tierPrefixes, []byte(d.tierPrefix))
	}
}

// complete fills in what a dialect has left out.
func (d *dialect) complete(usual *dialect) {
	if d.images == nil {
		d.images = usual.images
	}
	if d.overhead == 0 {
		d.overhead = usual.overhead
	}
	if d.bucketPer == nil {
		d.bucketPer = usual.bucketPer
	}
	d.errorAPI = cmp.Or(d.errorAPI, usual.errorAPI)
	if d.plainPer == nil {
		d.plainPer = usual.plainPer
	}
}

func (p *protocol) register(owner *dialect) {
	p.owner, p.bit = owner, 1<<len(protocols)
	if p.bit == 0 {
		panic("llm: an apiSet has no room for more APIs")
	}
	addOnce(protocols, p.api, p)
	if p.answers == nil {
		p.answers = commonTop
	}
	for _, u := range p.units {
		p.told |= 1 << u.unit
	}
	if p.patch != "" {
		addOnce(patched, p.patch, p.api)
	}
	if p.fetchedIn != "" {
		addOnce(fetched, p.fetchedIn, p.api)
	}
	maps.Copy(eventKinds, p.events)
	addFields(p.fields, p.bit)
	for _, path := range p.paths {
		addRoute(path, p.api)
	}
}

// addRoute has the paths that end with two words, or with one, lead to an API.
func addRoute(end string, api API) {
	parent, word, ok := strings.Cut(end, "/")
	if !ok {
		parent, word = "", end
	}
	addOnce(routes, [2]string{parent, word}, api)
}

// addOnce adds what a dialect registers under a key that no other may have.
func addOnce[K comparable, V any](to map[K]V, key K, value V) {
	if _, taken := to[key]; taken {
		panic(fmt.Sprintf("dialect: %v is registered twice", key))
	}
	to[key] = value
}

// dialectOf returns what is known of the provider.
func dialectOf(p llm.Provider) *dialect {
	if d := dialectsByName[p]; d != nil {
		return d
	}
	return dialectsByName[Compatible]
}

// protocol returns what is known of the API.
func (a API) protocol() *protocol {
	if p := protocols[a]; p != nil {
		return p
	}
	return protocols[""]
}

// Providers returns the providers that this package knows, in the order of their names.
func Providers() (all []llm.Provider) {
	for _, d := range dialects {
		all = append(all, d.provider)
	}
	return all
}
