package dialect

import (
	"net/http"
	"strings"
	"time"
)

// DefaultRetryAfterMax is the longest wait that Retry-After should ask a client for. Some clients
// sleep for as long as the header says, however long that is.
const DefaultRetryAfterMax = 10 * time.Minute

// stop is how a refusal makes the clients of an API give up at once and show its message. It was tried with the clients
// themselves.
type stop struct {
	never        int    // the status of a call that can never pass
	kind, code   string // the type and the code of a 429 that is final; empty: those of any 429
	reasonHeader string // a header whose text a client shows in place of the body's message; empty: none
}

// NeverStatus returns the status of a [Refusal] of a call that is larger than a limit, so that it can
// never pass. It is not 413, which clients take for too many bytes.
func (a API) NeverStatus() int { return a.protocol().stop.never }

// CodeNever is the Code of a [Refusal] of a call that can never pass.
const CodeNever = "exceeds_limit"

// CapRetryAfter makes a refusal final that asks for a longer wait than longest: the body says when to
// try again, and no header asks the client to sleep until then.
func (r *Refusal) CapRetryAfter(longest time.Duration, now time.Time) {
	if r.RetryAfter > longest {
		r.ResetsAt, r.RetryAfter, r.Retry = now.Add(r.RetryAfter), 0, false
	}
}

// final reports whether the client should neither try again nor wait.
func (r *Refusal) final() bool {
	return r.Status == http.StatusTooManyRequests && !r.Retry && !r.LeaveRetry && r.RetryAfter <= 0
}

// headerText returns a text as the value of a header: characters that clients may reject there are
// replaced.
func headerText(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, text)
}
