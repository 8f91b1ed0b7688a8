package mockprovider

import (
	"net/http"
	"time"
)

// Call is a call of a model, as the server has read it.
type Call struct {
	API      API
	Provider Provider // by the host, or else by the API
	Model    string
	Number   int // of the calls of this model, from 1
	Stream   bool
	Prompt   int // how many tokens the prompt has

	MaxOutput  int  // the most tokens of an answer; 0 where it is not bounded
	Answers    int  // how many answers it asks for, at least 1
	UsageAsked bool // of OpenAI's streams: include_usage is set

	Path   string
	Header http.Header
	Body   []byte

	fields fields // of the body
	array  bool   // a stream of Gemini is to be an array
}

// Reply is what a call gets. The zero Reply is a short text.
type Reply struct {
	Text      string // what the model says; empty: words, Output of them
	Output    int    // how many tokens to say without a Text; 0: 16, or none with a Tool
	Reasoning int    // how many tokens the model thinks first, of which most providers only tell the number
	Tool      *Tool  // which the model wants to be called, after its text

	// Of the prompt's tokens, how many were read from a cache, and how many were
	// written to it (by Anthropic and Bedrock, which tell).
	Cached, CacheWrite int

	// Status is that of an error, or 0. Then Code is the error's code or type (of
	// Gemini the quotaId) where it is not the provider's usual one, and RetryAfter
	// is how long the provider says to wait, unless it is 0.
	Status     int
	Code       string
	RetryAfter time.Duration

	// Fault is what goes wrong once this many events of a stream are sent.
	Fault Fault
	After int

	As     Provider      // whose errors and headers it has; empty: the call's
	Delay  time.Duration // before each event of a stream, and before a whole answer
	Header http.Header   // to be sent with what the provider sends
}

// Tool is a call of a tool.
type Tool struct {
	Name      string
	Arguments string // a JSON object
}

// Fault is what goes wrong with an answer that has begun.
type Fault string

// The faults. An answer that is not streamed gets an error in place of FaultError,
// and has no events.
const (
	FaultError Fault = "error" // the stream tells an error, and ends
	FaultReset Fault = "reset" // the connection breaks; after 0 events, before there is an answer
	FaultStall Fault = "stall" // nothing comes any more, until the client gives up
	FaultEnd   Fault = "end"   // the stream ends in good order, but too early
)
