package admin

import "net/http"

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
	if _, err := decode[Question](r); err != nil {
		return nil, err
	}
	return nil, problemf(http.StatusServiceUnavailable, "not yet")
}
