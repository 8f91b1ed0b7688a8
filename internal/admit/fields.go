package admit

import (
	"net/http"
	"strconv"
	"time"
	"unsafe"

	"dappco.re/go/core/go-ratelimit/project"
)

// The fields as package net/http spells them. Names of fields have no case.
const (
	fieldPolicy = "Ratelimit-Policy"
	fieldLimit  = "Ratelimit"
)

// Tell sets the fields that say where the project stands: in all of its windows
// after a request that passes, or else in those that deny it. Of a plain limiter
// it is the limit that decided.
func (p *Policies) Tell(h http.Header, result *Result) {
	standings := result.Standings()
	if len(standings) == 0 {
		return
	}
	known := p.of(standings)
	h[fieldPolicy] = known.value
	f := new(field)
	if value := known.appendLimits(f.text[:0], result); len(value) > 0 {
		f.values[0] = unsafe.String(&value[0], len(value)) // which nobody changes any more
		h[fieldLimit] = f.values[:]
	}
}

// field is the value of a header with room for its text, so that there is one
// allocation. A text that is longer has its own.
type field struct {
	values [1]string
	text   [112]byte
}

// appendLimits appends the value of RateLimit.
func (p *policy) appendLimits(b []byte, result *Result) []byte {
	standings := result.Standings()
	for i := range standings {
		s := &standings[i]
		until := s.ResetAfter
		if !result.Decision.Allowed {
			until = result.Denial(s)
			if until == 0 {
				continue
			}
		}
		b = p.appendLimit(b, i, s.Remaining, until)
	}
	return b
}

// appendLimit appends one member of RateLimit: the i-th of the windows.
func (p *policy) appendLimit(b []byte, i int, remaining int64, until time.Duration) []byte {
	w := p.windows[i]
	b = appendName(b, w.Name)
	b = appendParameter(b, ";r=", remaining)
	switch until {
	case project.Never:
		return b
	case w.Period: // as after nearly every request that passes
		return append(b, p.periods[i]...)
	}
	return appendUntil(b, until)
}

func appendUntil(b []byte, until time.Duration) []byte {
	return appendParameter(b, ";t=", Ceil(until))
}

// appendPolicy appends one member of RateLimit-Policy.
func appendPolicy(b []byte, w *project.Window) []byte {
	b = appendName(b, w.Name)
	b = appendParameter(b, ";q=", w.Count)
	b = appendParameter(b, ";w=", Ceil(w.Period))
	if w.Tokens {
		b = append(b, `;qu="tokens"`...)
	}
	return b
}

// appendName begins a member of a list. Names of windows need no escaping.
func appendName(b []byte, name string) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"')
}

// maxInteger is the largest integer of a structured field.
const maxInteger = 999_999_999_999_999

func appendParameter(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(b, key...), min(max(n, 0), maxInteger), 10)
}
