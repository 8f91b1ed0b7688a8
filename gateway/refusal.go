package gateway

import (
	"errors"
	"net/http"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/admit"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/llm"
	"dappco.re/go/core/go-ratelimit/project"
)

// statusGone is what is recorded of a client that did not wait for the answer.
const statusGone = 499

// refusal is an answer of the gateway's own.
type refusal struct {
	llm.Refusal
	outcome Outcome
}

// bad refuses a request that is not valid.
func (x *exchange) bad(status int, message string) *refusal {
	return &refusal{llm.Refusal{Status: status, Message: message}, Refused}
}

// later refuses a request that may be tried again in a moment.
func later(message string, outcome Outcome) *refusal {
	return &refusal{llm.Refusal{Status: http.StatusServiceUnavailable, Message: message, RetryAfter: time.Second, Retry: true}, outcome}
}

// busy refuses a request because the gateway stops.
func (x *exchange) busy() *refusal {
	x.w.Header().Set("Connection", "close")
	return later("the gateway is about to stop: try again", Refused)
}

// leave ends the request of a client that has left.
func (x *exchange) leave() *refusal { return &refusal{llm.Refusal{Status: statusGone}, Left} }

// lost refuses a call because the store that counts cannot be asked.
func (x *exchange) lost() *refusal {
	return later("the limits cannot be asked at the moment: try again", Lost)
}

// failed refuses a call that could not be decided on.
func (x *exchange) failed(err error) *refusal {
	x.Error = err.Error()
	if errors.Is(err, project.ErrInvalid) {
		return x.bad(http.StatusBadRequest, message.Plain(err))
	}
	return x.lost()
}

// denied refuses a call that a limit has denied; err is why it waits no longer.
func (x *exchange) denied(err error) *refusal {
	x.Limit = x.decision.Limit
	return &refusal{x.call.Refusal(&x.decision, err), Denied}
}

// refuse answers a request with a refusal, in the shape of the provider's own.
func (x *exchange) refuse(no *refusal) {
	x.Outcome, x.Status = no.outcome, no.Status
	if no.outcome == Left {
		panic(http.ErrAbortHandler) // nothing must look like an answer
	}
	if x.Error == "" {
		x.Error, _ = withoutKeys(no.Message)
	}
	no.ID = x.ID
	header, body := x.endpoint.Refuse(no.Refusal)
	to := x.w.Header()
	for name, values := range header {
		to[name] = values
	}
	x.identifyAnswer(to)
	to["Cache-Control"] = []string{"no-store"}
	if no.Status == http.StatusUnauthorized {
		to["Www-Authenticate"] = []string{"Bearer"}
	}
	if no.outcome == Denied {
		x.tell(to)
		x.tellAsProvider(to)
	}
	x.extend()
	x.w.WriteHeader(no.Status)
	if x.r.Method != http.MethodHead {
		x.w.Write(body)
	}
}

// tell tells where the project stands, in the fields that are a standard.
func (x *exchange) tell(h http.Header) {
	answer := admit.Pass
	if !x.decision.Allowed {
		answer = admit.Later
	}
	if x.decision.Project == nil {
		return
	}
	d := *x.decision.Project
	d.Allowed, d.Exceeded, d.RetryAfter = x.decision.Allowed, x.decision.Limit, x.decision.RetryAfter // the model's limits, too
	x.g.policies.Tell(h, &admit.Result{Answer: answer, Decision: d})
}
