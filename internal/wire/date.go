package wire

import (
	"net/http"
	"sync/atomic"
	"time"
)

// cachedDate is a second, formatted for the Date header.
type cachedDate struct {
	unix int64
	text string
}

var dateCache atomic.Pointer[cachedDate]

// date returns the time for a Date header. It is formatted once a second.
func date() string {
	now := time.Now()
	s := dateCache.Load()
	if s == nil || s.unix != now.Unix() {
		s = &cachedDate{now.Unix(), now.UTC().Format(http.TimeFormat)}
		dateCache.Store(s)
	}
	return s.text
}
