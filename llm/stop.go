package llm

import (
	"net/http"
	"strings"
	"time"
)

// DefaultRetryAfterMax is the longest wait that Retry-After should ask a client for. Some clients
// sleep for as long as the header says, however long that is.
const DefaultRetryAfterMax = 10 * time.Minute

// stop is how a refusal makes the clients of an API give up at once and show its message.
type stop struct {
	never        int    // the status of a call that can never pass
	kind, code   string // the type and the code of a 429 that is final; empty: those of any 429
	reasonHeader string // a header whose text a client shows in place of the body's message; empty: none
}

// stops has what was tried with the clients themselves. APIs without a row have the last one.
//
//   - Codex, which calls Responses, sleeps for any Retry-After. It stops at the type
//     usage_limit_reached, and shows the header in place of the message. It sends a call that
//     was refused with 402, 403 or 413 six times, and one that was refused with 400 once.
//   - LangChain, by its source, tries a 429 seven times unless its code is insufficient_quota.
//   - Claude Code, which calls Messages, takes a 400 for a feature that the server lacks, and sends
//     the call five more times with features switched off. It reports a 413 as too many bytes,
//     whatever the body says. It shows the message of a 429 at once if X-Should-Retry is false.
//   - cohere-ai sleeps for Retry-After; without it, it tries a 429 three times within seconds.
var stops = []struct {
	api API
	stop
}{
	{Responses, stop{http.StatusBadRequest, "usage_limit_reached", "insufficient_quota", "X-Codex-Promo-Message"}},
	{Messages, stop{http.StatusTooManyRequests, "", "", ""}},
	{"", stop{http.StatusBadRequest, "usage_limit_reached", "insufficient_quota", ""}},
}

// stop returns how clients of the API give up.
func (a API) stop() stop {
	for _, s := range stops[:len(stops)-1] {
		if s.api == a {
			return s.stop
		}
	}
	return stops[len(stops)-1].stop
}

// NeverStatus returns the status of a [Refusal] of a call that is larger than a limit, so that it can
// never pass. It is not 413, which clients take for too many bytes.
func (a API) NeverStatus() int { return a.stop().never }

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
