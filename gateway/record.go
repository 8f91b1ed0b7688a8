package gateway

import (
	"net/http"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/llm"
)

// Record is what became of one request: it feeds the access log, the metrics, and the
// recent decisions of the admin API. No key, and nothing that was said, is in it.
type Record struct {
	Seq        uint64        `json:"seq"`
	ID         string        `json:"id"`     // that the gateway has given it, which its answer has, too
	Time       time.Time     `json:"time"`   // when it came
	Client     string        `json:"client"` // the address that it came from, which may be a proxy's
	Project    string        `json:"project,omitempty"`
	Key        string        `json:"key,omitempty"` // the id of the virtual key
	Provider   string        `json:"provider,omitempty"`
	Deployment string        `json:"deployment,omitempty"`
	Method     string        `json:"method"`
	Path       string        `json:"path"`            // without the query
	Model      string        `json:"model,omitempty"` // that was asked for
	Quota      string        `json:"quota,omitempty"` // that was charged
	Stream     bool          `json:"stream,omitempty"`
	Outcome    Outcome       `json:"outcome"`
	Limit      string        `json:"limit,omitempty"` // that has denied it
	Status     int           `json:"status"`          // 499: the client has left
	Waited     time.Duration `json:"-"`
	Upstream   time.Duration `json:"-"` // from sending it until the response began
	Took       time.Duration `json:"-"`
	Retries    int           `json:"retries,omitempty"`
	Input      int           `json:"input_tokens,omitempty"`
	Output     int           `json:"output_tokens,omitempty"`
	Cached     int           `json:"cached_tokens,omitempty"`
	Exact      bool          `json:"exact,omitempty"`      // the provider has said how many tokens it was
	RequestID  string        `json:"request_id,omitempty"` // that the provider has given it
	Error      string        `json:"error,omitempty"`
}

// Outcome is what became of a request, in one word.
type Outcome string

// The outcomes, which docs/glossary.md explains. The access log, the admin API and the
// metrics have the same words.
const (
	Passed    Outcome = "passed"    // the provider answered with a success
	Denied    Outcome = "denied"    // a limit of the gateway said no: 429, or 413 for a call that can never pass
	Refused   Outcome = "refused"   // the gateway does not take the request: no key, no such provider, a body that cannot be read
	Throttled Outcome = "throttled" // the provider said that it is too much: its 429, its 529, or a 503 that says so
	Failed    Outcome = "failed"    // the provider answered with another error, could not be reached, or its answer broke off or ended in an error
	Left      Outcome = "left"      // the client left before the end
	Lost      Outcome = "lost"      // the store that counts could not be asked
)

// answered returns the outcome of a request to which the provider answered with a status.
// throttles is whether a 503 says that the provider is overloaded.
func answered(status int, throttles bool) Outcome {
	switch {
	case status < http.StatusBadRequest:
		return Passed
	case throttles, status == http.StatusTooManyRequests, status == llm.StatusOverloaded:
		return Throttled
	}
	return Failed
}

// mostText is how many bytes are recorded of what others choose, such as a path.
const mostText = 256

// shortened returns a text for a record, without virtual keys: a copy, for a path itself is a
// part of the whole request line.
func shortened(text string) string {
	text, _ = withoutKeys(text)
	if len(text) <= mostText {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:mostText], "") + "…"
}

// fieldsOfRequestID are headers in which providers tell how they call a request:
// OpenAI's and those like it, Anthropic's, and Amazon's.
var fieldsOfRequestID = []string{"X-Request-Id", "Request-Id", "X-Amzn-Requestid"}

// requestID returns how a provider calls the request that it answers, or "".
func requestID(h http.Header) string {
	for _, name := range fieldsOfRequestID {
		if said := h[name]; said != nil {
			return shortened(said[0])
		}
	}
	return ""
}
