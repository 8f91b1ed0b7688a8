package gateway

import (
	"net/http"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/dialect"
)

// Record describes one request and its outcome. The access log, the metrics, and the recent
// decisions of the admin API come from it. It contains no key, and nothing of a prompt or an
// answer.
type Record struct {
	Seq         uint64        `json:"seq"`
	ID          string        `json:"id"`     // the gateway's id of the request, which the answer has in a header
	Time        time.Time     `json:"time"`   // when the request came
	Client      string        `json:"client"` // the address of the client, or of a proxy in front of the gateway
	Project     string        `json:"project,omitempty"`
	User        string        `json:"user,omitempty"` // as the project's path has it: escaped, or a hash
	Run         string        `json:"run,omitempty"`
	Key         string        `json:"key,omitempty"` // the virtual key's id
	Provider    string        `json:"provider,omitempty"`
	Deployment  string        `json:"deployment,omitempty"`
	Method      string        `json:"method"`
	Path        string        `json:"path"`            // without the query
	Model       string        `json:"model,omitempty"` // as the request names it
	Quota       string        `json:"quota,omitempty"` // the name of the quota that was charged
	Stream      bool          `json:"stream,omitempty"`
	Outcome     Outcome       `json:"outcome"`
	Limit       string        `json:"limit,omitempty"`        // the limit that denied the request
	ShadowLimit string        `json:"shadow_limit,omitempty"` // the limit in shadow that would have denied the request
	ShadowOwner string        `json:"shadow_owner,omitempty"` // whose limit that is
	Fit         int           `json:"fit,omitempty"`          // to how many tokens of each answer the call's max_tokens was lowered; 0: it was not
	Scope       string        `json:"scope,omitempty"`        // what that limit belongs to: "model", "project", "user", "key" or "run"
	Owner       string        `json:"owner,omitempty"`        // its name: of the quota, the path of the project or of the user, the id of the key or of the run
	Status      int           `json:"status"`                 // 499 if the client has left
	Waited      time.Duration `json:"-"`
	Upstream    time.Duration `json:"-"` // from sending the request to the beginning of the response
	Took        time.Duration `json:"-"`
	Retries     int           `json:"retries,omitempty"`
	Input       int           `json:"input_tokens,omitempty"`
	Output      int           `json:"output_tokens,omitempty"`
	Cached      int           `json:"cached_tokens,omitempty"`
	Exact       bool          `json:"exact,omitempty"`      // the provider has reported the tokens; else they are what was charged
	RequestID   string        `json:"request_id,omitempty"` // the provider's id of the request
	Error       string        `json:"error,omitempty"`
}

// isOf reports whether the request is of a project, or of one below it.
func (rec *Record) isOf(project string) bool {
	return within(rec.path(), project)
}

// within reports whether a path is a project's, or one of a project below it.
func within(path, project string) bool {
	return strings.HasPrefix(path, project) && (len(path) == len(project) || path[len(project)] == '/')
}

// path returns the project with the user, if the request has one.
func (rec *Record) path() string {
	if rec.User == "" {
		return rec.Project
	}
	return rec.Project + "/" + rec.User
}

// The scopes of limits.
const (
	scopeModel   = "model"
	scopeProject = "project"
	scopeUser    = "user"
	scopeKey     = "key"
)

// ScopeOf returns what the owner of a limit is, and its name. The owner is one as in
// [project.Decision], and empty for the model.
func (rec *Record) ScopeOf(owner string) (scope, name string) {
	switch kind, id, ok := strings.Cut(owner, " "); {
	case owner == "":
		return scopeModel, rec.Quota
	case ok:
		return kind, id // a key or a run
	case rec.User != "" && owner == rec.path():
		return scopeUser, owner
	}
	return scopeProject, owner
}

// Outcome is what became of a request, in one word.
type Outcome string

// The outcomes, as docs/glossary.md explains them. The access log, the admin API and the
// metrics use the same words.
const (
	Passed    Outcome = "passed"    // the provider answered with a success
	Denied    Outcome = "denied"    // a limit of the gateway denied the call: 429, 400 for a call that can never pass (429 in Anthropic's API), or 402 in a run that is used up
	Refused   Outcome = "refused"   // the gateway does not accept the request: no key, no such provider, an unreadable body
	Throttled Outcome = "throttled" // the provider limits the caller or is overloaded: its 429, its 529, or a 503 that says so
	Failed    Outcome = "failed"    // the provider answered with another error, could not be reached, or its answer broke off or ended in an error
	Cut       Outcome = "cut"       // a limit with on_overrun: cut ended the answer
	Left      Outcome = "left"      // the client left before the end
	Lost      Outcome = "lost"      // the store that counts did not answer
)

// admitted reports whether the limits have let the request pass, or might have.
func (o Outcome) admitted() bool { return o != Denied && o != Refused && o != Lost }

// outcomeOf returns the outcome of a request that the provider has answered with a status.
// throttles is set if the answer's body reports that the provider is overloaded.
func outcomeOf(status int, throttles bool) Outcome {
	switch {
	case status < http.StatusBadRequest:
		return Passed
	case throttles, status == http.StatusTooManyRequests, status == dialect.StatusOverloaded:
		return Throttled
	}
	return Failed
}

// maxText is how many bytes a record has of a text that clients choose, such as a path.
const maxText = 256

// shortened returns a text for a record, without virtual keys. It is a copy: a path would keep
// its whole request line in memory.
func shortened(text string) string {
	text, _ = redactKeys(text)
	if len(text) <= maxText {
		return strings.Clone(text)
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// requestIDFields are the headers with a provider's id of a request.
var requestIDFields = dialect.RequestIDHeaders()

// requestID returns the provider's id of a request, or "".
func requestID(h http.Header) string {
	for _, name := range requestIDFields {
		if said := h[name]; said != nil {
			return shortened(said[0])
		}
	}
	return ""
}
