package uptime

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// readBootName returns the kernel's random name of this boot. The time since it differs between namespaces
// of time, so that their name is a part of it, if there are such.
func readBootName() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, _ := os.Readlink("/proc/self/ns/time")
	return strings.TrimSpace(string(id)) + " " + namespace
}

func sinceBoot() (ns int64, ok bool) {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0, false
	}
	return t.Nano(), true
}
