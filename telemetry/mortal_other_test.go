//go:build !linux

package telemetry

import "syscall"

// mortal is for systems that cannot be told so: a program ends with the test.
func mortal() *syscall.SysProcAttr { return nil }
