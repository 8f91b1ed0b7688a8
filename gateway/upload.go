package gateway

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// mostPassed is how many bytes the body may have of what is no call of a model, and is
// not read before it is sent: files.
const mostPassed = 1 << 30

var errTooLong = errors.New("ratelimit: the body is too long")

// upload is the body of a request that is sent on as it comes. Some of it must come
// within every body_timeout. Whoever reads it may go on to when the request is served
// already.
type upload struct {
	x      *exchange
	mu     sync.Mutex
	until  time.Time
	left   int64
	err    error
	served bool
}

func newUpload(x *exchange) *upload { return &upload{x: x, left: mostPassed} }

// reader returns what is to be sent.
func (u *upload) reader() io.ReadCloser {
	if u.x.r.ContentLength == 0 {
		return http.NoBody
	}
	return u
}

func (u *upload) Read(p []byte) (int, error) {
	if err := u.extend(); err != nil {
		return 0, err
	}
	n, err := u.x.r.Body.Read(p)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.left -= int64(n); u.left < 0 {
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

// extend gives the client time to send more.
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

// Close is that nobody wants more of it.
func (u *upload) Close() error { return nil }

// end is that the request is served.
func (u *upload) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.served = true
	if u.x.r.ContentLength != 0 && !errors.Is(u.err, io.EOF) {
		u.x.control.SetReadDeadline(time.Now()) // which ends a read that is under way
	}
}

// late reports whether nothing has come for too long. The request's context may tell so
// before who reads it does.
func (u *upload) late() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return errors.Is(u.err, os.ErrDeadlineExceeded) || u.err == nil && !u.until.IsZero() && !time.Now().Before(u.until)
}

func (u *upload) long() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return errors.Is(u.err, errTooLong)
}
