package redisstore

import (
	"sync"
	"time"
)

// serverClock is the server's clock, as far as its answers have told. It goes back
// only if the server's does.
type serverClock struct {
	mu   sync.Mutex
	at   int64     // Unix ns
	here time.Time // when that was; zero: no answer has told
}

// now returns what the clock shows: before the first answer, this machine's time.
func (c *serverClock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.show(time.Now())
}

func (c *serverClock) show(here time.Time) int64 {
	if c.here.IsZero() {
		return here.UnixNano()
	}
	return c.at + int64(here.Sub(c.here))
}

// tell tells what the clock showed some time within the last while: it shows
// that now, or up to a while more.
func (c *serverClock) tell(at int64, while time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	here := time.Now()
	c.at, c.here = min(max(c.show(here), at), at+int64(while)), here
}
