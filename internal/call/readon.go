package call

import (
	"errors"
	"io"
	"time"
)

// ReadOn reads the rest of an answer that its client does not read any more, for a time and up to a number of bytes:
// what was used comes last, and a client that leaves before that must not pay less than one that stays. source is what
// body reads; ReadOn closes it when the time is over. It stops early when ended says so, unless that is nil. It reports
// whether the body has come to its end.
func ReadOn(body io.Reader, source io.Closer, timeout time.Duration, most int64, ended func() bool) (complete bool) {
	timer := time.AfterFunc(timeout, func() { source.Close() })
	defer timer.Stop()
	var buffer [8 << 10]byte
	for most > 0 && (ended == nil || !ended()) {
		n, err := body.Read(buffer[:])
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		most -= int64(n)
	}
	return false
}
