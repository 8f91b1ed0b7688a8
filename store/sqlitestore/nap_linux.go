package sqlitestore

import (
	"syscall"
	"time"
)

// nap sleeps. Where nothing else runs, [time.Sleep] sleeps for a millisecond at
// least, in which another process has many transactions.
func nap(d time.Duration) {
	spec := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&spec, nil)
}
