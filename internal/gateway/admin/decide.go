package admin

import (
	"errors"
	"net/http"

	ratelimit "dappco.re/go/core/go-ratelimit"
	"dappco.re/go/core/go-ratelimit/internal/gateway"
	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/llm"
)

// Question is a call of which a client asks whether it would pass.
type Question struct {
	Provider string `json:"provider,omitempty"` // empty: the only one that has the model
	Model    string `json:"model"`
	Tokens   int    `json:"tokens,omitempty"`        // prompt and output together
	Input    int    `json:"input_tokens,omitempty"`  // in place of Tokens, with Output
	Output   int    `json:"output_tokens,omitempty"` // in place of Tokens, with Input
	Project  string `json:"project,omitempty"`       // empty: that of the key, or the default
	Key      string `json:"key,omitempty"`           // the id of a virtual key
	User     string `json:"user,omitempty"`
	Run      string `json:"run,omitempty"`
}

// Answer says whether a call would pass now. Nothing was charged.
type Answer struct {
	Allowed    bool         `json:"allowed"`
	Reason     string       `json:"reason"` // for people
	Code       string       `json:"code"`   // such as "ok", "tpm_exceeded", "project_exceeded", "paused", "forbidden" or "unpriced"
	Quota      string       `json:"quota,omitempty"`
	Limit      string       `json:"limit,omitempty"` // the limit that denies
	Scope      string       `json:"scope,omitempty"` // of that limit, as in AskedLimit
	Owner      string       `json:"owner,omitempty"` // of that limit, as in AskedLimit
	RetryAfter float64      `json:"retry_after_seconds,omitempty"`
	Never      bool         `json:"never,omitempty"`  // however long the call waits, it does not pass
	MaxWait    float64      `json:"max_wait_seconds"` // how long the call may wait for its turn
	Limits     []AskedLimit `json:"limits"`
}

func (a *Admin) decide(r *http.Request) (any, error) {
	q, err := decode[Question](r)
	if err != nil {
		return nil, err
	}
	if err := q.check(); err != nil {
		return nil, err
	}
	if c := callerOf(r); c.project != "" {
		if k := a.keyOf(q.Key); q.Key != "" && (k == nil || !keys.Within(k.Project, c.project)) {
			return nil, problemf(http.StatusBadRequest, "there is no key %.40q", q.Key)
		}
		if err := c.check(q.Project); err != nil && (q.Key == "" || q.Project != "") {
			return nil, err
		}
	}
	v, err := a.gateway.Decide(r.Context(), gateway.Question{
		Provider: q.Provider, Model: q.Model, Sum: q.Tokens, Tokens: llm.Tokens{Input: q.Input, Output: q.Output},
		Project: q.Project, Key: q.Key, User: q.User, Run: q.Run,
	})
	if errors.Is(err, gateway.ErrQuestion) {
		return nil, problemf(http.StatusBadRequest, "%s", message.Detail(err, gateway.ErrQuestion))
	}
	if err != nil {
		return nil, err
	}
	return newAnswer(&v), nil
}

// check returns what is wrong with the tokens of a question.
func (q *Question) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"tokens", q.Tokens}, {"input_tokens", q.Input}, {"output_tokens", q.Output}} {
		if f.value < 0 || f.value > maxTokens {
			return problemf(http.StatusBadRequest, "%s is %d: it must be from 0 to %d", f.name, f.value, int64(maxTokens))
		}
	}
	if q.Tokens > 0 && q.Input+q.Output > 0 {
		return problemf(http.StatusBadRequest, "tokens is set beside input_tokens or output_tokens: it must be either tokens or the other two")
	}
	return nil
}

// maxTokens is how many tokens a call may ask for.
const maxTokens = 1 << 53

func newAnswer(v *gateway.Verdict) Answer {
	v.Record.Quota = v.Quota
	answer := Answer{
		Allowed: v.Allowed, Reason: v.Reason, Code: v.Code, Quota: v.Quota, Limit: v.Limit, Never: v.RetryAfter == ratelimit.Never,
		MaxWait: v.MaxWait.Seconds(), Limits: newAskedLimits(&v.Record, v.Limits, v.At),
	}
	if !answer.Never {
		answer.RetryAfter = v.RetryAfter.Seconds()
	}
	answer.Scope, answer.Owner = v.Record.Scope, v.Record.Owner
	if owner, known := v.Denier(); known {
		answer.Scope, answer.Owner = v.Record.ScopeOf(owner)
	}
	return answer
}
