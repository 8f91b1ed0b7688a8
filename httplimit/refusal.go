package httplimit

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"dappco.re/go/core/go-ratelimit/internal/admit"
)

// The types of problems.
const (
	typeQuota    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	typeNone     = "about:blank" // for problems that the status explains
)

// Values of headers that all refusals share.
var (
	noStore     = []string{"no-store"}
	problemJSON = []string{"application/problem+json"}
)

// statusClientLeft is what servers log for a client that did not wait for the answer.
const statusClientLeft = 499

// problem is the body of a refusal (RFC 9457).
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Detail   string   `json:"detail"`
	Violated []string `json:"violated-policies,omitempty"`
}

// refuse answers a request that does not pass.
func (s *settings) refuse(w http.ResponseWriter, r *http.Request, result *admit.Result) {
	h := w.Header()
	switch result.Answer {
	case admit.Left:
		w.WriteHeader(statusClientLeft)
		return
	case admit.Later:
		h.Set("Retry-After", strconv.FormatInt(result.Seconds(), 10))
		s.Policies.SetHeaders(h, result)
	case admit.Never:
		s.Policies.SetHeaders(h, result)
	case admit.Lost:
		h.Set("Retry-After", "1")
	}
	h["Cache-Control"] = noStore
	p := describe(result)
	if s.answer != nil {
		s.answer(w, r, p.Status, p.Detail)
		return
	}
	p.send(w, r)
}

func describe(result *admit.Result) *problem {
	p := &problem{Detail: result.Reason()}
	switch result.Answer {
	case admit.Later:
		p.Type, p.Title, p.Status = typeQuota, "Quota exceeded", http.StatusTooManyRequests
		p.Violated = violated(result)
	case admit.Never:
		// The status is not 413, which clients take for too many bytes.
		p.Type, p.Title, p.Status = typeQuota, "Quota exceeded", http.StatusBadRequest
		p.Violated = violated(result)
	case admit.Invalid:
		p.Type, p.Title, p.Status = typeNone, "Bad Request", http.StatusBadRequest
		if errors.Is(result.Err, errNoLength) {
			p.Title, p.Status = "Length Required", http.StatusLengthRequired
		}
	case admit.Lost:
		p.Type, p.Title, p.Status = typeCapacity, "Temporary reduced capacity", http.StatusServiceUnavailable
	}
	return p
}

// violated returns the names of the windows that deny a request. For a request that waited
// behind others, it is the window that the others wait for.
func violated(result *admit.Result) (names []string) {
	windows := result.Windows()
	for i := range windows {
		if s := &windows[i]; result.Denial(s) > 0 {
			names = append(names, result.Name(s))
		}
	}
	if names == nil {
		names = []string{result.Exceeded()}
	}
	return names
}

func (p *problem) send(w http.ResponseWriter, r *http.Request) {
	body, _ := json.Marshal(p) // strings and a number: it cannot fail
	w.Header()["Content-Type"] = problemJSON
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}
