package scenarios

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/server"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
	"dappco.re/go/core/go-ratelimit/internal/testkit"
	"dappco.re/go/core/go-ratelimit/store/redisstore"
)

// gatewayURLs is the addresses of a gateway, and its log.
type gatewayURLs struct {
	url, admin string
	log        *testkit.Log
}

// address returns the host and port for clients.
func (g *gatewayURLs) address() string { return strings.TrimPrefix(g.url, "http://") }

// inProcess is a gateway in this process.
type inProcess struct {
	gatewayURLs
	server.Running
}

// written writes a configuration to a file, with the provider's address in place of MOCK, and
// returns the file's path.
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
func start(t *testing.T, yaml, state string, p *provider) *inProcess {
	t.Helper()
	file := written(t, yaml, p)
	ctx, end := context.WithCancel(context.Background())
	g, started, ended := &inProcess{gatewayURLs: gatewayURLs{log: new(testkit.Log)}}, make(chan server.Running, 1), make(chan error, 1)
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
		if err := <-ended; err != nil && !strings.Contains(err.Error(), redisstore.ErrLost.Error()) { // the end reports an earlier loss, too
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

// process is a gateway in a process of its own.
type process struct {
	gatewayURLs
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // the process's, once it has ended
}

// launch runs the program with a configuration file, on free ports. An empty state leaves the file's.
func launch(t *testing.T, file, state string) *process {
	t.Helper()
	return launchWith(t, nil, file, state)
}

// launchWith is launch by a command that runs the program.
func launchWith(t *testing.T, command []string, file, state string) *process {
	t.Helper()
	p := &process{gatewayURLs: gatewayURLs{log: new(testkit.Log)}, ended: make(chan struct{})}
	args := []string{"serve", "--config", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}
	if state != "" {
		args = append(args, "--state", state)
	}
	args = slices.Concat(command, []string{program}, args)
	p.cmd = exec.Command(args[0], args[1:]...)
	p.cmd.Stderr = p.log
	p.cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // where the state is, unless another place is named
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
	p.url = p.log.Await(t, `serves (http\S+)`)
	p.admin = p.log.Await(t, `admin  (http\S+)`)
	return p
}

// signal sends a signal to the process.
func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// stop lets the program drain, and expects that it ends without an error.
func (p *process) stop(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	p.wait(t)
	if p.err != nil {
		t.Errorf("%v\n%s", p.err, p.log)
	}
}

// wait waits for the end of the process. If it does not end, wait makes it dump its
// goroutines.
func (p *process) wait(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(testkit.Patience):
		p.signal(t, syscall.SIGQUIT)
		<-p.ended
		t.Fatalf("it does not end:\n%s", p.log)
	}
}

// lasting are the kinds of stores that outlive a gateway.
var lasting = map[string]func(t *testing.T) string{
	"sqlite": func(t *testing.T) string { return filepath.Join(t.TempDir(), "state.db") },
	"redis":  func(t *testing.T) string { return redistest.New(t).PatientURL() },
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
