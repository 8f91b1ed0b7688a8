//go:build !linux

package redistest

import "syscall"

// endWithParent does nothing: on this system a program outlives a parent that is killed.
func endWithParent() *syscall.SysProcAttr { return nil }
