package wire

import (
	"net/http"
	"sync/atomic"
	"time"
)

// second is a second as a Date header has it.
type second struct {
	unix int64
	text string
}

var lately atomic.Pointer[second]

// date returns the time for a Date header. It is written once a second.
func date() string {
	now := time.Now()
	s := lately.Load()
	if s == nil || s.unix != now.Unix() {
		s = &second{now.Unix(), now.UTC().Format(http.TimeFormat)}
		lately.Store(s)
	}
	return s.text
}
