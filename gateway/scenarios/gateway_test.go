package scenarios

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/gateway/config"
	"dappco.re/go/core/go-ratelimit/gateway/server"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

// door is where a gateway serves, and what it says.
type door struct {
	url, admin string
	log        *logged
}

// address returns the host and port for clients.
func (d *door) address() string { return strings.TrimPrefix(d.url, "http://") }

// inside is a gateway in this process.
type inside struct {
	door
	server.Running
}

// written writes a configuration, in which MOCK stands for the provider's address, and
// returns the file.
func written(t *testing.T, yaml string, p *provider) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	rewrite(t, file, strings.ReplaceAll(yaml, "MOCK", p.url))
	return file
}

// rewrite replaces a file in one step.
func rewrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// start runs a gateway in this process, in front of a provider.
func start(t *testing.T, yaml, state string, p *provider) *inside {
	t.Helper()
	file := written(t, yaml, p)
	ctx, end := context.WithCancel(context.Background())
	g, started, ended := &inside{door: door{log: newLogged()}}, make(chan server.Running, 1), make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{
			Load: func() (*config.Config, error) {
				return config.Load(file, config.Overrides{Listen: "127.0.0.1:0", Admin: "127.0.0.1:0", State: state})
			},
			Log:     slog.New(slog.NewJSONHandler(g.log, nil)),
			Started: func(r server.Running) { started <- r },
		})
	}()
	t.Cleanup(func() {
		end()
		p.release()
		if err := <-ended; err != nil && !strings.Contains(err.Error(), "redis is lost") { // which is told at the end, though it has healed
			t.Error(err)
		}
	})
	select {
	case g.Running = <-started:
	case err := <-ended:
		ended <- nil
		t.Fatalf("it does not start: %v", err)
	}
	g.url, g.admin = "http://"+g.Clients.String(), "http://"+g.Running.Admin.String()
	return g
}

// process is the program, serving.
type process struct {
	door
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // once it has ended
}

// launch runs the program with a configuration file, at some address or again at one. An
// empty state is the file's.
func launch(t *testing.T, file, state, address string) *process {
	t.Helper()
	p := &process{door: door{log: newLogged()}, ended: make(chan struct{})}
	args := []string{"serve", "--config", file, "--listen", address, "--admin", "127.0.0.1:0"}
	if state != "" {
		args = append(args, "--state", state)
	}
	p.cmd = exec.Command(program, args...)
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.ended
	})
	p.url = p.log.await(t, `serves (http\S+)`, 1)
	p.admin = p.log.await(t, `admin  (http\S+)`, 1)
	return p
}

// anywhere is an address at which none serves yet.
const anywhere = "127.0.0.1:0"

// tell sends a signal.
func (p *process) tell(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stop ends the program in good order.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.tell(t, syscall.SIGTERM)
	if p.wait(t); p.err != nil {
		t.Errorf("%v\n%s", p.err, p.log)
	}
}

// wait waits for its end. If that does not come, it has it say what it does.
func (p *process) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(2 * patience):
		p.tell(t, syscall.SIGQUIT)
		<-p.ended
		t.Fatalf("it does not end:\n%s", p.log)
	}
}

// lasting are the stores that outlive a gateway.
var lasting = map[string]func(t *testing.T) string{
	"sqlite": func(t *testing.T) string { return filepath.Join(t.TempDir(), "state.db") },
	"redis":  func(t *testing.T) string { return redistest.New(t).URL() },
}

// onLasting runs a test on each store that outlives a gateway.
func onLasting(t *testing.T, test func(t *testing.T, state string)) {
	for name, state := range lasting {
		t.Run(name, func(t *testing.T) { test(t, state(t)) })
	}
}

// onEach runs a test on each store.
func onEach(t *testing.T, test func(t *testing.T, state string)) {
	t.Run("memory", func(t *testing.T) { test(t, config.Memory) })
	onLasting(t, test)
}
