package telemetry

import "syscall"

// mortal is what makes a program end with the one that started it, however that
// ends.
func mortal() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
