//go:build unix

package statefile

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// childPath is the environment variable with the path of the file that a test writes in a
// process of its own.
const childPath = "RATELIMIT_TEST_STATE_FILE"

func inChild(t *testing.T, path string) *exec.Cmd {
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), childPath+"="+path)
	return child
}

// If the disk is full, the old file stays. The test uses a limit on the size of files in place
// of a full disk: writing stops half-way at it.
func TestWriteDiskFull(t *testing.T) {
	if path := os.Getenv(childPath); path != "" {
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 1000, Max: 1000}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Skip("no such limit here:", err)
		}
		err := Write(path, whole(100))
		if err == nil || !strings.HasPrefix(err.Error(), "ratelimit: write ") {
			t.Errorf("%v, it must be an error from the write", err)
		}
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "limits.yaml")
	wantWritten(t, path)
	if out, err := inChild(t, path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got, err := Read(path); err != nil || diffFiles(everyField(), got) != "" {
		t.Errorf("the old file holds %+v, %v", got, err)
	}
	wantFiles(t, dir, "limits.yaml")
}

// While several processes write one file, the file is complete at any time.
func TestWriteProcesses(t *testing.T) {
	if path := os.Getenv(childPath); path != "" {
		for n := range 50 {
			if err := Write(path, whole(1+n)); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "limits.yaml")
	if err := Write(path, whole(1)); err != nil {
		t.Fatal(err)
	}
	const processes = 3
	done := make(chan error, processes)
	for range processes {
		go func() {
			out, err := inChild(t, path).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, out)
			}
			done <- err
		}()
	}
	for running := processes; running > 0; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			running--
		default:
		}
		wantWhole(t, path)
	}
	wantFiles(t, dir, "limits.yaml")
}

func TestReadPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip("no pipes here:", err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "it must be a file, and is p") {
		t.Errorf("%v, it must say that it is no file", err)
	}
}
