package rate

import (
	"sync"
	"time"
)

// Sometimes runs a function now and then, for example to log a warning in a hot loop:
//
//	var rarely = rate.Sometimes{First: 3, Interval: 10 * time.Second}
//
//	func handle(r Request) {
//		if r.Old() {
//			rarely.Do(func() { log.Print("a client speaks the old protocol") })
//		}
//	}
//
// A call of Do runs the function if any field that is set says so. The first call always does, so the zero Sometimes
// runs the function once.
type Sometimes struct {
	First    int           // how many calls run f at the beginning
	Every    int           // one of this many calls runs f, beginning with the first
	Interval time.Duration // a call runs f if the last run of f ended at least this long ago

	mu    sync.Mutex
	calls int
	last  time.Time // the time at which f last returned, if there is an Interval
}

// Do runs f if the fields say so for this call. It holds a lock meanwhile, so f runs in one goroutine at a time, should
// be short, and must not call Do of the same Sometimes. A call whose f panics does not count.
func (s *Sometimes) Do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.due() {
		f()
		if s.Interval > 0 {
			s.last = time.Now()
		}
	}
	s.calls++
}

func (s *Sometimes) due() bool {
	return s.calls == 0 ||
		s.calls < s.First ||
		s.Every > 0 && s.calls%s.Every == 0 ||
		s.Interval > 0 && time.Since(s.last) >= s.Interval
}
