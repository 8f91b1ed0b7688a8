package wire

import "errors"

// Error says why a request has no answer, or only a part of one. It is a [net.Error].
type Error struct {
	Host string
	Sent bool // false: certainly no byte of the request was sent
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

// timeoutError is the error of an operation that took too long.
type timeoutError string

func (e timeoutError) Error() string { return string(e) }

func (e timeoutError) Timeout() bool { return true }

const (
	errDialTimeout   timeoutError = "no connection within DialTimeout"
	errHeaderTimeout timeoutError = "no answer within HeaderTimeout"
)
