package redisstore

import (
	"sync"
	"time"
)

// serverClock is the server's clock, as far as its answers have told. It goes back
// only if the server's does.
type serverClock struct {
	mu       sync.Mutex
	readTime int64     // Unix ns
	readAt   time.Time // when that was; zero: no answer has told
}

// now returns what the clock shows: before the first answer, this machine's time.
func (c *serverClock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(time.Now())
}

func (c *serverClock) at(here time.Time) int64 {
	if c.readAt.IsZero() {
		return here.UnixNano()
	}
	return c.readTime + int64(here.Sub(c.readAt))
}

// observe tells what the clock showed some time within the last while: it shows
// that now, or up to a while more.
func (c *serverClock) observe(at int64, while time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	here := time.Now()
	c.readTime, c.readAt = min(max(c.at(here), at), at+int64(while)), here
}
