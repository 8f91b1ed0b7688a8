// Package clients holds the test of the clients in other languages.
package clients

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"dappco.re/go/core/go-ratelimit/internal/gateway/config"
	"dappco.re/go/core/go-ratelimit/internal/gateway/server"
	"dappco.re/go/core/go-ratelimit/internal/mockprovider"
)

// start runs a gateway in front of a stand-in for the provider, and returns its URL. extra is part of
// its file.
func start(t *testing.T, extra string) string {
	t.Helper()
	provider := httptest.NewServer(mockprovider.New(mockprovider.Config{}))
	t.Cleanup(provider.Close)
	text := fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: off}\nstate: memory\nlog: {level: off}\nproviders:\n  openai:\n    base_url: %s\n%s", provider.URL, extra)
	c, err := config.Parse("gateway.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	started, ended := make(chan server.Running, 1), make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{
			Load:    func() (*config.Config, error) { return c, nil },
			Started: func(r server.Running) { started <- r },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case running := <-started:
		return "http://" + running.Clients.String() + "/openai/v1"
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return ""
	}
}

var clients = map[string][]string{"python3": {"client.py"}, "node": {"client.mjs"}}

// Both clients get an answer and a stream through the gateway.
func TestClients(t *testing.T) {
	base := start(t, "")
	for program, args := range clients {
		t.Run(program, func(t *testing.T) {
			out := runClient(t, program, append(args, base), 0)
			for _, want := range []string{"answer: the sea was calm", "tokens: 19", "stream: the sea was calm"} {
				if !strings.Contains(out, want) {
					t.Errorf("there is no %q in\n%s", want, out)
				}
			}
		})
	}
}

// A call that can never pass ends the client: it does not try again.
func TestNever(t *testing.T) {
	base := start(t, "defaults: {dollars: 0.000001}\n")
	for program, args := range clients {
		t.Run(program, func(t *testing.T) {
			if out := runClient(t, program, append(args, base), 1); !strings.Contains(out, "400: ") || strings.Contains(out, "denied") {
				t.Errorf("it says\n%s", out)
			}
		})
	}
}

// runClient returns what a client prints.
func runClient(t *testing.T, program string, args []string, wantCode int) string {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("there is no %s: scripts/deps.sh installs it", program)
	}
	c := exec.CommandContext(t.Context(), program, args...)
	out, err := c.CombinedOutput()
	if code := c.ProcessState.ExitCode(); code != wantCode {
		t.Fatalf("it ends with %d (%v)\n%s", code, err, out)
	}
	return string(out)
}
