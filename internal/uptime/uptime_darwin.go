package uptime

import "golang.org/x/sys/unix"

func readBootName() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid")
	return id
}

// sinceBoot reads the clock of macOS that goes on while the machine sleeps.
func sinceBoot() (ns int64, ok bool) {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &t) != nil {
		return 0, false
	}
	return t.Nano(), true
}
