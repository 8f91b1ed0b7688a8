package limit

import "time"

// epoch is where this process counts its nanoseconds from. time.Since of a
// fixed time is the cheapest monotonic reading that the standard library has.
var epoch = time.Now()

// clock reads the time once, in nanoseconds since epoch.
func clock() int64 { return int64(time.Since(epoch)) }

// unixOffset is what turns clock's readings into Unix nanoseconds, which
// windows that follow the calendar need.
func unixOffset() int64 {
	now := time.Now()
	return now.UnixNano() - int64(now.Sub(epoch))
}
