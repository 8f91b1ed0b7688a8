package telemetry

import "syscall"

// mortal makes a program end when the process that started it ends, in whatever way.
func mortal() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
