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

	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// The program serves, reloads at SIGHUP, and ends without an error at SIGTERM.
func TestProcess(t *testing.T) {
	p := startProgram(t)
	if status := p.ask(t, "search", "any"); status != http.StatusOK {
		t.Errorf("a call: %d", status)
	}
	tell(t, p.command, syscall.SIGHUP)
	p.stderr.Await(t, "the configuration was reloaded")
	if err := os.WriteFile(p.file, []byte("nonsense: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	tell(t, p.command, syscall.SIGHUP)
	p.stderr.Await(t, "the old one stays")
	out, err := exec.Command(p.command.Path, "status", "--admin", p.admin).Output()
	if err != nil || !strings.Contains(string(out), "1 / 100") {
		t.Errorf("status: %s, %v", out, err)
	}
	tell(t, p.command, syscall.SIGTERM)
	if err := p.wait(t); err != nil {
		t.Errorf("%v\n%s", err, p.stderr)
	}
	p.stderr.Await(t, `"msg":"drained"`)
}

// A second signal ends the program at once, even while requests are being answered.
func TestSecondSignal(t *testing.T) {
	p := startProgram(t)
	req, err := http.NewRequest(http.MethodPost, p.base+"/openai/v1/chat/completions", strings.NewReader(`{"model":"m","stream":true,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Mock", "fault=stall after=1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	tell(t, p.command, syscall.SIGTERM)
	p.stderr.Await(t, "new requests are refused")
	tell(t, p.command, syscall.SIGTERM)
	if err := p.wait(t); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("it ends with %v", err)
	}
}

// program is a gateway in a process of its own.
type program struct {
	serving
	command *exec.Cmd
	file    string // the path of its configuration
}

// startProgram starts a gateway.
func startProgram(t *testing.T) *program {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it has no such signals")
	}
	path := buildProgram(t)
	t.Setenv("TEST_KEY", "sk-test")
	p := &program{file: withMock(t, "state: "+filepath.Join(t.TempDir(), "state.db")+"\n")}
	p.stderr = new(testkit.Log)
	p.command = exec.Command(path, "serve", "--config", p.file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	p.command.Stderr = p.stderr
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.command.Process.Kill()
		p.command.Wait()
	})
	p.base, p.admin = p.stderr.Await(t, `serves (http\S+)`), p.stderr.Await(t, `admin  (http\S+)`)
	p.stderr.Await(t, `openai +http`)
	return p
}

// buildProgram returns the path of the program: a script that becomes the tests' own binary, which needs
// no compiler.
func buildProgram(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ratelimit")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+asProgram+"=1 exec '"+binary+"' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// wait waits for the end of the program.
func (p *program) wait(t *testing.T) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.command.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(testkit.Patience):
		t.Fatalf("it does not end\n%s", p.stderr)
		return nil
	}
}

func tell(t *testing.T, c *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}
