package wire

import "errors"

// Error is why a request has got no answer, or only a part of one.
type Error struct {
	Host string
	Sent bool // false: for certain, no byte of the request was sent
	Err  error
}

func (e *Error) Error() string { return "ratelimit: " + e.Host + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether something took too long.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// late is the error of what took too long.
type late string

func (l late) Error() string { return string(l) }

func (l late) Timeout() bool { return true }

const (
	lateDial   late = "no connection within DialTimeout"
	lateHeader late = "no answer within HeaderTimeout"
)
