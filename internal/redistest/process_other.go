//go:build !linux

package redistest

import "syscall"

// mortal does nothing: here a program outlives one that is killed.
func mortal() *syscall.SysProcAttr { return nil }
