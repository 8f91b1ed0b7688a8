package gateway

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/internal/dialect"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/project"
)

// statusClientLeft is recorded for a client that did not wait for the answer.
const statusClientLeft = 499

// refusal is an answer of the gateway in place of the provider's.
type refusal struct {
	dialect.Refusal
	outcome Outcome
}

// refusalf returns the refusal of an invalid request.
func refusalf(status int, format string, args ...any) *refusal {
	return &refusal{dialect.Refusal{Status: status, Message: fmt.Sprintf(format, args...)}, Refused}
}

// firstRefusal takes steps until one refuses the request.
func firstRefusal(steps ...func() *refusal) *refusal {
	for _, step := range steps {
		if refused := step(); refused != nil {
			return refused
		}
	}
	return nil
}

// retryLater refuses a request that the client may send again in a second.
func retryLater(message string, outcome Outcome) *refusal {
	return &refusal{dialect.Refusal{Status: http.StatusServiceUnavailable, Message: message, RetryAfter: time.Second, Retry: true}, outcome}
}

// stopping refuses a request because the gateway drains.
func (x *exchange) stopping() *refusal {
	x.w.Header().Set("Connection", "close")
	return retryLater("the gateway is about to stop: try again", Refused)
}

// clientLeft ends the request of a client that has left.
func clientLeft() *refusal {
	return &refusal{dialect.Refusal{Status: statusClientLeft}, Left}
}

// storeLost refuses a call because the store that counts does not answer.
func storeLost() *refusal {
	return retryLater("the limits cannot be checked at the moment: try again", Lost)
}

// undecided refuses a call because of an error of the limiter.
func (x *exchange) undecided(err error) *refusal {
	x.Error = err.Error()
	if errors.Is(err, project.ErrInvalid) {
		return refusalf(http.StatusBadRequest, "%s", message.Plain(err))
	}
	return storeLost()
}

// denied refuses a call that a limit has denied. err says why the call waits no longer, if it
// has waited.
func (x *exchange) denied(err error) *refusal {
	x.Limit = x.decision.Limit
	if owner, known := x.decision.Denier(); known {
		x.Scope, x.Owner = x.ScopeOf(owner)
	}
	return &refusal{x.call.Refusal(&x.decision, err), Denied}
}

// refuse answers a request with a refusal, in the form of the provider's own errors.
func (x *exchange) refuse(refused *refusal) {
	x.Outcome, x.Status = refused.outcome, refused.Status
	if refused.outcome == Left {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	if x.Error == "" {
		x.Error, _ = redactKeys(refused.Message)
	}
	refused.ID = x.ID
	refused.CapRetryAfter(x.cfg.Server.RetryAfterMax, time.Now())
	if x.begun {
		x.endStream(x.endpoint.RefuseInStream(refused.Refusal))
		return
	}
	header, body := x.endpoint.Refuse(refused.Refusal)
	to := x.w.Header()
	maps.Copy(to, header)
	x.setRequestID(to)
	to["Cache-Control"] = []string{"no-store"}
	if refused.Status == http.StatusUnauthorized {
		to["Www-Authenticate"] = []string{"Bearer"}
	}
	if refused.outcome == Denied {
		x.setLimitHeaders(to)
		x.setProviderHeaders(to)
	}
	x.extendWriteDeadline()
	x.w.WriteHeader(refused.Status)
	if x.r.Method != http.MethodHead {
		x.write(body, false)
	}
}

// setLimitHeaders sets the standard headers with the limits of the project and what is left
// of them.
func (x *exchange) setLimitHeaders(h http.Header) {
	if x.decision.IsZero() {
		return
	}
	result := &admit.Result{Answer: admit.Pass, Project: x.path, Decision: x.decision.Decision}
	if !x.decision.Allowed {
		result.Answer = admit.Later
	}
	x.g.policies.SetHeaders(h, result)
	if tightest := result.Tightest(); tightest != "" {
		h[fieldTightest] = []string{tightest}
	}
}

// fieldTightest is the header that names the limit of which the smallest part is left, if a call has
// limits of several levels.
const fieldTightest = "X-Gateway-Tightest-Limit"
