package redisstore

import (
	"sync"
	"time"
)

// serverClock is the server's clock, as far as its answers show it. It goes back only if the
// server's does.
type serverClock struct {
	mu       sync.Mutex
	readTime int64     // in Unix nanoseconds
	readAt   time.Time // when that was; zero: there was no answer yet
}

// now returns the time of the clock: before the first answer, the time of this machine.
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

// observe records the time that the clock showed at some point within the last while.
func (c *serverClock) observe(at int64, while time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	here := time.Now()
	c.readTime, c.readAt = min(max(c.at(here), at), at+int64(while)), here
}
