//go:build !linux

package telemetry

import "syscall"

// mortal does nothing on systems without such an attribute: the test ends the program.
func mortal() *syscall.SysProcAttr { return nil }
