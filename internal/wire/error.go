package wire

import "errors"

// Error is why a request has got no answer, or only a part of one. It is a [net.Error].
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

// Temporary makes it a [net.Error].
func (e *Error) Temporary() bool { return e.Timeout() }

// late is the error of what took too long.
type late string

func (l late) Error() string { return string(l) }

func (l late) Timeout() bool { return true }

const (
	lateDial   late = "no connection within DialTimeout"
	lateHeader late = "no answer within HeaderTimeout"
)
