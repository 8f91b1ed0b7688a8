package sqlitestore

import (
	"syscall"
	"time"
)

// nap sleeps for microseconds. On an idle machine [time.Sleep] sleeps for at least a millisecond,
// in which another process has many transactions.
func nap(d time.Duration) {
	spec := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&spec, nil)
}
