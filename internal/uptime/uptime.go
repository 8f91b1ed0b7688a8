// Package uptime has the clock of a machine's elapsed time, which setting the wall clock does not change.
package uptime

import (
	"sync"
	"time"
)

// Read returns the time since this boot of the machine, in nanoseconds, and a name of the boot. It goes
// on while the machine is suspended, and setting the wall clock does not change it. All processes of
// the machine read the same.
//
// ok is false where that is not known: on systems other than Linux and macOS, and in tests whose
// time is fake.
func Read() (boot string, elapsed int64, ok bool) {
	if fake(time.Now()) {
		return "", 0, false
	}
	boot = bootName()
	if boot == "" {
		return "", 0, false
	}
	elapsed, ok = sinceBoot()
	return boot, elapsed, ok
}

// fake reports whether now is the time of a bubble of testing/synctest: it has no monotonic reading.
func fake(now time.Time) bool { return now == now.Round(0) }

// bootName returns the name of this boot, or "" if it is not known.
var bootName = sync.OnceValue(readBootName)
