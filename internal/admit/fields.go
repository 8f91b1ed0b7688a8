package admit

import (
	"net/http"
	"strconv"
	"time"
	"unsafe"

	"dappco.re/go/core/go-ratelimit/internal/kind"
	"dappco.re/go/core/go-ratelimit/project"
)

// The names of headers as package net/http spells them.
const (
	fieldPolicy = "Ratelimit-Policy"
	fieldLimit  = "Ratelimit"
)

// SetHeaders sets the headers with the limits and what is left of them: all windows of the
// project, of those above it, of the key and of the run for a request that passes, and otherwise
// those that deny it. For a plain limiter, it is the limit that decided.
func (p *Policies) SetHeaders(h http.Header, result *Result) {
	windows := result.Windows()
	if len(windows) == 0 {
		return
	}
	h[fieldPolicy] = p.find(windows, result.Project).value
	f := new(field)
	if value := appendLimits(f.text[:0], result); len(value) > 0 {
		f.values[0] = unsafe.String(&value[0], len(value)) // value does not change any more
		h[fieldLimit] = f.values[:]
	}
}

// field is the value of a header with room for its text, so that both take one allocation. A
// longer text takes another.
type field struct {
	values [1]string
	text   [304]byte
}

// appendLimits appends the value of RateLimit.
func appendLimits(b []byte, result *Result) []byte {
	if result.Decision.Allowed && result.Decision.Local {
		return b // what is left is not known
	}
	windows := result.Windows()
	for i := range windows {
		s := windows[i]
		until := s.ResetAfter
		if s.Window.Total() || s.Window.AtATime() {
			until = project.Never
		}
		if !result.Decision.Allowed {
			result.narrow(&s)
			until = result.Denial(&s)
			if until == 0 {
				continue
			}
		}
		b = appendLimit(b, result.Project, &s, until)
	}
	return b
}

// appendLimit appends a member of RateLimit.
func appendLimit(b []byte, own string, s *project.Standing, until time.Duration) []byte {
	b = appendName(b, own, s)
	b = appendParameter(b, ";r=", s.Remaining)
	if until == project.Never {
		return b
	}
	return appendParameter(b, ";t=", ceilSeconds(until))
}

// appendPolicy appends a member of RateLimit-Policy. What is given once, and what calls under way hold, has no period.
func appendPolicy(b []byte, own string, s *project.Standing) []byte {
	w := s.Window
	b = appendName(b, own, s)
	b = appendParameter(b, ";q=", w.Count)
	if !w.Total() && !w.AtATime() {
		b = appendParameter(b, ";w=", ceilSeconds(w.Period))
	}
	if w.Unit != "" && w.Unit != project.Requests { // the unit of a plain limiter is unknown
		b = append(append(append(b, `;qu="`...), kind.Counted(w.Unit)...), '"')
	}
	return b
}

// appendName begins a member of a list with the name of a window: see Result.Name. Names of windows
// need no escaping, and those of owners may.
func appendName(b []byte, own string, s *project.Standing) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	if s.Owner != own {
		for i := range len(s.Owner) {
			if c := s.Owner[i]; c == '"' || c == '\\' {
				b = append(b, '\\')
			}
			b = append(b, s.Owner[i])
		}
		b = append(b, ':')
	}
	b = append(b, s.Window.Name...)
	return append(b, '"')
}

// maxInteger is the largest integer of a structured field.
const maxInteger = 999_999_999_999_999

func appendParameter(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(b, key...), min(max(n, 0), maxInteger), 10)
}
