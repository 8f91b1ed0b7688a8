package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"dappco.re/go/core/go-ratelimit/internal/gateway/keys"
	"dappco.re/go/core/go-ratelimit/internal/message"
	"dappco.re/go/core/go-ratelimit/project"
)

// Problem is an error of the API (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"` // what was wrong, and what is allowed

	header http.Header `json:"-"`                // further headers of the answer
	Lifted []string    `json:"lifted,omitempty"` // the limits that a PUT would have removed
}

// Error returns the detail.
func (p *Problem) Error() string { return "ratelimit: " + p.Detail }

// problemf returns a problem that has no type but its status.
func problemf(status int, format string, args ...any) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// problemOf returns an error as a problem. It takes an error that it does not know for an error
// of the store.
func problemOf(err error) *Problem {
	var p *Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, keys.ErrUnknown):
		return problemf(http.StatusNotFound, "%s", message.Plain(err))
	case errors.Is(err, keys.ErrInvalid):
		return problemf(http.StatusBadRequest, "%s", message.Plain(err))
	default:
		return problemf(http.StatusServiceUnavailable, "%s", message.Plain(err))
	}
}

// invalid returns an error as a problem with status 400, or nil.
func invalid(err error) error {
	if err == nil {
		return nil
	}
	sentinel := message.Plain(project.ErrInvalid) + ": " // it speaks of a call, and the id of a project is none
	return problemf(http.StatusBadRequest, "%s", strings.TrimPrefix(message.Plain(err), sentinel))
}

func (p *Problem) send(w http.ResponseWriter) {
	text, _ := json.Marshal(p) // texts and a number
	maps.Copy(w.Header(), p.header)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	w.Write(append(text, '\n')) // an error means that the client has left
}
