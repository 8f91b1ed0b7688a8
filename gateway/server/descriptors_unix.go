//go:build unix

package server

import "syscall"

// descriptors returns how many files and connections the process may have open, or 0 if that is not known.
func descriptors() int {
	var open syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &open) != nil {
		return 0
	}
	return int(min(open.Cur, 1<<30)) // "unlimited" does not fit
}
