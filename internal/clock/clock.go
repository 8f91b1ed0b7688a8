// Package clock has the clock by which this process counts usage in memory.
package clock

import "time"

// New returns a clock that reads Unix nanoseconds. It is monotonic: it follows
// the wall clock as of the call, and does not notice when that is set later.
func New() func() int64 {
	start := time.Now()
	wall := start.UnixNano()
	return func() int64 { return wall + int64(time.Since(start)) }
}
