package redistest

import "syscall"

// endWithParent makes a program end with the one that started it, however that ends.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
