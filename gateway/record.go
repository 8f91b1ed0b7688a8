package gateway

import (
	"net/http"
	"strings"
	"time"
)

// Record is what became of one request: it feeds the access log, the metrics, and the
// recent decisions of the admin API. No key, and nothing that was said, is in it.
type Record struct {
	Seq        uint64        `json:"seq"`
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

const (
	Passed  Outcome = "passed"  // it was sent, and answered, whatever the status
	Denied  Outcome = "denied"  // a limit has said no
	Refused Outcome = "refused" // it was not valid: no key, no such provider, a body that cannot be read
	Broken  Outcome = "broken"  // the provider could not be reached, or its answer broke off
	Left    Outcome = "left"    // the client has left before the end
	Lost    Outcome = "lost"    // the store that counts could not be asked
)

// mostText is how many bytes are recorded of what others choose, such as a path.
const mostText = 256

// shortened returns a text for a record: a copy, for a path itself is a part of the whole
// request line.
func shortened(text string) string {
	if len(text) <= mostText {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:mostText], "") + "…"
}

// fieldsOfRequestID are headers in which providers tell how they call a request:
// OpenAI's and those like it, and Anthropic's.
var fieldsOfRequestID = []string{"X-Request-Id", "Request-Id"}

// requestID returns how a provider calls the request that it answers, or "".
func requestID(h http.Header) string {
	for _, name := range fieldsOfRequestID {
		if said := h[name]; said != nil {
			return shortened(said[0])
		}
	}
	return ""
}
