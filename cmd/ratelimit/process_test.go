package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The program itself: it serves, reloads at SIGHUP, and ends in good order at
// SIGTERM.
func TestProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has no such signals")
	}
	if testing.Short() {
		t.Skip("it builds the program")
	}
	program := filepath.Join(t.TempDir(), "ratelimit")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("TEST_KEY", "sk-test")
	path := withMock(t, "state: "+filepath.Join(t.TempDir(), "state.db")+"\n")
	stderr := newOutput()
	c := exec.Command(program, "serve", "--config", path, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	c.Stderr = stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	s := &serving{base: stderr.await(t, `serves (http\S+)`), admin: stderr.await(t, `admin  (http\S+)`), stderr: stderr}
	if status := s.ask(t, "search", "any"); status != http.StatusOK {
		t.Errorf("a call: %d", status)
	}
	tell(t, c, syscall.SIGHUP)
	stderr.await(t, "the configuration was reloaded")
	if err := os.WriteFile(path, []byte("nonsense: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	tell(t, c, syscall.SIGHUP)
	stderr.await(t, "the old one stays")
	out, err := exec.Command(program, "status", "--admin", s.admin).Output()
	if err != nil || !strings.Contains(string(out), "1 / 100") {
		t.Errorf("status: %s, %v", out, err)
	}
	tell(t, c, syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("%v\n%s", err, stderr)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("it does not end\n%s", stderr)
	}
	stderr.await(t, `"msg":"drained"`)
}

func tell(t *testing.T, c *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
