package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// process is a program that runs, or has ended.
type process struct {
	*os.Process
	done chan struct{} // closed when it has ended
}

// launch starts a program, which ends with this one at the latest.
func launch(program string, args []string, output *os.File) (*process, error) {
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = output, output, endWithParent()
	started, done := make(chan error), make(chan struct{})
	go func() {
		// The program ends with the thread that started it, so that thread waits for it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("ratelimit: cannot run %s: %w", program, err)
	}
	return &process{Process: cmd.Process, done: done}, nil
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill returns when the program has ended.
func (p *process) kill() {
	p.Kill()
	<-p.done
}
