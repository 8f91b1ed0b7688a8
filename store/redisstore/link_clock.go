package redisstore

import (
	"sync"
	"time"
)

// serverClock is an estimate of the server's clock, by the times in its answers. It goes back only if
// the server's clock does.
type serverClock struct {
	mu       sync.Mutex
	readTime int64     // the estimate at readAt, in Unix nanoseconds
	readAt   time.Time // this machine's time of the last answer; zero before the first one
}

// now returns the estimate. Before the first answer it is the time of this machine.
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

// observe records that the server's clock has shown a time, at some point within the last while.
func (c *serverClock) observe(at int64, while time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	here := time.Now()
	c.readTime, c.readAt = min(max(c.at(here), at), at+int64(while)), here
}

// floor is a time that the server's clock has reached, as long as it does not go back.
type floor struct {
	readTime int64     // in the last answer, in Unix nanoseconds
	readAt   time.Time // this machine's time of that; zero before the first answer
}

// observe records a time in an answer. Only the goroutine that sends the batches of a queue may call it, and now.
func (f *floor) observe(at int64) { f.readTime, f.readAt = at, time.Now() }

// now returns the time. This machine's clock may be faster than the server's, by a thousandth.
func (f *floor) now() int64 {
	since := int64(time.Since(f.readAt))
	return f.readTime + since - since/1000
}
