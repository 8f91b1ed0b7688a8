package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// maxPassed is the largest body, such as a file, of a request that is no call of a model. The
// gateway forwards it without reading it first.
const maxPassed = 1 << 30

var errTooLong = errors.New("ratelimit: the body is too long")

// upload is a body that is forwarded as it comes. At least one byte must come within each
// body_timeout. The transport may still read it after the request was served.
type upload struct {
	x      *exchange
	mu     sync.Mutex
	until  time.Time
	left   int64 // bytes that may still come
	err    error
	served bool
}

func newUpload(x *exchange) *upload { return &upload{x: x, left: maxPassed} }

func (u *upload) Read(p []byte) (int, error) {
	if err := u.extend(); err != nil {
		return 0, err
	}
	n, err := u.x.r.Body.Read(p)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.left -= int64(n)
	if u.left < 0 {
		err = errTooLong
	}
	if err != nil && u.err == nil {
		u.err = err
	}
	if errors.Is(u.err, io.EOF) && !u.served {
		u.x.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// extend gives the client time to send more of the body.
func (u *upload) extend() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.served {
		return http.ErrBodyReadAfterClose
	}
	now, timeout := time.Now(), u.x.cfg.Server.BodyTimeout
	if u.until.Sub(now) <= timeout/2 {
		u.until = now.Add(timeout)
		u.x.control.SetReadDeadline(u.until)
	}
	return nil
}

// Close does nothing: the server closes the request's body.
func (u *upload) Close() error { return nil }

// end ends the reading when the request was served.
func (u *upload) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.served = true
	if u.x.r.ContentLength != 0 && !errors.Is(u.err, io.EOF) {
		u.x.control.SetReadDeadline(time.Now()) // ends a read that is in progress
	}
}

// timedOut reports whether no byte has come for too long. The request's context may end
// before the read does.
func (u *upload) timedOut() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return errors.Is(u.err, os.ErrDeadlineExceeded) || u.err == nil && !u.until.IsZero() && !time.Now().Before(u.until)
}

func (u *upload) exceeded() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return errors.Is(u.err, errTooLong)
}
