package mockprovider

import (
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Call is a call of a model, as the server has read it.
type Call struct {
	API      dialect.API
	Provider llm.Provider // by the host, or else by the API
	Model    string
	Number   int // counts the calls of this model, from 1
	Stream   bool
	Prompt   int // tokens of the prompt

	MaxOutput  int  // the most tokens of an answer; 0: no bound
	Answers    int  // how many answers the call asks for, at least 1
	UsageAsked bool // the call is for a stream of OpenAI's, and sets include_usage

	Path   string
	Header http.Header
	Body   []byte

	fields fields              // the fields of the body
	files  map[string][][]byte // the files of a form, by their fields
	units  llm.Units           // what the call uses beside tokens
	array  bool                // a Gemini stream is to be an array

	cacheWrites bool // the usage reports what was written to a cache
}

// Reply is the answer to a call. The zero Reply is a short text.
type Reply struct {
	Input     int    // tokens of the prompt that the answer reports; 0: those that the body has
	Text      string // the text of the answer; empty: Output words
	Output    int    // tokens of the answer without a Text; 0: 16, or none with a Tool
	Token     string // the text of each token of an answer without a Text; empty: words
	Chunk     int    // tokens in an event of a stream; 0: one
	Reasoning int    // tokens of thinking before the answer, of which most providers report only the number
	Hidden    int    // tokens of the answer that only its usage has: no text shows them
	Tool      *Tool  // the tool that the model calls, after its text

	// Cached and CacheWrite are the tokens of the prompt that were read from a cache and written to
	// one. Only Anthropic and Bedrock report the latter.
	Cached, CacheWrite int

	// WebSearches and FileSearches are how often the provider searches: in the web, and in stored files, if the call
	// has a tool for it. Anthropic has no tool for files.
	WebSearches, FileSearches int

	Places     int // how many places of Google Maps the answer names, if the call has a tool for it: Gemini's
	WebFetches int // how many pages the provider fetches: Anthropic's, which costs nothing beside tokens
	CodeRuns   int // how often the provider runs code, if the call has a tool for it: OpenAI's and Anthropic's
	Images     int // how many images the provider generates, if the call has a tool for it: OpenAI's

	// Parts are further parts of the prompt and of the answer, the tier, and the cost, as far as the
	// API can report them.
	Parts Parts

	// Status is the status of an error, or 0. With a status, Code is the code or type of the error
	// (for Gemini the quotaId) if it is not the provider's usual one, and RetryAfter is the wait
	// that the provider asks for, or 0.
	Status     int
	Code       string
	RetryAfter time.Duration

	// Fault is what goes wrong once After events of a stream were sent.
	Fault Fault
	After int

	// Event is called before each event of a stream, with the number of tokens that the event carries. It may wait, and
	// it ends the stream without a word if it returns false. nil: the stream goes on.
	Event func(tokens int) bool

	As     llm.Provider  // the provider whose errors and headers the answer has; empty: the call's provider
	Delay  time.Duration // how long the server waits before each event of a stream, and before a whole answer
	Header http.Header   // headers that are sent beside the provider's own
}

// Tool is a call of a tool.
type Tool struct {
	Name      string
	Arguments string // a JSON object
}

// Fault is what goes wrong in an answer that has begun.
type Fault string

// The faults. An answer that is not streamed has no events, and becomes an error with FaultError.
const (
	FaultError Fault = "error" // the stream reports an error, and ends
	FaultReset Fault = "reset" // the connection breaks; after 0 events, before the answer begins
	FaultStall Fault = "stall" // nothing comes any more until the client leaves
	FaultEnd   Fault = "end"   // the stream ends in good order, but too early
)
