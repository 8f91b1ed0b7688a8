//go:build unix

package redistest

import "syscall"

func (p *process) pause()  { p.Signal(syscall.SIGSTOP) }
func (p *process) resume() { p.Signal(syscall.SIGCONT) }
