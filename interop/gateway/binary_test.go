package gateway_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/admin"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
)

// The command, with a configuration file, serves SDKs that know it by the
// environment alone.
func TestCommand(t *testing.T) {
	p := newProvider(t, time.Now())
	g := serve(t, p)
	key := strings.TrimSpace(g.run(t, "key", "create", project, "--admin", g.admin))
	for name, value := range map[string]string{
		"OPENAI_BASE_URL": g.url + "/openai/v1", "OPENAI_API_KEY": key,
		"ANTHROPIC_BASE_URL": g.url + "/anthropic", "ANTHROPIC_API_KEY": key,
		"GOOGLE_GEMINI_BASE_URL": g.url + "/gemini", "GEMINI_API_KEY": key,
	} {
		t.Setenv(name, value)
	}
	for _, s := range sdks {
		do := s.do
		if strings.HasSuffix(s.name, "-node") {
			own := &node{script: nodes[s.provider].script}
			t.Cleanup(own.end)
			do = own.do
		}
		for _, call := range every {
			seen := len(p.received())
			if a := do(t, ask{Call: call, Model: s.model}); a.Error != nil || len(a.Shown) == 0 {
				t.Errorf("%s: %s: %+v", s.name, call, a.Error)
			}
			for _, got := range p.received()[seen:] {
				got.carries(t, s.provider)
			}
		}
	}
	testkit.Eventually(t, "the command has counted what the provider has sent", func() bool { return g.counts(t, p) })
	log := g.stop(t)
	if virtual := key[strings.LastIndex(key, "-")+1:]; strings.Contains(log, virtual) || strings.Contains(log, secretOf("")) {
		t.Error("a key is in the log")
	}
	if n := strings.Count(log, `"outcome":"passed"`); n != len(p.received()) {
		t.Errorf("%d requests are in the log; the provider has got %d", n, len(p.received()))
	}
}

// command is the program, serving.
type command struct {
	program    string
	cmd        *exec.Cmd
	url, admin string
	log        *testkit.Log
	logEnded   chan struct{}
}

// serve builds the program, and runs it in front of a provider.
func serve(t *testing.T, p *provider) *command {
	t.Helper()
	dir := t.TempDir()
	g := &command{program: filepath.Join(dir, "ratelimit"), log: new(testkit.Log), logEnded: make(chan struct{})}
	build := exec.Command("go", "build", "-trimpath", "-o", g.program, "./cmd/ratelimit")
	build.Dir = "../.."                               // the main module, with its own requirements
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as a release is built: its packages are compiled once for all tests
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file := filepath.Join(dir, "gateway.yaml")
	if err := os.WriteFile(file, []byte(placed(t, with(ample), p.url)), 0o600); err != nil {
		t.Fatal(err)
	}
	g.cmd = exec.Command(g.program, "serve", "--config", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--state", filepath.Join(dir, "state.db"))
	stderr, err := g.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.cmd.Process.Kill()
		g.cmd.Wait()
	})
	g.listen(t, bufio.NewReader(stderr))
	return g
}

// listen reads from the program where it listens, and keeps what else it says.
func (g *command) listen(t *testing.T, said *bufio.Reader) {
	t.Helper()
	for g.url == "" || g.admin == "" {
		line, err := said.ReadString('\n')
		if err != nil {
			t.Fatalf("it does not start: %v\n%s%s", err, g.log, line)
		}
		io.WriteString(g.log, line)
		if _, address, ok := strings.Cut(strings.TrimSpace(line), " serves "); ok {
			g.url = address
		}
		if address, ok := strings.CutPrefix(strings.TrimSpace(line), "admin "); ok {
			g.admin, _, _ = strings.Cut(strings.TrimSpace(address), " ")
		}
	}
	go func() {
		defer close(g.logEnded)
		io.Copy(g.log, said)
	}()
}

// run runs another command of the program, and returns what that prints.
func (g *command) run(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(g.program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, &stderr)
	}
	return string(out)
}

// counts reports whether its status shows what the provider has sent.
func (g *command) counts(t *testing.T, p *provider) bool {
	t.Helper()
	var state admin.State
	if err := json.Unmarshal([]byte(g.run(t, "status", "--json", "--admin", g.admin)), &state); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range state.Models {
		sent, called := p.Totals()[m.Name]
		if !called {
			continue
		}
		found++
		if m.Usage == nil || m.Usage.Used["max_rpm"] != sent.Requests || m.Usage.Used["max_tpm"] != counted(m.Name, sent) {
			return false
		}
	}
	return state.Active == 0 && found == len(p.Totals())
}

// stop ends the program as a system does, and returns all that it has printed.
func (g *command) stop(t *testing.T) string {
	t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-g.logEnded
	if err := g.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, g.log)
	}
	return g.log.String()
}
