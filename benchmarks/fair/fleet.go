package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
	"dappco.re/go/core/go-ratelimit/internal/redistest"
)

// fleet is gateways, each a process of its own, on one Redis and before one provider.
type fleet struct {
	dir      string
	redis    *redistest.Server
	provider *httptest.Server
	client   *http.Client
	gateways []*gateway
}

// gateway is a process of `ratelimit serve`.
type gateway struct {
	cmd   *exec.Cmd
	url   string
	ended chan struct{}
}

// buildGateway builds the program into a directory, and returns its path.
func buildGateway(ctx context.Context, dir string) (string, error) {
	const module = "dappco.re/go/core/go-ratelimit"
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("the module %s is not found from here: %w", module, err)
	}
	program := filepath.Join(dir, "ratelimit")
	build := exec.CommandContext(ctx, "go", "build", "-C", strings.TrimSpace(string(root)), "-trimpath", "-o", program, "./cmd/ratelimit")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as a release is built
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the gateway does not build: %w\n%s", err, out)
	}
	return program, nil
}

// fleetConfig lets calls wait for as long as it takes. The window is exactly a minute.
const fleetConfig = `
admin: {listen: "off"}
providers:
  mock:
    kind: openai
    base_url: MOCK
    margin: 0s
    models: {%s: {max_rpm: %d}}
defaults: {max_wait: 1h}
projects:%s
log: {level: "off"}
`

// configOf returns the configuration of the gateways of a load.
func configOf(l *load) string {
	projects := ""
	for _, c := range l.clients {
		projects += fmt.Sprintf("\n  %s: {weight: %d}", c.name, c.weight)
	}
	return fmt.Sprintf(fleetConfig, model, l.quota, projects)
}

// newFleet starts a number of gateways with a configuration, before a provider whose answers take so long.
func newFleet(ctx context.Context, program, config string, answer time.Duration, gateways int) (f *fleet, err error) {
	f = &fleet{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if f.redis, err = redistest.Start(redistest.Options{}); err != nil {
		return nil, err
	}
	f.provider = httptest.NewServer(mockprovider.New(mockprovider.Config{Delay: answer}))
	if f.dir, err = os.MkdirTemp("", "fair"); err != nil {
		return nil, err
	}
	file := filepath.Join(f.dir, "gateway.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, "MOCK", f.provider.URL)), 0o600); err != nil {
		return nil, err
	}
	for range gateways {
		cmd := exec.CommandContext(ctx, program, "serve", "--config", file, "--state", f.redis.URL(), "--listen", "127.0.0.1:0")
		g, err := startGateway(cmd)
		if err != nil {
			return nil, err
		}
		f.gateways = append(f.gateways, g)
	}
	return f, nil
}

var serves = regexp.MustCompile(`serves (http\S+)`)

// startGateway starts a process, and waits until it says where it serves.
func startGateway(cmd *exec.Cmd) (*gateway, error) {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &gateway{cmd: cmd, ended: make(chan struct{})}
	urls, said := make(chan string, 1), ""
	go func() {
		defer close(g.ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if found := serves.FindStringSubmatch(lines.Text()); found != nil {
				urls <- found[1]
				break
			}
			said += lines.Text() + "\n"
		}
		io.Copy(io.Discard, stderr)
		cmd.Wait()
	}()
	select {
	case g.url = <-urls:
		return g, nil
	case <-g.ended:
		return nil, fmt.Errorf("a gateway does not start:\n%s", said)
	}
}

// kill ends the process at once (kill -9).
func (g *gateway) kill() {
	g.cmd.Process.Kill()
	<-g.ended
}

func (f *fleet) close() {
	for _, g := range f.gateways {
		g.kill()
	}
	f.client.CloseIdleConnections()
	if f.provider != nil {
		f.provider.CloseClientConnections()
		f.provider.Close()
	}
	if f.redis != nil {
		f.redis.Close()
	}
	os.RemoveAll(f.dir)
}

// call makes a call of a project through a gateway, and waits for the answer. An empty project is none.
func (f *fleet) call(ctx context.Context, g *gateway, project string) error {
	body := fmt.Sprintf(`{"model": %q, "messages": [{"role": "user", "content": "hello"}]}`, model)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/mock/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer sk-0123456789abcdef")
	if project != "" {
		r.Header.Set("X-Project-ID", project)
	}
	answer, err := f.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

// commandCalls finds how often Redis was sent each command. Redis also counts the commands that scripts
// call, and those that keep a connection alive: the others are named here.
var commandCalls = regexp.MustCompile(`(?m)^cmdstat_(eval|evalsha|fcall|publish|hgetall|scan|unlink):calls=(\d+)`)

// asked returns how many commands the gateways have sent to Redis, and how many of them are messages.
func (f *fleet) asked() (all, messages int, err error) {
	info, err := f.redis.Do("INFO", "commandstats")
	if err != nil {
		return 0, 0, err
	}
	for _, each := range commandCalls.FindAllStringSubmatch(fmt.Sprint(info), -1) {
		n, err := strconv.Atoi(each[2])
		if err != nil {
			return 0, 0, err
		}
		all += n
		if each[1] == "publish" {
			messages += n
		}
	}
	return all, messages, nil
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
