package limit

import "time"

// epoch is the time from which this process counts nanoseconds. time.Since of a fixed
// time is the cheapest monotonic reading that the standard library has.
var epoch = time.Now()

// clock reads the time once, in nanoseconds since epoch.
func clock() int64 { return int64(time.Since(epoch)) }

// unixOffset returns what must be added to a reading of clock to get Unix nanoseconds,
// which windows that follow the calendar need.
func unixOffset() int64 {
	now := time.Now()
	return now.UnixNano() - int64(now.Sub(epoch))
}
